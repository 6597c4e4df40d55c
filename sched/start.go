package sched

import (
	"errors"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
)

// Join takes over a started task without work of its own from its runner, so that the device keeps
// the task's place in the order.
func (s *Scheduler) Join(n *tasks.Node, w *tasks.Work) {
	s.takeOver(n).Start(n, w)
}

// takeOver returns a target for a task without work of its own, which has been started by another runner.
func (s *Scheduler) takeOver(n *tasks.Node) *target {
	t := s.newTarget(&Region{Construct: construct.Construct{NoWait: true}})
	if by, ok := n.Witness().(construct.Observer); ok {
		t.observe(by)
	}
	n.Hand(t)
	t.node = n
	return t
}

// Start implements tasks.Runner. It enters the task's storage and places its commands, and tells the
// observer, if there is one.
func (t *target) Start(n *tasks.Node, w *tasks.Work) {
	t.node = n
	if !t.traits.has(observedRun) {
		t.s.start(t, w, nil)
		return
	}
	if t.traits.has(observedOps) {
		t.start = startTelling
	}
	at := startBegins
	defer func() {
		// Deferred, because the observer may end the goroutine.
		switch at {
		case startBegins:
			t.s.failUnentered(t, protect.ErrGoexit, w)
		case startEntered:
			t.s.handOver(t, protect.ErrGoexit, w)
			t.told()
		case startHandedOver:
			t.told()
		}
	}()
	if t.heard == heardNothing {
		t.heard = heardBegin
		t.Observer.Begin()
	}
	t.s.start(t, w, &at)
}

// startStage is how far the start of an observed task has come.
type startStage uint8

const (
	// startBegins: the observer is being told that the task begins.
	startBegins startStage = iota
	// startEntered: the task has its storage, but its commands are not placed.
	startEntered
	// startHandedOver: its commands are placed, and the observer is being told of them.
	startHandedOver
	// startOver: Start's deferred function has nothing left to do.
	startOver
)

// start enters the task's storage and places its commands, unless the task has to wait: then it is
// started again. For a task whose observer hears of it, at is set before each call of the observer;
// otherwise at is nil.
func (s *Scheduler) start(t *target, w *tasks.Work, at *startStage) {
	n := t.node
	stage := func(now startStage) {
		if at != nil {
			*at = now
		}
	}
	stage(startOver)
	s.mu.Lock()
	own := t.awaited.ownLocked(w)
	if err := s.refusalLocked(); err != nil {
		s.mu.Unlock()
		s.failUnentered(t, err, w)
		return
	}
	if ok, err := t.compiledLocked(n); !ok {
		s.mu.Unlock()
		if err != nil {
			s.failUnentered(t, err, w)
		}
		return
	}
	t.unjoinLocked()
	if parked := s.mustWaitForLocked(t); parked != nil {
		t.to(taskParked)
		*parked = append(*parked, n)
		s.mu.Unlock()
		return
	}
	if err := s.enterLocked(t, w); err != nil {
		if errors.Is(err, memory.ErrOutOfMemory) && s.life.live > 0 {
			// Tasks in flight will give memory back.
			t.to(taskStarved)
			s.life.starvations++
			if s.life.first == nil && errors.Is(err, transfer.ErrStagingTaken) {
				s.life.first = t
			} else {
				s.life.starved = append(s.life.starved, t)
			}
			s.unlockStartedLocked(own, w)
			return
		}
		if t.endsDataRegion() {
			// It has what its beginning has counted, and fails like a task that has entered.
			stage(startHandedOver)
			t.to(taskEntered)
			s.life.live++
			s.endLocked(t, err, w)
			s.unlockStartedLocked(own, w)
			return
		}
		s.mu.Unlock()
		s.failUnentered(t, err, w)
		return
	}
	t.to(taskEntered)
	s.life.live++
	if !t.traits.has(observedOps) {
		s.handOverLocked(t, s.beginTransfersLocked(t, w), w) // t may be another task's now
		s.unlockStartedLocked(own, w)
		return
	}
	s.mu.Unlock()

	stage(startEntered)
	t.Observer.Map(t.items)
	t.tellDue()
	s.mu.Lock()
	copying := s.beginTransfersLocked(t, w)
	s.mu.Unlock()
	t.tellPlaced(ompt.ScopeBegin)
	stage(startHandedOver)
	s.handOver(t, copying, w)
	t.tellPlaced(ompt.ScopeEnd)
}

// handOver is handOverLocked for a caller that does not hold mu. The task has an observer, so that its construct is
// not about to drive.
func (s *Scheduler) handOver(t *target, copying error, w *tasks.Work) {
	s.mu.Lock()
	defer s.unlockLocked(w)
	s.handOverLocked(t, copying, w)
}

// handOverLocked places the commands of a task that has entered, and closes their batches if it is time
// for that. The task ends if it has failed, by the error of its own transfers or because of another
// task. In any case it may be over when the function returns, and t another task's.
func (s *Scheduler) handOverLocked(t *target, copying error, w *tasks.Work) {
	err := s.refusalLocked()
	if err == nil && copying != nil {
		err = copying
		for i := range t.entry.uses {
			if u := &t.entry.uses[i]; u.Created && u.CopyIn {
				stateOf(u.Present).broken = err
			}
		}
	}
	if err == nil {
		// A predecessor can have failed since the task started.
		err = t.node.FailedBy()
	}
	if err == nil {
		err = t.brokenLocked()
	}
	if err != nil {
		s.endLocked(t, err, w)
		return
	}
	urgency := order.Gather
	if !t.NoWait || t.Priority > 0 {
		urgency = order.AtOnce
	}
	if err := s.placeLocked(t, w); err != nil {
		s.endLocked(t, err, w)
		// Those of its commands that were placed may be the only ones of their queue.
		s.flushAllLocked(max(urgency, order.Refill), w)
		return
	}
	last := s.order.Of(t.order.At)
	var few [8]*order.Queue
	touched := few[:0]
	for i := range t.order.Used.Len() {
		if q := s.order.Of(t.order.Used.At(i)); q != last {
			touched = append(touched, q)
		}
	}
	t.awaited.placedLocked(&t.order.Task, last)
	// A batch that is refused ends its tasks, so that t may be another task's afterwards.
	for _, q := range append(touched, last) {
		s.flushLocked(q, urgency, w)
	}
	if urgency == order.Gather {
		s.refillAfterLocked(w)
	}
}

// refillAfterLocked has the pending batches submitted when the tasks in w, if there are any, have been
// started. Tasks that have become ready together wait for each other only: a goroutine that waits for
// them may be waiting already.
func (s *Scheduler) refillAfterLocked(w *tasks.Work) {
	if !w.Empty() && !s.order.refilling {
		s.order.refilling = true
		w.Defer(s.order.later)
	}
}

// refusalLocked returns the error with which all tasks end that have not been placed: the device is
// lost, or the scheduler is being closed. Otherwise it returns nil.
func (s *Scheduler) refusalLocked() error {
	if s.loss.err != nil {
		return s.loss.err
	}
	if s.life.closing {
		return ErrClosed
	}
	return nil
}
