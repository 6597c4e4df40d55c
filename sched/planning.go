package sched

import (
	"fmt"
	"iter"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
)

// resolveTransfersLocked finds the device memory that the pointers of the region's transfers point
// to, and keeps it for the task. It copies what the task keeps of the region; mu is held.
func (s *Scheduler) resolveTransfersLocked(t *target, requested []Transfer) error {
	ts := &t.transfers
	for i := range requested {
		r := &requested[i]
		size := r.Size
		if r.Rows != nil {
			size = r.Rows.Bytes()
		}
		if size == 0 {
			continue
		}
		x := ts.add(r.Kind)
		x.value, x.present, x.host, x.size, x.label = r.Value, r.Present, r.Host, size, r.Label
		if r.Rows != nil {
			ts.rows = append(ts.rows, *r.Rows)
			x.rows = &ts.rows[len(ts.rows)-1] // it does not change when the slice grows
		}
		if r.Image != nil {
			ts.images = append(ts.images, *r.Image)
			x.image = &ts.images[len(ts.images)-1]
		}
		dst, src := x.spans()
		var err error
		switch x.kind {
		case CopyToDevice, Fill, CopyWithin:
			x.dst, x.dstAt, err = s.findSpanLocked(r.Dst, dst)
		}
		if err == nil && (x.kind == CopyToHost || x.kind == CopyWithin) {
			x.src, x.srcAt, err = s.findSpanLocked(r.Src, src)
		}
		if err == nil && x.kind == CopyWithin && x.dst == x.src && x.overlaps() {
			dst, src := x.places()
			err = fmt.Errorf("%w: bytes %d to %d and %d to %d of %s", ErrOverlap, src.Start, src.Start+src.Size,
				dst.Start, dst.Start+dst.Size, x.dst.Describe())
		}
		if err != nil {
			return err
		}
		for _, side := range [...]*allocation.Allocation{x.dst, x.src} {
			if side != nil {
				t.pin(side)
			}
		}
	}
	ts.requested = len(ts.list)
	return nil
}

// findSpanLocked is findLocked for the bytes of a transfer that begins at p.
func (s *Scheduler) findSpanLocked(p Pointer, bytes order.Span) (*allocation.Allocation, uint64, error) {
	m, at, err := s.pointers.Find(p.Add(int64(bytes.Start)), bytes.Size)
	return m, at - bytes.Start, err
}

