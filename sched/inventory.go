package sched

import (
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
)

// Block is host storage that has corresponding storage.
type Block struct {
	// Host is the host's side of the block.
	Host memory.Section
	// Count is the reference count. Infinite says that there is none, and Shared that both sides are the
	// same storage.
	Count            uint32
	Infinite, Shared bool
}

// Blocks returns the storage blocks that are present, in ascending order of address. On a device that is
// lost there are none.
func (s *Scheduler) Blocks() (blocks []Block) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loss.err != nil {
		return nil
	}
	for p := range s.presence.table.All() {
		b := Block{Host: p.Section, Shared: p.Shared}
		b.Count, b.Infinite = p.Count()
		blocks = append(blocks, b)
	}
	return blocks
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
