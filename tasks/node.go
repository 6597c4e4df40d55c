package tasks

import (
	"context"
	"fmt"
	"slices"
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

// failureThrough is a failure because of which a task is not run, and the taskgroup of the task through which it
// reaches that one: the task that has failed, or another that was not run.
type failureThrough struct {
	failure *Error
	group   *Group
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

// Complete says that the task's body has ended; err is its failure or nil. The dependents of a
// failed task that have not started are completed with an error that names it. The task is
// complete when its predecessors are, including those that the device orders, and its event, if
// it is detachable, is fulfilled; a failed task does not wait for its event.
func (n *Node) Complete(err error, w *Work) {
	f := n.scope.family
	var like likeness
	if err != nil {
		like = n.scope.graph.likenessOf(err) // without the lock, because the error's methods are code of the program
	}
	f.mu.Lock()
	if err == nil {
		n.succeedLocked(w)
	} else {
		n.endLocked(undecided, err, like, w)
	}
	f.mu.Unlock()
}

// CompleteAll is Complete for tasks that have not failed, in this order.
func CompleteAll(nodes []*Node, w *Work) {
	var locked *family
	for _, n := range nodes {
		if f := n.scope.family; f != locked {
			if locked != nil {
				locked.mu.Unlock()
			}
			f.mu.Lock()
			locked = f
		}
		n.succeedLocked(w)
	}
	if locked != nil {
		locked.mu.Unlock()
	}
}

// succeedLocked is Complete for a task that has not failed.
func (n *Node) succeedLocked(w *Work) {
	if n.completesAtOnceLocked() {
		n.completeAtOnceLocked(w)
	} else {
		n.endLocked(undecided, nil, likeness{}, w)
	}
}

// completesAtOnceLocked reports whether the task, whose body has ended, is complete with it, and whether
// there is nothing to be done but to release its successors.
func (n *Node) completesAtOnceLocked() bool {
	s := n.scope
	return n.left == 1 && n.traits == 0 && n.notes == 0 && n.outcome == undecided && n.failedBy.Load() == nil && len(n.predecessors) == 0 &&
		s.trail == nil && s.emptied == nil && s.unkept
}

// completeAtOnceLocked is settleLocked with everything that it calls, for such a task.
func (n *Node) completeAtOnceLocked(w *Work) {
	s := n.scope
	n.toLocked(phaseComplete)
	n.left = 0
	s.live--
	s.family.done++
	if len(s.waiters) > 0 {
		s.childCompleteLocked(n)
	}
	ready := s.family.completing[:0]
	for i := range n.successors {
		e := &n.successors[i]
		to := e.to
		// A node that is kept for reuse must not refer to later ones.
		e.to = nil
		if e.onDevice {
			if to.left--; to.left == 0 {
				ready = append(ready, to)
			}
			if e.released {
				continue
			}
		}
		to.waiting--
		switch {
		case to.waiting > 0:
		case to.failedBy.Load() == nil && !to.traits.has(exclusive):
			to.toLocked(phaseStarted)
			w.push(to)
		default:
			to.waiting++
			to.releaseLocked(w)
		}
	}
	n.dropRunnerLocked()
	n.removeItemsLocked()
	s.removeLocked(n)
	n.toLocked(phaseGone)
	n.successors = n.successors[:0]
	n.forgetLocked()
	s.completeLocked(ready, w)
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

// endLocked ends a task: its body has ended with err, or it is dropped because of err or
// n.failedBy. The task is complete if nothing else prevents it.
func (n *Node) endLocked(o outcome, err error, like likeness, w *Work) {
	if o == dropped {
		n.outcome = dropped
	}
	n.failLocked(err, like)
	if n.left == 1 {
		n.settleLocked(w)
		return
	}
	// Its predecessors on the device, or its event, prevent it from being complete. Its
	// dependents have to know of a failure before that.
	n.left--
	n.toLocked(n.phase.over())
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

// WaiveEvent says that the task does not wait for its event, and returns false if it would not anyway. It is called before
// Complete.
func (n *Node) WaiveEvent() bool {
	if !n.traits.has(detached) {
		return false
	}
	n.scope.lock()
	defer n.scope.unlock()
	return n.waiveLocked()
}

func (n *Node) waiveLocked() bool {
	if !n.traits.has(detached) || n.notes.has(fulfilled) {
		return false
	}
	n.notes |= fulfilled | waived
	n.left--
	return true
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

// settleLocked removes one of the things that prevent n from being complete.
func (n *Node) settleLocked(w *Work) {
	n.left--
	if n.left > 0 {
		return
	}
	n.scope.completeLocked(append(n.scope.family.completing[:0], n), w)
}

// completeLocked completes tasks that nothing prevents from that any more, and what is complete by that.
// The list is in family.completing, or nil.
func (s *Scope) completeLocked(ready []*Node, w *Work) {
	for len(ready) > 0 {
		last := len(ready) - 1
		next := ready[last]
		ready[last] = nil
		ready = next.completeLocked(ready[:last], w)
	}
	s.family.completing = ready
	for i, f := range s.family.emptied {
		s.family.emptied[i] = nil
		w.Defer(f)
	}
	s.family.emptied = s.family.emptied[:0]
}

// completeLocked makes a task complete and appends to ready the finished successors that waited
// for it.
func (n *Node) completeLocked(ready []*Node, w *Work) []*Node {
	s := n.scope
	n.toLocked(phaseComplete)
	failedBy := n.rootFailureLocked()
	if failedBy == nil && n.failedBy.Load() != nil {
		failedBy = n.inheritLocked()
	}
	s.live--
	if n.notes.has(joining) {
		s.joins--
	} else {
		s.family.done++
	}
	if failedBy != nil || n.specials().group != nil || len(s.waiters) > 0 {
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
		e.passLocked(n, failedBy)
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
	n.dropRunnerLocked()
	if n.notes.has(awaited) {
		n.special.signal <- struct{}{}
	}
	if t != nil {
		n.lingerLocked(t)
	} else {
		n.departLocked()
	}
	if s.trail != nil {
		s.closeTrailLocked()
	}
	return ready
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

// departLocked removes a complete task from the histories of its storage.
func (n *Node) departLocked() {
	s := n.scope
	n.toLocked(phaseGone)
	if n.traits.has(importing) {
		n.lookLocked(-1)
	}
	if !s.graph.keep {
		n.removeItemsLocked()
	}
	s.removeLocked(n)
	n.forgetLocked()
	if f := s.emptied; f != nil && !s.lastingLocked() {
		s.emptied = nil
		s.family.emptied = append(s.family.emptied, func(*Work) { f(s) })
	}
}

// removeItemsLocked removes the task's accesses from their locations.
func (n *Node) removeItemsLocked() {
	s := n.scope
	for i := range n.items {
		a := &n.items[i]
		a.remove()
		l := a.loc
		a.loc, a.ptr = nil, nil
		if l.refs--; l.refs == 0 {
			s.diedLocked(l)
		}
	}
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

// dropRunnerLocked forgets the runner of a complete task.
func (n *Node) dropRunnerLocked() {
	r := n.runner
	n.runner = nil
	r.Recycle()
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
