package sched

import (
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/transfer"
)

// pointers are the allocations that pointers name. Scheduler.mu guards them.
type pointers struct {
	allocation.Pointers
	// allocated counts the memory that Allocate has returned and Free has not taken back.
	allocated memory.Tally
}

// Errors of device pointers.
var (
	// ErrInvalidPointer: a pointer that does not point to what is needed.
	ErrInvalidPointer = allocation.ErrInvalidPointer
	// ErrOverlap: the source of a copy shares bytes with its destination.
	ErrOverlap = transfer.ErrOverlap
	// ErrAssociated: host storage is associated with other device memory, or is mapped where it
	// has to be associated.
	ErrAssociated = errors.New("host storage has other corresponding storage")
)

// Pointer is an address in the memory of a device.
type Pointer = allocation.Pointer

// Allocate returns a pointer to size bytes of device memory with undefined contents. Its error
// matches memory.ErrOutOfMemory if there is no memory.
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

// Free takes back memory that Allocate returned. Tasks that were generated with a pointer to it
// keep the memory until they are complete, and it is given out again only after them. The nil
// pointer is ignored.
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
	if s.loss.err != nil && !s.loss.atRest && !s.life.stopped {
		s.loss.freed = append(s.loss.freed, m) // foreign work may be using it
		return nil
	}
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

// MappedPointer returns the pointer to the corresponding storage of a section, and whether there is
// any. A device that is lost has none.
func (s *Scheduler) MappedPointer(host memory.Section) (Pointer, bool) {
	p, size := s.MappedStorage(host)
	return p, size > 0
}

// MappedStorage is MappedPointer, and returns how many bytes from the beginning of the section on have
// corresponding storage there, 0 if none has.
func (s *Scheduler) MappedStorage(host memory.Section) (Pointer, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	block, offset, err := s.presence.table.Lookup(host)
	if err != nil || block == nil || s.loss.err != nil {
		return Pointer{}, 0
	}
	size := block.Section.Size
	if stateOf(block).image != nil {
		if offset > 0 {
			return Pointer{}, 0
		}
		size = block.Storage.Size
	}
	return s.pointerIntoLocked(block, offset), size - offset
}

// pointerIntoLocked returns the pointer to a byte of the block's storage.
func (s *Scheduler) pointerIntoLocked(block *memory.Present, offset uint64) Pointer {
	return s.pointers.To(stateOf(block).Allocation).Add(int64(blockAt(block) + offset))
}

// Present reports whether the first byte of a section has corresponding storage. On a device that
// is lost nothing has.
func (s *Scheduler) Present(host memory.Section) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.presence.table.Has(host.Start()) && s.loss.err == nil
}

// Accessible reports whether size bytes at p are memory of the device, and the device is not lost.
func (s *Scheduler) Accessible(p Pointer, size uint64) bool {
	_, ok := s.HostAddress(p, size)
	return ok
}

// HostAddress is Accessible, and returns the address on the host if the memory is host storage itself, and 0 if it is not.
func (s *Scheduler) HostAddress(p Pointer, size uint64) (address uintptr, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, offset, err := s.pointers.Find(p, size)
	if err != nil || s.loss.err != nil {
		return 0, false
	}
	return m.HostAddress(offset), true
}

// Extent returns the pointer to the first byte of the allocation into which p points, and its size.
// Exclusive says that Allocate has returned it, and that it is not associated with host storage.
func (s *Scheduler) Extent(p Pointer) (first Pointer, size uint64, exclusive bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, _, err := s.pointers.Find(p, 0)
	if err != nil {
		return Pointer{}, 0, false, err
	}
	return s.pointers.To(m), m.Size, m.Origin == allocation.Allocated && m.Associations() == 0, nil
}