// planTransfersLocked adds what the task's maps transfer to what the construct asks for, and plans
// all of it, with the memory that it needs. On an error the caller undoes it; mu is held.
func (s *Scheduler) planTransfersLocked(t *target) error {
	ts := &t.transfers
	s.addAttachmentsLocked(t)
	for i := range ts.list {
		x := &ts.list[i]
		if x.kind.updates() {
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
		x := ts.add(copyIn)
		x.fresh, x.image, x.block, x.label = u.Created, t.image(i), u.Present, m.Label
		x.host = memory.Section{Ptr: unsafe.Add(m.Ptr, u.Skip), Size: m.Size - u.Skip}
		x.dst, x.dstAt, x.size = state.Allocation, blockAt(u.Present)+u.Offset+u.Skip, m.StorageSize()-u.Skip
		if err := s.planLocked(t, x); err != nil {
			return err
		}
	}
	// Which blocks that the host cannot see the task's exit will copy out is foreseen. What
	// turns out otherwise at the exit, planExitLocked puts right.
	for m, block := range s.lastItemsLocked(t) {
		if !m.Type.From() || block.Storage.Host() != nil {
			continue
		}
		x := ts.addCopyOutLocked(m, block, uint64(m.Start()-block.Section.Start()))
		if err := s.planLocked(t, x); err != nil {
			return err
		}
	}
	return nil
}

// addCopyOutLocked adds the copy of an item, which begins at an offset of a block, to the host.
func (ts *transfers) addCopyOutLocked(m *memory.Map, block *memory.Present, offset uint64) *transfer {
	x := ts.add(copyOut)
	x.block, x.uses, x.host, x.label = block, block.Uses(), m.Section, m.Label
	x.src, x.srcAt, x.size = stateOf(block).Allocation, blockAt(block)+offset, m.StorageSize()
	return x
}

// lastItemsLocked yields the items of the task's exit that, as things stand, will take
// their block's last reference or copy it out in any case.
func (s *Scheduler) lastItemsLocked(t *target) iter.Seq2[*memory.Map, *memory.Present] {
	return func(yield func(*memory.Map, *memory.Present) bool) {
		exits := t.exits()
		for i := range exits {
			m := &exits[i]
			block, err := s.leftLocked(t, i)
			if err != nil || block == nil || m.Size == 0 {
				continue
			}
			count, infinite := block.Count()
			if !infinite && count == 0 {
				continue // it is not present any more
			}
			if (m.Always || m.Delete || !infinite && count == 1) && !yield(m, block) {
				return
			}
		}
	}
}

// planExitLocked lists the transfers that the task is to end with, when the device is done with it:
// the copies to the host that the exit of its maps is to make, and those that the construct
// asks for. For copies that were not foreseen it plans how their bytes come to the host. It
// reports whether commands have to bring them, or make them visible, first: then the task is
// in the pending batch again. mu is held.
func (s *Scheduler) planExitLocked(t *target, w *tasks.Work) (late bool, err error) {
	ts := &t.transfers
	s.order.placing.Set(order.SyncPoint{})
	exits := t.exits()
	for _, e := range t.exit.items {
		if !e.CopyOut {
			continue
		}
		m := &exits[e.Item]
		i := ts.foreseenLocked(e.Present, e.Offset, m.StorageSize())
		if i < 0 {
			i = len(ts.list)
			x := ts.addCopyOutLocked(m, e.Present, e.Offset)
			x.phase = phaseLate
			if err := s.planLocked(t, x); err != nil {
				return false, err
			}
			x.op = s.transferOpLocked(t, x)
			if x.path.inPlace && !x.src.Visible(s.order.HostReached()) {
				x.src.Follow(&s.order.placing, x.src.Whole())
				late = true
			}
		}
		ts.list[i].image = t.image(e.Item)
		ts.ends = append(ts.ends, i)
	}
	if ts.planned.has(phaseHome) {
		for i := range ts.list {
			if x := &ts.list[i]; x.phase == phaseHome && !x.absent() {
				ts.ends = append(ts.ends, i)
			}
		}
	}
	missing := ts.recorded.has(phaseLate)
	if !missing && !late {
		return false, nil
	}
	var at order.SyncPoint
	if missing {
		at, err = s.placePhaseLocked(t, phaseLate, w)
	} else {
		_, at, err = s.beginLocked(s.order.AnyQueue(&s.order.placing, 0), w)
	}
	if err != nil {
		return false, err
	}
	b := s.order.Of(at).Pending()
	b.ReadByHost()
	b.AddTask(&t.order)
	t.order.At = at
	t.order.Used.Add(at)
	t.to(taskLate)
	return true, nil
}

// foreseenLocked returns the place of a copy to the host that was planned when the task entered, or
// -1 if there is none, or another construct has used the block since it was placed.
func (ts *transfers) foreseenLocked(block *memory.Present, offset, size uint64) int {
	for i := range ts.list {
		x := &ts.list[i]
		if x.phase == phaseExit && x.block == block && x.srcAt == blockAt(block)+offset && x.size == size &&
			(x.path.record == nil || x.uses == block.Uses()) {
			return i
		}
	}
	return -1
}

// findUpdateLocked finds the storage that an update is about.
func (s *Scheduler) findUpdateLocked(t *target, x *transfer) error {
	block, offset, err := s.presence.table.Lookup(x.host)
	switch {
	case err != nil && x.present:
		return fmt.Errorf("%s: %w: %w", x.label, memory.ErrNotPresent, err)
	case err != nil:
		return fmt.Errorf("%s: %w", x.label, err)
	case block == nil && x.present:
		return fmt.Errorf("%s %s: %w", x.label, x.host, memory.ErrNotPresent)
	case block == nil:
		return nil
	}
	state := stateOf(block)
	if state.image != (x.image != nil) || state.image && (x.host != block.Section || x.size != block.Storage.Size) {
		return fmt.Errorf("%s: %w: %s is mapped with another image, or none", x.label, memory.ErrPartialOverlap, block.Section)
	}
	x.block = block
	if x.image != nil {
		x.image.pointers = append(x.image.pointers[:0], state.pointers...)
	}
	if at := blockAt(block) + offset; x.kind == UpdateTo {
		x.dst, x.dstAt = state.Allocation, at
	} else {
		x.src, x.srcAt = state.Allocation, at
	}
	t.pin(state.Allocation)
	return nil
}

// planLocked chooses the path of a transfer, and takes the memory that it needs; mu is held.
func (s *Scheduler) planLocked(t *target, x *transfer) error {
	f := s.factsOfLocked(t, x)
	x.path = f.path()
	t.transfers.planned.add(x.phase)
	if x.path.record != nil {
		t.transfers.recorded.add(x.phase)
	}
	if x.path.take == nil {
		return nil
	}
	t.transfers.chunk = s.chunk
	return x.path.take(&s.memory, &t.transfers, x)
}

// factsOfLocked returns what the path of a transfer depends on, as things stand.
func (s *Scheduler) factsOfLocked(t *target, x *transfer) facts {
	f := facts{
		kind: x.kind, bytes: x.size, absent: x.absent(), chunk: s.chunk, awaited: !t.NoWait,
		contiguous: x.rows == nil && x.image == nil && !(x.block != nil && stateOf(x.block).image),
	}
	if m := x.dst; m != nil {
		f.dst = memoryFacts{
			shared: m.Shared, visible: m.Host() != nil, idle: m.Idle(), fresh: x.fresh,
			filling: x.block != nil && stateOf(x.block).filling != 0, whole: s.wholeUnits(x),
		}
	}
	if m := x.src; m != nil {
		f.src = memoryFacts{shared: m.Shared, visible: m.Host() != nil}
		// The host may read, when the task ends, what it waits for.
		f.src.idle = x.kind == CopyWithin && m.Idle()
	}
	return f
}

// wholeUnits reports whether the host can write the transfer's bytes without touching what
// lies beside them: memory that is not coherent is flushed in whole units, which somebody else
// may be writing to.
func (s *Scheduler) wholeUnits(x *transfer) bool {
	unit := s.memory.FlushUnit()
	if unit == 1 || x.dst.Shared {
		return true
	}
	dst, _ := x.spans()
	from := x.dst.Offset + x.dstAt + dst.Start
	return x.rows == nil && from%unit == 0 && dst.Size%unit == 0
}
