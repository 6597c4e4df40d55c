package sched

import (
	"errors"
	"math"

	"github.com/vkomp/vkomp/memory"
)

// hit carries out a data construct that only changes reference counts: an included one without
// dependences, all of whose items are present before and after it, and that copies nothing. Its
// task would follow no other and no other would follow it, so none is made. hit reports whether the
// region is such a construct; otherwise it has done nothing.
func (s *Scheduler) hit(r *Region) bool {
	if r.NoWait || len(r.Depend) > 0 || r.Structured || r.Kernel != nil || len(r.Transfers) > 0 || len(r.Images) > 0 || r.Infinite || r.Observer != nil ||
		len(r.Enter) > 0 == (len(r.Exit) > 0) || r.Group.Cancelled() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusalLocked() != nil || s.presence.vacant() {
		return false
	}
	var block *memory.Present
	for i := range r.Enter {
		m := &r.Enter[i]
		if m.Always || m.Share == memory.ShareMust || m.DeviceSize != 0 || !m.Type.Enters() {
			return false
		}
		if block, _ = s.stayingLocked(m, 0); block == nil {
			return false
		}
	}
	for i := range r.Exit {
		m := &r.Exit[i]
		if m.Always || m.Delete || m.Type == memory.MapDelete || m.DeviceSize != 0 {
			return false
		}
		if block, _ = s.stayingLocked(m, 1); block == nil {
			return false
		}
	}
	if !r.Scope.Pass() {
		return false
	}
	switch {
	case len(r.Enter) == 1: // items of one block need more care
		block.Retain()
		for i := range r.Found {
			r.Found[i] = true
		}
		return true
	case len(r.Exit) == 1 && block.Stays():
		block.Relinquish()
		return true
	case len(r.Enter) > 0:
		var err error
		if s.presence.hits, err = s.presence.table.Enter(r.Enter, s.presence.hits, allocateNothing, s.presence.free); err != nil {
			return false // the task will fail with the same error
		}
		clear(s.presence.hits)
		for i := range r.Found {
			r.Found[i] = true
		}
		return true
	}
	s.presence.left = s.presence.table.BeginExit(r.Exit, s.presence.left)
	s.presence.removed = s.presence.table.EndExit(s.presence.left, s.presence.removed)
	clear(s.presence.left)
	return true
}

// stayingLocked returns the block in which the item lies, and where, if the block is present and stays
// so: besides the tasks in flight, more than the given number of constructs refer to it, and nothing is
// about to copy or remove it. Otherwise it returns nil.
func (s *Scheduler) stayingLocked(m *memory.Map, others int) (block *memory.Present, offset uint64) {
	block, offset, err := s.presence.table.Lookup(m.Section)
	if err != nil || block == nil || block.Exiting() || m.Size == 0 {
		return nil, 0
	}
	if a, err := s.memory.FindPinned(m.Section); err != nil || a != nil && !a.Idle() {
		return nil, 0 // the construct is complete after copies of the storage that are in flight
	}
	state := stateOf(block)
	if state.filling != 0 || state.ignoring != 0 || state.broken != nil || state.Shared || state.image != nil {
		return nil, 0
	}
	if !keptLocked(block, others) {
		return nil, 0
	}
	return block, offset
}

// keptLocked reports whether more than the given number of constructs refer to the block besides the tasks
// in flight.
func keptLocked(block *memory.Present, others int) bool {
	count, infinite := block.Count()
	state := stateOf(block)
	return infinite || int(count) > len(state.holders)+int(state.residents)+others && count != math.MaxUint32
}

var errNothing = errors.New("sched: no storage to allocate")

// allocateNothing is the allocation function of constructs that create no block.
func allocateNothing(*memory.Map) (memory.Storage, error) { return memory.Storage{}, errNothing }
