package allocation

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/internal/softdevice"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

// open returns the memory of a device, which has to be given back by the end of the test.
func open(t *testing.T, shape softdevice.Memory, o Options) (*Memory, *softdevice.Device) {
	t.Helper()
	d := softdevice.New(t, shape)
	m := new(Memory)
	if err := m.Open(d, d.Queues(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if d.Live != 0 {
			t.Errorf("%d blocks are left", d.Live)
		}
	})
	return m, d
}

func TestMemoryGoesBackWithItsLastKeeper(t *testing.T) {
	m, _ := open(t, softdevice.Unified, Options{})
	a, err := m.New(100)
	if err != nil {
		t.Fatal(err)
	}
	a.Pin()
	m.Export(a)
	for i, left := range []int{1, 0} {
		if exported := slices.Collect(m.Exported()); len(exported) != 1 || exported[0] != a {
			t.Fatalf("exported: %v", exported)
		}
		if n := a.Keepers(); n != 2-i {
			t.Fatalf("%d keepers, want %d", n, 2-i)
		}
		a.Unpin()
		if n := m.Storage.Stats().Allocations; n != left {
			t.Errorf("%d allocations after %d of 2 have let go", n, i+1)
		}
	}
	if n := len(m.exports); n != 0 {
		t.Errorf("%d allocations that were given back are exported", n)
	}
}

// An allocation that is used again knows nothing of the one before.
func TestAllocationsStartAnew(t *testing.T) {
	m, _ := open(t, softdevice.Unified, Options{})
	for range 100 {
		a, err := m.New(64)
		if err != nil {
			t.Fatal(err)
		}
		if a.Label != "" || a.Site != nil || a.exported || len(a.Blocks)+len(a.Readers) > 0 || a.Keepers() != 1 || a.Origin != Allocated {
			t.Fatalf("a new allocation is %+v", a)
		}
		a.Label, a.Site = "used", memory.CallSite()
		a.Blocks, a.Readers = append(a.Blocks, nil), append(a.Readers, new(order.Task))
		m.Export(a)
		a.Unpin()
	}
}

// Memory of others ends as its origin says.
func TestOriginSaysHowMemoryEnds(t *testing.T) {
	m, d := open(t, softdevice.Unified, Options{})
	theirs, err := d.CreateBlock(256, 0)
	if err != nil {
		t.Fatal(err)
	}
	registered := m.Register(theirs, 0)
	registered.Unpin()
	if d.Live != 1 {
		t.Errorf("a registered buffer is destroyed with its registration")
	}
	taken := m.Take(theirs)
	if taken.Host() != nil {
		t.Error("the host sees memory that others can write")
	}
	taken.Pin()
	taken.Unpin()
	if d.Live != 1 {
		t.Error("a block that was taken is destroyed while it is kept")
	}
	if heaps, total := m.Report(nil); heaps[0].External != (memory.Tally{Count: 1, Bytes: 256}) || heaps[0].Total.LiveBytes != 256 || total.BlockBytes != 256 {
		t.Errorf("a block that was taken is reported as %+v, in all %+v", heaps[0], total)
	}
	taken.Unpin()
	if d.Live != 0 {
		t.Error("a block that was taken is not destroyed with its last keeper")
	}
	if heaps, total := m.Report(nil); heaps[0].External != (memory.Tally{}) || total.BlockBytes != 0 || total.PeakBlockBytes != 256 {
		t.Errorf("after its end it is reported as %+v, in all %+v", heaps[0], total)
	}
	for origin, want := range []string{"mapped storage", "allocation", "registered buffer"} {
		a := Allocation{Origin: Origin(origin)}
		a.Blocks = append(a.Blocks, new(memory.Present))
		if got := a.Describe(); !strings.HasPrefix(got, want+" ") {
			t.Errorf("described as %q, want a %s", got, want)
		}
		if n := a.Associations(); (n == 0) != (a.Origin == Mapped) {
			t.Errorf("%s with one block has %d associations", want, n)
		}
	}
}

