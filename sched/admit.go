package sched

import (
	"cmp"
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
//   - for a predecessor that has failed and is not over yet.
//   - for a block that it uses, while that is being removed.
//   - for a task whose exit takes such a block away, or copies it to the host: see mustWaitForHoldersLocked.
//   - for a task whose exit would find the block that t makes: see mustWaitForAbsentExitsLocked.
//   - for storage that target constructs share with the host while they run, if it cannot share it too.
//   - for predecessors that use storage in place which it copies: see mustWaitForUseInPlaceLocked.
//   - for a task that will write host storage which it reads, unless commands of both do: see hostWrites.
//   - for a task that will have the host read device memory which it uses: see mustWaitForReadersLocked.
//
// A task uses storage that it maps, copies from or to the host, or updates, and memory that it keeps.
func (s *Scheduler) mustWaitForLocked(t *target) *parkedTasks {
	if failing := afterPredecessorsLocked(t.node, &t.order.After); failing != nil {
		return &failing.parked
	}
	if s.presence.orphans > 0 {
		return &s.presence.orphaned
	}
	for k, maps := range [...][]memory.Map{t.Enter, t.Exit} {
		for i := range maps {
			if parked := s.mustWaitToMapLocked(t, &maps[i], k == 0); parked != nil {
				return parked
			}
		}
	}
	for i := range t.transfers.All {
		if parked := s.mustWaitToTransferLocked(t, &t.transfers.All[i]); parked != nil {
			return parked
		}
	}
	for _, m := range t.entry.pins {
		if parked := s.mustWaitToAccessLocked(t, m); parked != nil {
			return parked
		}
	}
	return nil
}

// mustWaitToMapLocked is mustWaitForLocked for an item of t's entry, or of its exit.
func (s *Scheduler) mustWaitToMapLocked(t *target, m *memory.Map, enters bool) *parkedTasks {
	if block := s.presence.table.Exiting(m.Section); block != nil {
		return &stateOf(block).parked
	}
	if parked := s.mustWaitForAbsentExitsLocked(t, m.Section); parked != nil {
		return parked
	}
	// It reads the host's storage of what is present only if it asks for that, or shares it.
	section, reads := m.Section, m.Type.To() && m.Always
	if block := s.touchedLocked(m.Section); block == nil {
		reads = m.Type.To() || m.Share != memory.ShareNever
	} else {
		state := stateOf(block)
		if enters && state.passing && m.Share != memory.ShareMay {
			return &state.parked
		}
		if parked := s.mustWaitForHoldersLocked(t, block, m); parked != nil {
			return parked
		}
		if parked := mustWaitForReadersLocked(state.Allocation); enters && parked != nil {
			return parked
		}
		if state.Shared {
			section, reads = block.Section, true
		}
	}
	if reads {
		return s.presence.hostWrites.touching(section)
	}
	return nil
}

// mustWaitToTransferLocked is mustWaitForLocked for a transfer that the construct requests. If it writes
// host storage, it has to come after copies to the same storage that are under way, because these can
// be late and would then overwrite it. To pinned storage the device itself may write, and does so before
// the host makes copies of earlier tasks, so a transfer to it comes after all of those. If its commands copy
// the bytes themselves, they follow what the device writes there for earlier tasks.
func (s *Scheduler) mustWaitToTransferLocked(t *target, x *transfer.Transfer) *parkedTasks {
	if !x.Kind.FromHost() && !x.Kind.ToHost() {
		return nil
	}
	host, pinned := x.HostSpan(), t.entry.pinned(x.HostSpan()) != nil
	other := cmp.Or(x.Dst, x.Src)
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
		if parked := mustWaitForUseInPlaceLocked(t, block); parked != nil {
			return parked
		}
		if x.Kind.Updates() {
			other = stateOf(block).Allocation
			if parked := mustWaitForReadersLocked(other); parked != nil {
				return parked
			}
		}
		if block.Section.End() >= rest.End() {
			break
		}
		past := uint64(block.Section.End() - rest.Start())
		rest = memory.Section{Ptr: unsafe.Add(rest.Ptr, past), Size: rest.Size - past}
	}
	switch {
	case pinned && other != nil && x.MayBePinned(other):
		return s.presence.hostWrites.byHost(host)
	case pinned || x.Kind.FromHost():
		return s.presence.hostWrites.touching(host)
	}
	return nil
}

