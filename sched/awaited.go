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
	// place has the place of the task's last command, from when it is placed until it ends.
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

// placedLocked says that the task has its place, on a queue whose batch is about to be closed by a goroutine
// with the work w. If the construct is about to wait for the queue itself, it counts as a driver from now on, so
// that the queue's waiter need not be woken. If the goroutine is that of the construct, the result is a.
func (a *awaited) placedLocked(place *order.Task, q *order.Queue, w *tasks.Work) (drives *awaited) {
	if a == nil {
		return nil
	}
	a.place = place
	if a.by == nil || !w.Empty() {
		return nil
	}
	q.AddDriver()
	a.driven = q
	if a.by != w {
		return nil
	}
	return a
}

// unlockPlacedLocked is unlockLocked after a task was placed, for which placedLocked has returned drives. A
// goroutine that has to start other tasks first, because some have failed, stops driving: the queue's waiter may
// have to wait for them.
func (s *Scheduler) unlockPlacedLocked(drives *awaited, w *tasks.Work) {
	defer s.mu.Unlock()
	s.submitClosedLocked(w)
	if drives != nil && !w.Empty() {
		s.order.StopDriving(drives.driven)
		drives.driven = nil
	}
}

// endedLocked says that the task has ended, and that its record may become another task's.
func (a *awaited) endedLocked() {
	if a != nil {
		a.place = nil
	}
}

// await runs w and then waits for the task: for the device as drive does, and then as Node.Await does. If an
// observer ends the goroutine, the task is abandoned.
func (s *Scheduler) await(ctx context.Context, a *awaited, node *tasks.Node, place tasks.Place, w *tasks.Work) (err error) {
	over := false
	defer func() {
		if !over {
			node.Abandon()
		}
	}()
	w.Finish()
	err = s.awaitStarted(ctx, a, node, place)
	over = true
	return err
}

// awaitStarted waits for a task after w has been run.
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

// driveLimit is for how long a construct whose context can end waits for its queue itself: during a wait it
// does not notice the end.
const driveLimit = time.Millisecond

// drive waits for the queue of a task in place of the queue's waiter, as long as the task's batch is
// in flight, and finishes the tasks that complete meanwhile. A construct that waits for its task
// calls it: that saves the change from one goroutine to another. If ctx can end, it returns after
// driveLimit, and when it notices that ctx has ended: between its waits, and when it has finished the tasks
// that were complete after one.
func (s *Scheduler) drive(ctx context.Context, a *awaited) {
	done, limit := ctx.Done(), time.Duration(0)
	var begun time.Time
	if done != nil {
		limit, begun = driveLimit, time.Now()
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
