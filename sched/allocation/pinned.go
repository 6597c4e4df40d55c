package allocation

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
)

// pinned is the pinned storage of a device: host storage that commands of the device read and write
// themselves, for as long as the program wants. The lock that guards allocations guards it.
type pinned struct {
	// count is the number of allocations, for those who need no more than whether there are any.
	count atomic.Int32
	// byStart are the allocations. They are disjoint and sorted by their host address.
	byStart []*Allocation
	// withdrawn are those that are about to end.
	withdrawn []*Allocation
}

// ImportPinned imports a section for as long as its allocation is kept: an import takes as long as
// a copy of the bytes. Kernels can reach what else is on its pages, unless the device has
// robustBufferAccess2. The caller keeps the allocation.
func (m *Memory) ImportPinned(section memory.Section) (*Allocation, error) {
	st, err := m.importStorage(section, true)
	if err != nil {
		return nil, err
	}
	return m.newPinned(st), nil
}

// AllocatePinned has the driver allocate size bytes of host storage, for a device that imports none.
// The caller keeps the allocation. The bytes are zero.
func (m *Memory) AllocatePinned(size uint64) (*Allocation, error) {
	p := m.device.Properties()
	bits, err := m.device.BlockMemoryTypes(size)
	if err != nil {
		return nil, err
	}
	memoryType, err := chooseMemoryType(p, bits, forPinned, false)
	if err != nil {
		return nil, err
	}
	b, err := m.device.CreateBlock(size, memoryType)
	if err != nil {
		return nil, err
	}
	clear(unsafe.Slice((*byte)(b.Host), size))
	m.taken.add(m.heapOf(&b), b.Size)
	m.imports.add(&importedBlock{block: b, allocated: true}, p)
	return m.newPinned(memory.Storage{
		Block: memory.HeapBlock{ID: uint64(b.Buffer), Size: b.Size, Address: b.Address}, Size: size, Own: b.Host,
	}), nil
}

// newPinned makes an allocation of host storage that the device can access.
func (m *Memory) newPinned(st memory.Storage) *Allocation {
	a := &Allocation{Origin: Pinned, Storage: st, memory: m, Shared: true}
	m.imports.of(st.Block.ID).pinned = a
	a.keepers = 1
	return a
}

// Section returns the host storage of an allocation that is pinned storage.
func (a *Allocation) Section() memory.Section { return memory.Section{Ptr: a.Own, Size: a.Size} }

// Part returns the bytes of pinned storage that a section has.
func (a *Allocation) Part(section memory.Section) order.Span {
	return order.Span{Start: uint64(section.Start() - uintptr(a.Own)), Size: section.Size}
}

// AddPinned adds an allocation to the pinned storage of the device, which has none of its bytes.
func (m *Memory) AddPinned(a *Allocation) {
	i := m.pinned.after(a.Section().Start())
	m.pinned.byStart = slices.Insert(m.pinned.byStart, i, a)
	m.pinned.count.Add(1)
}

// WithdrawPinned takes an allocation that AddPinned has added out of what FindPinned finds. Its end is
// EndPinned, or RestorePinned, which undoes it.
func (m *Memory) WithdrawPinned(a *Allocation) {
	i := slices.Index(m.pinned.byStart, a)
	m.pinned.byStart = slices.Delete(m.pinned.byStart, i, i+1)
	m.pinned.count.Add(-1)
	m.pinned.withdrawn = append(m.pinned.withdrawn, a)
}

// RestorePinned undoes WithdrawPinned, unless DropPinned has been called meanwhile.
func (m *Memory) RestorePinned(a *Allocation) {
	if m.pinned.forget(a) {
		m.AddPinned(a)
	}
}

// EndPinned gives up an allocation that was withdrawn.
func (m *Memory) EndPinned(a *Allocation) {
	if m.pinned.forget(a) {
		a.Unpin()
	}
}

// forget removes an allocation from those that were withdrawn, and reports whether it was there.
func (p *pinned) forget(a *Allocation) bool {
	i := slices.Index(p.withdrawn, a)
	if i >= 0 {
		p.withdrawn = slices.Delete(p.withdrawn, i, i+1)
	}
	return i >= 0
}

// DropPinned gives up all pinned storage.
func (m *Memory) DropPinned() {
	for _, a := range slices.Concat(m.pinned.byStart, m.pinned.withdrawn) {
		a.Unpin()
	}
	m.pinned.count.Store(0)
	m.pinned.byStart, m.pinned.withdrawn = nil, nil
}

// HasPinned reports whether there is pinned storage. It needs no lock.
func (m *Memory) HasPinned() bool { return m.pinned.count.Load() > 0 }

// AllPinned returns the pinned storage. The caller must not change the slice.
func (m *Memory) AllPinned() []*Allocation { return m.pinned.byStart }

// FindPinned returns the allocation in which a section of host storage lies, nil if none of its bytes
// is pinned. If only some of them are, or several allocations have them, the error matches
// memory.ErrPartialOverlap.
func (m *Memory) FindPinned(section memory.Section) (*Allocation, error) {
	if section.Size == 0 || !m.HasPinned() {
		return nil, nil
	}
	i := m.pinned.after(section.Start())
	if i > 0 {
		switch pinned := m.pinned.byStart[i-1].Section(); {
		case section.End() <= pinned.End():
			return m.pinned.byStart[i-1], nil
		case section.Start() < pinned.End():
			return nil, halfPinned(section, pinned)
		}
	}
	if i < len(m.pinned.byStart) {
		if pinned := m.pinned.byStart[i].Section(); pinned.Start() < section.End() {
			return nil, halfPinned(section, pinned)
		}
	}
	return nil, nil
}

func halfPinned(section, pinned memory.Section) error {
	return fmt.Errorf("%w: of %s only a part is in the pinned storage %s", memory.ErrPartialOverlap, section, pinned)
}

// after returns the index of the first allocation that begins above an address.
func (p *pinned) after(address uintptr) int {
	i, found := slices.BinarySearchFunc(p.byStart, address, func(a *Allocation, address uintptr) int {
		return cmp.Compare(uintptr(a.Own), address)
	})
	if found {
		i++
	}
	return i
}

// storageIn returns the part of pinned storage that a section is.
func (a *Allocation) storageIn(section memory.Section) memory.Storage {
	st := a.Storage
	st.Offset += a.Part(section).Start
	st.Size, st.Own = section.Size, section.Ptr
	return st
}
