package tasks

// State is the state of a task.
type State uint8

const (
	// StateWaiting: a predecessor is in its way.
	StateWaiting State = iota
	// StateStarted: it was given to its Runner.
	StateStarted
	// StatePlaced: a device has it and keeps its order.
	StatePlaced
	// StateComplete: it is done, has failed, or was not run.
	StateComplete
)

// String returns the name of the state in graphs.
func (s State) String() string {
	switch s {
	case StateWaiting:
		return "waiting"
	case StateStarted:
		return "started"
	case StatePlaced:
		return "placed"
	}
	return "complete"
}

// Snapshot is the task graph at one moment.
type Snapshot struct {
	// Tasks are ordered by ID.
	Tasks []TaskInfo
	Edges []EdgeInfo
}

// TaskInfo describes one task of a snapshot.
type TaskInfo struct {
	// ID numbers the tasks of a graph from 1. Parent is the ID of the explicit task that
	// generated this one, 0 for the initial task.
	ID, Parent uint64
	Label      string
	Domain     Domain
	Included   bool
	State      State
	// Failure is the error with which the task failed or was not run, nil if it did not fail.
	Failure error
	// Depend are the items of the task's depend clauses.
	Depend []Depend
}

// Outstanding counts incomplete tasks with the same label and state.
type Outstanding struct {
	Label  string // the tasks' label
	Domain Domain // the tasks' domain
	State  State  // the tasks' state
	// AwaitsEvent says that their bodies have ended, but their events are not fulfilled.
	AwaitsEvent bool
	// Count is the number of tasks.
	Count int
}

// EdgeInfo is a dependence of task To on task From.
type EdgeInfo struct {
	From, To uint64 // IDs of tasks
	// Exclusion says that the two only exclude each other (mutexinoutset); From was
	// generated first.
	Exclusion bool
}
