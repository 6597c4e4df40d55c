package tasks

import (
	"context"
	"fmt"
)

// Domain is a set of tasks whose order can be kept without the host: the
// target tasks of one device. Tasks of Host are always ordered by the host.
type Domain uint32

const (
	// Host is the domain of tasks that run on the host.
	Host Domain = 0
	// AnyDomain is for a task without work of its own, a join: it gets the domain
	// of its predecessors where they have one in common, else Host.
	AnyDomain Domain = ^Domain(0)
)

// Runner carries a task out.
type Runner interface {
	// Start is called once, without locks held, when every predecessor that
	// the host keeps is complete and every one that the device keeps is
	// placed. The runner later calls Node.Complete, and before it Node.Placed
	// if the node has a device's domain. Tasks that become ready on the way go
	// to w; Start must not run w.
	Start(n *Node, w *Work)
	// Drop is called instead of Start for a task that is not run: a predecessor
	// failed, its taskgroup was cancelled or its context has ended. Complete was
	// called for the node.
	Drop(n *Node)
}

// Recycler hears when the graph has let go of a task's Runner, which is when the
// task is complete and no other task can ask for it. The scope's lock is
// held: Recycle calls nothing of the graph.
type Recycler interface {
	Recycle()
}

// Witness hears what becomes of a task, for a tool.
type Witness interface {
	// Follows is told of a task, with a witness of its own, that this one follows. The
	// scope's lock is held: it calls nothing of the graph.
	Follows(of Witness)
	// Dropped is called, without locks held, before a task is completed that is not to
	// be run.
	Dropped()
}

// Node is one task of the graph. A node is used again for another task when its
// own is complete and everybody who holds it has let go: its Runner holds it
// until it calls Complete, and who asked for it with Task.Included or Task.Held
// until Release.
type Node struct {
	scope *Scope
	// family is the scope's: one step less on the way to its lock.
	family *family

	// What follows is written by Add and constant while the task lives.

	label  string
	domain Domain
	// seq is the task's number, in the order of making among those of a family, and
	// unique in the graph.
	seq   uint64
	ctx   context.Context
	group *Group
	// inner is the scope of the children of a transparent task.
	inner *Scope

	// All below is guarded by the scope's lock.

	// generation counts the tasks that the node has been.
	generation uint64
	runner     Runner
	recycler   Recycler
	traits     traits
	notes      notes
	outcome    outcome
	phase      phase
	// waiting counts the predecessors not yet out of the way, and one more
	// while the node is being added.
	waiting int32
	// left counts what keeps the task from being complete: its own work, its
	// event, and the predecessors that the device keeps. A complete task thereby
	// stands for all it was ordered after.
	left int32
	// refs counts who may still ask the node something.
	refs int32
	// place is the task's index among the scope's children.
	place int32
	// items are the accesses of the depend clauses.
	items []access
	// successors holds the edges that still have to be released.
	successors []edge
	// predecessors are those kept by the device, until Placed.
	predecessors []*Node
	// failedBy is the root failure that keeps the task from running, unless it
	// was on the device already; failure is its own.
	failedBy, failure *Error
	// visited is the seq of the task that last found this node among its
	// predecessors: one edge between two tasks, however many items match.
	visited uint64
	// signal has room for one token, put there when the task completes and
	// somebody waits.
	signal chan struct{}
	// nextBlocked links tasks that wait for the same mutexinoutset storage.
	nextBlocked *Node
	// carried is what the task hands to those that follow it, nil for most.
	carried *carried

	firstItems [4]access
	firstEdges [4]edge

	// witness is constant, and nil but for tasks that are witnessed.
	witness Witness
}

type edge struct {
	to *Node
	// onDevice: released when the predecessor is placed.
	onDevice, released bool
	// exclusion: the tasks exclude each other, and to came second.
	exclusion bool
}

// Label returns the task's label.
func (n *Node) Label() string { return n.label }

