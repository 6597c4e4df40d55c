package sched

import (
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
)

// pointers are the allocations that pointers name. Scheduler.mu guards them.
type pointers struct {
	allocation.Pointers
	// allocated counts what Allocate has returned and Free has not got back.
	allocated memory.Tally
}

// Errors of device pointers.
var (
	// ErrInvalidPointer: a pointer that does not point to what is needed.
	ErrInvalidPointer = allocation.ErrInvalidPointer
	// ErrOverlap: the source of a copy shares bytes with its destination.
	ErrOverlap = transfer.ErrOverlap
	// ErrAssociated: host storage is associated with other device memory, or is
	// mapped and not associated where it has to be.
	ErrAssociated = errors.New("host storage has other corresponding storage")
)

// Pointer is an address in the memory of a device.
type Pointer = allocation.Pointer

// Allocate returns a pointer to size bytes of device memory, contents undefined.
// Its error matches memory.ErrOutOfMemory when there is none.
func (s *Scheduler) Allocate(size uint64) (Pointer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusalLocked(); err != nil {
		return Pointer{}, err
	}
	m, err := s.memory.New(size)
	if err != nil {
		return Pointer{}, err
	}
	if s.leakSites {
		m.Site = memory.CallSite()
	}
	s.pointers.allocated.Add(m.Size)
	return s.pointers.To(m), nil
}

// Free takes back what Allocate returned. Tasks that were generated with a pointer
// to it keep the memory until they are complete; it is used again only after them.
// The nil pointer is ignored.
func (s *Scheduler) Free(p Pointer) error {
	if p.IsNil() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.toFreeLocked(p)
	if err != nil {
		return err
	}
	s.pointers.Forget(m)
	s.pointers.allocated.Remove(m.Size)
	m.Unpin()
	return nil
}

// Freeable returns how many bytes Free(p) would take back, or its error.
func (s *Scheduler) Freeable(p Pointer) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.toFreeLocked(p)
	if err != nil {
		return 0, err
	}
	return m.Size, nil
}

// toFreeLocked returns the allocation that Free(p) would take back.
func (s *Scheduler) toFreeLocked(p Pointer) (*allocation.Allocation, error) {
	return s.toGiveUpLocked(p, allocation.Allocated, "allocated")
}

// toGiveUpLocked returns the allocation of that origin, named for errors, to whose beginning p
// points. It must not be associated with host storage.
func (s *Scheduler) toGiveUpLocked(p Pointer, origin allocation.Origin, name string) (*allocation.Allocation, error) {
	m, offset, err := s.pointers.Find(p, 0)
	switch {
	case err != nil:
		return nil, err
	case m.Origin != origin:
		return nil, fmt.Errorf("%w: %#x is in %s, which was not %s", ErrInvalidPointer, p.Address, m.Describe(), name)
	case offset != 0:
		return nil, fmt.Errorf("%w: %#x is %d bytes into %s, not its beginning", ErrInvalidPointer, p.Address, offset, m.Describe())
	case m.Associations() > 0:
		return nil, fmt.Errorf("%w: %s is associated with host storage (%d times)", ErrBusy, m.Describe(), m.Associations())
	}
	return m, nil
}

// Associate makes the bytes at offset from p the corresponding storage of the host
// section, with an infinite count. The same again does nothing. Host storage that
// is present otherwise is ErrAssociated, or memory.ErrPartialOverlap when a part
// of it is.
func (s *Scheduler) Associate(host memory.Section, p Pointer, offset uint64, label string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusalLocked(); err != nil {
		return err
	}
	m, at, err := s.pointers.Find(p, 0)
	switch {
	case err != nil:
		return err
	case m.Origin == allocation.Mapped:
		return fmt.Errorf("%w: %#x is in %s, which was neither allocated nor registered", ErrInvalidPointer, p.Address, m.Describe())
	case host.Size > m.Size-at || offset > m.Size-at-host.Size:
		return fmt.Errorf("%w: %d bytes at offset %d from %#x run past the end of %s", ErrInvalidPointer, host.Size, offset, p.Address, m.Describe())
	}
	at += offset
	st := m.Storage
	st.Offset, st.Size = st.Offset+at, host.Size
	block, err := s.presence.table.InsertInfinite(host, st)
	if err != nil {
		return s.associatedLocked(host, m, at, err)
	}
	block.Label = label
	state := s.associatedStateLocked(m)
	block.State = state
	state.listLocked(block)
	m.Pin()
	return nil
}

