package tasks

import (
	"fmt"
	"slices"

	"github.com/vkomp/vkomp/internal/invariants"
)

// phase is the phase of a node. The documentation of the package has the transitions.
type phase uint8

const (
	// phaseFree: the node belongs to no task and is kept for reuse.
	phaseFree phase = iota
	// phaseCreated: the task is in its scope, and the caller that adds it has not released it yet.
	phaseCreated
	// phaseWaiting: a predecessor is in its way.
	phaseWaiting
	// phaseBlocked: no predecessor is in its way, but another task holds mutexinoutset storage
	// that it needs.
	phaseBlocked
	// phaseStarted: it was given to its Runner or, if it is dropped, is about to end.
	phaseStarted
	// phasePlaced: it has a position in the order of a device, which keeps it.
	phasePlaced
	// phaseFinished: its body has ended or it was dropped, without a position on a device. Its
	// event, or predecessors on the device, prevent it from being complete.
	phaseFinished
	// phaseExecuted is phaseFinished for a task with a position on a device.
	phaseExecuted
	// phaseComplete: nobody waits for it any more.
	phaseComplete
	// phaseLingering: it is complete, and stays in the histories of its storage for the
	// children of exporting tasks on which later tasks have to depend.
	phaseLingering
	// phaseGone: it is complete and in no history. The holders of the node can still query it.
	phaseGone
	phaseCount
)

var phaseNames = [phaseCount]string{"free", "created", "waiting", "blocked", "started", "placed", "finished", "executed", "complete", "lingering", "gone"}

// String returns the name that the package's documentation uses.
func (p phase) String() string { return phaseNames[p] }

// transitions holds the allowed successors of each phase.
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
	if !slices.Contains(transitions[n.phase], next) {
		panic(fmt.Sprintf("tasks: task %q goes from %v to %v", n.label, n.phase, next))
	}
}

// complete reports whether nothing has to wait for the task any more.
func (p phase) complete() bool { return p >= phaseComplete }

// onDevice reports whether a device has the task and keeps its order.
func (p phase) onDevice() bool { return p == phasePlaced || p == phaseExecuted }

// over returns the phase of a task whose body has ended while something else prevents it from
// being complete.
func (p phase) over() phase {
	if p == phasePlaced {
		return phaseExecuted
	}
	return phaseFinished
}

// state returns the state of a task in snapshots.
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

// outcome is the result of a task. A complete task with the outcome undecided has succeeded.
type outcome uint8

const (
	undecided outcome = iota
	// failed: its body failed with the error special.failure.
	failed
	// dropped: it is not run. The reason is special.failure if its context ended, Node.failedBy if
	// a predecessor failed, and otherwise the cancellation of its taskgroup.
	dropped
)

// traits are properties of a task that Add sets and that never change. Most tasks have none.
type traits uint8

const (
	// exporting and importing are those of Transparency.
	exporting traits = 1 << iota
	importing
	// detached: the task has an event.
	detached
	// conditional: the end of a context or a cancellation can prevent it from being run.
	conditional
	// exclusive: it has a mutexinoutset item.
	exclusive
	// always: Task.Always.
	always
	// hostOrdered: Task.HostOrdered.
	hostOrdered
	// witnessed: it has a witness.
	witnessed
)

func (t traits) has(some traits) bool { return t&some != 0 }

// notes are facts about a task in addition to its phase.
type notes uint8

const (
	// included: the task's construct waits for it and reports its failure.
	included notes = 1 << iota
	// fulfilled: its event has been fulfilled, or was waived.
	fulfilled
	// waived: it does not wait for its event, because it has failed or has left its cancelled taskgroup.
	waived
	// awaited: a goroutine waits for special.signal.
	awaited
	// trailed: it has had a trail.
	trailed
	// joining: it is no task of the program, but a join that the graph has put in the place of a set.
	joining
)

func (k notes) has(some notes) bool { return k&some != 0 }
