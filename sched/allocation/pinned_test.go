package allocation

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/internal/softdevice"
	"github.com/vkomp/vkomp/vk"
)

func sectionOf(s []byte) memory.Section {
	return memory.Section{Ptr: unsafe.Pointer(unsafe.SliceData(s)), Size: uint64(len(s))}
}

// Pinned storage is found by any of its bytes. Sections that have other bytes as well are errors.
func TestPinnedStorageIsFoundByItsBytes(t *testing.T) {
	m, _ := open(t, softdevice.Discrete, Options{})
	host := make([]byte, 1000)
	var pinned [2]*Allocation
	for i, s := range [][]byte{host[500:600], host[100:200]} {
		a, err := m.ImportPinned(sectionOf(s))
		if err != nil {
			t.Fatal(err)
		}
		m.AddPinned(a)
		pinned[i] = a
	}
	defer m.DropPinned()
	for _, c := range []struct {
		from, to int
		want     *Allocation
		half     bool
	}{
		{100, 200, pinned[1], false}, {100, 101, pinned[1], false}, {199, 200, pinned[1], false}, {500, 600, pinned[0], false}, {550, 560, pinned[0], false},
		{0, 100, nil, false}, {200, 500, nil, false}, {600, 1000, nil, false}, {150, 150, nil, false},
		{0, 101, nil, true}, {199, 201, nil, true}, {99, 200, nil, true}, {100, 201, nil, true}, {150, 550, nil, true}, {0, 1000, nil, true},
		{499, 501, nil, true}, {550, 601, nil, true},
	} {
		got, err := m.FindPinned(sectionOf(host[c.from:c.to]))
		if got != c.want || errors.Is(err, memory.ErrPartialOverlap) != c.half || (err != nil) != c.half {
			t.Errorf("[%d,%d): %v, %v", c.from, c.to, got, err)
		}
	}
	m.WithdrawPinned(pinned[1])
	if got, err := m.FindPinned(sectionOf(host[100:101])); got != nil || err != nil {
		t.Errorf("withdrawn: %v, %v", got, err)
	}
	m.RestorePinned(pinned[1])
	m.RestorePinned(pinned[1])
	if got, _ := m.FindPinned(sectionOf(host[100:101])); got != pinned[1] || len(m.AllPinned()) != 2 {
		t.Errorf("restored: %v of %v", got, m.AllPinned())
	}
	m.WithdrawPinned(pinned[0])
	m.EndPinned(pinned[0])
	m.EndPinned(pinned[0])
	if n := pinned[0].Keepers(); n != 0 || !m.HasPinned() {
		t.Errorf("%d keepers of what has ended", n)
	}
}

// A part of pinned storage that is shared with the device is a part of its memory, which it leaves
// alone when it ends.
func TestSharedPartsOfPinnedStorage(t *testing.T) {
	m, d := open(t, softdevice.Discrete, Options{})
	host := make([]byte, 3000)
	a, err := m.ImportPinned(sectionOf(host))
	if err != nil {
		t.Fatal(err)
	}
	m.AddPinned(a)
	blocks := d.Live
	item := memory.Map{Section: sectionOf(host[1000:1100]), Share: memory.ShareMust}
	st, err := m.For(&item)
	if err != nil {
		t.Fatal(err)
	}
	if m.imports.of(st.Block.ID).pinned != a || st.Block != a.Block || st.Offset != a.Offset+1000 || st.Size != 100 || st.Host() != unsafe.Pointer(&host[1000]) {
		t.Errorf("%+v of %+v", st, a)
	}
	m.Free(st)
	if d.Live != blocks || m.imports.of(a.Block.ID) == nil {
		t.Errorf("%d blocks of %d are left", d.Live, blocks)
	}
	own, err := m.For(&memory.Map{Section: sectionOf(host[1000:1100])})
	if err != nil {
		t.Fatal(err)
	}
	if m.imports.of(own.Block.ID) != nil {
		t.Error("an item that may not share has the host's storage")
	}
	m.Storage.Free(&own, own.LastUse())
	item.Section = sectionOf(make([]byte, 100))
	if st, err = m.For(&item); err != nil {
		t.Fatal(err)
	}
	if m.imports.of(st.Block.ID).pinned != nil || d.Live != blocks+2 {
		t.Errorf("%d blocks; %+v", d.Live, m.imports.of(st.Block.ID))
	}
	m.Free(st)
	m.DropPinned()
	if m.imports.of(a.Block.ID) != nil {
		t.Error("pinned storage is left")
	}
}

// A device that imports nothing shares what its driver has allocated, and says so of other storage.
func TestMemoryOfTheDriverCanBeShared(t *testing.T) {
	m, d := open(t, softdevice.Window, Options{})
	d.Props.Limits.MinImportedHostPointerAlignment = 0
	a, err := m.AllocatePinned(100)
	if err != nil {
		t.Fatal(err)
	}
	m.AddPinned(a)
	defer m.DropPinned()
	if flags := d.Props.MemoryTypes[m.imports.of(a.Block.ID).block.MemoryType].Flags; flags != vk.MemoryHostVisible|vk.MemoryHostCoherent|vk.MemoryHostCached {
		t.Errorf("it is %v", flags)
	}
	for i, b := range unsafe.Slice((*byte)(a.Section().Ptr), a.Section().Size) {
		if b != 0 {
			t.Fatalf("byte %d is %d", i, b)
		}
	}
	if _, incoherent := m.StorageRange(&a.Storage, 0, 4); incoherent {
		t.Error("it has to be flushed")
	}
	item := memory.Map{Section: memory.Section{Ptr: unsafe.Add(a.Section().Ptr, 10), Size: 10}, Share: memory.ShareMust}
	if st, err := m.For(&item); err != nil || st.Block != a.Block {
		t.Errorf("%+v, %v", st, err)
	}
	item.Section = sectionOf(make([]byte, 10))
	if _, err := m.For(&item); !errors.Is(err, memory.ErrNotShared) {
		t.Error(err)
	}
	if _, err := m.ImportPinned(item.Section); !errors.Is(err, vk.ErrUnsupported) {
		t.Error(err)
	}
	d.Refuse = vk.ErrOutOfHostMemory
	if _, err := m.AllocatePinned(100); !errors.Is(err, memory.ErrOutOfMemory) {
		t.Error(err)
	}
}

// The program does not flush its own storage.
func TestPinnedStorageIsCoherent(t *testing.T) {
	m, _ := open(t, softdevice.Incoherent, Options{})
	if a, err := m.AllocatePinned(100); !errors.Is(err, vk.ErrUnsupported) {
		t.Errorf("%v, %v", a, err)
	}
	m, _ = open(t, softdevice.Unified, Options{Incoherent: true})
	a, err := m.AllocatePinned(100)
	if err != nil {
		t.Fatal(err)
	}
	if _, incoherent := m.StorageRange(&a.Storage, 0, 4); incoherent {
		t.Error("it has to be flushed")
	}
	a.Unpin()
}
