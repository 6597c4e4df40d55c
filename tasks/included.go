package tasks

import (
	"context"
)

// Place is what a goroutine gives back while it waits for tasks, so that they
// find a place to run, and takes again before it goes on.
type Place interface {
	Leave()
	Return()
}

// Release lets go of a node that Add returned for an included or held task.
func (n *Node) Release() {
	n.scope.lock()
	defer n.scope.unlock()
	n.forgetLocked()
}

// Completed reports whether the task is complete, and its failure. For a task
// that the caller holds.
func (n *Node) Completed() (bool, error) {
	n.scope.lock()
	defer n.scope.unlock()
	switch {
	case !n.phase.complete():
		return false, nil
	case n.failure != nil:
		return true, n.failure
	case n.outcome == dropped && n.failedBy != nil:
		return true, &Error{Task: n.label, Cause: n.failedBy, Dependent: true}
	}
	return true, nil
}

// Dropped reports whether the task was not run, for a complete task that the
// caller holds.
func (n *Node) Dropped() bool {
	n.scope.lock()
	defer n.scope.unlock()
	return n.outcome == dropped
}

// ReportFailure says that the caller reports the failure that kept the task, which
// it holds and which is complete, from running: no wait has to report it again,
// and what it poisoned can be used.
func (n *Node) ReportFailure() {
	n.reportPredecessor(false)
}

// ReportPredecessor returns the failure of a predecessor, nil when none has failed, and
// says as ReportFailure does that the caller reports it: for a task that is run all the
// same (Task.Always), once it is started.
func (n *Node) ReportPredecessor() error {
	if failed := n.reportPredecessor(true); failed != nil {
		return &Error{Task: n.label, Cause: failed, Dependent: true}
	}
	return nil
}

// reportPredecessor counts the failure of a predecessor as reported and returns it: of a
// task that is not run, or of one that is.
func (n *Node) reportPredecessor(run bool) *Error {
	s := n.scope
	s.lock()
	failed := n.failedBy
	if failed == nil || !run && n.outcome != dropped {
		s.unlock()
		return nil
	}
	var reported []*tally
	for _, t := range s.failures.list {
		if t.root == failed && !t.reported.Load() {
			t.reported.Store(true)
			reported = append(reported, t)
		}
	}
	s.unlock()
	cleanse(reported)
	return failed
}

// Abandon says that nobody waits for an included task any more: its failure is
// the scope's to report. It takes the place of Release.
func (n *Node) Abandon() {
	s := n.scope
	s.lock()
	defer s.unlock()
	if n.notes.has(included) {
		n.notes &^= included
		if root := n.rootFailureLocked(); n.phase.complete() && root != nil {
			group := n.group.reporter()
			t := s.failures.note(root, n, group)
			if t.scope == nil {
				t.scope = s
			}
			group.fail(t)
		}
	}
	n.forgetLocked()
}

// Wait waits until the task is complete and returns its failure, or ctx's
// error when that ends first; the task goes on then. One goroutine waits for a
// task, which it holds. It leaves place, if there is one, while it blocks.
func (n *Node) Wait(ctx context.Context, place Place) error {
	n.scope.lock()
	if n.phase.complete() {
		n.scope.unlock()
		_, err := n.Completed()
		return err
	}
	if n.signal == nil {
		n.signal = make(chan struct{}, 1)
	}
	n.notes |= awaited
	n.scope.unlock()
	if place != nil {
		place.Leave()
		defer place.Return()
	}
	select {
	case <-n.signal:
	case <-ctx.Done():
		n.scope.lock()
		n.notes &^= awaited
		complete := n.phase.complete()
		n.scope.unlock()
		if !complete {
			return context.Cause(ctx)
		}
	}
	_, err := n.Completed()
	return err
}

// Await waits for an included task as Wait does, and returns nil when it is
// complete, whatever has become of it. When ctx ends first it abandons the task and
// returns the cause.
func (n *Node) Await(ctx context.Context, place Place) error {
	if err := n.Wait(ctx, place); err != nil {
		// It may have ended since the wait was cut short.
		if done, _ := n.Completed(); !done {
			n.Abandon()
			return err
		}
	}
	return nil
}

// Outcome returns what the construct of a complete included task reports: its
// failure, or ErrCancelled if its cancelled taskgroup dropped it.
func (n *Node) Outcome() error {
	if _, err := n.Completed(); err != nil {
		return err
	}
	if n.Dropped() {
		return ErrCancelled
	}
	return nil
}
