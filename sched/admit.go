package sched

import (
	"unsafe"

	"github.com/vkomp/vkomp/internal/mutant"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
)

// placed returns the place of a predecessor on this device, or nil if the predecessor is complete, and
// its target, or nil if it is a resident task. Every task that was placed is completed with
// Scheduler.mu held.
func placed(n *tasks.Node) (*order.Task, *target) {
	switch p := n.Runner().(type) {
	case *target:
		return &p.order.Task, p
	case *resident:
		return &p.order, nil
	}
	return nil, nil
}

// afterPredecessorsLocked sets after to the points of the last commands of n's predecessors. It returns
// a predecessor that has failed and is not over yet, or nil.
func afterPredecessorsLocked(n *tasks.Node, after *order.SyncSet) (failing *target) {
	after.Set(order.SyncPoint{})
	for _, p := range n.Predecessors() {
		at, t := placed(p)
		if at == nil || mutant.Active(mutant.PredecessorForgotten) {
			continue
		}
		after.Add(at.At)
		if t != nil && t.failed != nil && t.state != taskComplete {
			failing = t
		}
	}
	return failing
}

// mustWaitForLocked returns the list of parked tasks in which t has to wait before it can enter, or nil if
// it can enter now. A task has to wait
//
//   - for a block that it maps, while that is being removed.
//   - for a task that it follows and that has the last reference to a block which it maps, if there are
//     results in the block. In the order of the program the block is copied back and removed before t
//     begins, and t maps the storage anew. If the contents of the block equal the host's, and t maps
//     exactly the same storage, it can use the block instead: no task that is ordered between the two
//     can have changed either copy.
//   - for a task that it follows and that removes such a block, or copies it to the host, whatever its
//     reference count is: t might change the block, or read the host's copy.
//   - for a task that it follows and whose exit finds a block absent, but would find the one that t
//     makes. For resident tasks whose block is gone it waits whether it follows them or not.
//   - for storage that target constructs share with the host while they run, if it cannot share it too.
//   - for a task that will write host storage which it reads, or that will have the host read device
//     memory which it uses.
//
// Storage that t copies from the host, or updates, counts as storage that it maps.
func (s *Scheduler) mustWaitForLocked(t *target) *parkedTasks {
	if failing := afterPredecessorsLocked(t.node, &t.order.After); failing != nil {
		return &failing.parked
	}
	if s.presence.orphans > 0 {
		return &s.presence.orphaned
	}
	for k, maps := range [...][]memory.Map{t.Enter, t.Exit} {
		for i := range maps {
			m := &maps[i]
			if block := s.presence.table.Exiting(m.Section); block != nil {
				return &stateOf(block).parked
			}
			for _, b := range s.presence.absentExits {
				if b.leaves(m.Section) && s.mayFollowLocked(&t.order.After, b) {
					return &b.parked
				}
			}
			section := m.Section
			block := s.touchedLocked(m.Section)
			reads := m.Type.To() && m.Always || block == nil && (m.Type.To() || m.Share != memory.ShareNever)
			if block != nil {
				if stateOf(block).Shared {
					section, reads = block.Section, true
				}
				if k == 0 && stateOf(block).passing && m.Share != memory.ShareMay {
					return &stateOf(block).parked
				}
				if parked := s.mustWaitForHoldersLocked(t, block, m); parked != nil {
					return parked
				}
			}
			if reads {
				if writer := s.presence.hostWrites.touching(section); writer != nil {
					return writer
				}
			}
		}
	}
	for i := range t.transfers.All {
		if parked := s.mustWaitToTransferLocked(t, &t.transfers.All[i]); parked != nil {
			return parked
		}
	}
	for _, m := range t.entry.pins {
		for _, block := range m.Blocks {
			if writer := s.presence.hostWrites.touching(block.Section); m.Shared && writer != nil {
				return writer
			}
			s.presence.table.Wake(block) // it was not looked up
			if parked := s.mustWaitForHoldersLocked(t, block, &memory.Map{}); parked != nil {
				return parked
			}
		}
	}
	if s.presence.reading > 0 {
		return s.mustWaitForReadersLocked(t)
	}
	return nil
}

