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

// ownLocked returns a if w is the work of the construct's goroutine, which is the caller then, and nil otherwise.
// The task must not have ended.
func (a *awaited) ownLocked(w *tasks.Work) *awaited {
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
// the task if own, the result of ownLocked, is not nil. If it has to start other tasks before it waits, because some
// have failed, it does not drive: the queue's waiter may have to wait for them.
func (s *Scheduler) unlockStartedLocked(own *awaited, w *tasks.Work) {
	s.submitClosedLocked(w)
	if own != nil && !w.Empty() {
		s.drivesNothingLocked(own)
	}
	s.mu.Unlock()
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

// await runs w, the work of the construct, and then waits for the task: for the device as drive does, and then as
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
	// The pool gets the work back only now, because until then it tells this goroutine from others: see ownLocked.
	w.Finish()
	return err
}

// awaitStarted waits for a task after the work of its construct has been run.
func (s *Scheduler) awaitStarted(ctx context.Context, a *awaited, node *tasks.Node, place tasks.Place) error {
	if place != nil && !node.Completed() {
		place.Leave()
		defer place.Return()
	}
	if s.intake.open.Load() && !s.hasPlace(a) {
		// It may depend on what is in the intake.
		s.finishApart(s.startIntake(false))
	}
	s.drive(ctx, a)
	return node.Await(ctx, nil)
}

// hasPlace reports whether a task is placed and has not ended.
func (s *Scheduler) hasPlace(a *awaited) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return a.place != nil
}

// drive waits for the queue of a task in place of the queue's waiter, as long as the task's batch is
// in flight, and finishes the tasks that complete meanwhile. A construct that waits for its task
// calls it: that saves the change from one goroutine to another. If ctx can end, it returns after
// driveLimit, and when it notices that ctx has ended: between its waits, and when it has finished the tasks
// that were complete after one.
func (s *Scheduler) drive(ctx context.Context, a *awaited) {
	done, limit := ctx.Done(), time.Duration(0)
	var begun time.Time
	if done != nil {
		limit, begun = s.driveLimit, time.Now()
	}
	ended := isClosed(done)
	s.mu.Lock()
	q := a.driven
	defer func() {
		if q != nil {
			// An observer has ended the goroutine.
			s.order.StopDriving(q)
		}
		s.mu.Unlock()
	}()
	a.by, a.driven = nil, nil
	for {
		// There is no queue to wait for if the task has not been placed or has ended, or if another
		// goroutine is finishing it.
		var next order.Wait
		if a.place != nil && !ended {
			next = s.order.NextDrive(a.place.At)
		}
		if a.place == nil {
			next.Queue = nil // it has ended meanwhile
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
				limit = s.driveLimit - time.Since(begun)
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
