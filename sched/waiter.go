package sched

import (
	"errors"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// startWaiterLocked starts the goroutine that waits for a queue; mu is held, or nobody else knows s.
func (s *Scheduler) startWaiterLocked(q *order.Queue) {
	s.life.waiters.Go(func() { s.wait(q) })
}

// wait is the queue's waiter: it blocks on the oldest batch in flight while
// nobody else does, and finishes what completes.
func (s *Scheduler) wait(q *order.Queue) {
	over := false
	defer func() {
		if !over {
			// An observer ended the goroutine.
			s.mu.Lock()
			defer s.mu.Unlock()
			s.order.StartWaiter(q)
		}
	}()
	for {
		s.mu.Lock()
		value, ok := s.order.NextWait(q)
		if !ok {
			over = true
			s.life.wake.Broadcast()
			s.mu.Unlock()
			return
		}
		s.stats.HostWaits++
		s.mu.Unlock()
		s.reap(q, value, s.order.AwaitValue(q.Index(), value))
	}
}

// drive waits for the task's queue on the calling goroutine as long as the task's
// batch is in flight. handOver can have made the caller a driver of a queue before.
func (s *Scheduler) drive(t *target, node *tasks.Node) {
	s.mu.Lock()
	q := t.driven
	defer func() {
		if q != nil {
			// An observer ended the goroutine.
			s.order.StopDriving(q)
		}
		s.mu.Unlock()
	}()
	t.notes &^= driving
	t.driven = nil
	for {
		// None if the task is complete, held by a predecessor, or being finished elsewhere.
		next, value, _ := s.order.NextDrive(t.order.At)
		if done, _ := node.Completed(); done {
			next = nil
		}
		if next != q {
			if next != nil {
				next.AddDriver()
			}
			if q != nil {
				s.order.StopDriving(q)
			}
			q = next
		}
		if q == nil {
			return
		}
		s.stats.HostWaits++
		func() {
			s.mu.Unlock()
			defer s.mu.Lock()
			s.reap(q, value, s.order.Await(q, value))
		}()
	}
}

// reap finishes the tasks of the batches up to a value, and of those that are complete
// as well, after a wait for that value. err, the wait's, is the loss of the device.
func (s *Scheduler) reap(q *order.Queue, value uint64, err error) {
	w := tasks.NewWork()
	defer w.Finish()
	s.mu.Lock()
	if err != nil {
		s.loseLocked(err)
		s.mu.Unlock()
		return
	}
	reached, err := s.device.Completed(int(q.Index()))
	s.arriveLocked(q, max(value, reached))
	if errors.Is(err, vk.ErrDeviceLost) {
		s.loseLocked(err)
		s.mu.Unlock()
		s.finishDone(w)
		return
	}
	// Refill the queues before the host parts: they may take long.
	for _, q := range s.order.All() {
		s.flushLocked(q, false, w)
	}
	s.mu.Unlock()
	s.finishDone(w)
}
