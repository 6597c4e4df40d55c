package sched

import (
	"slices"

	"github.com/vkomp/vkomp/tasks"
)

// endLocked ends a task with its outcome: err, or nil for one whose exit is carried out. mu is
// held. A task that has failed ends when nothing of the device uses what it has: until then
// it is in the batch that it waits for, or doomed. What it had is given back, and nothing
// is copied.
func (s *Scheduler) endLocked(t *target, err error, w *tasks.Work) {
	if !t.state.entered() {
		t.to(taskComplete)
		t.node.Complete(err, w)
		return
	}
	if err != nil && s.putOffLocked(t, err) {
		return
	}
	s.giveUpLocked(t, err, w)
	t.to(taskOver)
	t.parked.restart(w)
	if t.notes.has(absentExit) {
		t.notes &^= absentExit
		i := slices.Index(s.presence.absentExits, t)
		s.presence.absentExits = slices.Delete(s.presence.absentExits, i, i+1)
	}
	if !t.traits.has(observedRun) || t.heard == heardEnd {
		s.concludeLocked(t, err, w)
		return
	}
	if err != nil {
		t.node.Fail(err)
	}
	t.outcome = err
	w.Defer(t.end)
}

// putOffLocked puts the end of a task that has failed off while the device may use what it has,
// and reports whether it did: until the last of its commands is complete, and the last copy
// of its rings, and, where the device is lost, until that is at rest.
func (s *Scheduler) putOffLocked(t *target, err error) bool {
	if t.state != taskLate {
		t.unfilledLocked(err)
	}
	t.filledLocked()
	b := s.order.LastBatch(&t.order)
	if b == nil {
		b = s.busyRingLocked(t)
	}
	switch {
	case b != nil:
		b.AddTask(&t.order)
	case s.loss.err != nil && !s.loss.atRest:
		s.loss.doomed = append(s.loss.doomed, t)
	default:
		return false
	}
	t.failed = err
	return true
}

// giveUpLocked gives back what a task has that entered and ends with err. An exit construct that
// fails has no reference of its own: what it was to take away stays, with its contents,
// unless the device is lost.
func (s *Scheduler) giveUpLocked(t *target, err error, w *tasks.Work) {
	if err != nil && t.traits.has(observedOps) {
		t.due = t.due[:0] // what was about to go
		for i := range t.exit.items {
			if !t.state.exiting() {
				break
			}
			if state := stateOf(t.exit.items[i].Present); state.goneBy == t {
				state.goneBy = nil
			}
		}
	}
	switch {
	case !t.state.exiting():
		s.releaseLocked(t, w)
	case err != nil && len(t.Enter) == 0 && s.loss.err == nil:
		t.letGoLocked()
		s.presence.removed = s.presence.table.CancelExit(t.exit.items, s.presence.removed)
		s.goneAllLocked(t, w)
		for i := range t.exit.items {
			// Who waited for the block to be gone finds it present.
			stateOf(t.exit.items[i].Present).parked.restart(w)
		}
	default:
		t.letGoLocked()
		s.endExitLocked(t, w)
	}
	t.filledLocked()
	s.withdrawTransfersLocked(t)
	s.freeStagingLocked(t)
}

// toldEnd tells of the end of a task that has failed, and concludes it.
func (t *target) toldEnd(w *tasks.Work) {
	defer func() {
		s := t.s
		s.mu.Lock()
		defer s.mu.Unlock()
		s.concludeLocked(t, t.outcome, w)
	}()
	t.awaitTold()
	t.tellDue()
	t.Observer.End(t.outcome)
}

// concludeLocked tells the graph of the end of a task that had entered and of which the observer
// knows; mu is held.
func (s *Scheduler) concludeLocked(t *target, err error, w *tasks.Work) {
	if t.traits.has(observedOps) {
		s.endStampsLocked(t)
	}
	s.retryLocked(w)
	s.life.live--
	s.life.wake.Broadcast()
	t.to(taskComplete)
	t.node.Complete(err, w)
}

// refuse ends a task that has not entered.
func (s *Scheduler) refuse(t *target, err error, w *tasks.Work) {
	// Deferred, because the observer may end the goroutine.
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.endLocked(t, err, w)
	}()
	if t.traits.has(observedRun) {
		t.Observer.End(err)
	}
}

// retryLocked lets the longest starved task try again, under mu, and the next one
// after it unless it has starved once more: all of them at each completion would
// cost the square of their number, in calls of the driver.
func (s *Scheduler) retryLocked(w *tasks.Work) {
	if len(s.life.starved) == 0 {
		return
	}
	t := s.life.starved[0]
	s.life.starved[0] = nil
	s.life.starved = s.life.starved[1:]
	t.to(taskCreated)
	w.Restart(t.node)
	w.Defer(func(w *tasks.Work) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if t.state != taskStarved {
			s.retryLocked(w)
		}
	})
}
