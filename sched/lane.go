package sched

import (
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// ringLane places the chunks of one transfer of a task through a ring.
type ringLane struct {
	s *Scheduler
	t *target
	w *tasks.Work
	// queue makes the copies. It is nil before the first of them.
	queue *order.Queue
	// first is what copies to the device follow for the memory that they write, as it was before
	// the first of them.
	first order.SyncSet
}

// Lane implements transfer.Task. Scheduler.mu is not held.
func (t *target) Lane(x *transfer.Transfer, w *tasks.Work) transfer.Lane {
	s := t.s
	l := &ringLane{s: s, t: t, w: w}
	if x.Dst != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.order.placing.Set(order.SyncPoint{})
		x.Dst.Follow(&s.order.placing, order.Span{Start: x.DstAt, Size: x.Size})
		l.first.SetAll(&s.order.placing.SyncSet)
	}
	return l
}

// Place implements transfer.Lane. Whatever is placed from now on comes after copies to the
// device.
func (l *ringLane) Place(x *transfer.Transfer, c *transfer.Chunk, at, n uint64) error {
	s, t := l.s, l.t
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.Dst != nil {
		t.afterPredecessorsLocked()
		s.order.placing.SetAll(&t.order.After)
		s.order.placing.AddAll(&l.first)
		x.Dst.FollowWrites(&s.order.placing, order.Span{Start: x.DstAt + at, Size: n})
	} else {
		s.order.placing.Set(order.SyncPoint{})
		x.Src.Follow(&s.order.placing, order.Span{Start: x.SrcAt + at, Size: n})
	}
	if err := s.loss.err; err != nil {
		return err
	}
	if l.queue == nil {
		l.queue = s.order.CopyQueue(&s.order.placing, max(x.Size, order.CopyApart))
	}
	b, where, err := s.beginLocked(l.queue, l.w)
	if err != nil {
		return err
	}
	stream := b.Level(where.Level)
	timed := s.timeLocked(l.queue, stream, t, x.Op, n)
	x.RecordChunk(stream, c, at, n)
	timed.End(stream, vk.StageTransfer)
	if x.Src != nil {
		b.ReadByHost()
	}
	s.order.CountCopies(l.queue, 1, n)
	if err := s.submitLocked(l.queue, l.w); err != nil {
		return err
	}
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
	s := l.s
	s.mu.Lock()
	w := s.order.WaitForChunk(c.Busy)
	s.mu.Unlock()
	err := s.order.Await(&w)
	s.mu.Lock()
	s.order.Awaited(&w)
	s.mu.Unlock()
	if err == nil {
		c.Busy = order.SyncPoint{}
	}
	return err
}

// busyRingLocked returns a batch under way that uses a chunk of one of the task's rings, or nil.
func (s *Scheduler) busyRingLocked(t *target) *order.Batch {
	for c := range t.transfers.Chunks() {
		if b := s.order.UnderWay(c.Busy); b != nil {
			return b
		}
	}
	return nil
}
