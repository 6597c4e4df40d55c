package tasks

import "fmt"

// Event is the event of a detachable task (omp_event_handle_t).
type Event struct {
	node *Node
	// scope is that of the task, and generation tells whether the node is still the task's.
	scope      *Scope
	generation uint64
}

// Witness returns the witness of the event's task. It is nil if the task has none, or if the task
// has ended and its record belongs to another task.
func (e Event) Witness() Witness {
	n := e.node
	e.scope.lock()
	defer e.scope.unlock()
	if !n.is(e.generation) {
		return nil
	}
	return n.special.witness
}

// Fulfill lets the task complete once its body has ended (omp_fulfill_event). It has no effect if
// the task is complete, or does not wait for it because it has failed or left its cancelled taskgroup.
func (e Event) Fulfill(w *Work) error {
	n := e.node
	e.scope.lock()
	defer e.scope.unlock()
	if !n.is(e.generation) || n.phase.complete() || n.outcome != undecided || n.notes.has(waived) {
		return nil
	}
	if n.notes.has(fulfilled) {
		return fmt.Errorf("task %q: %w", n.label, ErrFulfilled)
	}
	n.notes |= fulfilled
	n.settleLocked(w)
	return nil
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
