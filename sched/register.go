package sched

import (
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/vk"
)

// Register returns a pointer to memory that is not the scheduler's, all of a buffer
// which queues of certain families may use, as bits; 0: all. Foreign work can write it
// (see Order). The caller keeps it until Unregister. A buffer that is registered
// already is ErrBusy.
func (s *Scheduler) Register(b vk.Block, families uint64) (Pointer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusalLocked(); err != nil {
		return Pointer{}, err
	}
	for i := range s.pointers.slots {
		if m := s.pointers.slots[i].store; m != nil && m.registered && m.Block.ID == uint64(b.Buffer) {
			return Pointer{}, fmt.Errorf("%w: buffer %#x is registered already, as %s", ErrBusy, uint64(b.Buffer), m.describe())
		}
	}
	all := s.order.Families()
	if families&all == all {
		families = 0
	}
	m := &store{registered: true, families: families}
	block := memory.HeapBlock{ID: uint64(b.Buffer), Size: b.Size, Address: b.Address}
	m.open(s, memory.Storage{Block: block, Size: b.Size})
	s.noteExport(m)
	return s.pointerLocked(m), nil
}

// Unregister ends what Register began. While tasks use the memory, or host storage is
// associated with it, it is ErrBusy.
func (s *Scheduler) Unregister(p Pointer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.toGiveUpLocked(p, "registered", func(m *store) bool { return m.registered })
	if err != nil {
		return err
	}
	if n := m.refs.Load() - 1; n > 0 {
		return fmt.Errorf("%w: %d tasks use %s", ErrBusy, n, m.describe())
	}
	s.forgetPointersLocked(m)
	m.unpin()
	return nil
}

// Take returns a pointer to a block, which is the scheduler's from then on, as if
// Allocate had given it: Free ends it. Who else has its memory can write it (see
// Order).
func (s *Scheduler) Take(b vk.Block) (Pointer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusalLocked(); err != nil {
		return Pointer{}, err
	}
	m := &store{allocation: true, external: b}
	// The host's view is left out: whoever else writes the memory tells the host nothing.
	m.open(s, memory.Storage{Block: memory.HeapBlock{ID: uint64(b.Buffer), Size: b.Size, Address: b.Address}, Size: b.Size})
	s.noteExport(m)
	if s.leakSites {
		m.site = memory.CallSite()
	}
	s.pointers.allocated.Add(m.Size)
	return s.pointerLocked(m), nil
}

// Taken returns the block that Take made p of.
func (s *Scheduler) Taken(p Pointer) (vk.Block, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, offset, err := s.findLocked(p, 0)
	switch {
	case err != nil:
		return vk.Block{}, err
	case m.external.Buffer == 0 || offset != 0:
		return vk.Block{}, fmt.Errorf("%w: %#x is %d bytes into %s, not the beginning of external memory", ErrInvalidPointer, p.Address, offset, m.describe())
	}
	return m.external, nil
}

// StorageType is the memory type that storage is of.
func (s *Scheduler) StorageType() int { return s.memory.storageHeap.memoryType }
