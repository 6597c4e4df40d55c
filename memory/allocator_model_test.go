package memory

import (
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/timeline"
	"pgregory.net/rapid"
)

// fakeHeap counts its blocks and fails on demand.
type fakeHeap struct {
	calls  int
	blocks map[uint64]uint64 // size by ID
	freed  []uint64
	fail   func(call int, size uint64) error // nil: never
	host   bool
	bad    error // the first misuse of the heap
}

var errDriver = fmt.Errorf("vkAllocateMemory: VK_ERROR_OUT_OF_DEVICE_MEMORY: %w", ErrOutOfMemory)

func (h *fakeHeap) AllocateBlock(size uint64) (HeapBlock, error) {
	h.calls++
	if h.fail != nil {
		if err := h.fail(h.calls, size); err != nil {
			return HeapBlock{}, err
		}
	}
	if h.blocks == nil {
		h.blocks = map[uint64]uint64{}
	}
	id := uint64(h.calls)
	h.blocks[id] = size
	b := HeapBlock{ID: id, Size: size}
	if h.host {
		b.Host = unsafe.Pointer(unsafe.SliceData(make([]byte, size)))
		b.Address = 1 << 40
	}
	return b, nil
}

func (h *fakeHeap) FreeBlock(b HeapBlock) {
	if size, ok := h.blocks[b.ID]; h.bad == nil && (!ok || size != b.Size) {
		h.bad = fmt.Errorf("freed block %d of %d bytes, which is not allocated", b.ID, b.Size)
	}
	delete(h.blocks, b.ID)
	h.freed = append(h.freed, b.ID)
}

func (h *fakeHeap) bytes() (sum uint64) {
	for _, size := range h.blocks {
		sum += size
	}
	return sum
}

// newAllocator returns an allocator that is validated at the end of the test,
// when its heap is checked for leaks.
func newAllocator(t testing.TB, h *fakeHeap, o AllocatorOptions) *Allocator {
	t.Helper()
	a, err := NewAllocator(h, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Validate(); err != nil {
			t.Error(err)
		}
		if err := a.Close(); err != nil && !errors.Is(err, ErrLeaked) {
			t.Error(err)
		}
		if h.bad != nil || len(h.blocks) != 0 {
			t.Errorf("heap after close: %d blocks left, misuse %v", len(h.blocks), h.bad)
		}
	})
	return a
}

