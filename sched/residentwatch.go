package sched

import (
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/sched/trace"
	"github.com/vkomp/vkomp/tasks"
)

// The observer of a resident task hears of the same events as that of a target, in the same order. It is
// told without the lock, so the task enters and is placed under the lock by itself each, and many tasks
// that are complete end under the lock before their observers hear of their ends, one after the other.

// residentWatch is what a resident task needs for its observer.
type residentWatch struct {
	observer construct.Observer
	traits   traits
	// ended says that the task has given back its storage.
	ended bool
	*observed
}

// observe gives the task its observer, before it is added to the graph.
func (l *resident) observe(by construct.Observer) {
	if l.watch == nil {
		l.watch = &residentWatch{observed: new(observed)}
	}
	l.watched = true
	l.watch.observer, l.watch.traits = by, traitsOf(by)
}

// observesRun reports whether the task's observer hears of its beginning and end.
func (l *resident) observesRun() bool { return l.watched && l.watch.traits.has(observedRun) }

// release releases the observer, and clears what the task had for it.
func (o *residentWatch) release() {
	o.observer.Release()
	if o.traits.has(observedRun) {
		o.observed.reset(o.traits)
	}
	o.observer, o.traits, o.ended = nil, 0, false
}

// handTo hands the observer over to the target that the task becomes.
func (o *residentWatch) handTo(t *target) {
	t.Observer, t.traits = o.observer, o.traits
	if o.traits.has(observedRun) {
		t.observed, o.observed = o.observed, t.observed
		t.end = t.toldEnd
		if o.observed == nil {
			o.observed = new(observed)
		}
	}
	o.observer, o.traits, o.ended = nil, 0, false
}

// timeLocked begins the timing of the task's launch.
func (l *resident) timeLocked(q *order.Queue, level int32) trace.Timing {
	o := l.watch
	if !o.traits.has(observedOps) {
		return trace.Timing{}
	}
	return l.s.stamps.Begin(q, level, &o.timed, o.submit, uint64(l.groups[0])*uint64(l.groups[1])*uint64(l.groups[2]))
}

// startWatched is Start for a task whose observer hears of its beginning.
func (l *resident) startWatched(w *tasks.Work) {
	// Once the task is placed and the observer has been told, l may be another task's.
	s, n, o, by := l.s, l.node, l.watch.observed, l.watch.observer
	operations := l.watch.traits.has(observedOps)
	at := startBegins
	var launch residentLaunch
	defer func() {
		// Deferred, because the observer may end the goroutine.
		switch at {
		case startBegins:
			s.failUnentered(l.becomeTarget(), protect.ErrGoexit, w)
		case startEntered:
			s.placeWatched(l, &launch, protect.ErrGoexit, w)
			fallthrough
		case startHandedOver:
			// An observer that does not hear of operations keeps no task from ending, so by now the record may be
			// another task's.
			if operations {
				o.told()
			}
		}
	}()
	if operations {
		o.start = startTelling
	}
	o.heard = heardBegin
	by.Begin()
	s.mu.Lock()
	o.items = o.items[:0]
	entered := s.refusalLocked() == nil && s.enterResidentLocked(l, &launch)
	if entered && operations {
		o.submitsLocked(s, l.kernel.Name(), [3]uint64{uint64(l.groups[0]), uint64(l.groups[1]), uint64(l.groups[2])})
	}
	s.mu.Unlock()
	if !entered {
		at = startOver
		o.start = startTold
		l.becomeTarget().Start(n, w)
		return
	}
	at = startEntered
	if operations {
		by.Map(o.items)
		by.Op(ompt.ScopeBegin, o.submit)
	}
	at = startHandedOver
	submit := o.submit
	s.placeWatched(l, &launch, nil, w)
	if operations {
		by.Op(ompt.ScopeEnd, submit)
	}
}

// placeWatched places the command of a task that has entered, unless there is an error, or the task
// fails because of another one.
func (s *Scheduler) placeWatched(l *resident, launch *residentLaunch, err error, w *tasks.Work) {
	s.mu.Lock()
	defer s.unlockLocked(w)
	if refusal := s.refusalLocked(); refusal != nil {
		err = refusal
	}
	if err == nil {
		err = l.node.FailedBy()
	}
	if err != nil {
		s.endLocked(l.becomeTargetLocked(w), err, w)
		return
	}
	s.order.placing.Set(order.SyncPoint{})
	if len(l.node.Predecessors()) > 0 {
		afterPredecessorsLocked(l.node, &s.order.placing.SyncSet)
	}
	kept := s.placeResidentLocked(l, launch, w)
	if kept == nil {
		return
	}
	// What has become ready together is given to the device together, unless observers take long.
	if s.nextResident(w) != nil {
		s.releaseLater()
	} else {
		s.flushLocked(kept, order.Gather, w)
	}
	s.refillAfterLocked(w)
}

// endWatched is endResidents for tasks whose observers hear of their ends.
func (s *Scheduler) endWatched(done []*order.Task, next *int, w *tasks.Work) *target {
	var few [residentsAtOnce]*resident
	all := few[:0]
	for _, t := range done[*next:] {
		l, ok := t.Owner.(*resident)
		if !ok || !l.observesRun() || len(all) == cap(all) {
			break
		}
		if l.watch.traits.has(observedOps) {
			l.watch.awaitTold()
		}
		all = append(all, l)
	}
	ended := s.relinquishWatched(all, w)
	s.tellEnds(all[:ended], done, next, w)
	if ended == len(all) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	done[*next] = nil
	*next++
	return all[ended].becomeTargetLocked(w)
}

// relinquishWatched has the tasks give back their storage, up to the first that has to become a target in
// order to do so, and returns how many have.
func (s *Scheduler) relinquishWatched(all []*resident, w *tasks.Work) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, l := range all {
		if !l.watch.ended && !l.endLocked(w) {
			return i
		}
		l.watch.ended = true
	}
	return len(all)
}

// tellEnds tells the observers of the ends of tasks, which are those in done from *next on, and completes
// the tasks. If an observer ends the goroutine, the tasks behind its own are left.
func (s *Scheduler) tellEnds(all []*resident, done []*order.Task, next *int, w *tasks.Work) {
	told := 0
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		ended := s.exits.ended[:0]
		for _, l := range all[:told] {
			if l.watch.traits.has(observedOps) {
				s.stamps.Complete(&l.watch.timed)
			}
			ended = append(ended, l.overLocked(w))
		}
		s.completeAllLocked(ended, w)
	}()
	for _, l := range all {
		done[*next] = nil
		*next++
		told++
		l.watch.observer.End(nil)
	}
}
