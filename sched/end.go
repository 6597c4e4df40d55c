package sched

import (
	"slices"

	"github.com/vkomp/vkomp/tasks"
)

// endLocked ends a task with its outcome: err or, for a task whose exit has been carried out, nil. The
// end of a task that fails is put off while the device may use its memory (see putOffLocked). Then
// its memory is given back, and nothing is copied to the host.
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

// putOffLocked puts off the end of a task that has failed, if the device may still use its memory, and
// reports whether it did. The task ends when its last command and the last copy of its rings are
// complete or, if the device is lost, when that is at rest.
func (s *Scheduler) putOffLocked(t *target, err error) bool {
	if !t.state.exiting() {
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

// giveUpLocked gives back the storage of a task that has entered and ends with err. An exit construct
// that fails leaves the blocks that it was to remove as they are, with their contents, unless the
// device is lost: it has no reference of its own to give back.
func (s *Scheduler) giveUpLocked(t *target, err error, w *tasks.Work) {
	if err != nil && t.traits.has(observedOps) {
		t.due = t.due[:0] // the removal of blocks, which does not happen
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
			// The tasks that waited for the block to be gone find it present.
			stateOf(t.exit.items[i].Present).parked.restart(w)
		}
	default:
		t.letGoLocked()
		s.endExitLocked(t, w)
	}
	t.filledLocked()
	if err == nil && !t.Structured {
		s.makeDormantLocked(t.entry.uses)
	}
	s.withdrawTransfersLocked(t)
	t.transfers.FreeStaging(&s.transfers, &t.order.Used)
}

// toldEnd tells the observer of the end of a task that has failed, and concludes the task.
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

// concludeLocked completes a task that had entered, after its observer has heard of its end.
func (s *Scheduler) concludeLocked(t *target, err error, w *tasks.Work) {
	if t.traits.has(observedOps) {
		s.stamps.Complete(&t.timed)
	}
	s.retryLocked(w)
	s.life.live--
	s.life.wake.Broadcast()
	t.to(taskComplete)
	t.node.Complete(err, w)
}

// refuse tells the observer of the failure of a task that has not entered, and ends the task.
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

// retryLocked starts the task again for which staging memory is reserved, else the one that has
// waited longest for memory, and the next one after it, until one of them finds no memory once
// more. If all of them were started whenever a task is complete, the number of calls of the driver
// would be the square of that of the tasks.
func (s *Scheduler) retryLocked(w *tasks.Work) {
	t := s.life.first
	switch {
	case t != nil:
		s.life.first = nil
	case len(s.life.starved) == 0:
		return
	default:
		t = s.life.starved[0]
		s.life.starved[0] = nil
		s.life.starved = s.life.starved[1:]
	}
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
