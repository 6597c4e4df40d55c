package memory

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/timeline"
)

func TestLargeRequestGetsABlockOfItsOwn(t *testing.T) {
	h := &fakeHeap{}
	a := newAllocator(t, h, AllocatorOptions{MinBlock: 1 << 16, MaxBlock: 1 << 20})
	small := allocate(t, a, 100)
	at := allocate(t, a, 1<<19)
	large := allocate(t, a, 1<<19+1)
	if at.Block.Size == 1<<19+256 || large.Block.Size != 1<<19+256 || large.Offset != 0 {
		t.Errorf("half of MaxBlock lies in a block of %d, a byte more in one of %d", at.Block.Size, large.Block.Size)
	}
	if next := allocate(t, a, 100); next.Block.ID == large.Block.ID || next.Block.ID != small.Block.ID {
		t.Errorf("a small request lies in block %d", next.Block.ID)
	}
}

func TestEmptyDedicatedBlockServesSimilarSize(t *testing.T) {
	h := &fakeHeap{}
	a := newAllocator(t, h, AllocatorOptions{MinBlock: 1 << 16, MaxBlock: 1 << 20})
	p := timeline.Point{Queue: 1, Value: 9}
	first := allocate(t, a, 10<<20)
	free(t, a, first, p)
	again := allocate(t, a, 10<<20-5000)
	if again.Block.ID != first.Block.ID || !again.LastUse().Covers(p) {
		t.Errorf("got block %d after %v, want block %d after %v", again.Block.ID, again.LastUse(), first.Block.ID, p)
	}
	free(t, a, again)
	if other := allocate(t, a, 5<<20); other.Block.ID == first.Block.ID {
		t.Error("a request of half the size wastes the other half")
	}
}

// Blocks double once the total has grown, so that what is reserved stays in
// proportion to what is used.
func TestBlocksGrowFromMinToMax(t *testing.T) {
	h := &fakeHeap{}
	o := AllocatorOptions{MinBlock: 1 << 16, MaxBlock: 1 << 20}
	a := newAllocator(t, h, o)
	sizes := map[uint64]bool{}
	previous := uint64(0)
	for a.Stats().LiveBytes < 64<<20 {
		s := allocate(t, a, 4096)
		if s.Block.Size < previous {
			t.Fatalf("a block of %d bytes follows one of %d", s.Block.Size, previous)
		}
		previous = s.Block.Size
		sizes[s.Block.Size] = true
		stats := a.Stats()
		if slack := stats.BlockBytes - stats.LiveBytes; slack > max(o.MinBlock, stats.BlockBytes/growthShare) {
			t.Fatalf("%+v reserves %d bytes in vain", stats, slack)
		}
	}
	for size := o.MinBlock; size <= o.MaxBlock; size *= 2 {
		if !sizes[size] {
			t.Errorf("no block of %d bytes", size)
		}
	}
	if len(sizes) != 5 {
		t.Errorf("sizes are %v", sizes)
	}
}

func TestFreeKeepsOneEmptyBlock(t *testing.T) {
	h := &fakeHeap{}
	a := newAllocator(t, h, AllocatorOptions{MinBlock: 1 << 16, MaxBlock: 1 << 20})
	var all []Storage
	for range 3 {
		all = append(all, allocate(t, a, 1<<20))
	}
	for i, want := range []int{3, 2, 1} {
		free(t, a, all[i])
		if got := a.Stats().Blocks; got != want {
			t.Errorf("%d blocks after %d frees, want %d", got, i+1, want)
		}
	}
	if got := a.Trim(); got != 1<<20 || len(h.blocks) != 0 {
		t.Errorf("trimmed %d bytes, %d blocks left", got, len(h.blocks))
	}
	if got := a.Trim(); got != 0 {
		t.Errorf("trimmed %d bytes of nothing", got)
	}
}

