package tasks

// State is where a task is in its life.
type State uint8

const (
	// StateWaiting: something that the task must follow is not out of the way.
	StateWaiting State = iota
	// StateStarted: given to its Runner.
	StateStarted
	// StatePlaced: a device has it, and keeps its order.
	StatePlaced
	// StateComplete: done, failed, or not run at all.
	StateComplete
)

// String returns the state as graphs show it.
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
	// Tasks are in the order of their making.
	Tasks []TaskInfo
	Edges []EdgeInfo
}

// TaskInfo describes one task of a snapshot.
type TaskInfo struct {
	// ID numbers the tasks of a graph from 1; Parent is the explicit task that
	// generated this one, 0 for the initial task.
	ID, Parent uint64
	Label      string
	Domain     Domain
	Included   bool
	State      State
	// Failure is why the task failed or did not run, nil if it did not.
	Failure error
	// Depend are the items of the task's depend clauses.
	Depend []Depend
}

// Outstanding are tasks that are not complete, with one label and in one state.
type Outstanding struct {
	Label  string
	Domain Domain
	State  State
	// AwaitsEvent: their bodies are done, and their events not fulfilled.
	AwaitsEvent bool
	// Count is how many there are.
	Count int
}

// EdgeInfo says that task To follows task From.
type EdgeInfo struct {
	From, To uint64
	// Exclusion: the two exclude each other (mutexinoutset), and From came
	// first.
	Exclusion bool
}
