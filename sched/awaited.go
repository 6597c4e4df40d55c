package sched

import (
	"context"
	"time"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
)

// awaited is what a construct that waits for its task shares with the task. Scheduler.mu guards it once the
// task is in the graph.
type awaited struct {
	// by is the work of the construct's goroutine, if that is about to call drive and does nothing that
	// takes time before, or nil.
	by *tasks.Work
	// driven is the queue of which that goroutine is a driver already, or nil.
	driven *order.Queue
	// place has the place of the task's last command, from when the task is placed until it ends.
	place *order.Task
}

// newAwaited returns what the construct of a region, whose work is w, shares with its task: nil if it does not
// wait for the task.
func (s *Scheduler) newAwaited(r *Region, w *tasks.Work) *awaited {
	if r.NoWait {
		return nil
	}
	a, _ := s.awaits.Get().(*awaited)
	if a == nil {
		a = new(awaited)
	}
	// An observer may take long before the construct comes to wait.
	if r.Observer == nil {
		a.by = w
	}
	return a
}

// ofLocked returns a if w is the work of the construct's goroutine, which is the caller then, and nil otherwise.
// The task must not have ended.
func (a *awaited) ofLocked(w *tasks.Work) *awaited {
	if a == nil || a.by != w {
		return nil
	}
	return a
}

// placedLocked says that the task has its place, on a queue whose batch is about to be closed. If the construct is
// about to wait for the queue itself, it counts as a driver from now on, so that the queue's waiter need not be
// woken.
func (a *awaited) placedLocked(place *order.Task, q *order.Queue) {
	if a == nil {
		return
	}
	a.place = place
	if a.by != nil {
		q.AddDriver()
		a.driven = q
	}
}

// unlockStartedLocked is unlockLocked for a goroutine that has started a task: that of the construct which waits for
// the task if own, the result of ofLocked, is not nil. If it has to start other tasks before it waits, because some
// have failed, it does not drive: the queue's waiter may have to wait for them.
func (s *Scheduler) unlockStartedLocked(own *awaited, w *tasks.Work) {
	defer s.mu.Unlock()
	s.submitClosedLocked(w)
	if own != nil && !w.Empty() {
		s.drivesNothingLocked(own)
	}
}

// drivesNothingLocked says that the construct's goroutine does not come to drive soon.
func (s *Scheduler) drivesNothingLocked(a *awaited) {
	if a.by = nil; a.driven != nil {
		s.order.StopDriving(a.driven)
		a.driven = nil
	}
}

// endedLocked says that the task has ended, and that its record may become another task's.
func (a *awaited) endedLocked() {
	if a != nil {
		a.place = nil
	}
}

// await runs w, which is a.by or empty, and then waits for the task: for the device as drive does, and then as
// Node.Await does. If an observer ends the goroutine, the task is abandoned.
func (s *Scheduler) await(ctx context.Context, a *awaited, node *tasks.Node, place tasks.Place, w *tasks.Work) (err error) {
	over := false
	defer func() {
		if !over {
			s.mu.Lock()
			s.drivesNothingLocked(a)
			s.mu.Unlock()
			node.Abandon()
		}
	}()
	w.Run()
	err = s.awaitStarted(ctx, a, node, place)
	over = true
	w.Finish() // not before, because it tells whether a goroutine is this one
	return err
}

// awaitStarted waits for a task after the work of its construct has been run.
func (s *Scheduler) awaitStarted(ctx context.Context, a *awaited, node *tasks.Node, place tasks.Place) error {
	if place != nil {
		if done, _ := node.Completed(); !done {
			place.Leave()
			defer place.Return()
		}
	}
	s.drive(ctx, a)
	return node.Await(ctx, nil)
}

// drive waits for the queue of a task in place of the queue's waiter, as long as the task's batch is
// in flight, and finishes the tasks that complete meanwhile. A construct that waits for its task
// calls it: that saves the change from one goroutine to another. If ctx can end, it returns after
// driveLimit, and when it notices that ctx has ended: between its waits, and when it has finished the tasks
// that were complete after one.
func (s *Scheduler) drive(ctx context.Context, a *awaited) {
	s.mu.Lock()
	q := a.driven
	a.by, a.driven = nil, nil
	s.driveLocked(ctx, q, ctx.Done() != nil, func() (next order.Wait) {
		// There is no queue to wait for if the task has not been placed or has ended, or if another
		// goroutine is finishing it.
		if a.place != nil {
			next = s.order.NextDrive(a.place.At)
		}
		if a.place == nil {
			next.Queue = nil // it has ended meanwhile
		}
		return next
	})
}

// AwaitTasks is SubmitGathered for a goroutine that is about to wait for tasks, until over has a token. As long as
// one queue alone has work in flight, and for driveLimit at most, the goroutine then waits for that as drive does.
func (s *Scheduler) AwaitTasks(ctx context.Context, over <-chan struct{}) {
	driven := s.order.All()
	stopLocked := func(but *order.Queue) {
		for _, q := range driven {
			if q != but {
				s.order.StopDriving(q)
			}
		}
		driven = nil
	}
	s.mu.Lock()
	if s.life.closing {
		s.mu.Unlock()
		s.SubmitGathered()
		return
	}
	s.life.waiters.Add(1) // the device stays until the wait is over
	defer s.life.waiters.Done()
	// The queues' waiters need not be woken for what is submitted now.
	for _, q := range driven {
		q.AddDriver()
	}
	s.mu.Unlock()
	// Deferred, because an observer may end the goroutine.
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		stopLocked(nil)
	}()
	s.SubmitGathered()
	s.mu.Lock()
	q := s.order.OnlyBusy()
	stopLocked(q)
	s.driveLocked(ctx, q, true, func() order.Wait {
		if len(over) > 0 {
			return order.Wait{}
		}
		return s.order.NextOnlyDrive()
	})
}

// driveLocked makes the waits that next returns, and finishes the tasks that are complete after each. It unlocks mu.
// q is the queue of which the caller is a driver already, or nil. If limited, it returns after driveLimit, and
// when it notices that ctx has ended.
func (s *Scheduler) driveLocked(ctx context.Context, q *order.Queue, limited bool, next func() order.Wait) {
	done, limit := ctx.Done(), time.Duration(0)
	var begun time.Time
	if limited {
		limit, begun = s.driveLimit, time.Now()
	}
	ended := isClosed(done)
	defer func() {
		if q != nil {
			// An observer has ended the goroutine.
			s.order.StopDriving(q)
		}
		s.mu.Unlock()
	}()
	for {
		var wait order.Wait
		if !ended {
			wait = next()
		}
		if wait.Queue != q {
			if wait.Queue != nil {
				wait.Queue.AddDriver()
			}
			if q != nil {
				s.order.StopDriving(q)
			}
			q = wait.Queue
		}
		if q == nil {
			return
		}
		s.stats.HostWaits++
		wait.Limit = limit
		func() {
			s.mu.Unlock()
			defer s.mu.Lock()
			s.reap(&wait, s.order.Await(&wait))
			if limited {
				limit = s.driveLimit - time.Since(begun)
				ended = limit <= 0 || wait.TimedOut || isClosed(done)
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
