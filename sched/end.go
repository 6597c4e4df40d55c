package sched

import (
	"slices"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/tasks"
)

// endLocked ends a task with its outcome: err or, for a task whose exit has been carried out, nil. The
// end of a task that fails is put off while the device may use its memory (see putOffLocked), and until
// its observer has heard of it.
func (s *Scheduler) endLocked(t *target, err error, w *tasks.Work) {
	if !t.state.entered() {
		t.unpinLocked()
		t.to(taskComplete)
		t.node.Complete(err, w)
		return
	}
	if err != nil {
		if s.putOffLocked(t, err) {
			return
		}
		s.planFailureLocked(t)
		if t.traits.has(observedRun) && t.heard != heardEnd {
			t.node.Fail(err)
			t.failed = err
			w.Defer(t.end)
			return
		}
	}
	s.concludeLocked(t, err, w)
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
		b.AddTask(&t.order.Task)
	case s.loss.err != nil && !s.loss.atRest:
		s.loss.doomed = append(s.loss.doomed, t)
	default:
		return false
	}
	t.failed = err
	return true
}

// planFailureLocked begins the exit of a task that has entered and has failed, if it has not begun, and
// decides whether it will be cancelled: an exit construct that fails leaves the blocks that it was to
// remove as they are, with their contents, unless the device is lost. It has no reference of its own to
// give back, unlike the end of a data region.
//
// The task whose exit takes the last reference to a block tells its observer that the storage is gone,
// even if it fails. If it ends before other tasks that use the block, one of them removes the block, and
// may have told its observer of its own end already.
func (s *Scheduler) planFailureLocked(t *target) {
	if !t.state.exiting() {
		if t.endsDataRegion() {
			s.beginEndLocked(t)
		} else {
			s.beginReleaseLocked(t)
		}
		t.to(taskExiting)
	}
	t.exit.cancelled = len(t.Enter) == 0 && !t.endsDataRegion() && s.loss.err == nil
	if !t.traits.has(observedOps) {
		return
	}
	if !t.exit.cancelled {
		s.observeExitLocked(t)
		return
	}
	t.dropDue() // the removal of blocks, which does not happen
	for i := range t.exit.items {
		if state := stateOf(t.exit.items[i].Present); state.goneBy == t {
			state.goneBy = nil
		}
	}
}

// endsDataRegion reports whether t unmaps what the beginning of a data region has mapped. If t fails, nobody
// else unmaps it, and so t does, without copies.
func (t *target) endsDataRegion() bool { return t.Always && len(t.Enter) == 0 }

// beginEndLocked begins an exit that gives back what the beginning has counted whose end t is, and copies
// nothing.
func (s *Scheduler) beginEndLocked(t *target) {
	maps := slices.Clone(t.Exit)
	for i := range maps {
		maps[i].Type, maps[i].Always = memory.MapRelease, false
	}
	t.exit.items = s.presence.table.BeginExit(maps, t.exit.items)
}

// toldEnd tells the observer of the end of a task that has failed, and ends the task.
func (t *target) toldEnd(w *tasks.Work) {
	// Deferred, because the observer may end the goroutine.
	defer func() {
		s := t.s
		s.mu.Lock()
		defer s.mu.Unlock()
		s.concludeLocked(t, t.failed, w)
	}()
	t.awaitTold()
	defer func() { t.Observer.End(t.failed) }()
	t.tellDue()
}

// concludeLocked gives back the storage of a task whose exit has begun, and completes the task with err. Its
// observer has heard of its end, because storage that is freed may be another task's at once.
func (s *Scheduler) concludeLocked(t *target, err error, w *tasks.Work) {
	t.letGoLocked()
	s.endExitLocked(t, w)
	if err == nil && !t.Structured {
		s.makeDormantLocked(t.entry.uses)
	}
	s.withdrawTransfersLocked(t)
	t.transfers.FreeStaging(&s.transfers, &t.order.Used)
	t.unpinLocked()
	t.parked.restart(w)
	if t.absentExit {
		t.absentExit = false
		i := slices.Index(s.presence.absentExits, t)
		s.presence.absentExits = slices.Delete(s.presence.absentExits, i, i+1)
	}
	if t.traits.has(observedOps) {
		s.stamps.Complete(&t.timed)
	}
	s.retryLocked(w)
	s.life.live--
	s.life.wake.Broadcast()
	t.awaited.endedLocked()
	t.to(taskComplete)
	t.node.Complete(err, w)
}

// failUnentered tells the observer of the failure of a task that has not entered, and ends the task.
func (s *Scheduler) failUnentered(t *target, err error, w *tasks.Work) {
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
// waited longest for memory, and the next one after it, until a task finds no memory. If all of them
// were started whenever a task is complete, the number of calls of the driver would be the square of
// that of the tasks.
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
	before := s.life.starvations
	w.Defer(func(w *tasks.Work) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.life.starvations == before {
			s.retryLocked(w)
		}
	})
}
