package sched

import (
	"errors"

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
	var reached uint64
	if !wait.TimedOut {
		reached = wait.Value
	}
	if reached < wait.Queue.Sent() {
		var now uint64
		now, err = s.device.Completed(int(wait.Queue.Index()))
		reached = max(reached, now)
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
