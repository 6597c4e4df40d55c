package tasks

import (
	"context"
)

// Domain is a set of tasks whose order can be kept without the host: the
// target tasks of one device. Tasks of Host are always ordered by the host.
type Domain uint32

// Host is the domain of tasks that run on the host.
const Host Domain = 0

// Runner carries a task out.
type Runner interface {
	// Start is called once, without locks held, when every predecessor that
	// the host keeps is complete and every one that the device keeps is
	// placed. The runner later calls Node.Complete, and before it Node.Placed
	// if the node has a device's domain. Tasks that become ready on the way go
	// to w; Start must not run w.
	Start(n *Node, w *Work)
	// Drop is called instead of Start when a predecessor failed: Complete was
	// called for the node, whose failure is that it depends on another.
	Drop(n *Node)
}

// Node is one task of the graph.
type Node struct {
	label    string
	domain   Domain
	included bool
	scope    *Scope
	// seq numbers the children of a scope from 1.
	seq uint64

	// All below is guarded by scope.mu.

	// runner is let go at completion, since the dependence table may remember
	// the node for longer.
	runner Runner
	state  state
	// waiting counts the predecessors not yet out of the way, and one more
	// while the node is being added.
	waiting int
	// successors holds the edges that still have to be released.
	successors []edge
	// predecessors are those kept by the device, until Placed.
	predecessors []*Node
	// behind counts the predecessors kept by the device that are not complete.
	// finished: Complete was called, and takes effect when behind is zero. A
	// complete task thereby stands for all it was ordered after.
	behind   int
	finished bool
	// failedBy is the failure of a predecessor: the task does not run, unless
	// it was on the device already.
	failedBy *Error
	failure  *Error
	done     chan struct{}
	// visited is the seq of the sibling that last found this node among its
	// predecessors: one edge between two tasks, however many items match.
	visited uint64
}

type state uint8

const (
	stateWaiting state = iota
	stateStarted
	statePlaced
	stateComplete
)

type edge struct {
	to *Node
	// onDevice: released when the predecessor is placed.
	onDevice, released bool
}

// Label returns the task's label.
func (n *Node) Label() string { return n.label }

// Included reports whether the task is included: its failure belongs to the
// construct that waits for it and not to the scope.
func (n *Node) Included() bool { return n.included }

// Predecessors returns the predecessors whose order the device has to keep, less
// those that were complete when the task was made; one that is complete by now
// needs no keeping. Valid from Start until Placed or Complete.
func (n *Node) Predecessors() []*Node { return n.predecessors }

// Placed says that the task has its place on a device: successors of the same
// domain may start.
func (n *Node) Placed(w *Work) {
	s := n.scope
	s.mu.Lock()
	defer s.mu.Unlock()
	n.state = statePlaced
	n.predecessors = nil
	for i := range n.successors {
		e := &n.successors[i]
		if e.onDevice && !e.released {
			e.released = true
			e.to.release(w)
		}
	}
}

// Complete says that the task is done; err is its failure, nil for none. The
// dependents of a failed task that have not started are completed with an
// error that names it. The task is complete when its predecessors are, those
// that the device keeps included.
func (n *Node) Complete(err error, w *Work) {
	s := n.scope
	s.mu.Lock()
	defer s.mu.Unlock()
	switch dependent, ok := err.(*Error); {
	case err == nil:
	case ok && dependent == n.failedBy:
		n.failure = &Error{Task: n.label, Cause: dependent.root(), Dependent: true}
	default:
		n.failure = &Error{Task: n.label, Cause: err}
	}
	n.finished = true
	if n.behind > 0 {
		return
	}
	for ready := []*Node{n}; len(ready) > 0; {
		last := len(ready) - 1
		next := ready[last]
		ready = next.complete(ready[:last], w)
	}
}

