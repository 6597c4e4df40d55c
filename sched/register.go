package sched

import (
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/vk"
)

// Register returns a pointer to a buffer that is not the scheduler's. families are the queue families
// that may use it, a bit for each; 0 stands for all. Foreign work can write the buffer (see Order),
// and the caller keeps it until Unregister. For a buffer that is registered already the error matches
// ErrBusy.
func (s *Scheduler) Register(b vk.Block, families uint64) (Pointer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusalLocked(); err != nil {
		return Pointer{}, err
	}
	for m := range s.pointers.All() {
		if m.Origin == allocation.Registered && m.Block.ID == uint64(b.Buffer) {
			return Pointer{}, fmt.Errorf("%w: buffer %#x is registered already, as %s", ErrBusy, uint64(b.Buffer), m.Describe())
		}
	}
	m := s.memory.Register(b, families)
	return s.pointers.To(m), nil
}

// Unregister ends the registration of a buffer. While tasks use the memory, or host storage is
// associated with it, the error matches ErrBusy.
func (s *Scheduler) Unregister(p Pointer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.toGiveUpLocked(p, allocation.Registered, "registered")
	if err != nil {
		return err
	}
	if m.Keepers() > 1 {
		return fmt.Errorf("%w: tasks that are not complete use %s", ErrBusy, m.Describe())
	}
	s.pointers.Forget(m)
	m.Unpin()
	// The caller may destroy the buffer now, and another one may get its handle.
	s.destroyed.count.Add(1)
	return nil
}

// Take returns a pointer to the block that create makes, which belongs to the scheduler from then on, as if
// Allocate had returned it: Free destroys it. Others that have its memory can write it (see Order). create
// is called with the scheduler's lock held, so that Close never finds a block that nobody has taken yet.
func (s *Scheduler) Take(create func() (vk.Block, error)) (Pointer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusalLocked(); err != nil {
		return Pointer{}, err
	}
	b, err := create()
	if err != nil {
		return Pointer{}, err
	}
	m := s.memory.Take(b)
	if s.leakSites {
		m.Site = memory.CallSite()
	}
	s.pointers.allocated.Add(m.Size)
	return s.pointers.To(m), nil
}

// Taken calls use with the block for which Take returned p, and returns its error. use is called with the
// scheduler's lock held, so that no Free and no Close destroys the block meanwhile.
func (s *Scheduler) Taken(p Pointer, use func(vk.Block) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, offset, err := s.pointers.Find(p, 0)
	switch {
	case err != nil:
		return err
	case m.External == nil || offset != 0:
		return fmt.Errorf("%w: %#x is %d bytes into %s, not the beginning of external memory", ErrInvalidPointer, p.Address, offset, m.Describe())
	}
	return use(*m.External)
}

// StorageType returns the memory type, among those in bits, for memory that is shared with other
// devices.
func (s *Scheduler) StorageType(bits uint32) (int, error) { return s.memory.StorageType(bits) }