// The queues that may use a buffer are all if its owner says nothing, or names all.
func TestRegisteredBuffersAreForTheirQueues(t *testing.T) {
	m, d := open(t, softdevice.Unified, Options{})
	b, err := d.CreateBlock(64, 0)
	if err != nil {
		t.Fatal(err)
	}
	for families, want := range map[uint64]uint64{0: 0, 1: 0, 3: 0, 2: 2} {
		if a := m.Register(b, families); a.Families != want {
			t.Errorf("families %b become %b, want %b", families, a.Families, want)
		}
	}
	d.DestroyBlock(b)
}

func TestHostStorageIsImportedAsWholePages(t *testing.T) {
	for _, c := range []struct {
		name         string
		robust, all  bool
		size         uint64
		share        memory.Share
		imported     bool
		heap         uint64
		insufficient bool
	}{
		{name: "not asked for", robust: true, size: 4096},
		{name: "a page", size: 4096, share: memory.ShareMay, imported: true, heap: 4096},
		{name: "part of a page, bounded by the device", robust: true, size: 5000, share: memory.ShareMay, imported: true, heap: 8192},
		{name: "part of a page", size: 5000, share: memory.ShareMay},
		{name: "part of a page, asked for", size: 5000, share: memory.ShareMust, imported: true, heap: 8192},
		{name: "part of a page, where all is imported", all: true, size: 5000, share: memory.ShareMay, imported: true, heap: 8192},
		{name: "refused", size: 4096, share: memory.ShareMust, insufficient: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, d := open(t, softdevice.Unified, Options{ImportAll: c.all})
			d.Props.Features.RobustBufferAccess2 = c.robust
			if c.insufficient {
				d.Props.Limits.MinImportedHostPointerAlignment = 0
			}
			pages := make([]byte, 4*4096)
			start := 4096 - uintptr(unsafe.Pointer(&pages[0]))%4096
			item := &memory.Map{Section: memory.Section{Ptr: unsafe.Pointer(&pages[start]), Size: c.size}, Share: c.share}
			st, err := m.For(item)
			if c.insufficient {
				if !errors.Is(err, memory.ErrNotShared) || !errors.Is(err, vk.ErrUnsupported) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var a Allocation
			a.Init(m, st)
			heaps, _ := m.Report(nil)
			if a.Shared != c.imported || heaps[0].Imported.Bytes != c.heap || (st.Own == item.Ptr) != c.imported {
				t.Errorf("shared %v, %d bytes imported", a.Shared, heaps[0].Imported.Bytes)
			}
			a.Unpin()
			if heaps, _ = m.Report(nil); heaps[0].Imported.Bytes != 0 || heaps[0].Imported.PeakBytes != c.heap {
				t.Errorf("%+v after the end", heaps[0].Imported)
			}
		})
	}
}

// Only memory that is not coherent is flushed, in whole units.
func TestRangesToFlush(t *testing.T) {
	for shape, want := range map[softdevice.Memory]struct {
		storage, staging bool
		unit             uint64
	}{
		softdevice.Unified:    {false, false, 0},
		softdevice.Discrete:   {true, false, softdevice.Unit},
		softdevice.Incoherent: {true, true, softdevice.Unit},
		softdevice.Window:     {true, false, softdevice.Unit},
	} {
		m, _ := open(t, shape, Options{})
		st, err := m.Storage.Allocate(256)
		if err != nil {
			t.Fatal(err)
		}
		staging, err := m.Staging.Allocate(256)
		if err != nil {
			t.Fatal(err)
		}
		r, incoherent := m.StorageRange(&st, 8, 16)
		if incoherent != want.storage || incoherent && (r.Offset != st.Offset+8 || r.Size != 16 || r.Memory == 0) {
			t.Errorf("shape %v: storage %+v, %v", shape, r, incoherent)
		}
		r, incoherent = m.StagingRange(&staging, 8, 16)
		if incoherent != want.staging || incoherent && (r.Offset != staging.Offset+8 || r.Size != 16 || r.Memory == 0) {
			t.Errorf("shape %v: staging %+v, %v", shape, r, incoherent)
		}
		if unit := m.FlushUnit(); unit != want.unit {
			t.Errorf("shape %v: units of %d bytes, want %d", shape, unit, want.unit)
		}
		m.Free(st)
		m.FreeStaging(staging, &order.SyncSet{})
	}
}

