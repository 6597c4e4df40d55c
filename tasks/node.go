package tasks

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Domain is a set of tasks that can be ordered without the host: the target tasks of one device.
// Tasks of the domain Host are always ordered by the host.
type Domain uint32

const (
	// Host is the domain of tasks that run on the host.
	Host Domain = 0
	// AnyDomain is for a join, an empty task, which gets the common domain of
	// its predecessors if they have one, else Host.
	AnyDomain Domain = ^Domain(0)
)

// Runner executes a task.
type Runner interface {
	// Start is called once, without locks, when every predecessor that the host orders is
	// complete and every predecessor that the device orders is placed. The runner later calls
	// Node.Complete and, if the node has a device's domain, Node.Placed before. Tasks that
	// become ready meanwhile are added to w; Start must not run w.
	Start(n *Node, w *Work)
	// Recycle is called when the graph drops its reference to the Runner, which may be used again:
	// the task is complete and no other task can ask for the Runner. The scope's lock is held, so
	// Recycle must not call the graph.
	Recycle()
}

// Dropper is implemented by runners that have to know that their task is not run.
type Dropper interface {
	// Drop is called instead of Start for a task that is not run, because a predecessor
	// failed, its taskgroup was cancelled or its context has ended, or after Start for one
	// that Node.DropCancelled drops. The node is completed after it with the failure, which is nil
	// for a task of a cancelled taskgroup.
	Drop(n *Node, failure error)
}

// Witness observes a task, for a tool.
type Witness interface {
	// Follows reports a predecessor that has a witness too. The scope's lock is held, so it
	// must not call the graph.
	Follows(of Witness)
	// Dropped is called, without locks, before a task is completed that will not be run.
	Dropped()
}

// Node is one task of the graph. It is reused for another task when its task is complete and all
// references are dropped: the Runner has one until it calls Complete, and a caller that asked for
// it with Task.Included or Task.Held until Release.
//
// Its fields are in the order in which they are used together, one cache line after the other: thousands
// of tasks are in flight, and what one costs is mostly the memory that is fetched for it.
type Node struct {
	// The following fields are set by Add and constant while the task exists, but for runner. scope is nil
	// while the node is spare.

	scope  *Scope
	runner Runner
	// seq is the task's number. It is unique in the graph, and ascends in a family in the
	// order in which tasks are generated.
	seq uint64

	// The following fields are guarded by the scope's lock.

	// visited is the number of the task that last found this node among its predecessors: two
	// tasks have one edge, however many items match.
	visited uint64
	traits  traits
	notes   notes
	outcome outcome
	phase   phase
	// waiting counts the predecessors that are still in the way, and one more while the node
	// is being added.
	waiting int32
	// left counts what prevents the task from being complete: its own work, its event, and
	// the predecessors that the device orders. So a complete task implies that everything it
	// was ordered after is complete.
	left int32
	// refs counts references to the node.
	refs int32
	// place is the task's index among the scope's children.
	place int32
	// domain and label are constant while the task exists.
	domain Domain

	// items are the accesses of the depend clauses.
	items []access
	// successors holds the edges that have not been released.
	successors []edge
	// failedBy is the root failure that prevents the task from running, unless it was on the
	// device already. FailedBy reads it without the lock.
	failedBy atomic.Pointer[Error]
	// special is what most tasks do not have, nil for a node that never had any of it. Without the lock
	// it is read only for a task of which a trait says that it has had something special from the start.
	special *special

	// firstEdges is the memory of successors that most tasks need.
	firstEdges [2]edge
	// predecessors are those that the device orders, until Placed.
	predecessors []*Node
	label        string
	// firstItems is the memory of items that most tasks need.
	firstItems [2]access
}

// special is what few tasks have. It is guarded by the scope's lock. The first five fields are constant while
// the task exists, and may be read without the lock where a trait of the task says that they are set.
type special struct {
	// ctx drops the task if it ends before that starts. done is its Done.
	ctx   context.Context
	done  <-chan struct{}
	group *Group
	// inner is the scope of the children of a transparent task.
	inner   *Scope
	witness Witness
	// failure is the task's own. failedThrough has Node.failedBy, if that comes through a task of a group, and
	// other failures.
	failure       *Error
	failedThrough []failureThrough
	// generation counts the tasks for which the node has been used and that had something special. It tells
	// who remembers a node without a reference whether that is still the same task's (see Node.is).
	generation atomic.Uint64
	// signal has room for one token, which is sent when the task completes while somebody
	// waits.
	signal chan struct{}
	// nextBlocked links tasks that wait for the same mutexinoutset storage.
	nextBlocked *Node
	// failing are the predecessors of a join that have failed and are not complete.
	failing []*Node
	carried
}

// is reports whether the node still belongs to the task that had it when its generation was this. The lock of that
// task's scope is held; the node may belong to another scope by now.
func (n *Node) is(generation uint64) bool {
	return n.special.generation.Load() == generation
}

// noSpecial is what a node without special has. It is never changed.
var noSpecial special

// specials returns what is special about the task, to be read only.
func (n *Node) specials() *special {
	if n.special == nil {
		return &noSpecial
	}
	return n.special
}

// toSpecialLocked returns what is special about the task, to be changed.
func (n *Node) toSpecialLocked() *special {
	if n.special == nil {
		n.special = &special{}
	}
	return n.special
}