// mustWaitForHoldersLocked is mustWaitForLocked for one block whose storage t uses: through an item that
// maps it, or otherwise, with an empty item. t.order.After is set.
func (s *Scheduler) mustWaitForHoldersLocked(t *target, block *memory.Present, item *memory.Map) *parkedTasks {
	state := stateOf(block)
	count, infinite := block.Count()
	last := !infinite && int(count) <= len(state.holders)+int(state.residents)
	// same says that t can do with the block what it could do with a new one. Only an item that may
	// share host storage can use a block that does.
	same := item.Section == block.Section && item.Presence == memory.MayBeAbsent && item.Share != memory.ShareMust &&
		(!state.Shared || state.passing && item.Share == memory.ShareMay)
	if state.ignoring == 0 && (!last || !state.dirty && same && state.leaving == 0) {
		// This is the usual case, perhaps with thousands of holders in flight: the block outlives
		// them all, or its contents equal the host's.
		return nil
	}
	for _, h := range state.holders {
		if !s.mayFollowLocked(&t.order.After, h.by) {
			continue
		}
		// An exit construct has no reference of its own, so it would take that of t.
		anew := last && (state.dirty || !same || len(h.by.Enter) == 0)
		if anew || h.ignoresCount {
			return &h.by.parked
		}
	}
	if state.residents > 0 && last && (state.dirty || !same) {
		// It is not known which of them t follows. They are placed, so they end without t.
		return &state.parked
	}
	return nil
}

// mayFollowLocked reports whether commands that follow those sync points may also follow those of t, which has not ended. The
// point of a late task is that of its late copy. It is not known any more where its other commands were, so any may follow them.
func (s *Scheduler) mayFollowLocked(after *order.SyncSet, t *target) bool {
	return t.order.At.Value != 0 && (t.state == taskLate || s.order.MayFollow(after, t.order.At))
}

// mustWaitForReadersLocked is mustWaitForLocked for tasks that will have the host read device memory
// which t uses.
func (s *Scheduler) mustWaitForReadersLocked(t *target) *parkedTasks {
	for _, m := range t.entry.pins {
		if len(m.Readers) > 0 {
			return &readerOf(m).parked
		}
	}
	for i := range t.Enter {
		if block := s.touchedLocked(t.Enter[i].Section); block != nil && len(stateOf(block).Readers) > 0 {
			return &readerOf(stateOf(block).Allocation).parked
		}
	}
	for i := range t.transfers.All {
		x := &t.transfers.All[i]
		if !x.Kind.Updates() {
			continue
		}
		if block := s.touchedLocked(x.Host); block != nil && len(stateOf(block).Readers) > 0 {
			return &readerOf(stateOf(block).Allocation).parked
		}
	}
	return nil
}

// readerOf returns a task that will have the host read the memory, where there is one.
func readerOf(m *allocation.Allocation) *target { return m.Readers[0].Owner.(*target) }

// mustWaitToTransferLocked is mustWaitForLocked for a transfer that the construct requests. If it writes
// host storage, it has to come after copies to the same storage that are under way, because these can
// be late and would then overwrite it. If the device uses the host storage in place, it has to come
// after what the device does there. To pinned storage the device itself may write, and does so before
// the host makes copies of earlier tasks, so a transfer to it comes after all of those.
func (s *Scheduler) mustWaitToTransferLocked(t *target, x *transfer.Transfer) *parkedTasks {
	if !x.Kind.FromHost() && !x.Kind.ToHost() {
		return nil
	}
	host := x.HostSpan()
	if x.Kind.Updates() {
		host = x.Host
	}
	if block := s.presence.table.Exiting(host); block != nil {
		return &stateOf(block).parked
	}
	for rest := host; rest.Size > 0; {
		block := s.touchedLocked(rest)
		if block == nil {
			break
		}
		if parked := s.mustWaitForHoldersLocked(t, block, &memory.Map{}); parked != nil {
			return parked
		}
		if stateOf(block).Shared {
			for _, p := range t.node.Predecessors() {
				// Resident tasks do not use shared storage.
				if _, pt := placed(p); pt != nil && pt.state != taskComplete {
					return &pt.parked
				}
			}
		}
		if block.Section.End() >= rest.End() {
			break
		}
		past := uint64(block.Section.End() - rest.Start())
		rest = memory.Section{Ptr: unsafe.Add(rest.Ptr, past), Size: rest.Size - past}
	}
	if x.Kind.FromHost() || t.entry.pinned(x.HostSpan()) != nil {
		if writer := s.presence.hostWrites.touching(host); writer != nil {
			return writer
		}
	}
	return nil
}

// leaves reports whether t's exit has an item that shares bytes with the section.
func (t *target) leaves(section memory.Section) bool {
	for _, m := range t.exits() {
		if m.Start() < section.End() && section.Start() < m.End() {
			return true
		}
	}
	return false
}

// noteAbsentExitLocked records that an item of t's exit is absent so far (see presence.absentExits).
func (s *Scheduler) noteAbsentExitLocked(t *target) {
	if !t.absentExit {
		t.absentExit = true
		s.presence.absentExits = append(s.presence.absentExits, t)
	}
}