// A block beyond the budget is refused, and the error has the figures.
func TestBudgetBoundsBlocks(t *testing.T) {
	m, d := open(t, softdevice.Unified, Options{})
	d.Budget = []vk.HeapBudget{{Budget: 10 << 20, Usage: 4 << 20}, {}}
	if _, err := m.New(7 << 20); !errors.Is(err, memory.ErrOutOfMemory) || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("%d bytes of a budget of %d", 4<<20, 10<<20)) {
		t.Errorf("%v", err)
	}
	a, err := m.New(6 << 20)
	if err != nil {
		t.Fatal(err)
	}
	heaps, total := m.Report(d.Budget)
	if h := heaps[0]; !h.BudgetKnown || h.Budget != 10<<20 || h.Storage.BlockBytes != total.BlockBytes || total.LiveBytes != 6<<20 {
		t.Errorf("%+v, in all %+v", heaps, total)
	}
	a.Unpin()
}

// Copies free their staging memory with each task, so that takes nothing from the heap.
func TestFreeingAllocatesNothing(t *testing.T) {
	m, d := open(t, softdevice.Unified, Options{})
	if err := d.Submit(0, new(vk.Stream), nil, order.Foreign{}, 1); err != nil {
		t.Fatal(err)
	}
	var last order.SyncSet
	last.Add(order.SyncPoint{Value: 1})
	n := testing.AllocsPerRun(100, func() {
		st, err := m.Staging.Allocate(100)
		if err != nil {
			t.Fatal(err)
		}
		m.FreeStaging(st, &last)
	})
	if n != 0 {
		t.Errorf("%v objects for each time", n)
	}
}

// A record that is used again says nothing of the memory that it described before.
func TestResetForgetsEveryField(t *testing.T) {
	a := &Allocation{
		Storage: memory.Storage{Offset: 1, Size: 2}, memory: new(Memory), Origin: Registered, Shared: true, Reserved: true, exported: true,
		slot: 3, address: 4, within: new(Allocation), Families: 5, External: &vk.Block{Size: 6},
		Blocks: make([]*memory.Present, 1), firstBlock: [1]*memory.Present{new(memory.Present)}, Readers: make([]*order.Task, 1), Of: new(memory.Present), Site: new(memory.Site), Label: "x",
	}
	was := reflect.ValueOf(a).Elem()
	for f, v := range was.Fields() {
		if v.IsZero() && f.Name != "keepers" && f.Name != "uses" {
			t.Fatalf("the test sets no %s", f.Name)
		}
	}
	a.Reset()
	if len(a.Blocks) > 0 || len(a.Readers) > 0 {
		t.Error("the slices are not empty")
	}
	a.Blocks, a.Readers = nil, nil
	for f, v := range was.Fields() {
		if !v.IsZero() {
			t.Errorf("reset leaves %s", f.Name)
		}
	}
}

// The record of memory that was given back serves the next request, and has nothing of the one before;
// nor is it lost when a request fails.
func TestRecordsOfAllocationsAreUsedAgain(t *testing.T) {
	m, _ := open(t, softdevice.Unified, Options{})
	kept, err := m.New(100)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Unpin()
	a, err := m.New(200)
	if err != nil {
		t.Fatal(err)
	}
	var p Pointers
	p.Init(0)
	stale := p.To(a)
	a.Site, a.Label, a.Families = new(memory.Site), "first", 1
	p.Forget(a)
	a.Unpin()
	if _, err := m.New(0); !errors.Is(err, memory.ErrInvalidSize) {
		t.Errorf("no bytes: %v", err)
	}
	b, err := m.New(300)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Unpin()
	if b != a {
		t.Error("the record of the memory that was freed last is not used again")
	}
	if b.Size != 300 || b.Keepers() != 1 || b.Origin != Allocated || b.Site != nil || b.Label != "" || b.Families != 0 || b.slot != 0 || b.address != 0 {
		t.Errorf("the record has something of an earlier allocation: %+v", b)
	}
	if _, _, err := p.Find(stale, 0); !errors.Is(err, ErrInvalidPointer) {
		t.Errorf("a pointer to the earlier allocation: %v", err)
	}
}
