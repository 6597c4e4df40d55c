package sched

import (
	"context"
	"errors"
	"time"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// startWaiterLocked starts the goroutine that waits for a queue. New calls it before anybody else
// knows the scheduler.
func (s *Scheduler) startWaiterLocked(q *order.Queue) {
	s.life.waiters.Go(func() { s.wait(q) })
}

// wait waits for the oldest batch in flight of a queue, one after the other, and finishes the tasks
// of those that are complete. While another goroutine waits for the queue it leaves it alone. It
// returns when the scheduler is closed, or gives its goroutines back.
func (s *Scheduler) wait(q *order.Queue) {
	over := false
	defer func() {
		if !over {
			// An observer has ended the goroutine.
			s.mu.Lock()
			defer s.mu.Unlock()
			s.order.StartWaiter(q)
		}
	}()
	for {
		s.mu.Lock()
		w, ok := s.order.NextWait(q)
		if !ok {
			over = true
			s.life.wake.Broadcast()
			s.mu.Unlock()
			return
		}
		s.stats.HostWaits++
		s.mu.Unlock()
		s.reap(&w, s.order.Await(&w))
	}
}

// driveLimit is for how long a construct whose context can end waits for its queue itself: during a wait it
// does not notice the end.
const driveLimit = time.Millisecond

// drive waits for the queue of a task in place of the queue's waiter, as long as the task's batch is
// in flight, and finishes the tasks that complete meanwhile. A construct that waits for its task
// calls it: that saves the change from one goroutine to another. If ctx can end, it returns after
// driveLimit, and when it notices that ctx has ended: between its waits, and when it has finished the tasks
// that were complete after one. handOver may have made the caller a driver of the queue already.
func (s *Scheduler) drive(ctx context.Context, t *target, node *tasks.Node) {
	done, limit := ctx.Done(), time.Duration(0)
	var begun time.Time
	if done != nil {
		limit, begun = driveLimit, time.Now()
	}
	ended := isClosed(done)
	s.mu.Lock()
	q := t.driven
	defer func() {
		if q != nil {
			// An observer has ended the goroutine.
			s.order.StopDriving(q)
		}
		s.mu.Unlock()
	}()
	t.driver, t.driven = nil, nil
	for {
		// There is no queue to wait for if the task is complete or has not been placed, or if
		// another goroutine is finishing it.
		next := s.order.NextDrive(t.order.At)
		if complete, _ := node.Completed(); complete || ended {
			next.Queue = nil
		}
		if next.Queue != q {
			if next.Queue != nil {
				next.Queue.AddDriver()
			}
			if q != nil {
				s.order.StopDriving(q)
			}
			q = next.Queue
		}
		if q == nil {
			return
		}
		s.stats.HostWaits++
		next.Limit = limit
		func() {
			s.mu.Unlock()
			defer s.mu.Lock()
			s.reap(&next, s.order.Await(&next))
			if done != nil {
				limit = driveLimit - time.Since(begun)
				ended = limit <= 0 || next.TimedOut || isClosed(done)
			}
		}()
	}
}

// isClosed reports whether a channel, on which nothing is sent, is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// reap finishes the tasks of all batches that are complete after a wait. err is that of the wait, and
// says that the device is lost.
func (s *Scheduler) reap(wait *order.Wait, err error) {
	w := tasks.NewWork()
	defer w.Finish()
	s.mu.Lock()
	if err != nil {
		s.loseLocked(err)
		s.mu.Unlock()
		return
	}
	s.order.Awaited(wait)
	reached, err := s.device.Completed(int(wait.Queue.Index()))
	if !wait.TimedOut {
		reached = max(reached, wait.Value)
	}
	s.arriveLocked(wait.Queue, reached)
	if errors.Is(err, vk.ErrDeviceLost) {
		s.loseLocked(err)
		s.mu.Unlock()
		s.finishDone(w)
		return
	}
	// The queues get more work before the tasks finish, whose copies to the host may take long.
	s.refillLocked(w)
	s.unlockLocked(w)
	s.finishDone(w)
}
