package sched

import (
	"sync/atomic"

	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/trace"
	"github.com/vkomp/vkomp/tasks"
)

// observed has what a target task needs for its observer. It is made when a target has an observer
// for the first time, and stays with the target for its later tasks.
type observed struct {
	// start is startTelling until the observer has heard of everything that Start does, if it
	// wants to hear of operations. The end of the task waits for that, on wake if it has to.
	start uint32
	wake  chan struct{}
	// heard is the last of the task's events that the observer has heard of.
	heard hearing
	// ops are the task's operations. A later task uses them again.
	ops []*construct.Op
	// submit is the operation that launches the kernel, nil without one.
	submit *construct.Op
	// items are the mapped list items.
	items []ompt.MapItem
	// timed has the timestamps of the task's commands.
	timed trace.Task
	// end is the method value of toldEnd.
	end func(*tasks.Work)
	// due are operations of which the observer is told as soon as no lock is held, each with its begin and its
	// end. dueTold counts these of which it has been told.
	due     []*construct.Op
	dueTold int
}

// The values of observed.start.
const (
	// startTold says that Start has told the observer everything.
	startTold uint32 = iota
	// startTelling says that it has not.
	startTelling
	// startAwaited says that it has not, and that a goroutine waits on observed.wake.
	startAwaited
)

// hearing is what the observer of a task has heard of it.
type hearing uint8

const (
	heardNothing hearing = iota
	// heardBegin: Begin was called.
	heardBegin
	// heardEnd: End was called or is about to be, and the observer knows of the storage that is
	// freed by the task.
	heardEnd
)

// traits are properties of a target that are set before its task is added and then stay the same.
// They are read without a lock.
type traits uint8

const (
	// observedRun: its observer hears of the task's beginning and end.
	observedRun traits = 1 << iota
	// observedOps: its observer hears of what the task does.
	observedOps
)

func (k traits) has(some traits) bool { return k&some != 0 }

// observe gives a task its observer, before the task is added to the graph.
func (t *target) observe(by construct.Observer) {
	t.Observer = by
	t.traits |= traitsOf(by)
	if t.traits.has(observedRun) && t.observed == nil {
		t.observed = new(observed)
		t.end = t.toldEnd
	}
}

// traitsOf returns the traits of a task with an observer.
func traitsOf(by construct.Observer) (is traits) {
	runs, operations := by.Interest()
	if runs {
		is |= observedRun
		if operations {
			is |= observedOps
		}
	}
	return is
}

// forgetObserved releases the observer, and clears what the task had for it.
func (t *target) forgetObserved() {
	if t.Observer == nil {
		return
	}
	t.Observer.Release()
	if !t.traits.has(observedRun) {
		return
	}
	t.observed.reset(t.traits)
}

// reset clears what a task with these traits had for its observer.
func (o *observed) reset(of traits) {
	o.start, o.heard = startTold, heardNothing
	if !of.has(observedOps) {
		return
	}
	if len(o.ops) > 0 {
		o.dropDue()
		o.resetOps()
		o.submit = nil
	}
	o.items = o.items[:0]
}

// Tell implements transfer.Task. A nil operation is ignored.
func (t *target) Tell(end ompt.ScopeEndpoint, o *construct.Op) {
	if o != nil {
		t.Observer.Op(end, o)
	}
}

// tellDue tells the observer of the operations that are due, with begin and end.
func (t *target) tellDue() {
	// Deferred, because the observer may end the goroutine: it hears of the others all the same.
	defer func() {
		if t.dueTold < 2*len(t.due) {
			t.tellDue()
		}
		t.dropDue()
	}()
	for t.dueTold < 2*len(t.due) {
		o, end := t.due[t.dueTold/2], ompt.ScopeBegin
		if t.dueTold%2 == 1 {
			end = ompt.ScopeEnd
		}
		t.dueTold++
		t.Observer.Op(end, o)
	}
}

// dropDue makes no operations due.
func (o *observed) dropDue() {
	empty(&o.due)
	o.dueTold = 0
}

// tellPlaced tells the observer of the begin or the end of the operations that t hands to the device:
// transfers in which the host has no part, and the kernel.
func (t *target) tellPlaced(end ompt.ScopeEndpoint) {
	for i := range t.transfers.All {
		if x := &t.transfers.All[i]; x.ByCommand() && !x.Kind.FromHost() && !x.Kind.ToHost() {
			t.Tell(end, x.Op)
		}
	}
	t.Tell(end, t.submit)
}

// told records that Start has reported everything to the observer. After that the target may
// belong to another task.
func (o *observed) told() {
	if atomic.SwapUint32(&o.start, startTold) == startAwaited {
		o.wake <- struct{}{}
	}
}

// awaitTold waits until the task's Start has reported everything to the observer. Start submits
// commands and waits for the end of no task, so the wait ends.
func (t *target) awaitTold() {
	if t.traits.has(observedOps) {
		t.observed.awaitTold()
	}
}

func (o *observed) awaitTold() {
	if atomic.LoadUint32(&o.start) == startTold {
		return
	}
	if o.wake == nil {
		o.wake = make(chan struct{}, 1)
	}
	if atomic.CompareAndSwapUint32(&o.start, startTelling, startAwaited) {
		<-o.wake
	}
}
