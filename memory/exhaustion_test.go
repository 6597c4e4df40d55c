package memory

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/timeline"
)

// The heap refuses every call from the n-th on, for every n that the workload
// reaches. The first request that cannot be served returns an error with the
// statistics, and nothing else changes.
func TestHeapFailureAtEveryCallLeavesAllocatorUnchanged(t *testing.T) {
	workload := func(a *Allocator) (live []Storage, before AllocatorStats, failed error) {
		sizes := rand.New(rand.NewPCG(1, 2))
		for i := range 60 {
			size := 1 + sizes.Uint64N(40_000)
			if i%7 == 6 {
				size = 600_000 + uint64(i) // above half of MaxBlock, so a dedicated block
			}
			if i%5 == 4 { // leaves gaps, and sometimes an empty block
				if err := a.Free(&live[0], timeline.Frontier{}); err != nil {
					return live, before, err
				}
				live = live[1:]
			}
			a.Trim() // so that a failing request finds nothing to trim
			before = a.Stats()
			s, err := a.Allocate(size)
			if err != nil {
				return live, before, err
			}
			live = append(live, s)
		}
		return live, before, nil
	}
	options := AllocatorOptions{MinBlock: 1 << 16, MaxBlock: 1 << 20}
	for n := 1; ; n++ {
		h := &fakeHeap{fail: func(call int, _ uint64) error {
			if call >= n {
				return errDriver
			}
			return nil
		}}
		a := newAllocator(t, h, options)
		live, before, err := workload(a)
		if err == nil {
			if n < 10 {
				t.Fatalf("the workload makes only %d heap calls", n-1)
			}
			return
		}
		after := a.Stats()
		if after != before {
			t.Fatalf("call %d: the failed allocation changed %+v into %+v", n, before, after)
		}
		var figures *OutOfMemoryError
		if !errors.Is(err, ErrOutOfMemory) || !errors.Is(err, errDriver) || !errors.As(err, &figures) {
			t.Fatalf("call %d: %v", n, err)
		}
		if figures.Asked == 0 || figures.LiveBytes != before.LiveBytes || figures.BlockBytes != before.BlockBytes || figures.Blocks != before.Blocks {
			t.Fatalf("call %d: %+v where the figures are %+v", n, *figures, before)
		}
		if err := a.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, s := range live {
			free(t, a, s)
		}
		h.fail = nil
		if _, _, err := workload(a); err != nil {
			t.Fatalf("call %d: the allocator did not recover: %v", n, err)
		}
	}
}

func TestOtherHeapErrorStopsTheRequest(t *testing.T) {
	lost := errors.New("VK_ERROR_DEVICE_LOST")
	for _, size := range []uint64{100, 1 << 20} {
		h := &fakeHeap{fail: func(int, uint64) error { return lost }}
		a := newAllocator(t, h, AllocatorOptions{MinBlock: 1 << 16, MaxBlock: 1 << 20})
		_, err := a.Allocate(size)
		if !errors.Is(err, lost) || errors.Is(err, ErrOutOfMemory) {
			t.Errorf("allocate %d: %v", size, err)
		}
		if h.calls != 1 {
			t.Errorf("allocate %d: %d calls to a lost device", size, h.calls)
		}
	}
}

