package sched

import (
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
)

// entry is what a task has of the presence table and of device memory.
type entry struct {
	// number is the number of the task's last entry.
	number uint64
	// uses has, for each item of Region.Enter, the block that it found or made.
	uses []memory.Use
	// pins are the allocations that the task keeps.
	pins []*allocation.Allocation
	// hosts is the pinned storage in which host storage of the task lies, and that it keeps, sorted by address.
	hosts []*PinnedStorage
	// fills are the blocks whose first contents are still to come from the task.
	fills []*blockState
	// holds are the references to blocks that the task gives back when it finishes.
	holds []hold
}

func (e *entry) reset() {
	e.number = 0
	empty(&e.uses)
	e.pins, e.hosts, e.fills, e.holds = e.pins[:0], e.hosts[:0], e.fills[:0], e.holds[:0]
}

// ignoresCount reports whether the exit of an item deletes its block, or copies part of it to the
// host, whatever the block's reference count is.
func ignoresCount(m *memory.Map) bool {
	return m.Type == memory.MapDelete || m.Delete || m.Always && m.Type.From()
}

// enterLocked carries out the entry sequence of the region's maps, binds the kernel to the storage,
// and takes the staging memory that copies need. After that only the loss of the device can keep
// the task from being placed, so that other tasks can rely on its copies. After an error nothing
// has changed.
func (s *Scheduler) enterLocked(t *target, w *tasks.Work) error {
	if err := s.presence.table.CheckExit(t.Exit); err != nil {
		return err
	}
	if err := s.checkPinnedLocked(t); err != nil {
		return err
	}
	if t.Absent {
		if err := s.checkAbsentLocked(t.Enter); err != nil {
			return err
		}
	}
	if len(t.Enter) > 0 {
		s.presence.reclaimLocked()
	}
	pinned := len(t.entry.pins)
	s.presence.entries++
	t.entry.number = s.presence.entries
	var err error
	t.entry.uses, err = s.presence.table.Enter(t.Enter, t.entry.uses, s.presence.allocate, s.presence.free)
	if err != nil {
		return err
	}
	s.openBlocksLocked(t)
	err = t.checkImagesLocked()
	if err == nil {
		err = s.bindLocked(t)
	}
	if err == nil {
		err = s.planTransfersLocked(t)
	}
	if err != nil {
		s.beginReleaseLocked(t)
		s.endExitLocked(t, w)
		t.transfers.FreeStaging(&s.transfers, &t.order.Used)
		t.transfers.Undo()
		t.unpinFromLocked(pinned)
		return err
	}
	for i := range t.entry.uses {
		u := &t.entry.uses[i]
		if u.Present == nil {
			t.leaveOut(i)
		}
		if u.Created && t.Absent {
			s.presence.table.Claim(u.Present)
		}
		if t.Found != nil {
			t.Found[i] = u.Present != nil
		}
		if u.Created && u.CopyIn {
			t.fillLocked(stateOf(u.Present))
		}
	}
	t.attachLocked()
	s.announceTransfersLocked(t)
	exits := t.exits()
	// The blocks' lists of holders point into the slice, so it must not grow.
	if cap(t.entry.holds) < len(exits) {
		t.entry.holds = make([]hold, 0, len(exits))
	}
	for i := range exits {
		m := &exits[i]
		block, err := s.exitBlockLocked(t, i)
		switch {
		case err != nil || m.Size == 0 && m.Presence != memory.IfPresent:
		case block == nil:
			s.noteAbsentExitLocked(t)
		default:
			t.holdLocked(block, ignoresCount(m))
		}
	}
	if t.traits.has(observedOps) {
		s.observeEntryLocked(t)
	}
	return nil
}

// openBlocksLocked makes the records of the blocks that the task has created, and keeps the memory of
// all blocks that it has entered.
func (s *Scheduler) openBlocksLocked(t *target) {
	for i := range t.entry.uses {
		u := &t.entry.uses[i]
		if u.Present == nil {
			continue
		}
		state := s.openBlockLocked(u, &t.Enter[i], t.Site, t.Label)
		// Data constructs without a task (see hit and now) need not set dirty: the blocks that they find are kept by an
		// earlier data construct, which has set it, and new blocks begin with it.
		switch {
		case !t.Structured:
			state.dirty = true
		case u.CopyIn && u.Created && t.Enter[i].Size == u.Present.Section.Size:
			state.dirty = false
		}
		t.pinLocked(state.Allocation)
	}
}

// openBlockLocked returns the record of the block that an item has entered. It makes that of a new
// block, for a construct with that label and, in the program, at that place.
func (s *Scheduler) openBlockLocked(u *memory.Use, m *memory.Map, site *memory.Site, label string) *blockState {
	state, _ := u.Present.State.(*blockState)
	if state == nil {
		state = s.presence.newBlockLocked()
		state.Allocation = &state.own
		state.Init(&s.memory, u.Present.Storage)
		state.Of, state.Site, state.Label = u.Present, site, label
		state.passing = state.Shared && m.Share == memory.ShareMay
		u.Present.State, u.Present.Shared = state, state.Shared
		state.listLocked(u.Present)
	}
	return state
}

// exits returns the maps of the region's end.
func (t *target) exits() []memory.Map {
	if t.Structured {
		return t.Enter
	}
	return t.Exit
}

// exitBlockLocked returns the block in which the i-th item of t's exit lies, or nil. For a structured
// region, which has entered, that is the block that the item has found or made, even if it is not
// present any more.
func (s *Scheduler) exitBlockLocked(t *target, i int) (*memory.Present, error) {
	if t.Structured {
		return t.entry.uses[i].Present, nil
	}
	block, _, err := s.presence.table.Lookup(t.Exit[i].Section)
	return block, err
}

