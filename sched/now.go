package sched

import (
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
)

// now carries out a construct that copies at most a few bytes, which the host itself reads and writes, and
// perhaps makes or removes storage blocks: an included one without dependences, while no task is in
// flight. As with hit, its task would follow no other and no other would follow it, so none is made. now
// reports whether the region is such a construct. Otherwise, and if the host's storage cannot be accessed,
// it has changed nothing of the device's and the graph's, and the region's task has to do it all.
func (s *Scheduler) now(r *Region) bool {
	if r.Found != nil || s.leakSites || s.general || r.Group.Cancelled() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.incompleteLocked() > 0 || s.refusalLocked() != nil {
		return false
	}
	switch enters, exits := len(r.Enter) > 0, len(r.Exit) > 0; {
	case len(r.Transfers) == 1 && !enters && !exits:
		return s.copyNowLocked(r)
	case len(r.Transfers) > 0 || enters == exits:
		return false
	case enters:
		return s.enterNowLocked(r)
	}
	return s.exitNowLocked(r)
}

// copyNowLocked is now for a memory routine.
func (s *Scheduler) copyNowLocked(r *Region) bool {
	x := &r.Transfers[0]
	c, ok := x.Now(&s.pointers.Pointers)
	if !ok || s.partlyPinnedLocked(memory.Section{Ptr: x.Host.Ptr, Size: x.Size}) || s.memory.FlushUnit() != 0 || !r.Scope.Pass() {
		return false
	}
	if c.Make() != nil {
		// The task fails in the same way.
		r.Scope.Unpass()
		return false
	}
	if x.Kind.FromHost() {
		s.stats.BytesToDevice += c.Bytes
	} else {
		s.stats.BytesFromDevice += c.Bytes
	}
	return true
}

// partlyPinnedLocked reports whether only a part of a section is pinned, which is an error of the construct's task. Nobody has to
// look whether copies of pinned storage are under way: they belong to tasks in flight, and there are none.
func (s *Scheduler) partlyPinnedLocked(section memory.Section) bool {
	_, err := s.memory.FindPinned(section)
	return err != nil
}

// copiesLittleLocked reports whether the items of a construct are mapped as they are, and at most a few bytes of
// them are copied.
func (s *Scheduler) copiesLittleLocked(maps []memory.Map) bool {
	bytes := uint64(0)
	for i := range maps {
		m := &maps[i]
		if m.Type.To() || m.Type.From() {
			bytes += min(m.Size, transfer.NowBytes+1)
		}
		if m.Share != memory.ShareNever || m.DeviceSize != 0 || s.partlyPinnedLocked(m.Section) {
			return false
		}
	}
	return bytes <= transfer.NowBytes
}

// enterNowLocked is now for target enter data.
func (s *Scheduler) enterNowLocked(r *Region) bool {
	if !s.copiesLittleLocked(r.Enter) {
		return false
	}
	p := &s.presence
	p.reclaimLocked()
	var err error
	if p.entered, err = p.table.Enter(r.Enter, p.entered, p.allocate, p.free); err != nil {
		return false
	}
	for i := range p.entered {
		if block := p.entered[i].Present; block != nil {
			s.openBlockLocked(&p.entered[i], &r.Enter[i], r.Site, r.Label)
		}
	}
	bytes, done := uint64(0), false
	if s.mayCopyInLocked() && r.Scope.Pass() {
		if bytes, done = s.copyInNowLocked(r.Enter); !done {
			r.Scope.Unpass()
		}
	}
	if done {
		s.stats.BytesToDevice += bytes
		s.makeDormantLocked(p.entered)
	} else {
		p.exiting = p.table.BeginExitOf(r.Enter, p.entered, p.exiting)
		s.endNowLocked()
	}
	clear(p.entered)
	return done
}

// copyInNowLocked makes the copies of the items in presence.entered to the device, and returns how many
// bytes these are. It reports false if the host's storage cannot be accessed.
func (s *Scheduler) copyInNowLocked(maps []memory.Map) (bytes uint64, ok bool) {
	for i := range s.presence.entered {
		u, m := &s.presence.entered[i], &maps[i]
		if !u.CopyIn {
			continue
		}
		to := unsafe.Add(stateOf(u.Present).Host(), blockAt(u.Present)+u.Offset+u.Skip)
		c := transfer.Copy{To: to, From: unsafe.Add(m.Ptr, u.Skip), Bytes: m.Size - u.Skip}
		if c.Make() != nil {
			return 0, false
		}
		bytes += c.Bytes
	}
	return bytes, true
}

// mayCopyInLocked reports whether the host may write the storage of all items in presence.entered that are
// to be copied to the device.
func (s *Scheduler) mayCopyInLocked() bool {
	for i := range s.presence.entered {
		u := &s.presence.entered[i]
		if u.Present == nil {
			continue
		}
		if state := stateOf(u.Present); !state.quiet() || u.CopyIn && !(s.memory.FlushUnit() == 0 && state.HostWrites(u.Present.Storage.Size) && state.Idle()) {
			return false
		}
	}
	return true
}

// exitNowLocked is now for target exit data.
func (s *Scheduler) exitNowLocked(r *Region) bool {
	if !s.copiesLittleLocked(r.Exit) || s.presence.table.CheckExit(r.Exit) != nil {
		return false
	}
	p := &s.presence
	p.exiting = p.table.BeginExit(r.Exit, p.exiting)
	bytes, done := uint64(0), false
	if s.mayExitLocked() && r.Scope.Pass() {
		if bytes, done = s.copyOutNowLocked(r.Exit); !done {
			r.Scope.Unpass()
		}
	}
	if !done {
		p.removed = p.table.CancelExit(p.exiting, p.removed)
		clear(p.exiting)
		return false
	}
	s.stats.BytesFromDevice += bytes
	s.endNowLocked()
	return true
}

// copyOutNowLocked makes the copies of the items in presence.exiting to the host, and returns how many bytes
// these are. It reports false if the host's storage cannot be accessed: some of it may have been written
// by then, as by a task that fails.
func (s *Scheduler) copyOutNowLocked(maps []memory.Map) (bytes uint64, ok bool) {
	for i := range s.presence.exiting {
		e := &s.presence.exiting[i]
		if !e.CopyOut {
			continue
		}
		m, from := &maps[e.Item], unsafe.Add(stateOf(e.Present).Host(), blockAt(e.Present)+e.Offset)
		c := transfer.Copy{To: m.Ptr, From: from, Bytes: m.Size}
		if c.Make() != nil {
			return 0, false
		}
		bytes += c.Bytes
	}
	return bytes, true
}

// mayExitLocked reports whether the host may read the storage of all items in presence.exiting that are to
// be copied to the host, and no task waits for the removal of a block.
func (s *Scheduler) mayExitLocked() bool {
	for i := range s.presence.exiting {
		e := &s.presence.exiting[i]
		if state := stateOf(e.Present); len(state.parked) > 0 || !state.quiet() || e.CopyOut && !(s.memory.FlushUnit() == 0 && state.HostReads() && state.Idle()) {
			return false
		}
	}
	return true
}

// endNowLocked ends the exits in presence.exiting, and gives up the blocks that they remove. No task waits
// for that.
func (s *Scheduler) endNowLocked() {
	p := &s.presence
	p.removed = p.table.EndExit(p.exiting, p.removed)
	clear(p.exiting)
	s.goneAllLocked(new(tasks.Work))
}