// associatedLocked returns nil if the section is associated with the bytes at an offset of
// the allocation already, otherwise what is wrong about associating it; err is why the
// presence table does not take it.
func (s *Scheduler) associatedLocked(host memory.Section, m *allocation.Allocation, at uint64, err error) error {
	old, _, overlap := s.presence.table.Lookup(host)
	switch {
	case overlap != nil:
		return overlap
	case old != nil && old.Section == host && stateOf(old).associated && stateOf(old).Allocation == m && old.Storage.Offset == m.Offset+at:
		return nil
	case old != nil && stateOf(old).associated:
		return fmt.Errorf("%w: %s is associated with %s", ErrAssociated, old.Section, stateOf(old).Allocation.Describe())
	case old != nil:
		return fmt.Errorf("%w: %s is mapped", ErrAssociated, old.Section)
	}
	return err
}

// associatedStateLocked returns the state of a new block that is associated with m.
func (s *Scheduler) associatedStateLocked(m *allocation.Allocation) *blockState {
	n := len(s.presence.spareBlocks)
	if n == 0 {
		return &blockState{Allocation: m, associated: true, dirty: true}
	}
	state := s.presence.spareBlocks[n-1]
	s.presence.spareBlocks[n-1], s.presence.spareBlocks = nil, s.presence.spareBlocks[:n-1]
	state.Allocation, state.dirty = m, true
	return state
}

// Disassociate ends an association of the section's first byte, whatever the
// count. The contents of the device memory stay. Storage that is not present is
// memory.ErrNotPresent, other storage ErrAssociated.
func (s *Scheduler) Disassociate(host memory.Section) error {
	w, err := s.disassociate(host)
	if w != nil {
		w.Finish()
	}
	return err
}

// disassociate is Disassociate without the work that comes of it, nil for none.
func (s *Scheduler) disassociate(host memory.Section) (*tasks.Work, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	host.Size = 0
	block, offset, err := s.presence.table.Lookup(host)
	switch {
	case err != nil:
		return nil, err
	case block == nil:
		return nil, fmt.Errorf("%w: nothing is associated with host address %#x", memory.ErrNotPresent, host.Start())
	case !stateOf(block).associated:
		return nil, fmt.Errorf("%w: %s is mapped and not associated", ErrAssociated, block.Section)
	case offset != 0:
		return nil, fmt.Errorf("%w: host address %#x is %d bytes into the associated %s, not its beginning", memory.ErrNotPresent, host.Start(), offset, block.Section)
	}
	if err := s.presence.table.Remove(block); err != nil {
		return nil, err
	}
	var w *tasks.Work
	if len(stateOf(block).parked) > 0 {
		w = tasks.NewWork()
	}
	s.goneLocked(block, w)
	return w, nil
}

// MappedPointer returns the pointer to the storage that corresponds to the
// section, and whether there is any. A device that is lost has none.
func (s *Scheduler) MappedPointer(host memory.Section) (Pointer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	block, offset, err := s.presence.table.Lookup(host)
	if err != nil || block == nil || s.loss.err != nil {
		return Pointer{}, false
	}
	return s.pointerIntoLocked(block, offset), true
}

// pointerIntoLocked returns the pointer to a byte of the block's storage.
func (s *Scheduler) pointerIntoLocked(block *memory.Present, offset uint64) Pointer {
	m := stateOf(block).Allocation
	return s.pointers.To(m).Add(int64(block.Storage.Offset - m.Offset + offset))
}

// Present reports whether the section's first byte has corresponding storage. On a
// device that is lost nothing has.
func (s *Scheduler) Present(host memory.Section) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	host.Size = 0
	block, _, err := s.presence.table.Lookup(host)
	return err == nil && block != nil && s.loss.err == nil
}

// Accessible reports whether size bytes at p are memory of the device, which is not lost.
func (s *Scheduler) Accessible(p Pointer, size uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _, err := s.pointers.Find(p, size)
	return err == nil && s.loss.err == nil
}