// complete makes a finished task complete, under scope.mu, and appends to ready
// the finished successors that it held back.
func (n *Node) complete(ready []*Node, w *Work) []*Node {
	n.state = stateComplete
	failedBy := n.failure
	if failedBy == nil {
		// A predecessor failed when n was on the device already: what follows n
		// follows that one too.
		failedBy = n.failedBy
	}
	for _, e := range n.successors {
		if e.to.failedBy == nil {
			e.to.failedBy = failedBy
		}
		if e.onDevice {
			e.to.behind--
			if e.to.behind == 0 && e.to.finished {
				ready = append(ready, e.to)
			}
		}
		if !e.released {
			e.to.release(w)
		}
	}
	n.successors, n.predecessors, n.runner = nil, nil, nil
	if n.done != nil {
		close(n.done)
	}
	n.scope.childComplete(n)
	return ready
}

// FailedBy returns the failure of a predecessor that is complete, nil when none
// failed so far. A runner that learns of one before it has placed the task
// completes the task with it.
func (n *Node) FailedBy() error {
	n.scope.mu.Lock()
	defer n.scope.mu.Unlock()
	if n.failedBy == nil {
		return nil
	}
	return n.failedBy
}

// release takes one predecessor out of n's way, under scope.mu.
func (n *Node) release(w *Work) {
	n.waiting--
	if n.waiting == 0 {
		n.state = stateStarted
		w.push(n)
	}
}

// Done returns a channel that is closed when the task is complete.
func (n *Node) Done() <-chan struct{} {
	s := n.scope
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.done == nil {
		n.done = make(chan struct{})
		if n.state == stateComplete {
			close(n.done)
		}
	}
	return n.done
}

// Completed reports whether the task is complete, and its failure.
func (n *Node) Completed() (bool, error) {
	s := n.scope
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.state != stateComplete || n.failure == nil {
		return n.state == stateComplete, nil
	}
	return true, n.failure
}

// Abandon says that nobody waits for an included task any more: its failure is
// the scope's to report.
func (n *Node) Abandon() {
	s := n.scope
	s.mu.Lock()
	defer s.mu.Unlock()
	if !n.included {
		return
	}
	n.included = false
	if n.state == stateComplete && n.failure != nil {
		s.failures = append(s.failures, failure{n.seq, n.failure})
	}
}

// Wait waits until the task is complete and returns its failure, or ctx's
// error when that ends first; the task goes on then.
func (n *Node) Wait(ctx context.Context) error {
	done := n.Done()
	select {
	case <-done:
	default:
		select {
		case <-done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	_, err := n.Completed()
	return err
}

// Runner returns what carries the task out, nil once it is complete. The caller
// orders the call with Complete itself.
func (n *Node) Runner() Runner { return n.runner }

// Work collects the tasks that became ready, so that a long chain is started
// by a loop and not by recursion, outside of every lock.
type Work struct {
	ready []step
}

// step is a task to start, or a function to call.
type step struct {
	node *Node
	call func(*Work)
}

func (w *Work) push(n *Node) { w.ready = append(w.ready, step{node: n}) }

// Restart starts a task once more whose Start put it off. The runner sees to it
// that the task has not been placed or completed.
func (w *Work) Restart(n *Node) { w.push(n) }

// Defer calls f when what is ready now has been started.
func (w *Work) Defer(f func(*Work)) { w.ready = append(w.ready, step{call: f}) }

// Run starts what is ready, and what becomes ready by that, until nothing is.
// The caller holds no locks.
func (w *Work) Run() {
	for i := 0; i < len(w.ready); i++ {
		next := w.ready[i]
		w.ready[i] = step{}
		if next.call != nil {
			next.call(w)
			continue
		}
		next.node.start(w)
	}
	w.ready = w.ready[:0]
}

func (n *Node) start(w *Work) {
	n.scope.mu.Lock()
	runner, failedBy := n.runner, n.failedBy
	n.scope.mu.Unlock()
	if failedBy == nil {
		runner.Start(n, w)
		return
	}
	n.Complete(failedBy, w)
	runner.Drop(n)
}
