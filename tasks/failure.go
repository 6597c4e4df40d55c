package tasks

import "slices"

// failureThrough is a failure because of which a task is not run, and the taskgroup of the task through which it
// reaches that one: the task that has failed, or another that was not run.
type failureThrough struct {
	failure *Error
	group   *Group
}

// passLocked says that the predecessor n has failed, or was not run, because of failure; nil says neither. The
// failures of tasks on which n depends are passed on too: if a taskgroup has left n behind, only these count.
func (e *edge) passLocked(n *Node, failure *Error) {
	if failure == nil || e.exclusion {
		return
	}
	if e.to.notes.has(joining) {
		e.to.passThroughLocked(n, failure)
		return
	}
	if n.outcome != undecided {
		e.to.failByLocked(failure, n.specials().group)
	}
	through := n.specials().failedThrough
	if len(through) == 0 {
		e.to.failByLocked(n.failedBy.Load(), nil)
	}
	for _, t := range through {
		e.to.failByLocked(t.failure, t.group)
	}
}

// failByLocked says that a task of a group, on which n depends, has failed or was not run. A task that a taskgroup
// has left behind fails none that is generated after the group. Since a group can be abandoned later, n keeps a
// failure for each group, until there is one that counts in any case.
func (n *Node) failByLocked(failure *Error, through *Group) {
	if failure == nil || through.leftBehind(n) {
		return
	}
	if n.failsAnyhowLocked() || slices.ContainsFunc(n.specials().failedThrough, func(t failureThrough) bool { return t.group == through }) {
		return
	}
	if n.failedBy.Load() == nil {
		n.failedBy.Store(failure)
		if through == nil {
			return
		}
	}
	x := n.toSpecialLocked()
	x.failedThrough = append(x.failedThrough, failureThrough{failure, through})
}

// failsAnyhowLocked reports whether a task on which n depends has failed or was not run, and no taskgroup can leave
// that behind.
func (n *Node) failsAnyhowLocked() bool {
	through := n.specials().failedThrough
	if len(through) == 0 {
		return n.failedBy.Load() != nil
	}
	return through[len(through)-1].group == nil
}

// Fail tells the dependents that the task has failed; the caller is about to complete the task
// with the same error.
func (n *Node) Fail(err error) {
	like := n.scope.graph.likenessOf(err)
	n.scope.lock()
	defer n.scope.unlock()
	n.failLocked(err, like)
	n.passFailureLocked()
}

// failLocked records a failure with its likeness; err may be nil.
func (n *Node) failLocked(err error, like likeness) {
	switch {
	case err == nil, n.specials().failure != nil, n.notes.has(joining):
	case n.failedBy.Load() != nil && err == n.failedBy.Load().shown():
		n.outcome = dropped
	default:
		n.toSpecialLocked().failure = n.scope.graph.failure(&Error{Task: n.label, Cause: err, likeness: like, unrun: n.outcome == dropped})
		if n.outcome == undecided {
			n.outcome = failed
		}
	}
	if n.outcome != undecided {
		n.waiveLocked()
	}
}

// passFailureLocked passes the task's failure, if it has one, on to its dependents.
func (n *Node) passFailureLocked() {
	failure := n.rootFailureLocked()
	if failure == nil {
		return
	}
	for i := range n.successors {
		n.successors[i].passLocked(n, failure)
	}
}

// inheritLocked returns a failure of a predecessor that became known when n was on the device
// already, nil if waits have reported all of them or taskgroups have left the predecessors behind:
// dependents of n depend on these predecessors too, whether they were generated before n was complete
// or later.
func (n *Node) inheritLocked() (inherited *Error) {
	inherit := func(f failureThrough) bool {
		t := f.failure.tally
		if _, abandoned := f.group.reports(); abandoned || t == nil || t.over() {
			return false
		}
		n.failItemsLocked(t)
		inherited = f.failure
		return true
	}
	if x := n.specials(); len(x.failedThrough) > 0 {
		x.failedThrough = slices.DeleteFunc(x.failedThrough, func(f failureThrough) bool { return !inherit(f) })
	} else {
		inherit(failureThrough{failure: n.failedBy.Load()})
	}
	return inherited
}

// FailedBy returns the failure of a complete predecessor, nil if none has failed so far. A runner
// that learns of one before it has placed the task completes the task with it.
func (n *Node) FailedBy() error {
	failure := n.failedBy.Load()
	if failure == nil || n.traits.has(always) {
		return nil
	}
	return failure.shown()
}

// rootFailureLocked returns the failure that a wait reports for a complete task.
func (n *Node) rootFailureLocked() *Error {
	if failure := n.specials().failure; failure != nil {
		return failure
	}
	if n.outcome == dropped {
		return n.failedBy.Load()
	}
	return nil
}

// failureLocked returns the failure of a task, or why it is not run, nil without one.
func (n *Node) failureLocked() error {
	switch {
	case n.specials().failure != nil:
		return n.special.failure.shown()
	case n.outcome == dropped && n.failedBy.Load() != nil:
		return n.dependentError(n.failedBy.Load())
	}
	return nil
}