type edge struct {
	to *Node
	// onDevice says that the edge is released when the predecessor is placed.
	onDevice, released bool
	// exclusion says that the tasks only exclude each other; to came second.
	exclusion bool
}

// Label returns the task's label.
func (n *Node) Label() string { return n.label }

// Included reports whether the task is included and its construct still waits for it. Then the
// construct reports its failure, and the scope does not.
func (n *Node) Included() bool {
	n.scope.lock()
	defer n.scope.unlock()
	return n.notes.has(included)
}

// ID returns the task's number in snapshots.
func (n *Node) ID() uint64 { return n.seq }

// Witness returns the task's witness, or nil.
func (n *Node) Witness() Witness {
	if !n.traits.has(witnessed) {
		return nil
	}
	return n.special.witness
}

// Go allows a task with a witness to start, which Add does not. The caller of Add calls it before
// it runs w.
func (n *Node) Go(w *Work) {
	n.scope.lock()
	defer n.scope.unlock()
	if n.phase != phaseCreated {
		return // it is in w already
	}
	n.toLocked(phaseWaiting)
	n.releaseLocked(w)
}

// Domain returns the task's domain; that of a join is determined when it is added.
func (n *Node) Domain() Domain { return n.domain }

// Predecessors returns the predecessors after which the device has to order the task, without
// those that were complete when the task was generated. It is valid from Start until Placed or
// Complete.
func (n *Node) Predecessors() []*Node { return n.predecessors }

// Runner returns the task's runner, nil once the task is complete. The caller must synchronize
// the call with Complete.
func (n *Node) Runner() Runner { return n.runner }

// Placed says that the task has its position in the order of a device: successors of the same
// domain may start.
func (n *Node) Placed(w *Work) {
	n.scope.lock()
	defer n.scope.unlock()
	n.toLocked(phasePlaced)
	n.forgetPredecessorsLocked()
	t := n.trailLocked()
	for i := range n.successors {
		e := &n.successors[i]
		if e.onDevice && !e.released {
			e.released = true
			if t != nil {
				e.to.receiveLocked(t)
			}
			e.to.releaseLocked(w)
		}
	}
	if n.traits.has(exclusive) {
		n.unblockLocked(w)
	}
}

func (n *Node) forgetPredecessorsLocked() {
	for i, p := range n.predecessors {
		n.predecessors[i] = nil
		p.forgetLocked()
	}
	n.predecessors = n.predecessors[:0]
}

// releaseLocked removes one predecessor from n's way.
func (n *Node) releaseLocked(w *Work) {
	n.waiting--
	if n.waiting > 0 {
		return
	}
	if (n.failedBy.Load() != nil || n.traits.has(exclusive)) && !n.clearLocked() {
		return
	}
	n.toLocked(phaseStarted)
	w.push(n)
}

// clearLocked reports whether a task without predecessors in its way can go: to be dropped if a
// predecessor failed, else when it has its mutexinoutset storage.
func (n *Node) clearLocked() bool {
	if n.failedBy.Load() != nil && !n.traits.has(always) {
		n.outcome = dropped
		return true
	}
	return !n.traits.has(exclusive) || n.acquireLocked()
}

// start starts a ready task, or drops it.
func (n *Node) start(w *Work) {
	switch {
	case n.outcome == dropped:
		n.drop(n.failedBy.Load().shown(), w)
	case !n.DropCancelled(w):
		n.runner.Start(n, w)
	}
}

// DropCancelled drops a started task whose work its runner has postponed, if its taskgroup was
// cancelled or its context has ended in the meantime, and reports whether it did. The runner must
// not use the node after that.
func (n *Node) DropCancelled(w *Work) bool {
	if !n.traits.has(conditional) {
		return false
	}
	// In this order, because a cancelled taskgroup is marked before its contexts end.
	x := n.special
	ended := x.ctx != nil && x.ctx.Err() != nil
	switch {
	case x.group != nil && x.group.Cancelled():
		n.drop(nil, w)
	case ended:
		n.drop(fmt.Errorf("not run: %w", context.Cause(x.ctx)), w)
	default:
		return false
	}
	return true
}

// stopped reports whether the task's context has ended or its taskgroup was cancelled. It calls no function of the
// program.
func (x *special) stopped() bool {
	select {
	case <-x.done:
		return true
	default:
		return x.group.Cancelled()
	}
}

func (n *Node) restart(w *Work) {
	if err := n.FailedBy(); err != nil {
		n.drop(err, w)
		return
	}
	n.start(w)
}

// drop completes a task that is not run.
func (n *Node) drop(err error, w *Work) {
	// Deferred, because a witness may end the goroutine.
	defer n.endDropped(err, w)
	if n.traits.has(witnessed) {
		n.special.witness.Dropped()
	}
}

func (n *Node) endDropped(err error, w *Work) {
	if d, ok := n.runner.(Dropper); ok {
		d.Drop(n, err)
	}
	like := n.scope.graph.likenessOf(err)
	n.scope.lock()
	defer n.scope.unlock()
	n.endLocked(dropped, err, like, w)
}

// Hand gives the task, which has been started and not placed, to another runner.
func (n *Node) Hand(r Runner) {
	n.scope.lock()
	defer n.scope.unlock()
	n.runner = r
}