// leaveOut removes an item that is not present from the exit of a structured region.
func (t *target) leaveOut(i int) {
	if t.Enter[i].Presence == memory.IfPresent && t.Structured {
		t.Enter[i] = memory.Map{Section: memory.Section{Ptr: t.Enter[i].Ptr}}
	}
}

// fillLocked makes tasks that find the block wait until t's copy to it has been made or placed.
func (t *target) fillLocked(state *blockState) {
	if state.filling == 0 {
		state.filling = t.entry.number
		t.entry.fills = append(t.entry.fills, state)
	}
}

// pinLocked keeps an allocation until t is complete.
func (t *target) pinLocked(m *allocation.Allocation) {
	m.Pin()
	t.entry.pins = append(t.entry.pins, m)
}

// unpinFromLocked undoes all calls of pinLocked but the first n.
func (t *target) unpinFromLocked(n int) {
	for i, m := range t.entry.pins[n:] {
		m.Unpin()
		t.entry.pins[n+i] = nil
	}
	t.entry.pins = t.entry.pins[:n]
}

// unpinLocked gives up the allocations that are kept until t is complete.
func (t *target) unpinLocked() {
	t.unpinFromLocked(0)
	unpinHostsLocked(&t.entry.hosts)
}

// unpin is unpinLocked, without the lock, for a task that will not run.
func (t *target) unpin() {
	if len(t.entry.pins)+len(t.entry.hosts) == 0 {
		return
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.unpinLocked()
}

// filledLocked lets tasks go on that wait for blocks which t fills: the copies have been made, or
// come before everything that is placed from now on.
func (t *target) filledLocked() {
	for _, state := range t.entry.fills {
		state.filling = 0
	}
	if len(t.entry.fills) > 0 && t.s.presence.fillWaiters > 0 {
		t.s.presence.filling.Broadcast()
	}
	empty(&t.entry.fills)
}

// unfilledLocked records that the device will not make the first copies to the blocks that t has
// created, so that other tasks that use these blocks fail.
func (t *target) unfilledLocked(err error) {
	for i := range t.transfers.All {
		if x := &t.transfers.All[i]; x.Phase == transfer.AtEntry && x.Fresh && x.ByCommand() {
			// It can be dormant since the copy was placed.
			t.s.presence.table.Wake(x.Block)
			stateOf(x.Block).broken = err
		}
	}
}

// brokenLocked returns an error if a block that t uses never got its first contents.
func (t *target) brokenLocked() error {
	for _, u := range t.entry.uses {
		if u.Present == nil {
			continue
		}
		if err := stateOf(u.Present).broken; err != nil {
			return fmt.Errorf("the copy to storage that it shares failed: %w", err)
		}
	}
	return nil
}

// waitUntilFilledLocked waits for the task that fills the block if that task entered before t.
// Because of this condition tasks cannot wait for each other in a cycle.
func (s *Scheduler) waitUntilFilledLocked(t *target, state *blockState) {
	for state.filling != 0 && state.filling < t.entry.number {
		s.presence.fillWaiters++
		s.presence.filling.Wait()
		s.presence.fillWaiters--
	}
}

// beginReleaseLocked begins an exit that gives back what enterLocked has counted, and copies nothing.
func (s *Scheduler) beginReleaseLocked(t *target) {
	maps := make([]memory.Map, len(t.Enter))
	for i, m := range t.Enter {
		if t.entry.uses[i].Present != nil {
			maps[i] = memory.Map{Section: m.Section, Type: memory.MapRelease, Presence: m.Presence, Label: m.Label}
		}
	}
	if t.Absent {
		s.disclaimLocked(t.Enter)
	}
	t.exit.items = s.presence.table.BeginExit(maps, t.exit.items)
}

// endExitLocked ends t's exit and gives up the blocks that leave the presence table by it.
func (s *Scheduler) endExitLocked(t *target, w *tasks.Work) {
	if t.exit.cancelled {
		s.presence.removed = s.presence.table.CancelExit(t.exit.items, s.presence.removed)
	} else {
		s.presence.removed = s.presence.table.EndExit(t.exit.items, s.presence.removed)
	}
	for i := range t.exit.items {
		// A block of which an exit was cancelled stays: tasks that have waited for it to be gone find it present.
		if p := t.exit.items[i].Present; !p.Removed() && !p.Exiting() {
			stateOf(p).parked.restart(w)
		}
	}
	s.goneAllLocked(w)
}

// goneAllLocked gives up the blocks that have just left the presence table.
func (s *Scheduler) goneAllLocked(w *tasks.Work) {
	for i, p := range s.presence.removed {
		s.presence.removed[i] = nil
		s.goneLocked(p, w)
	}
}

// goneLocked gives up a block that has left the presence table. Tasks that waited for that try
// again, and the memory is freed once nobody uses it.
func (s *Scheduler) goneLocked(p *memory.Present, w *tasks.Work) {
	state := stateOf(p)
	state.unlistLocked()
	for _, h := range state.holders {
		s.noteAbsentExitLocked(h.by)
	}
	s.presence.orphans += int(state.residents)
	state.parked.restart(w)
	if !state.associated {
		s.pointers.Forget(state.Allocation)
	}
	m := state.Allocation
	if state.associated && m.Keepers() == m.Associations()+2 && len(state.parked) == 0 && state.broken == nil {
		// Only the program and the associations keep the memory, so no task refers to the
		// block.
		s.presence.reuseLocked(p)
	}
	m.Unpin()
}
