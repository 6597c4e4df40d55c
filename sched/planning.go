package sched

import (
	"fmt"
	"iter"
	"unsafe"

	"github.com/vkomp/vkomp/internal/invariants"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
)

// planTransfersLocked adds the transfers of the task's maps to those that the construct requests, and
// plans all of them. On an error the caller has to undo what has been planned.
func (s *Scheduler) planTransfersLocked(t *target) error {
	ts := &t.transfers
	ts.Reserved = s.life.first != nil && s.life.live > 0
	empty(&t.exit.foreseen)
	s.addAttachmentsLocked(t)
	for i := range ts.All {
		x := &ts.All[i]
		if x.Kind.Updates() {
			if err := s.findUpdateLocked(t, x); err != nil {
				return err
			}
		}
		if err := s.planLocked(t, x); err != nil {
			return err
		}
	}
	for i := range t.entry.uses {
		u := &t.entry.uses[i]
		if !u.CopyIn {
			continue
		}
		m, state := &t.Enter[i], stateOf(u.Present)
		x := ts.Add(transfer.CopyIn)
		x.Fresh, x.Image, x.Block, x.Label = u.Created, t.image(i), u.Present, m.Label
		x.Host = memory.Section{Ptr: unsafe.Add(m.Ptr, u.Skip), Size: m.Size - u.Skip}
		x.Dst, x.DstAt, x.Size = state.Allocation, blockAt(u.Present)+u.Offset+u.Skip, m.StorageSize()-u.Skip
		if err := s.planLocked(t, x); err != nil {
			return err
		}
	}
	// Commands at the end of the task copy the blocks that the host does not read itself, so the
	// copies are planned now. Which blocks these are may turn out otherwise at the exit: then
	// planExitLocked drops copies and adds others.
	for item, block := range s.lastItemsLocked(t) {
		m := &t.exits()[item]
		if !m.Type.From() || stateOf(block).HostReads() || s.copiesLateLocked(t, m) || checkMapImage(block, m) != nil {
			continue
		}
		x := ts.Add(transfer.CopyOut)
		x.CopiesOut(m, block, stateOf(block).Allocation, blockAt(block)+uint64(m.Start()-block.Section.Start()))
		if err := s.planLocked(t, x); err != nil {
			return err
		}
		t.exit.foresee(item, len(ts.All)-1)
	}
	return nil
}

// lastItemsLocked yields the indices and blocks of the items of the task's exit that, as things stand, will remove their block
// or copy from it whatever its reference count is.
func (s *Scheduler) lastItemsLocked(t *target) iter.Seq2[int, *memory.Present] {
	return func(yield func(int, *memory.Present) bool) {
		exits := t.exits()
		for i := range exits {
			m := &exits[i]
			block, err := s.exitBlockLocked(t, i)
			if err != nil || block == nil || m.Size == 0 {
				continue
			}
			count, infinite := block.Count()
			if !infinite && count == 0 {
				continue // it is not present any more
			}
			if (m.Always || m.Delete || !infinite && count == 1) && !yield(i, block) {
				return
			}
		}
	}
}

// planExitLocked lists the transfers that the host has to make when the task's commands are complete:
// the copies to the host of the exit of its maps, and those that the construct requests. It plans the
// copies that were not foreseen. late says that more commands are needed first, which copy bytes or
// make them visible to the host. The task is in the pending batch again then.
func (s *Scheduler) planExitLocked(t *target, w *tasks.Work) (late bool, err error) {
	ts := &t.transfers
	s.order.placing.Set(order.SyncPoint{})
	exits := t.exits()
	for _, e := range t.exit.items {
		if !e.CopyOut {
			continue
		}
		m := &exits[e.Item]
		if err := checkMapImage(e.Present, m); err != nil {
			return false, err // it can have been mapped anew since the task entered
		}
		at := blockAt(e.Present) + e.Offset
		i := t.exit.foreseenFor(e.Item)
		if i < 0 || !ts.Foresaw(i, e.Present, at, m.StorageSize()) {
			i = len(ts.All)
			x := ts.Add(transfer.CopyOut)
			x.CopiesOut(m, e.Present, stateOf(e.Present).Allocation, at)
			x.Phase = transfer.Late
			if err := s.planLocked(t, x); err != nil {
				return false, err
			}
			x.Op = s.transferOpLocked(t, x)
			if x.InPlace() && !x.Src.Visible(s.order.HostReached()) {
				x.Src.Follow(&s.order.placing, x.Src.Whole())
				late = true
			}
		}
		ts.All[i].Image = t.image(e.Item)
		ts.EndWith(i)
	}
	ts.EndWithRequested()
	missing := ts.Recorded(transfer.Late)
	if !missing && !late {
		return false, nil
	}
	var at order.SyncPoint
	if missing {
		at, err = s.placePhaseLocked(t, transfer.Late, w)
	} else {
		_, at, err = s.beginLocked(s.order.AnyQueue(&s.order.placing), w)
	}
	if err != nil {
		return false, err
	}
	b := s.order.Of(at).Pending()
	b.ReadByHost()
	b.AddTask(&t.order.Task)
	t.order.At = at
	t.order.Used.Add(at)
	t.to(taskLate)
	return true, nil
}

// findUpdateLocked finds the corresponding storage of an update.
func (s *Scheduler) findUpdateLocked(t *target, x *transfer.Transfer) error {
	block, offset, err := s.presence.table.Lookup(x.Host)
	switch {
	case err != nil && x.Present:
		return fmt.Errorf("%s: %w: %w", x.Label, memory.ErrNotPresent, err)
	case err != nil:
		return fmt.Errorf("%s: %w", x.Label, err)
	case block == nil && x.Present:
		return fmt.Errorf("%s %s: %w", x.Label, x.Host, memory.ErrNotPresent)
	case block == nil:
		return nil
	}
	if err := checkImage(block, x.Label, x.Image != nil, x.Host, x.Size); err != nil {
		return err
	}
	state := stateOf(block)
	x.Block = block
	if x.Image != nil {
		x.Image.Attached = append(x.Image.Attached[:0], *state.image...)
	}
	if at := blockAt(block) + offset; x.Kind == transfer.UpdateTo {
		x.Dst, x.DstAt = state.Allocation, at
	} else {
		x.Src, x.SrcAt = state.Allocation, at
	}
	t.pinLocked(state.Allocation)
	return nil
}

// planLocked chooses the path of a transfer, and takes the memory that it needs.
func (s *Scheduler) planLocked(t *target, x *transfer.Transfer) error {
	situation := transfer.Situation{Awaited: !t.NoWait}
	if len(t.entry.hosts) > 0 && (x.Kind.FromHost() || x.Kind.ToHost()) {
		situation.Pinned = t.entry.pinned(x.HostSpan())
		situation.Written = situation.Pinned != nil && x.Kind.FromHost() && s.presence.hostWrites.touching(x.HostSpan()) != nil
	}
	if x.Block != nil {
		state := stateOf(x.Block)
		situation.Image, situation.Filling = state.image != nil, state.filling != 0
	}
	if err := t.transfers.Plan(&s.transfers, x, situation); err != nil {
		return err
	}
	if invariants.Enabled && situation.Written && !x.ByDevice() {
		// mustWaitToTransferLocked takes it for a copy by commands.
		panic(fmt.Sprintf("sched: task %q has the host read %s, to which commands in flight write", t.Label, x.HostSpan()))
	}
	return nil
}