// Included reports whether the task is included and its construct still waits for
// it: its failure belongs to that and not to the scope.
func (n *Node) Included() bool {
	n.scope.lock()
	defer n.scope.unlock()
	return n.notes.has(included)
}

// ID returns the task's number in snapshots.
func (n *Node) ID() uint64 { return n.seq }

// Witness returns the task's witness, or nil.
func (n *Node) Witness() Witness { return n.witness }

// Go lets a task start that has a witness, which Add has kept from it. Who added the task
// calls it, before w is run.
func (n *Node) Go(w *Work) {
	n.scope.lock()
	defer n.scope.unlock()
	if n.phase != phaseCreated {
		return // it is in w
	}
	n.toLocked(phaseWaiting)
	n.releaseLocked(w)
}

// Domain returns the task's domain; that of a join is settled once it is added.
func (n *Node) Domain() Domain { return n.domain }

// Predecessors returns the predecessors whose order the device has to keep, less
// those that were complete when the task was made; one that is complete by now
// needs no keeping. Valid from Start until Placed or Complete.
func (n *Node) Predecessors() []*Node { return n.predecessors }

// Runner returns what carries the task out, nil once it is complete. The caller
// orders the call with Complete itself.
func (n *Node) Runner() Runner { return n.runner }

// Placed says that the task has its place on a device: successors of the same
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

// Complete says that the task is done; err is its failure, nil for none. The
// dependents of a failed task that have not started are completed with an
// error that names it. The task is complete when its predecessors are, those
// that the device keeps included, and its event, if it is detachable, is
// fulfilled; a failed body does not wait for that.
func (n *Node) Complete(err error, w *Work) {
	f := n.family
	var like likeness
	if err != nil {
		like = likenessOf(err) // without the lock: the error's text is the program's
	}
	f.mu.Lock()
	if err == nil && n.plainLocked() {
		n.completePlainLocked(w)
	} else {
		n.endLocked(undecided, err, like, w)
	}
	f.mu.Unlock()
}

// plainLocked reports whether nothing but successors takes note that the task, whose
// body is done, is complete.
func (n *Node) plainLocked() bool {
	s := n.scope
	return n.domain == Host && n.traits == 0 && n.notes == 0 && n.outcome == undecided && n.failedBy == nil &&
		n.refs == 1 && s.trail == nil && len(s.waiters) == 0 && s.quiet
}

// completePlainLocked is completeLocked, and what that calls, for a plain task.
func (n *Node) completePlainLocked(w *Work) {
	s := n.scope
	n.toLocked(phaseComplete)
	n.left = 0
	s.live--
	for i := range n.successors {
		e := &n.successors[i]
		to := e.to
		// A node that is kept for reuse must not keep those that came after it.
		e.to = nil
		to.waiting--
		switch {
		case to.waiting > 0:
		case to.failedBy == nil && !to.traits.has(exclusive):
			to.toLocked(phaseStarted)
			w.push(to)
		default:
			to.waiting++
			to.releaseLocked(w)
		}
	}
	if n.recycler != nil {
		n.recycler.Recycle()
		n.recycler = nil
	}
	n.runner = nil
	for i := range n.items {
		a := &n.items[i]
		l := a.loc
		a.leave()
		a.loc, a.ptr = nil, nil
		l.refs--
		switch {
		case l.refs > 0:
		case !l.tangled && s.dead < 2*maxDead:
			s.dead++
		default:
			s.diedLocked(l)
		}
	}
	last := len(s.children) - 1
	s.children[last].place = n.place
	s.children[n.place], s.children[last] = s.children[last], nil
	s.children = s.children[:last]
	if last < cap(s.children)/8 && cap(s.children) > maxSpare {
		s.shrinkLocked()
	}
	n.toLocked(phaseGone)
	if len(n.items) > maxKept || len(n.successors) > maxKept || s.spareNodeCount >= maxSpare {
		n.forgetLocked()
		return
	}
	n.items, n.successors = n.items[:0], n.successors[:0]
	n.refs = 0
	n.toLocked(phaseFree)
	n.nextBlocked, s.spareNodes = s.spareNodes, n
	s.spareNodeCount++
}

