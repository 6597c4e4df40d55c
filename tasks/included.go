package tasks

import (
	"context"
	"fmt"
)

// Place is the right to run that a goroutine leaves while it waits for tasks, so that these can
// run, and takes again before it continues.
type Place interface {
	Leave()  // gives the place to others
	Return() // waits for a place and takes it
}

// Release drops the caller's reference to a node that Add returned for an included or held task.
func (n *Node) Release() {
	n.scope.lock()
	defer n.scope.unlock()
	n.forgetLocked()
}

// Completed reports whether the task is complete. The caller must hold the task.
func (n *Node) Completed() bool {
	n.scope.lock()
	defer n.scope.unlock()
	return n.phase.complete()
}

// ReportFailure returns err, with which the caller reports the failure that prevented the task from running, and the
// number of other tasks that were not run because of it. The caller must hold the task, which must be complete.
// Unless the failure is that of a taskgroup which is not around the task, no wait has to report it again,
// and storage is no longer marked as failed because of it.
func (n *Node) ReportFailure(err error) error {
	_, dropped := n.reportPredecessor(false)
	return withDropped(err, dropped)
}

// ReportPredecessor returns the failure of a predecessor, nil if none has failed, and marks it as
// reported like ReportFailure. It is for a task that runs all the same (Task.Always) and has
// started.
func (n *Node) ReportPredecessor() error {
	failed, dropped := n.reportPredecessor(true)
	if failed == nil {
		return nil
	}
	return withDropped(n.dependentError(failed), dropped)
}

// reportPredecessor marks the failure of a predecessor as reported and returns it, and the number of tasks that were not
// run because of it. run says that the task itself runs.
func (n *Node) reportPredecessor(run bool) (failed *Error, count int) {
	s := n.scope
	s.lock()
	failed = n.failedBy.Load()
	if failed == nil || !run && n.outcome != dropped {
		s.unlock()
		return nil, 0
	}
	inside := n.specials().group
	var reported []*tally
	for _, t := range failed.tallies { // of other scopes, too: the task may be a child of an exporting one
		if t.reportedBy(inside) && !t.reported.Load() {
			t.reported.Store(true)
			reported = append(reported, t)
			count += t.dropped
		}
	}
	s.unlock()
	unmarkStorage(reported)
	return failed, count
}

// Abandon says that nobody waits for an included task any longer, so that the scope reports its
// failure. It is called instead of Release.
func (n *Node) Abandon() {
	s := n.scope
	s.lock()
	defer s.unlock()
	if n.notes.has(included) {
		n.notes &^= included
		if root := n.rootFailureLocked(); n.phase.complete() && root != nil {
			group := n.specials().group.reporter()
			t := s.failures.note(root, n, group)
			if t.scope == nil {
				t.scope = s
			}
			group.fail(t)
		}
	}
	n.forgetLocked()
}

// Wait waits until the task is complete, and returns nil whatever its outcome, or the cause of ctx
// if that ends first; the task then goes on. Only one goroutine may wait for a task, and must hold
// it. Wait leaves place, if there is one, while it blocks.
func (n *Node) Wait(ctx context.Context, place Place) error {
	n.scope.lock()
	if n.phase.complete() {
		n.scope.unlock()
		return nil
	}
	x := n.toSpecialLocked()
	if x.signal == nil {
		x.signal = make(chan struct{}, 1)
	}
	n.notes |= awaited
	n.scope.unlock()
	n.scope.graph.beforeWait()
	if place != nil {
		place.Leave()
		defer place.Return()
	}
	select {
	case <-x.signal:
	case <-ctx.Done():
		n.scope.lock()
		n.notes &^= awaited
		complete := n.phase.complete()
		n.scope.unlock()
		if !complete {
			return context.Cause(ctx)
		}
	}
	return nil
}

// BeforeWait is called by a goroutine that waits for the task in another way than by Wait, before it does.
func (n *Node) BeforeWait() { n.scope.graph.beforeWait() }

// Await waits for an included task as Wait does. If ctx ends first, it abandons the task, and the error names it.
func (n *Node) Await(ctx context.Context, place Place) error {
	if err := n.Wait(ctx, place); err != nil {
		return n.GiveUp(err)
	}
	return nil
}

// GiveUp abandons the task, because a context has ended before it, and returns the context's cause with the task's label.
func (n *Node) GiveUp(cause error) error {
	err := fmt.Errorf("task %q is not complete: %w", n.label, cause)
	n.Abandon()
	return err
}

// Outcome returns what the construct of a complete included task reports: its failure, or
// ErrCancelled if it was dropped with its cancelled taskgroup.
func (n *Node) Outcome() error {
	n.scope.lock()
	defer n.scope.unlock()
	if err := n.failureLocked(); err != nil {
		return err
	}
	if n.outcome == dropped {
		return ErrCancelled
	}
	return nil
}