func TestEmptyBlocksAreKeptUpToALimit(t *testing.T) {
	h := &fakeHeap{}
	a := newAllocator(t, h, AllocatorOptions{MinBlock: 1 << 16, MaxBlock: 1 << 20, Keep: 3 << 20})
	var all []Storage
	take := func(n int) {
		for range n {
			all = append(all, allocate(t, a, 1<<20))
		}
	}
	giveAll := func() {
		for _, s := range all {
			free(t, a, s)
		}
		all = nil
	}
	take(3)
	giveAll()
	take(3)
	if s := a.Stats(); s.Blocks != 3 || s.TrimmedBlocks != 0 {
		t.Errorf("%+v: kept blocks are not used again", s)
	}
	take(2)
	giveAll()
	// The last one that becomes empty stays until the next.
	if s := a.Stats(); s.BlockBytes != 3<<20 {
		t.Errorf("%d bytes are kept, want %d", s.BlockBytes, 3<<20)
	}
	if got := a.Trim(); got != 3<<20 || len(h.blocks) != 0 {
		t.Errorf("trimmed %d bytes, %d blocks left", got, len(h.blocks))
	}
}

func TestTrimLeavesBlocksThatTheDeviceStillUses(t *testing.T) {
	h := &fakeHeap{}
	var passed timeline.Frontier
	a := newAllocator(t, h, AllocatorOptions{
		MinBlock: 1 << 16, MaxBlock: 1 << 20,
		Completed: func(f timeline.Frontier) bool { return passed.Dominates(f) },
	})
	p, q := timeline.Point{Queue: 0, Value: 5}, timeline.Point{Queue: 1, Value: 2}
	x, y := allocate(t, a, 1<<20), allocate(t, a, 2<<20)
	free(t, a, x, p)
	free(t, a, y, q)
	if got := a.Trim(); got != 0 || len(h.blocks) != 2 {
		t.Fatalf("trimmed %d bytes in use", got)
	}
	passed.Add(q)
	if got := a.Trim(); got != 2<<20 {
		t.Fatalf("trimmed %d bytes, want the second block", got)
	}
	// A block that was not used since keeps the frontier of its earlier use.
	x = allocate(t, a, 1<<20)
	if !x.LastUse().Covers(p) {
		t.Fatalf("storage comes after %v, used at %v", x.LastUse(), p)
	}
	free(t, a, x)
	if got := a.Trim(); got != 0 {
		t.Fatalf("trimmed %d bytes in use", got)
	}
	passed.Add(p)
	if got := a.Trim(); got != 1<<20 {
		t.Fatalf("trimmed %d bytes, want the first block", got)
	}
}

// Memory that was never used has an empty LastUse, although the allocator recycles
// its records.
func TestUnusedMemoryHasNoFrontier(t *testing.T) {
	p := timeline.Point{Queue: 0, Value: 5}
	for _, size := range []uint64{1000, 1 << 20} {
		h := &fakeHeap{}
		a := newAllocator(t, h, AllocatorOptions{MinBlock: 1 << 16, MaxBlock: 1 << 20})
		var all []Storage
		for range 5 {
			all = append(all, allocate(t, a, size))
		}
		for _, s := range all {
			free(t, a, s, p)
		}
		if s := allocate(t, a, size); !s.LastUse().Covers(p) {
			t.Errorf("%d bytes come after %v, used at %v", s.Size, s.LastUse(), p)
		} else {
			free(t, a, s)
		}
		a.Trim()
		if len(h.blocks) != 0 {
			t.Fatalf("%d blocks left", len(h.blocks))
		}
		for range 5 {
			if s := allocate(t, a, size); !s.LastUse().Empty() {
				t.Errorf("%d unused bytes come after %v", s.Size, s.LastUse())
			}
		}
	}
}

