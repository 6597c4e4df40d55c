package sched

import (
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// ringLane places the chunks of a task's transfers through a ring.
type ringLane struct {
	t *target
	w *tasks.Work
}

// Lane implements transfer.Task.
func (t *target) Lane(w *tasks.Work) transfer.Lane {
	t.lane = ringLane{t, w}
	return &t.lane
}

// Place implements transfer.Lane. Whatever is placed from now on comes after copies to the
// device.
func (l *ringLane) Place(x *transfer.Transfer, c *transfer.Chunk, at, n uint64) error {
	t, r := l.t, x.Ring
	s := t.s
	s.mu.Lock()
	if err := l.placeLocked(x, c, at, n); err != nil {
		s.unlockLocked(l.w)
		return err
	}
	if err := s.submitNowLocked(r.Queue, l.w); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.Busy = order.SyncPoint{}
		return err
	}
	return nil
}

// placeLocked places a chunk in the pending batch of the ring's queue.
func (l *ringLane) placeLocked(x *transfer.Transfer, c *transfer.Chunk, at, n uint64) error {
	t, r := l.t, x.Ring
	s := t.s
	if x.Dst != nil {
		if r.Queue == nil {
			s.order.placing.Set(order.SyncPoint{})
			x.Dst.Follow(&s.order.placing, order.Span{Start: x.DstAt, Size: x.Size})
			r.First.SetAll(&s.order.placing.SyncSet)
		}
		afterPredecessorsLocked(t.node, &t.order.After)
		s.order.placing.SetAll(&t.order.After)
		s.order.placing.AddAll(&r.First)
		x.Dst.FollowWrites(&s.order.placing, order.Span{Start: x.DstAt + at, Size: n})
	} else {
		s.order.placing.Set(order.SyncPoint{})
		x.Src.Follow(&s.order.placing, order.Span{Start: x.SrcAt + at, Size: n})
	}
	if err := s.loss.err; err != nil {
		return err
	}
	if r.Queue == nil {
		r.Queue = s.order.CopyQueue(&s.order.placing, max(x.Size, order.CopyApart))
	}
	b, where, err := s.beginLocked(r.Queue, l.w)
	if err != nil {
		return err
	}
	stream := b.Level(where.Level)
	timed := t.TimeLocked(r.Queue, where.Level, x.Op, n)
	x.RecordChunk(stream, c, at, n)
	timed.End(stream, vk.StageTransfer)
	if x.Src != nil {
		b.ReadByHost()
	}
	s.order.CountCopies(r.Queue, 1, n)
	x.ChunkPlaced(c, at, n, where)
	if x.Dst != nil {
		t.order.At = where
	}
	t.order.Used.Add(where)
	return nil
}

// Await implements transfer.Lane.
func (l *ringLane) Await(c *transfer.Chunk) error {
	if c.Busy.Value == 0 {
		return nil
	}
	s := l.t.s
	s.mu.Lock()
	w := s.order.WaitForChunk(c.Busy)
	s.mu.Unlock()
	err := s.order.Await(&w)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order.Awaited(&w)
	if err != nil {
		s.loseLocked(err)
	}
	if s.loss.err != nil { // during the wait somebody else may have learned of it
		return s.loss.err
	}
	c.Busy = order.SyncPoint{}
	return nil
}

// busyRingLocked returns a batch under way that uses a chunk of one of the task's rings, or nil.
func (s *Scheduler) busyRingLocked(t *target) *order.Batch {
	for _, c := range t.transfers.Chunks() {
		if b := s.order.UnderWay(c.Busy); b != nil {
			return b
		}
	}
	return nil
}
