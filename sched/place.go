package sched

import (
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// placeLocked places the task's commands on queues, at levels of their pending batches: copies to
// storage, the kernel and copies to staging, each after the one before. On an error some of them have
// been placed (see endLocked).
func (s *Scheduler) placeLocked(t *target, w *tasks.Work) error {
	afterPredecessorsLocked(t.node, &t.order.After)
	t.order.After.AddAll(&t.order.Used) // the copies that went chunk by chunk
	s.followPinnedLocked(t)
	before, err := s.placePhasesLocked(t, transfer.AtEntry, transfer.ToDevice, w)
	if err != nil {
		return err
	}
	kernel, err := s.placeKernelLocked(t, w)
	if err != nil {
		return err
	}
	after, err := s.placePhasesLocked(t, transfer.ToHost, transfer.AtExit, w)
	if err != nil {
		return err
	}
	t.filledLocked()
	hostReads, err := s.placeHostReadsLocked(t, w)
	switch {
	case err != nil:
		return err
	case before || kernel || after || hostReads:
		s.order.Of(t.order.At).Pending().AddTask(&t.order.Task)
	default:
		if err := s.order.PlaceNothing(&t.order, &s.order.placing); err != nil {
			s.failRefusedLocked(w)
			return err
		}
		if t.order.At.Value == 0 || !s.order.EndWithBatch(&t.order.Task) {
			// All commands that the task follows are complete. Its exit comes before its successors
			// start, so it counts as complete rather than placed.
			t.to(taskPlaced)
			s.exits.done = append(s.exits.done, &t.order.Task)
			w.Defer(s.exits.later)
			return nil
		}
	}
	t.to(taskPlaced)
	t.node.Placed(w)
	return nil
}

// placePhasesLocked places the commands of the task's transfers from one phase to another, each
// phase after what the task has placed before. It reports whether there are any.
func (s *Scheduler) placePhasesLocked(t *target, first, last transfer.Phase, w *tasks.Work) (placed bool, err error) {
	for p := first; p <= last; p++ {
		if !t.transfers.Recorded(p) {
			continue
		}
		s.order.placing.SetAll(&t.order.After)
		at, err := s.placePhaseLocked(t, p, w)
		if err != nil {
			return placed, err
		}
		t.order.Placed(at)
		placed = true
	}
	return placed, nil
}

// placePhaseLocked places the commands of the task's transfers of one phase, of which there are
// some, after what s.order.placing has.
func (s *Scheduler) placePhaseLocked(t *target, p transfer.Phase, w *tasks.Work) (order.SyncPoint, error) {
	at, ahead, err := t.transfers.PlaceLocked(&s.transfers, p, &s.order.placing, t.dispatches(), t)
	if err != nil {
		s.failRefusedLocked(w)
		return order.SyncPoint{}, err
	}
	t.order.Ahead = ahead
	return at, nil
}

// placeKernelLocked dispatches the task's kernel.
func (s *Scheduler) placeKernelLocked(t *target, w *tasks.Work) (placed bool, err error) {
	if !t.dispatches() {
		return false, nil
	}
	s.order.placing.SetAll(&t.order.After)
	for i := range t.dispatch.arguments {
		a := &t.dispatch.arguments[i]
		a.Follow(&s.order.placing, a.bytes())
	}
	q := s.order.KernelQueue(&s.order.placing, t.launch())
	b, at, err := s.beginLocked(q, w)
	if err != nil {
		return false, err
	}
	if c := t.dispatch.compound; c != nil {
		if err := c.placeLocked(q, t, b.Level(at.Level)); err != nil {
			return false, err
		}
	} else {
		t.dispatchLocked(q, at.Level, b.Level(at.Level))
	}
	for i := range t.dispatch.arguments {
		t.dispatch.arguments[i].usedLocked(at)
	}
	t.order.Placed(at)
	return true, nil
}

// launch returns what is known beforehand of how long the task's kernel takes.
func (t *target) launch() order.Launch {
	if c := t.dispatch.compound; c != nil {
		return c.launch()
	}
	return order.Launch{Invocations: t.Range[0] * t.Range[1] * t.Range[2], Bounded: t.dispatch.kernel.Bounded()}
}

// dispatchLocked adds the dispatches of the task's kernel to a level of the pending batch of a queue.
func (t *target) dispatchLocked(q *order.Queue, level int32, stream *vk.Stream) {
	d := &t.dispatch
	for _, c := range d.plan.Calls {
		timed := t.TimeLocked(q, level, t.submitOp(), uint64(c.Count[0])*uint64(c.Count[1])*uint64(c.Count[2]))
		stream.Dispatch(d.pipeline, d.ranges, d.push, c.Base, c.Count)
		if d.plan.Fold == 0 {
			t.s.mergeLocked(stream, d.kernel, 1)
		}
		timed.End(stream, vk.StageCompute)
	}
	t.s.order.CountDispatches(q, len(d.plan.Calls), t.launch())
}

// placeHostReadsLocked has the batch of the task's last command end with a barrier to the host, if the
// host is going to read results when the task ends. It reports whether that is so.
//
// Where the host reads storage in place, the barrier is there for memory, too, that the task's exit
// gives back, so that the host may write it for its next user. Elsewhere the host only writes storage,
// a little at a time, and a barrier for each task costs more than it saves (1.4 µs on an NVIDIA H100):
// until a barrier comes that the host needs anyway, what it writes goes to such memory by a copy.
func (s *Scheduler) placeHostReadsLocked(t *target, w *tasks.Work) (bool, error) {
	if len(t.exits()) == 0 && len(t.dispatch.arguments) == 0 && len(t.transfers.All) == 0 {
		return false, nil
	}
	q := s.order.Of(t.order.After.First())
	s.order.placing.SetAll(&t.order.After)
	reads := false
	read := func(m *allocation.Allocation) {
		reads = true
		m.Follow(&s.order.placing, m.Whole())
	}
	for i := range t.transfers.All {
		// Copies by commands or through a ring need no barrier here. A barrier in flight does not
		// help, because the task may end before it.
		if x := &t.transfers.All[i]; x.Phase == transfer.ToHost && x.OutsideBatch() && x.Src.HostReads() && !x.Src.Visible(s.order.HostReached()) {
			read(x.Src)
		}
	}
	for i := range t.dispatch.arguments {
		// Storage that target constructs share of their own accord is made visible by the last of
		// them.
		if a := &t.dispatch.arguments[i]; a.Shared && !a.readOnly && !(a.block != nil && a.block.passing) {
			read(a.Allocation)
		}
	}
	for i := range t.transfers.All {
		if x := &t.transfers.All[i]; x.Dst != nil && x.Dst.Shared && !x.InPlace() {
			read(x.Dst)
		}
	}
	for _, block := range s.lastItemsLocked(t) {
		// The task's commands follow the batches that its queue has in flight.
		if m := stateOf(block).Allocation; m.HostReads() && !m.Visible(s.order.HostReached()) && !m.Visible(q.HostVisible()) {
			read(m)
		}
	}
	if !reads {
		return false, nil
	}
	if t.order.Used.Len() == 0 {
		q = s.order.AnyQueue(&s.order.placing)
	}
	b, at, err := s.beginLocked(q, w)
	if err != nil {
		return false, err
	}
	b.ReadByHost()
	if t.order.At.Queue != q.Index() || t.order.At.Value != b.Value() {
		t.order.At = at.Last()
	}
	return true, nil
}