func TestFreeRefusesForeignAndStaleStorage(t *testing.T) {
	a := newAllocator(t, &fakeHeap{}, AllocatorOptions{})
	b := newAllocator(t, &fakeHeap{}, AllocatorOptions{})
	s := allocate(t, a, 100)
	before := a.Stats()
	for name, err := range map[string]error{
		"zero":    a.Free(&Storage{}, timeline.Frontier{}),
		"made up": a.Free(&Storage{Block: s.Block, Offset: s.Offset, Size: s.Size}, timeline.Frontier{}),
		"foreign": b.Free(&s, timeline.Frontier{}),
	} {
		if !errors.Is(err, ErrUnknownStorage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := a.Stats(); after != before {
		t.Errorf("refused frees changed %+v into %+v", before, after)
	}
	free(t, a, s)
	again := allocate(t, a, 100)
	if err := a.Free(&s, timeline.Frontier{}); !errors.Is(err, ErrUnknownStorage) || again.Offset != s.Offset {
		t.Errorf("the same bytes, freed through the storage of their previous user: %v", err)
	}
	free(t, a, again)
}

func TestOptionsAreValidated(t *testing.T) {
	for name, o := range map[string]AllocatorOptions{
		"alignment":      {Alignment: 3},
		"blocks":         {MinBlock: 2048, MaxBlock: 1024},
		"max allocation": {MaxAllocation: 100, Alignment: 256},
		"block limit":    {MaxBlocks: -1},
	} {
		if _, err := NewAllocator(&fakeHeap{}, o); err == nil {
			t.Errorf("%s: %+v was accepted", name, o)
		}
	}
	if _, err := NewAllocator(nil, AllocatorOptions{}); err == nil {
		t.Error("an allocator without a heap was accepted")
	}
	// Blocks are never larger than the largest allocation; small devices work too.
	h := &fakeHeap{}
	a := newAllocator(t, h, AllocatorOptions{MaxAllocation: 10_000})
	if s := allocate(t, a, 100); s.Block.Size != 9984 {
		t.Errorf("a block of %d bytes where the largest allocation is 10000", s.Block.Size)
	}
}

func TestHostAndAddressFollowTheOffset(t *testing.T) {
	a := newAllocator(t, &fakeHeap{host: true}, AllocatorOptions{MinBlock: 1 << 12, MaxBlock: 1 << 14})
	x, y := allocate(t, a, 256), allocate(t, a, 256)
	if x.Host() != x.Block.Host || y.Host() != unsafe.Add(y.Block.Host, y.Offset) || y.Offset == 0 {
		t.Errorf("host pointers are %p and %p in a block at %p", x.Host(), y.Host(), x.Block.Host)
	}
	if y.Address() != 1<<40+y.Offset {
		t.Errorf("device address is %#x", y.Address())
	}
	if z := allocate(t, newAllocator(t, &fakeHeap{}, AllocatorOptions{}), 1); z.Host() != nil || z.Address() != 0 {
		t.Error("memory that the host does not see has a host pointer or an address")
	}
}

func TestCloseCountsLeaks(t *testing.T) {
	h := &fakeHeap{}
	a := newAllocator(t, h, AllocatorOptions{})
	for range 3 {
		allocate(t, a, 1000)
	}
	free(t, a, allocate(t, a, 5000))
	kept := allocate(t, a, 300<<20)
	if err := a.Close(); !errors.Is(err, ErrLeaked) || !strings.Contains(err.Error(), "4 allocations, 314575800 bytes") {
		t.Errorf("close with leaks: %v", err)
	}
	if len(h.blocks) != 0 || h.bad != nil {
		t.Errorf("%d blocks left, %v", len(h.blocks), h.bad)
	}
	if err := a.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if _, err := a.Allocate(1); !errors.Is(err, ErrClosed) {
		t.Errorf("allocate after close: %v", err)
	}
	if err := a.Free(&kept, timeline.Frontier{}); !errors.Is(err, ErrClosed) {
		t.Errorf("free after close: %v", err)
	}
	if err := a.Validate(); err != nil {
		t.Errorf("after close: %v", err)
	}
	if got := a.Trim(); got != 0 {
		t.Errorf("trimmed %d bytes after close", got)
	}
}

// A leak report names the caller of the module, not the module's own frames.
func TestLeakReportStartsAtTheCaller(t *testing.T) {
	const module = "github.com/vkomp/vkomp"
	frames := func(functions ...string) (all []runtime.Frame) {
		for _, f := range functions {
			file := "a.go"
			if strings.HasPrefix(f, "test ") {
				f, file = strings.TrimPrefix(f, "test "), "a_test.go"
			}
			all = append(all, runtime.Frame{Function: f, File: file})
		}
		return all
	}
	for name, c := range map[string]struct {
		stack []runtime.Frame
		want  int // index of the first frame that is reported
	}{
		"program":           {frames("main.main", "runtime.main"), 0},
		"table":             {frames(module+"/memory.(*Table).allocate", module+"/memory.(*Table).Enter", "main.main"), 2},
		"scheduler":         {frames(module+"/sched.New.func1", module+"/memory.(*Table).Enter", module+"/sched.(*Scheduler).enter", module+".(*Device).Alloc", "main.f"), 4},
		"scheduler's rooms": {frames(module+"/sched.(*Scheduler).enter", module+"/sched/protect.Call", module+"/sched/host.(*hostTask).run", "main.f"), 3},
		"wrapper":           {frames(module+".Device.Alloc", module+"/shaders.F", "main.f"), 1},
		"scheduler's own":   {frames(module+"/sched.(*Scheduler).wait", "runtime.goexit"), 0},
		"nothing else":      {frames(module + "/sched.(*Scheduler).wait"), 0},
		"callback":          {frames("main.f", module+"/sched.(*Scheduler).enter", "main.main"), 0},
		"similar name":      {frames(module+"/scheduler.F", "main.main"), 0},
		"another's package": {frames("example.com/memory.F", "main.main"), 0},
		"test":              {frames(module+"/memory.(*Table).Enter", "test "+module+"/memory.TestLeaks", "testing.tRunner"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fromCaller(c.stack); len(got) != len(c.stack)-c.want {
				t.Errorf("the report starts at %s", got[0].Function)
			}
		})
	}
}

func TestUsersNeverShareBytes(t *testing.T) {
	h := &fakeHeap{host: true}
	a := newAllocator(t, h, AllocatorOptions{MinBlock: 1 << 14, MaxBlock: 1 << 16})
	random := rand.New(rand.NewPCG(1, 7))
	var live [8][]Storage
	release := func(user byte, i int) {
		s := live[user][i]
		for j, b := range unsafe.Slice((*byte)(s.Host()), s.Size) {
			if b != user {
				t.Fatalf("byte %d of user %d's storage was written by %d", j, user, b)
			}
		}
		if err := a.Free(&s, timeline.NewFrontier(timeline.Point{Queue: timeline.Queue(user), Value: 1})); err != nil {
			t.Fatal(err)
		}
		live[user][i] = live[user][len(live[user])-1]
		live[user] = live[user][:len(live[user])-1]
	}
	for range 3200 {
		user := byte(random.IntN(len(live)))
		switch {
		case len(live[user]) > 0 && random.IntN(2) == 0:
			release(user, random.IntN(len(live[user])))
		case random.IntN(50) == 0:
			a.Trim()
			a.Stats()
		default:
			s, err := a.Allocate(1 + random.Uint64N(1<<random.UintN(17)))
			if err != nil {
				t.Fatal(err)
			}
			bytes := unsafe.Slice((*byte)(s.Host()), s.Size)
			for i := range bytes {
				bytes[i] = user
			}
			live[user] = append(live[user], s)
		}
	}
	for user := range live {
		for len(live[user]) > 0 {
			release(byte(user), len(live[user])-1)
		}
	}
	if s := a.Stats(); s.Allocations != 0 || s.LiveBytes != 0 {
		t.Errorf("%+v once all is freed", s)
	}
}