func allocate(t testing.TB, a *Allocator, size uint64) Storage {
	t.Helper()
	s, err := a.Allocate(size)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func free(t testing.TB, a *Allocator, s Storage, lastUse ...timeline.Point) {
	t.Helper()
	if err := a.Free(&s, timeline.NewFrontier(lastUse...)); err != nil {
		t.Fatal(err)
	}
}

// use records freed memory of one block and its last use.
type use struct {
	storage Storage
	lastUse timeline.Frontier
}

// allocatorMachine runs an Allocator beside a model that records every storage
// byte by byte, with a device that passes timeline points in random order.
type allocatorMachine struct {
	a       *Allocator
	heap    *fakeHeap
	options AllocatorOptions
	live    []Storage
	history []use // of the blocks that the heap still has
	passed  clock
}

func (m *allocatorMachine) completed(f timeline.Frontier) bool {
	for i := range f.Len() {
		if p := f.At(i); m.passed[p.Queue] < p.Value {
			return false
		}
	}
	return true
}

func overlaps(a, b Storage) bool {
	return a.Block.ID == b.Block.ID && a.Offset < b.Offset+b.Size && b.Offset < a.Offset+a.Size
}

func (m *allocatorMachine) allocate(t *rapid.T) {
	size := rapid.OneOf(
		rapid.Uint64Range(1, 4096),
		rapid.Uint64Range(1, 1<<20),
		rapid.SampledFrom([]uint64{1, m.options.Alignment, m.options.Alignment + 1, m.options.MinBlock, m.options.MaxBlock / 2, m.options.MaxBlock/2 + 1, m.options.MaxBlock}),
	).Draw(t, "size")
	before := m.a.Stats()
	s, err := m.a.Allocate(size)
	if err != nil {
		if !errors.Is(err, ErrOutOfMemory) {
			t.Fatal(err)
		}
		if after := m.a.Stats(); after.LiveBytes != before.LiveBytes || after.Allocations != before.Allocations {
			t.Fatalf("a failed allocation changed %+v into %+v", before, after)
		}
		m.forget()
		return
	}
	m.forget()
	if s.Size != size || s.Offset%m.options.Alignment != 0 || s.Offset+s.Size > s.Block.Size {
		t.Fatalf("asked %d bytes, got %d at %d of %d", size, s.Size, s.Offset, s.Block.Size)
	}
	if m.heap.blocks[s.Block.ID] != s.Block.Size {
		t.Fatalf("storage lies in block %d, which the heap does not have", s.Block.ID)
	}
	for _, o := range m.live {
		if overlaps(s, o) {
			t.Fatalf("[%d,+%d) overlaps [%d,+%d) of block %d", s.Offset, s.Size, o.Offset, o.Size, s.Block.ID)
		}
	}
	for _, u := range m.history {
		if overlaps(s, u.storage) && !s.LastUse().Dominates(u.lastUse) {
			t.Fatalf("[%d,+%d) of block %d comes after %v and was used at %v", s.Offset, s.Size, s.Block.ID, s.LastUse(), u.lastUse)
		}
	}
	m.live = append(m.live, s)
}

func (m *allocatorMachine) free(t *rapid.T) {
	if len(m.live) == 0 {
		t.Skip("nothing to free")
	}
	i := rapid.IntRange(0, len(m.live)-1).Draw(t, "index")
	s, f := m.live[i], drawFrontier(t)
	m.live[i] = m.live[len(m.live)-1]
	m.live = m.live[:len(m.live)-1]
	m.history = append(m.history, use{storage: s, lastUse: f.Clone()})
	if err := m.a.Free(&s, f); err != nil {
		t.Fatal(err)
	}
	f.Reset() // the allocator keeps nothing of the caller's frontier
	f.Add(timeline.Point{Queue: 0, Value: 1})
	m.forget()
	if err := m.a.Free(&s, f); !errors.Is(err, ErrUnknownStorage) {
		t.Fatalf("second free: %v", err)
	}
}

// forget drops the history of the blocks that went back to the heap; the device
// must no longer use them.
func (m *allocatorMachine) forget() {
	var kept []use
	for _, u := range m.history {
		if _, ok := m.heap.blocks[u.storage.Block.ID]; ok {
			kept = append(kept, u)
		} else if !m.completed(u.lastUse) && m.heap.bad == nil {
			m.heap.bad = fmt.Errorf("block %d was freed before the device passed %v", u.storage.Block.ID, u.lastUse)
		}
	}
	m.history = kept
}

func (m *allocatorMachine) check(t *rapid.T) {
	if err := m.a.Validate(); err != nil {
		t.Fatal(err)
	}
	if m.heap.bad != nil {
		t.Fatal(m.heap.bad)
	}
	s := m.a.Stats()
	if s.Blocks != len(m.heap.blocks) || s.BlockBytes != m.heap.bytes() || s.Allocations != len(m.live) {
		t.Fatalf("%+v where the heap has %d blocks of %d bytes and %d allocations live", s, len(m.heap.blocks), m.heap.bytes(), len(m.live))
	}
	if limit := m.options.MaxBlocks; limit != 0 && s.Blocks > limit {
		t.Fatalf("%d blocks, the limit is %d", s.Blocks, limit)
	}
}

func TestAllocatorAgreesWithByteModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &allocatorMachine{heap: &fakeHeap{}}
		m.options = AllocatorOptions{
			MinBlock:  1 << rapid.IntRange(14, 20).Draw(t, "MinBlock"),
			MaxBlock:  1 << rapid.IntRange(20, 23).Draw(t, "MaxBlock"),
			Alignment: 1 << rapid.IntRange(0, 12).Draw(t, "Alignment"),
			MaxBlocks: rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "MaxBlocks"),
			Completed: m.completed,
		}
		refused := map[int]bool{}
		for _, n := range rapid.SliceOfN(rapid.IntRange(1, 20), 0, 6).Draw(t, "refused") {
			refused[n] = true
		}
		m.heap.fail = func(call int, _ uint64) error {
			if refused[call] {
				return errDriver
			}
			return nil
		}
		a, err := NewAllocator(m.heap, m.options)
		if err != nil {
			t.Fatal(err)
		}
		m.a = a
		t.Repeat(map[string]func(*rapid.T){
			"allocate":  m.allocate,
			"allocate2": m.allocate,
			"free":      m.free,
			"pass": func(t *rapid.T) {
				q := rapid.IntRange(0, modelQueues-1).Draw(t, "queue")
				m.passed[q] += rapid.Uint64Range(0, 400).Draw(t, "by")
			},
			"trim": func(t *rapid.T) {
				before := m.heap.bytes()
				if got, want := a.Trim(), before-m.heap.bytes(); got != want {
					t.Fatalf("trimmed %d bytes, the heap got %d", got, want)
				}
				m.forget()
			},
			"": m.check,
		})
		for len(m.live) > 0 {
			m.free(t)
			m.check(t)
		}
		for q := range m.passed {
			m.passed[q] = 1 << 40
		}
		a.Trim()
		if len(m.heap.blocks) != 0 {
			t.Fatalf("%d blocks are left once all is freed, passed and trimmed", len(m.heap.blocks))
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