// mustWaitToAccessLocked is mustWaitForLocked for memory that t keeps, because it has a pointer to it.
func (s *Scheduler) mustWaitToAccessLocked(t *target, m *allocation.Allocation) *parkedTasks {
	for _, block := range m.Blocks {
		if writer := s.presence.hostWrites.touching(block.Section); m.Shared && writer != nil {
			return writer
		}
		s.presence.table.Wake(block) // it was not looked up
		if parked := s.mustWaitForHoldersLocked(t, block, &memory.Map{}); parked != nil {
			return parked
		}
	}
	return mustWaitForReadersLocked(m)
}

// mustWaitForHoldersLocked returns the list in which t has to wait for a task that it follows and whose exit
// takes the block away, or copies it to the host. Such a task
//
//   - has the last reference to the block, and there are results in it. In the order of the program the block
//     is copied back and removed before t begins, and t maps the storage anew. If the block is as good as new,
//     t can use it instead: no task that is ordered between the two can have changed either copy.
//   - removes the block, or copies it to the host, whatever its reference count is: t might change the block,
//     or read the host's copy.
//
// The storage is used through an item that maps it, or otherwise, with an empty item. t.order.After is set.
func (s *Scheduler) mustWaitForHoldersLocked(t *target, block *memory.Present, item *memory.Map) *parkedTasks {
	state := stateOf(block)
	ends := !state.outlives(block, 0)
	anew := ends && !state.asNew(block, item)
	if state.ignoring == 0 && !anew && (!ends || state.leaving == 0) {
		// This is the usual case, perhaps with thousands of holders in flight: the block outlives
		// them all, or its contents equal the host's.
		return nil
	}
	for _, h := range state.holders {
		// An exit construct has no reference of its own, so it would take that of t.
		takes := ends && len(h.by.Enter) == 0
		if (anew || takes || h.ignoresCount) && s.mayFollowLocked(&t.order.After, h.by) {
			return &h.by.parked
		}
	}
	if state.residents > 0 && anew {
		// It is not known which of them t follows. They are placed, so they end without t.
		return &state.parked
	}
	return nil
}

// mustWaitForAbsentExitsLocked returns the list in which t has to wait for a task that it follows and whose
// exit finds no block in the section so far, but would find the one that t makes. For resident tasks whose
// block is gone t waits whether it follows them or not (see presence.orphans).
func (s *Scheduler) mustWaitForAbsentExitsLocked(t *target, section memory.Section) *parkedTasks {
	for _, b := range s.presence.absentExits {
		if b.leaves(section) && s.mayFollowLocked(&t.order.After, b) {
			return &b.parked
		}
	}
	return nil
}

// mustWaitForUseInPlaceLocked returns the list in which t has to wait for a predecessor if the block, which t
// copies, is the host's own storage: the device may use it in place.
func mustWaitForUseInPlaceLocked(t *target, block *memory.Present) *parkedTasks {
	if !stateOf(block).Shared {
		return nil
	}
	for _, p := range t.node.Predecessors() {
		// Resident tasks do not use shared storage.
		if _, pt := placed(p); pt != nil && pt.state != taskComplete {
			return &pt.parked
		}
	}
	return nil
}

// mustWaitForReadersLocked returns the list in which tasks that use the memory have to wait for one that will
// have the host read it, or nil if there is none.
func mustWaitForReadersLocked(m *allocation.Allocation) *parkedTasks {
	if len(m.Readers) == 0 {
		return nil
	}
	return &m.Readers[0].Owner.(*target).parked
}

// mayFollowLocked reports whether commands that follow those sync points may also follow those of t, which has not ended. The
// point of a late task is that of its late copy. It is not known any more where its other commands were, so any may follow them.
func (s *Scheduler) mayFollowLocked(after *order.SyncSet, t *target) bool {
	return t.order.At.Value != 0 && (t.state == taskLate || s.order.MayFollow(after, t.order.At))
}

// leaves reports whether t's exit has an item that gives back a block with that section, or with a part of it.
func (t *target) leaves(section memory.Section) bool {
	for _, m := range t.exits() {
		// An item without bytes gives back the block in which its pointer is.
		if m.Counts() && m.Start() < section.End() && section.Start() < max(m.End(), m.Start()+1) {
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
