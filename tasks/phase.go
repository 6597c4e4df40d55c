package tasks

import (
	"fmt"

	"github.com/vkomp/vkomp/internal/invariants"
)

// phase is where a node is in its life. The package's documentation draws the
// transitions.
type phase uint8

const (
	// phaseFree: the node is no task's, and kept for reuse.
	phaseFree phase = iota
	// phaseCreated: the task is in its scope, and whoever adds it has not let it go yet.
	phaseCreated
	// phaseWaiting: a predecessor is in its way.
	phaseWaiting
	// phaseBlocked: all predecessors are out of its way, and another task has the
	// mutexinoutset storage that it needs.
	phaseBlocked
	// phaseStarted: it is given to its Runner, or, if it is dropped, about to be ended.
	phaseStarted
	// phasePlaced: it has its place on a device, which keeps its order.
	phasePlaced
	// phaseFinished: its body is over or it was dropped, without a place on a device; its
	// event or predecessors on the device keep it from being complete.
	phaseFinished
	// phaseExecuted is phaseFinished for a task with a place on a device.
	phaseExecuted
	// phaseComplete: nobody waits for it any more.
	phaseComplete
	// phaseLingering: it is complete, and stays in the histories of its storage for the
	// children of exporting tasks that later tasks have to follow.
	phaseLingering
	// phaseGone: it is complete and in no history. Who holds the node can ask for its
	// outcome.
	phaseGone
	phaseCount
)

var phaseNames = [phaseCount]string{"free", "created", "waiting", "blocked", "started", "placed", "finished", "executed", "complete", "lingering", "gone"}

// String returns the name that the package's documentation uses.
func (p phase) String() string { return phaseNames[p] }

// transitions are the phases that may come after each.
var transitions = [phaseCount][]phase{
	phaseFree:      {phaseCreated},
	phaseCreated:   {phaseWaiting, phaseStarted},
	phaseWaiting:   {phaseBlocked, phaseStarted},
	phaseBlocked:   {phaseStarted},
	phaseStarted:   {phasePlaced, phaseFinished, phaseComplete},
	phasePlaced:    {phaseExecuted, phaseComplete},
	phaseFinished:  {phaseComplete},
	phaseExecuted:  {phaseComplete},
	phaseComplete:  {phaseLingering, phaseGone},
	phaseLingering: {phaseGone},
	phaseGone:      {phaseFree},
}

// toLocked puts the node into its next phase.
func (n *Node) toLocked(next phase) {
	if invariants.Enabled {
		n.checkLocked(next)
	}
	n.phase = next
}

// checkLocked panics if the node's phase may not be followed by next.
func (n *Node) checkLocked(next phase) {
	for _, p := range transitions[n.phase] {
		if p == next {
			return
		}
	}
	panic(fmt.Sprintf("tasks: task %q goes from %v to %v", n.label, n.phase, next))
}

// complete reports whether nobody has to wait for the task any more.
func (p phase) complete() bool { return p >= phaseComplete }

// onDevice reports whether a device has the task and keeps its order.
func (p phase) onDevice() bool { return p == phasePlaced || p == phaseExecuted }

// over returns the phase of a task whose body is over while something else keeps it from
// being complete.
func (p phase) over() phase {
	if p == phasePlaced {
		return phaseExecuted
	}
	return phaseFinished
}

// state returns what snapshots show of a task's phase.
func (p phase) state() State {
	switch p {
	case phaseFree, phaseCreated, phaseWaiting, phaseBlocked:
		return StateWaiting
	case phaseStarted, phaseFinished:
		return StateStarted
	case phasePlaced, phaseExecuted:
		return StatePlaced
	}
	return StateComplete
}

// outcome is what becomes of a task. A task that is complete and undecided has succeeded.
type outcome uint8

const (
	undecided outcome = iota
	// failed: its body failed. Node.failure is the error.
	failed
	// dropped: it is not run. Node.failure is the error if its context ended, else
	// Node.failedBy if a predecessor failed; without either its taskgroup was cancelled.
	dropped
)

// traits are properties that Add gives a task and that stay while it lives. Most tasks
// have none.
type traits uint8

const (
	// exporting and importing: see Transparency.
	exporting traits = 1 << iota
	importing
	// detached: the task has an event.
	detached
	// conditional: a context or a taskgroup can keep it from being run.
	conditional
	// exclusive: some item is mutexinoutset.
	exclusive
	// always: Task.Always.
	always
	// hostOrdered: Task.HostOrdered.
	hostOrdered
	// witnessed: there is a witness.
	witnessed
)

func (t traits) has(some traits) bool { return t&some != 0 }

// notes are what is noted of a task beside its phase while it lives.
type notes uint8

const (
	// included: the task's construct waits for it and reports its failure.
	included notes = 1 << iota
	// fulfilled: its event was.
	fulfilled
	// awaited: a goroutine waits for Node.signal.
	awaited
	// trailed: the task has had a trail.
	trailed
)

func (k notes) has(some notes) bool { return k&some != 0 }
