package sched

import (
	"cmp"
	"slices"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// placePhasesLocked places the commands of the task's transfers from one phase to another, each
// phase after what the task has placed before. It reports whether there are any.
func (s *Scheduler) placePhasesLocked(t *target, first, last transferPhase, w *tasks.Work) (placed bool, err error) {
	for p := first; p <= last; p++ {
		if !t.transfers.recorded.has(p) {
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
func (s *Scheduler) placePhaseLocked(t *target, p transferPhase, w *tasks.Work) (order.SyncPoint, error) {
	ts := &t.transfers
	n, bytes := s.gatherTransfersLocked(ts, p)
	// The queue is chosen with the task's predecessors in the set: the kernel is likely to run
	// where they did, and the copy had better be there too.
	q := s.order.CopyQueue(&s.order.placing, bytes)
	if p == phaseEnter {
		// Nobody else knows fresh blocks, so that copies to them need not follow the task's
		// predecessors. The kernel follows both, and later tasks follow the kernel.
		if t.order.Ahead = t.Kernel != nil && ts.allFresh(p); t.order.Ahead {
			s.order.placing.Set(order.SyncPoint{})
			s.gatherTransfersLocked(ts, p)
		}
	}
	b, at, err := s.beginLocked(q, w)
	if err != nil {
		return order.SyncPoint{}, err
	}
	apart := n == 1 || p != phaseRequested || ts.apart()
	r := &s.order.recorder
	first := true
	for i := range ts.list {
		x := &ts.list[i]
		if x.phase != p || x.path.record == nil {
			continue
		}
		if !first && !apart {
			at.Level++
		}
		first = false
		r.stream = b.Level(at.Level)
		timed := s.timeLocked(q, r.stream, t, x.op, x.size)
		x.path.record(r, x)
		r.count(q)
		timed.End(r.stream, vk.StageTransfer)
		x.placedAtLocked(at)
	}
	if p >= phaseHome {
		b.ReadByHost()
	}
	return at, nil
}

// gatherTransfersLocked adds to s.order.placing what the commands of a phase come after for the
// device memory that they touch. It returns how many transfers have commands, and how many
// bytes they move.
func (s *Scheduler) gatherTransfersLocked(ts *transfers, p transferPhase) (n int, bytes uint64) {
	for i := range ts.list {
		x := &ts.list[i]
		if x.phase != p || x.path.record == nil {
			continue
		}
		n++
		bytes += x.size
		dst, src := x.places()
		if x.dst != nil {
			x.dst.Follow(&s.order.placing, dst)
		}
		if x.src != nil {
			x.src.Follow(&s.order.placing, src)
		}
	}
	return n, bytes
}

// allFresh reports whether all commands of a phase write to blocks that the task has made.
func (ts *transfers) allFresh(p transferPhase) bool {
	for i := range ts.list {
		if x := &ts.list[i]; x.phase == p && x.path.record != nil && !x.fresh {
			return false
		}
	}
	return true
}

// apart reports whether no two of the transfers that the construct asks for write to the same
// bytes of the device: else they are made one after the other.
func (ts *transfers) apart() bool {
	written := ts.written[:0]
	for i := range ts.list {
		if x := &ts.list[i]; x.phase == phaseRequested && x.dst != nil {
			dst, _ := x.places()
			written = append(written, vk.BufferRange{Buffer: vk.Buffer(x.dst.Block.ID), Offset: x.dst.Offset + dst.Start, Size: dst.Size})
		}
	}
	ts.written = written
	slices.SortFunc(written, func(a, b vk.BufferRange) int {
		return cmp.Or(cmp.Compare(a.Buffer, b.Buffer), cmp.Compare(a.Offset, b.Offset))
	})
	for i := 1; i < len(written); i++ {
		if before := written[i-1]; before.Buffer == written[i].Buffer && before.Offset+before.Size > written[i].Offset {
			return false
		}
	}
	return true
}

// placedAtLocked notes in the histories of the device memory where the transfer's command is.
func (x *transfer) placedAtLocked(at order.SyncPoint) {
	dst, src := x.places()
	if x.dst != nil {
		if x.block != nil {
			// Who maps the block comes after the copy without following the task.
			x.dst.Moved(dst, at)
		}
		x.dst.Wrote(dst, at)
	}
	switch {
	case x.src == nil:
	case x.kind == copyOut:
		x.src.Moved(src, at)
	default:
		x.src.Read(at)
	}
}

// ringLane is a lane for one transfer of a task through a ring.
type ringLane struct {
	s *Scheduler
	t *target
	w *tasks.Work
	// queue makes the copies, nil until the first of them.
	queue *order.Queue
	// first is what the copies to the device come after for the memory that they write, as it
	// was before the first of them.
	first order.SyncSet
}

// newLane returns a lane for a transfer; mu is not held.
func (s *Scheduler) newLane(t *target, x *transfer, w *tasks.Work) *ringLane {
	l := &ringLane{s: s, t: t, w: w}
	if x.dst != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.order.placing.Set(order.SyncPoint{})
		x.dst.Follow(&s.order.placing, order.Span{Start: x.dstAt, Size: x.size})
		l.first.SetAll(&s.order.placing.SyncSet)
	}
	return l
}

// place implements lane. Copies to the device are ahead of whatever is placed from now on.
func (l *ringLane) place(x *transfer, p *stagingChunk, at, n uint64) error {
	s, t := l.s, l.t
	s.mu.Lock()
	defer s.mu.Unlock()
	bytes := order.Span{Start: x.dstAt + at, Size: n}
	if x.dst != nil {
		t.afterPredecessorsLocked()
		s.order.placing.SetAll(&t.order.After)
		s.order.placing.AddAll(&l.first)
		x.dst.FollowWrites(&s.order.placing, bytes)
	} else {
		s.order.placing.Set(order.SyncPoint{})
		x.src.Follow(&s.order.placing, order.Span{Start: x.srcAt + at, Size: n})
	}
	if err := s.loss.err; err != nil {
		return err
	}
	if l.queue == nil {
		l.queue = s.order.CopyQueue(&s.order.placing, max(x.size, order.CopyApart))
	}
	b, where, err := s.beginLocked(l.queue, l.w)
	if err != nil {
		return err
	}
	stream := b.Level(where.Level)
	timed := s.timeLocked(l.queue, stream, t, x.op, n)
	x.recordChunk(stream, p, at, n)
	timed.End(stream, vk.StageTransfer)
	if x.src != nil {
		b.ReadByHost()
	}
	l.queue.CountCopies(1, n)
	if err := s.submitLocked(l.queue, l.w); err != nil {
		return err
	}
	if x.dst != nil {
		x.dst.Wrote(bytes, where)
		if x.block != nil {
			x.dst.Moved(bytes, where)
		}
		t.order.At = where
	} else {
		x.src.Read(where)
	}
	t.order.Used.Add(where)
	p.busy = where
	return nil
}

// await implements lane.
func (l *ringLane) await(p *stagingChunk) error {
	if p.busy.Value == 0 {
		return nil
	}
	err := l.s.order.AwaitValue(p.busy.Queue, p.busy.Value)
	if err == nil {
		p.busy = order.SyncPoint{}
	}
	return err
}

// busyRingLocked returns a batch under way that uses a chunk of one of the task's rings, or nil;
// mu is held.
func (s *Scheduler) busyRingLocked(t *target) *order.Batch {
	for i := range t.transfers.list {
		r := t.transfers.list[i].ring
		if r == nil {
			continue
		}
		for k := range r.chunks {
			at := r.chunks[k].busy
			if b := s.order.UnderWay(at); b != nil {
				return b
			}
		}
	}
	return nil
}