// Fail says that the task has failed, to those that follow it, and is about to be
// completed with the same error.
func (n *Node) Fail(err error) {
	like := likenessOf(err)
	n.scope.lock()
	defer n.scope.unlock()
	n.failLocked(err, like)
	n.passFailureLocked()
}

// endLocked ends a task: its body is over with err, or it is dropped, for the reason err or
// because of n.failedBy. The task is complete if nothing else keeps it.
func (n *Node) endLocked(o outcome, err error, like likeness, w *Work) {
	if o == dropped {
		n.outcome = dropped
	}
	n.failLocked(err, like)
	if n.left == 1 {
		n.settleLocked(w)
		return
	}
	// What it follows on the device keeps it from being complete, or its event. Who
	// follows it has to know of a failure before that.
	n.left--
	n.toLocked(n.phase.over())
	n.passFailureLocked()
}

// failLocked notes a failure, nil for none, whose likeness that is.
func (n *Node) failLocked(err error, like likeness) {
	switch dependent, ok := err.(*Error); {
	case err == nil, n.failure != nil:
	case ok && dependent == n.failedBy:
		n.outcome = dropped
	default:
		n.failure = &Error{Task: n.label, Cause: err, likeness: like, unrun: n.outcome == dropped}
		if n.outcome == undecided {
			n.outcome = failed
		}
	}
	if n.outcome != undecided && n.traits.has(detached) && !n.notes.has(fulfilled) {
		n.notes |= fulfilled
		n.left--
	}
}

// passFailureLocked hands the task's failure, if it has one, on to those that follow it.
func (n *Node) passFailureLocked() {
	failure := n.rootFailureLocked()
	if failure == nil {
		return
	}
	for i := range n.successors {
		if e := &n.successors[i]; e.to.failedBy == nil && !e.exclusion {
			e.to.failedBy = failure
		}
	}
}

// settleLocked takes away one of the things that keep n from being complete.
func (n *Node) settleLocked(w *Work) {
	n.left--
	if n.left > 0 {
		return
	}
	s := n.scope
	ready := n.completeLocked(s.family.completing[:0], w)
	for len(ready) > 0 {
		last := len(ready) - 1
		next := ready[last]
		ready[last] = nil
		ready = next.completeLocked(ready[:last], w)
	}
	s.family.completing = ready
}

// completeLocked makes a task complete and appends to ready the finished successors
// that it held back.
func (n *Node) completeLocked(ready []*Node, w *Work) []*Node {
	s := n.scope
	n.toLocked(phaseComplete)
	failedBy := n.rootFailureLocked()
	if failedBy == nil && n.failedBy != nil {
		failedBy = n.inheritLocked()
	}
	s.live--
	if failedBy != nil || n.group != nil || len(s.waiters) > 0 {
		s.childCompleteLocked(n)
	}
	if n.traits.has(exclusive) {
		n.letGoLocked()
	}
	t := n.endTrailLocked()
	for i := range n.successors {
		e := &n.successors[i]
		if t != nil && !e.released {
			e.to.receiveLocked(t)
		}
		if e.to.failedBy == nil && !e.exclusion {
			e.to.failedBy = failedBy
		}
		if e.onDevice {
			e.to.left--
			if e.to.left == 0 {
				ready = append(ready, e.to)
			}
		}
		if !e.released {
			e.to.releaseLocked(w)
		}
		e.to = nil
	}
	n.successors = n.successors[:0]
	if len(n.predecessors) > 0 {
		n.forgetPredecessorsLocked()
	}
	if n.traits.has(exclusive) {
		n.unblockLocked(w)
	}
	if n.recycler != nil {
		n.recycler.Recycle()
		n.recycler = nil
	}
	n.runner = nil
	if n.notes.has(awaited) {
		n.signal <- struct{}{}
	}
	if t != nil {
		n.lingerLocked(t)
	} else {
		n.departLocked()
	}
	if s.trail != nil {
		s.settledLocked()
	}
	return ready
}

