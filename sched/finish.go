package sched

import (
	"slices"
	"sync/atomic"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
)

// exit is what becomes of a task's maps at its end.
type exit struct {
	// begun: BeginExit is done, and items is what it returned. late: the copies wait for a
	// batch of their own.
	begun, late bool
	items       []memory.Exit
}

func (e *exit) reset() {
	e.begun, e.late = false, false
	empty(&e.items)
}

// finish is the host part of a task that the device is done with: the exit
// sequence of its maps, with the copies to the host that are due. A copy that
// was not foreseen when the task was placed goes out in a batch of its own, and
// finish is called again when that is done.
func (s *Scheduler) finish(t *target, w *tasks.Work) {
	t.awaitTold()
	s.mu.Lock()
	if t.failed != nil {
		s.abort(t, t.failed, w)
		s.mu.Unlock()
		return
	}
	if !t.exit.late {
		t.exit.items, t.exit.begun = s.presence.table.BeginExit(t.Exit, t.exit.items), true
		late, err := s.planExit(t, w)
		if err == nil && t.operations {
			s.observeExit(t)
		}
		if err != nil {
			s.abort(t, err, w)
			s.mu.Unlock()
			return
		}
		if late {
			s.flush(s.order.Of(t.order.At), true, w)
			s.mu.Unlock()
			return
		}
	}
	s.mu.Unlock()

	bytes, err := uint64(0), protect.ErrGoexit
	// Deferred, because an observer may end the goroutine.
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stats.BytesFromDevice += bytes
		if err != nil {
			s.abort(t, err, w)
			return
		}
		t.letGo()
		s.endExit(t, w)
		s.complete(t, nil, w)
	}()
	if bytes, err = s.endTransfers(t, w); err != nil || !t.runs {
		return
	}
	// Nothing fails from here on. That storage goes is told before another task can have
	// it.
	t.goneTold, t.ended = true, true
	if t.operations {
		t.tellDue()
	}
	t.Observer.End(nil)
}

// abort completes a task with an error after it entered and the device is done with its
// batches, under mu, or else when the device is done with its rings: its references are
// given back and nothing is copied. An exit construct has no reference of its own: what it
// was to take away stays, with its contents, unless the device is lost. With a device that
// is lost and not at rest the task is aborted when it is.
func (s *Scheduler) abort(t *target, err error, w *tasks.Work) {
	if b := s.busyRing(t); b != nil {
		// The copies of its rings are not all before what it was in last.
		t.filled()
		t.failed = err
		b.AddTask(&t.order)
		return
	}
	if s.loss.err != nil && !s.loss.atRest {
		t.failed = err
		s.loss.doomed = append(s.loss.doomed, t)
		return
	}
	if t.operations {
		t.due = t.due[:0] // what was about to go
		for i := range t.exit.items {
			if !t.exit.begun {
				break
			}
			if state := stateOf(t.exit.items[i].Present); state.goneBy == t {
				state.goneBy = nil
			}
		}
	}
	switch {
	case t.exit.begun && len(t.Enter) == 0 && s.loss.err == nil:
		t.letGo()
		s.presence.removed = s.presence.table.CancelExit(t.exit.items, s.presence.removed)
		s.goneAll(t, w)
		for i := range t.exit.items {
			// Who waited for the block to be gone finds it present.
			stateOf(t.exit.items[i].Present).parked.restart(w)
		}
	case t.exit.begun:
		t.letGo()
		s.endExit(t, w)
	default:
		s.release(t, w)
	}
	s.complete(t, err, w)
}

// complete ends a task that had entered, under mu.
func (s *Scheduler) complete(t *target, err error, w *tasks.Work) {
	t.filled()
	s.withdrawTransfers(t)
	s.freeStaging(t)
	t.over = true
	t.parked.restart(w)
	if t.blind {
		t.blind = false
		i := slices.Index(s.presence.blind, t)
		s.presence.blind = slices.Delete(s.presence.blind, i, i+1)
	}
	if !t.runs || t.ended {
		s.leave(t, err, w)
		return
	}
	if err != nil {
		t.node.Fail(err)
	}
	t.outcome = err
	w.Defer(t.end)
}

// toldEnd tells of the end of a task that has failed, and completes it.
func (t *target) toldEnd(w *tasks.Work) {
	defer func() {
		s := t.s
		s.mu.Lock()
		defer s.mu.Unlock()
		s.leave(t, t.outcome, w)
	}()
	t.awaitTold()
	t.tellDue()
	t.Observer.End(t.outcome)
}

// leave is what complete does when the observer knows of the task's end, under mu.
func (s *Scheduler) leave(t *target, err error, w *tasks.Work) {
	if t.operations {
		s.endStamps(t)
	}
	s.retry(w)
	s.life.live--
	s.life.wake.Broadcast()
	t.node.Complete(err, w)
}

// told says that Start has told the observer of all that it did. The task may be another's
// then.
func (o *observed) told() {
	if atomic.SwapUint32(&o.start, startTold) == startAwaited {
		o.wake <- struct{}{}
	}
}

// awaitTold waits until the task's Start has told the observer of all that it did. It
// submits, and waits for no task's end meanwhile.
func (t *target) awaitTold() {
	if !t.operations || atomic.LoadUint32(&t.start) == startTold {
		return
	}
	if t.wake == nil {
		t.wake = make(chan struct{}, 1)
	}
	if atomic.CompareAndSwapUint32(&t.start, startTelling, startAwaited) {
		<-t.wake
	}
}

// retry lets the longest starved task try again, under mu, and the next one
// after it unless it has starved once more: all of them at each completion would
// cost the square of their number, in calls of the driver.
func (s *Scheduler) retry(w *tasks.Work) {
	if len(s.life.starved) == 0 {
		return
	}
	t := s.life.starved[0]
	s.life.starved[0] = nil
	s.life.starved = s.life.starved[1:]
	t.starved = false
	w.Restart(t.node)
	w.Defer(func(w *tasks.Work) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !t.starved {
			s.retry(w)
		}
	})
}
