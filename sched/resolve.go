package sched

import "github.com/vkomp/vkomp/sched/allocation"

// resolve finds the memory to which the region's pointers point, those of its kernel and those of its
// transfers, and the pinned storage that it uses, and keeps both until the task is complete.
func (s *Scheduler) resolve(t *target, r *Region) error {
	if len(r.Transfers) == 0 && len(r.Buffers) == 0 && len(r.Pointers) == 0 && !s.memory.HasPinned() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.resolveArgumentsLocked(t, r); err != nil {
		return err
	}
	if err := t.transfers.Resolve(&s.pointers.Pointers, r.Transfers); err != nil {
		return err
	}
	for i := range t.transfers.All {
		for _, side := range [...]*allocation.Allocation{t.transfers.All[i].Dst, t.transfers.All[i].Src} {
			if side != nil {
				t.pinLocked(side)
			}
		}
	}
	return s.keepPinnedLocked(t)
}
