package sched

import (
	"fmt"

	"github.com/vkomp/vkomp/memory"
)

// Declare gives storage that a region with Absent has mapped an infinite reference count, so that no
// exit removes it: it belongs to variables that are declared for the target.
func (s *Scheduler) Declare(items []memory.Map) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eachClaimedLocked(items, s.presence.table.MakeInfinite)
}

// disclaimLocked lets exits remove storage that a region with Absent has mapped.
func (s *Scheduler) disclaimLocked(items []memory.Map) {
	s.eachClaimedLocked(items, s.presence.table.Disclaim)
}

// eachClaimedLocked calls f for the blocks of the items, of which there are none on a device that has been lost.
func (s *Scheduler) eachClaimedLocked(items []memory.Map, f func(*memory.Present)) {
	for i := range items {
		if block, _, err := s.presence.table.Lookup(items[i].Section); err == nil && block != nil {
			f(block)
		}
	}
}

// checkAbsentLocked returns an error if some of the items' storage is present already.
func (s *Scheduler) checkAbsentLocked(items []memory.Map) error {
	for i := range items {
		if block := s.touchedLocked(items[i].Section); block != nil {
			return fmt.Errorf("%w: %s: %s is present", ErrAssociated, items[i].Label, block.Section)
		}
	}
	return nil
}