func TestShortHeapBlockIsRefusedAndGivenBack(t *testing.T) {
	h := &shortHeap{}
	a, err := NewAllocator(h, AllocatorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Allocate(100); err == nil || a.Stats().Blocks != 0 || h.freed != 1 {
		t.Errorf("got %v with %d blocks, %d given back", err, a.Stats().Blocks, h.freed)
	}
}

type shortHeap struct{ freed int }

func (*shortHeap) AllocateBlock(size uint64) (HeapBlock, error) {
	return HeapBlock{ID: 1, Size: size - 1}, nil
}
func (h *shortHeap) FreeBlock(HeapBlock) { h.freed++ }

func TestRefusedGrowthTriesSmallerBlocks(t *testing.T) {
	h := &fakeHeap{}
	a := newAllocator(t, h, AllocatorOptions{MinBlock: 1 << 16, MaxBlock: 1 << 22})
	for a.Stats().BlockBytes < 1<<23 {
		allocate(t, a, 50_000)
	}
	h.fail = func(_ int, size uint64) error {
		if size > 70_000 {
			return errDriver
		}
		return nil
	}
	for a.Stats().BlockBytes < 9<<20 {
		allocate(t, a, 50_000)
	}
	h.fail = func(_ int, size uint64) error {
		if size > 50_176 {
			return errDriver
		}
		return nil
	}
	before := a.Stats().Blocks
	for a.Stats().Blocks == before {
		allocate(t, a, 50_000)
	}
	// Below MinBlock only the request itself is tried: a driver that has
	// nothing left is not asked over and over.
	h.fail = func(int, uint64) error { return errDriver }
	calls := h.calls
	for {
		if _, err := a.Allocate(100); err != nil {
			break
		}
	}
	if calls = h.calls - calls; calls < 3 || calls > 8 {
		t.Errorf("%d calls to a heap that refuses", calls)
	}
}

func TestRefusedGrowthTakesWhatAThoroughSearchFinds(t *testing.T) {
	h := &fakeHeap{}
	a := newAllocator(t, h, AllocatorOptions{MinBlock: 1 << 20, MaxBlock: 1 << 22, Alignment: 1})
	// Gaps of one size class; only the oldest is large enough.
	var gaps []Storage
	gaps = append(gaps, allocate(t, a, 2047))
	allocate(t, a, 1)
	for range 2 * classProbes {
		gaps = append(gaps, allocate(t, a, 2016))
		allocate(t, a, 1)
	}
	allocate(t, a, a.Stats().LargestFree)
	for _, s := range gaps {
		free(t, a, s)
	}
	h.fail = func(int, uint64) error { return errDriver }
	if s := allocate(t, a, 2047); s.Offset != gaps[0].Offset {
		t.Errorf("got offset %d, want the gap at %d", s.Offset, gaps[0].Offset)
	}
}

func TestExhaustionTrimsEmptyBlocksAndRetries(t *testing.T) {
	for name, last := range map[string]uint64{"shared": 300_000, "dedicated": 900_000} {
		t.Run(name, func(t *testing.T) {
			const budget = 1 << 20
			h := &fakeHeap{}
			h.fail = func(_ int, size uint64) error {
				if h.bytes()+size > budget {
					return errDriver
				}
				return nil
			}
			a := newAllocator(t, h, AllocatorOptions{MinBlock: 1 << 16, MaxBlock: 1 << 20})
			s := allocate(t, a, 800_000)
			if _, err := a.Allocate(last); !errors.Is(err, ErrOutOfMemory) {
				t.Fatalf("above the budget: %v", err)
			}
			free(t, a, s)
			if a.Stats().Blocks != 1 {
				t.Fatal("the emptied block was not kept")
			}
			allocate(t, a, last)
			if a.Stats().Blocks != 1 {
				t.Errorf("%d blocks, the empty one was not given back", a.Stats().Blocks)
			}
		})
	}
}

func TestRequestsThatCannotBeServedAreRefused(t *testing.T) {
	h := &fakeHeap{}
	a := newAllocator(t, h, AllocatorOptions{MinBlock: 1 << 12, MaxBlock: 1 << 16, MaxAllocation: 1<<20 + 100})
	if _, err := a.Allocate(0); !errors.Is(err, ErrInvalidSize) {
		t.Errorf("zero bytes: %v", err)
	}
	for _, size := range []uint64{1<<20 + 1, 1 << 40, ^uint64(0)} {
		if _, err := a.Allocate(size); !errors.Is(err, ErrOutOfMemory) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if h.calls != 0 {
		t.Errorf("%d calls to the heap", h.calls)
	}
	allocate(t, a, 1<<20)
	// Rounded up to the alignment, this is 0 bytes in 64 bits.
	boundless := &fakeHeap{}
	if _, err := newAllocator(t, boundless, AllocatorOptions{}).Allocate(^uint64(0)); !errors.Is(err, ErrOutOfMemory) || boundless.calls != 0 {
		t.Errorf("all of memory: %v after %d calls to the heap", err, boundless.calls)
	}
	full := &fakeHeap{fail: func(int, uint64) error { return errDriver }}
	if _, err := newAllocator(t, full, AllocatorOptions{Alignment: 1}).Allocate(^uint64(0)); !errors.Is(err, errDriver) {
		t.Errorf("all of memory: %v", err)
	}
}

func TestBlockLimitHolds(t *testing.T) {
	h := &fakeHeap{}
	a := newAllocator(t, h, AllocatorOptions{MinBlock: 1 << 12, MaxBlock: 1 << 12, MaxBlocks: 2})
	x := allocate(t, a, 4096)
	allocate(t, a, 2048)
	if _, err := a.Allocate(4096); !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), "all 2 blocks") {
		t.Errorf("a third block: %v", err)
	}
	allocate(t, a, 2048)
	free(t, a, x)
	allocate(t, a, 2048) // in the place of the empty block
	if h.calls != 3 {
		t.Errorf("%d calls to the heap, want 3", h.calls)
	}
}

// A request that fails leaves the storage alone to which it would have been written.
func TestFailedAllocationWritesNoStorage(t *testing.T) {
	a := newAllocator(t, &fakeHeap{fail: func(int, uint64) error { return errDriver }}, AllocatorOptions{})
	s := Storage{Offset: 3, Size: 5}
	for _, size := range []uint64{0, 100, 1 << 30} {
		if err := a.AllocateTo(&s, size); err == nil || s.Offset != 3 || s.Size != 5 || s.owner != nil {
			t.Errorf("%d bytes: %v, %+v", size, err, s)
		}
	}
}
