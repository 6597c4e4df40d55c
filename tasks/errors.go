package tasks

import (
	"errors"
	"fmt"
)

// ErrInvalidDepend: a depend item that is not one.
var ErrInvalidDepend = errors.New("invalid depend clause")

// Error is the failure of one task.
type Error struct {
	// Task is the task's label.
	Task string
	// Cause is the failure itself. For a task that never ran because a
	// predecessor failed, it is that predecessor's *Error.
	Cause error
	// Dependent is set when the task did not run because of a predecessor.
	Dependent bool
	// reported: a Wait returns the failure. Guarded by the scope's lock.
	reported bool
}

// Error names the task and, for a task that was not run, the root cause.
func (e *Error) Error() string {
	if e.Dependent {
		return fmt.Sprintf("task %q not run: it depends on failed %v", e.Task, e.Cause)
	}
	return fmt.Sprintf("task %q: %v", e.Task, e.Cause)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// root returns the failure at the beginning of a chain of dependents.
func (e *Error) root() *Error {
	for e.Dependent {
		cause, ok := e.Cause.(*Error)
		if !ok {
			return e
		}
		e = cause
	}
	return e
}
