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
	s.life.goroutines.Go(func() { s.wait(q) })
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
// says that the device is lost. If it is, or somebody else has learned of that during the wait, reap leaves
// the tasks to settleLoss.
func (s *Scheduler) reap(wait *order.Wait, err error) {
	w := tasks.NewWork()
	defer w.Finish()
	s.mu.Lock()
	var reached uint64
	if err == nil {
		s.order.Awaited(wait)
		reached, err = s.reachedLocked(wait)
	}
	if err != nil {
		s.loseLocked(err)
	}
	if s.loss.err != nil {
		s.mu.Unlock()
		return
	}
	s.arriveLocked(wait.Queue, reached)
	// The queues get more work before the tasks finish, whose copies to the host may take long.
	s.flushAllLocked(order.Refill, w)
	s.unlockLocked(w)
	s.finishDone(w)
}

// reachedLocked returns the value that the timeline of a queue has reached, 0 if a wait for it has timed out and the
// value cannot be read. The error says that the device is lost.
func (s *Scheduler) reachedLocked(wait *order.Wait) (uint64, error) {
	var reached uint64
	if !wait.TimedOut {
		reached = wait.Value
	}
	if reached >= wait.Queue.Sent() {
		return reached, nil
	}
	now, err := s.device.Completed(int(wait.Queue.Index()))
	if errors.Is(err, vk.ErrDeviceLost) {
		return 0, err
	}
	return max(reached, now), nil // now is 0 if the value cannot be read
}
