package sched

import (
	"fmt"
	"slices"

	"github.com/vkomp/vkomp/internal/invariants"
)

// taskState is the state of a target. The package's documentation has the transitions.
type taskState uint8

const (
	// taskIdle: the target is not in use.
	taskIdle taskState = iota
	// taskCreated: the target belongs to a task that has not started or is about to start again.
	taskCreated
	// taskCompiling: the task waits for its pipeline.
	taskCompiling
	// taskParked: the task waits until another one has ended, or a block is gone.
	taskParked
	// taskStarved: the task found no memory, and waits for others to give some back.
	taskStarved
	// taskEntered: the task has its storage. Next its transfers begin and its commands are placed.
	taskEntered
	// taskPlaced: its commands have their places in batches, or it has none.
	taskPlaced
	// taskExiting: its commands are complete, or it has failed, and its maps are leaving the presence
	// table.
	taskExiting
	// taskLate: copies to the host that were not planned at the entry are in a batch of their own.
	taskLate
	// taskComplete: the task graph knows of its end.
	taskComplete
	taskCount
)

var taskStateNames = [taskCount]string{"idle", "created", "compiling", "parked", "starved", "entered", "placed", "exiting", "late", "complete"}

// String returns the name that the package's documentation uses.
func (st taskState) String() string { return taskStateNames[st] }

// transitions holds the allowed successors of each state.
var transitions = [taskCount][]taskState{
	taskIdle:      {taskCreated},
	taskCreated:   {taskCompiling, taskParked, taskStarved, taskEntered, taskComplete, taskIdle},
	taskCompiling: {taskParked, taskStarved, taskEntered, taskComplete, taskIdle},
	taskParked:    {taskParked, taskStarved, taskEntered, taskComplete, taskIdle},
	taskStarved:   {taskCreated},
	taskEntered:   {taskPlaced, taskExiting},
	taskPlaced:    {taskExiting},
	taskExiting:   {taskLate, taskComplete},
	taskLate:      {taskComplete},
	taskComplete:  {taskIdle},
}

// to puts the target into its next state. Once the task has started, the caller holds Scheduler.mu.
func (t *target) to(next taskState) {
	if invariants.Enabled {
		t.check(next)
	}
	t.state = next
}

// check panics if the target's state may not be followed by next.
func (t *target) check(next taskState) {
	if !slices.Contains(transitions[t.state], next) {
		panic(fmt.Sprintf("sched: target %q goes from %v to %v", t.Label, t.state, next))
	}
}

// entered reports whether the task has storage that it has to give back.
func (st taskState) entered() bool { return st >= taskEntered && st < taskComplete }

// exiting reports whether the exit of the task's maps has begun and is not over.
func (st taskState) exiting() bool { return st == taskExiting || st == taskLate }