// inheritLocked returns the failure of a predecessor that came when n was on the device
// already, nil if a wait has reported it: what follows n follows that one too,
// whether it was made before n was complete or comes later.
func (n *Node) inheritLocked() *Error {
	t := n.failedBy.tally
	if t == nil || t.over() {
		return nil
	}
	n.poisonItemsLocked(t)
	return n.failedBy
}

// departLocked takes a complete task out of the histories of its storage.
func (n *Node) departLocked() {
	s := n.scope
	n.toLocked(phaseGone)
	if n.traits.has(importing) {
		n.lookLocked(-1)
	}
	if !s.graph.keep {
		n.leaveLocked()
	}
	s.removeLocked(n)
	n.forgetLocked()
}

// leaveLocked takes the task's accesses out of their locations.
func (n *Node) leaveLocked() {
	s := n.scope
	for i := range n.items {
		a := &n.items[i]
		a.leave()
		l := a.loc
		a.loc, a.ptr = nil, nil
		l.refs--
		if l.refs == 0 {
			s.diedLocked(l)
		}
	}
}

// FailedBy returns the failure of a predecessor that is complete, nil when none
// failed so far. A runner that learns of one before it has placed the task
// completes the task with it.
func (n *Node) FailedBy() error {
	n.scope.lock()
	defer n.scope.unlock()
	if n.failedBy == nil || n.traits.has(always) {
		return nil
	}
	return n.failedBy
}

// releaseLocked takes one predecessor out of n's way.
func (n *Node) releaseLocked(w *Work) {
	n.waiting--
	if n.waiting > 0 {
		return
	}
	if (n.failedBy != nil || n.traits.has(exclusive)) && !n.clearLocked() {
		return
	}
	n.toLocked(phaseStarted)
	w.push(n)
}

// clearLocked reports whether a task that nothing is ahead of can go: to be dropped if
// one that it follows failed, else when it has its mutexinoutset storage.
func (n *Node) clearLocked() bool {
	if n.failedBy != nil && !n.traits.has(always) {
		n.outcome = dropped
		return true
	}
	return !n.traits.has(exclusive) || n.acquireLocked()
}

// start hands a ready task to its runner, or drops it.
func (n *Node) start(w *Work) {
	switch {
	case n.outcome == dropped:
		n.drop(n.failedBy, w)
	case !n.DropCancelled(w):
		n.runner.Start(n, w)
	}
}

// DropCancelled drops a task that was started and whose work its runner has put
// off, if meanwhile its taskgroup was cancelled or its context has ended; it
// reports whether it did. The node is not the runner's then any more.
func (n *Node) DropCancelled(w *Work) bool {
	if !n.traits.has(conditional) {
		return false
	}
	// In this order: a taskgroup that is cancelled ends its contexts after that.
	ended := n.ctx != nil && n.ctx.Err() != nil
	switch {
	case n.group != nil && n.group.Cancelled():
		n.drop(nil, w)
	case ended:
		n.drop(fmt.Errorf("not run: %w", context.Cause(n.ctx)), w)
	default:
		return false
	}
	return true
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
	if n.witness != nil {
		n.witness.Dropped()
	}
}

func (n *Node) endDropped(err error, w *Work) {
	like := likenessOf(err)
	n.scope.lock()
	runner := n.runner
	n.refs++
	n.endLocked(dropped, err, like, w)
	n.scope.unlock()
	runner.Drop(n)
	n.Release()
}

// Hand gives the task, which has been started and not placed, to another runner.
func (n *Node) Hand(r Runner, recycler Recycler) {
	n.scope.lock()
	defer n.scope.unlock()
	n.runner, n.recycler = r, recycler
}

// rootFailureLocked returns the failure that a wait reports for a complete task.
func (n *Node) rootFailureLocked() *Error {
	if n.failure != nil {
		return n.failure
	}
	if n.outcome == dropped {
		return n.failedBy
	}
	return nil
}
