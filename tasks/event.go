package tasks

import (
	"fmt"
)

// Event is the event of a detachable task (omp_event_handle_t).
type Event struct {
	node       *Node
	generation uint64
}

// Witness returns the witness of the event's task; nil if it has none, and when the task is
// over and its record another task's.
func (e Event) Witness() Witness {
	n := e.node
	n.scope.lock()
	defer n.scope.unlock()
	if n.generation != e.generation {
		return nil
	}
	return n.witness
}

// Fulfill lets the task complete once its body is done (omp_fulfill_event). On
// the event of a task that is complete, or has failed, it has no effect.
func (e Event) Fulfill(w *Work) error {
	n := e.node
	n.scope.lock()
	defer n.scope.unlock()
	if n.generation != e.generation || n.phase.complete() || n.outcome != undecided {
		return nil
	}
	if n.notes.has(fulfilled) {
		return fmt.Errorf("task %q: %w", n.label, ErrFulfilled)
	}
	n.notes |= fulfilled
	n.settleLocked(w)
	return nil
}
