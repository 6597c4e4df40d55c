package sched

import (
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/tasks"
)

// mayNeedNoTask reports whether hit and now are to look at the region: its construct is an included one
// without dependences and without an observer, and only moves data.
func (r *Region) mayNeedNoTask() bool {
	return !r.NoWait && len(r.Depend) == 0 && !r.Structured && r.Kernel == nil && len(r.Images) == 0 && !r.Absent && r.Observer == nil
}

// hit carries out a region that is a construct as Hit describes it. It reports whether the region is
// one; otherwise it has done nothing.
func (s *Scheduler) hit(r *Region) bool {
	if r.Missed || len(r.Transfers) > 0 || len(r.Enter) > 0 == (len(r.Exit) > 0) {
		return false
	}
	maps, exit := r.Enter, false
	if len(maps) == 0 {
		maps, exit = r.Exit, true
	}
	if !s.Hit(r.Scope, r.Group, maps, exit) {
		return false
	}
	for i := range r.Found {
		r.Found[i] = true
	}
	return true
}

// Hit carries out a data construct that only changes reference counts: an included one without
// dependences and without an observer, all of whose items are present before and after it, and that
// copies nothing. Its task would follow no other and no other would follow it, so none is made. maps are
// the items of its beginning or, if exit, those of its end. Hit reports whether the construct is one
// of this kind; otherwise it has done nothing, and the construct is one for Run. It keeps nothing of
// maps.
func (s *Scheduler) Hit(scope *tasks.Scope, group *tasks.Group, maps []memory.Map, exit bool) bool {
	for i := range maps {
		if !onlyCounts(&maps[i], exit) {
			return false
		}
	}
	if len(maps) == 0 || group.Cancelled() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusalLocked() != nil || s.presence.vacant() {
		return false
	}
	if len(maps) != 1 {
		return s.hitManyLocked(scope, maps, exit)
	}
	table, section := s.presence.table, maps[0].Section
	if dormant := table.Dormant(section, exit); dormant != nil {
		if s.pinnedInUseLocked(section) || !scope.Pass() {
			return false
		}
		if exit {
			dormant.Leave()
		} else {
			dormant.Enter()
		}
		return true
	}
	block := s.countingLocked(&maps[0], exit)
	if block == nil || !scope.Pass() {
		return false
	}
	if exit {
		block.Relinquish()
	} else {
		block.Retain()
	}
	if section.Start() == block.Section.Start() {
		s.makeDormantIfUnusedLocked(block)
	}
	return true
}

// makeDormantIfUnusedLocked makes a quiet block dormant if no task in flight refers to it.
func (s *Scheduler) makeDormantIfUnusedLocked(block *memory.Present) {
	if state := stateOf(block); len(state.holders) == 0 && state.residents == 0 {
		s.presence.table.MakeDormant(block)
	}
}

// makeDormantLocked makes the blocks dormant that a construct has created and leaves behind, so that the
// first construct that finds one of them needs no more than the later ones.
func (s *Scheduler) makeDormantLocked(entered []memory.Use) {
	for i := range entered {
		u := &entered[i]
		// Another construct can have removed the block meanwhile.
		if u.Created && !u.Present.Removed() && stateOf(u.Present).quiet() {
			s.makeDormantIfUnusedLocked(u.Present)
		}
	}
}

// hitManyLocked is Hit for any number of items, which can have blocks in common.
func (s *Scheduler) hitManyLocked(scope *tasks.Scope, maps []memory.Map, exit bool) bool {
	counting := s.presence.counting[:0]
	hit := true
	for i := 0; hit && i < len(maps); i++ {
		block := s.countingLocked(&maps[i], exit)
		if hit = block != nil; hit {
			counting = append(counting, block)
		}
	}
	if hit = hit && scope.Pass(); hit {
		if exit {
			s.presence.table.Relinquish(counting)
		} else {
			s.presence.table.Retain(counting)
		}
	}
	clear(counting)
	s.presence.counting = counting
	return hit
}

// countingLocked returns the block in which an item lies if the construct of the item only counts it,
// otherwise nil.
func (s *Scheduler) countingLocked(m *memory.Map, exit bool) *memory.Present {
	others := 0
	if exit {
		others = 1
	}
	block, _ := s.stayingLocked(m, others)
	if block == nil || s.pinnedInUseLocked(m.Section) || exit && !block.Stays() {
		return nil
	}
	return block
}

// onlyCounts reports whether an item of a data construct does no more than count if its block is present
// and stays so.
func onlyCounts(m *memory.Map, exit bool) bool {
	if m.Always || m.DeviceSize != 0 {
		return false
	}
	if exit {
		return !m.Delete && m.Type != memory.MapDelete
	}
	return m.Share != memory.ShareMust && m.Type.Enters()
}

// pinnedInUseLocked reports whether a section lies in pinned storage that copies in flight use, which a
// construct that maps the section comes after, or has a part that is pinned.
func (s *Scheduler) pinnedInUseLocked(section memory.Section) bool {
	a, err := s.memory.FindPinned(section)
	return err != nil || a != nil && !a.Idle()
}
