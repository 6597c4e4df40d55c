package sched

import (
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/tasks"
)

// Associate makes the bytes at an offset from p the corresponding storage of a host section, with an
// infinite reference count. To associate the same again does nothing. For host storage that is
// present otherwise the error matches ErrAssociated, or memory.ErrPartialOverlap if only a part of
// it is present, or pinned.
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
	if _, err := s.memory.FindPinned(host); err != nil {
		return err
	}
	at += offset
	st := m.Storage
	st.Offset, st.Size = st.Offset+at, host.Size
	block, err := s.presence.table.InsertInfinite(host, st)
	if err != nil {
		return s.associatedLocked(host, m, at, err)
	}
	block.Label = label
	state := s.presence.newBlockLocked()
	state.Allocation, state.associated = m, true
	block.State = state
	state.listLocked(block)
	m.Pin()
	return nil
}

// Associated returns an error that matches ErrBusy if some of a section is associated with device memory.
func (s *Scheduler) Associated(host memory.Section) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for block := range s.presence.table.Touching(host) {
		if state := stateOf(block); state.associated {
			return fmt.Errorf("%w: %s is associated with %s", ErrBusy, block.Section, state.Allocation.Describe())
		}
	}
	return nil
}

// Mapped returns an error that matches ErrBusy if some of a section is mapped, and the device is not lost.
func (s *Scheduler) Mapped(host memory.Section) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if block := s.touchedLocked(host); block != nil && s.loss.err == nil {
		return fmt.Errorf("%w: %s is mapped: %s", ErrBusy, host, itemName(block.Label, block.Section.String()))
	}
	return nil
}

// associatedLocked returns nil if the section is already associated with the bytes at that offset of
// the allocation. Otherwise it returns why the section cannot be associated; err is the reason that
// the presence table gave.
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

// Disassociate ends the association of the storage that begins with the section's first byte,
// whatever the reference count. The contents of the device memory stay. If nothing is associated
// there, the error matches memory.ErrNotPresent or, for mapped storage, ErrAssociated.
func (s *Scheduler) Disassociate(host memory.Section) error {
	w, err := s.disassociate(host)
	if w != nil {
		w.Finish()
	}
	return err
}

// disassociate is Disassociate, but returns the tasks that can start because of it, nil for none.
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
