package tasks

import (
	"errors"
	"fmt"
	"slices"
)

var (
	// ErrInvalidDepend says that a depend item is not valid.
	ErrInvalidDepend = errors.New("invalid depend clause")
	// ErrCancelled says that the taskgroup is cancelled. A body that returns it has not failed.
	ErrCancelled = errors.New("taskgroup cancelled")
	// ErrFulfilled says that the event of a detachable task was fulfilled before.
	ErrFulfilled = errors.New("event was fulfilled before")
)

// Error is the failure of one task. A program gets it as the error that Errors.Public has made of
// it, if Graph.SetErrors was called.
type Error struct {
	// Task is the task's label.
	Task string
	// Cause is the failure itself. For a task that was not run because a predecessor failed, it
	// is that predecessor's failure, as a program gets it.
	Cause error
	// Dependent says that the task was not run because of a predecessor.
	Dependent bool
	// tally is the last tally that counts the failed task, nil once it is reported; guarded by the scope's lock.
	tally *tally
	// tallies are those that have this failure as their root and are not reported. Those of failed tasks without depend
	// items are not among them: nothing depends on such a task. They are guarded by the lock of the scope, which all scopes
	// share in which the failure is known.
	tallies []*tally
	// likeness is the likeness of the cause.
	likeness likeness
	// unrun says that the task was not run because its context had ended.
	unrun bool
	// public is the error that a program gets, nil for the Error itself.
	public error
}

// Errors says by which errors a program learns of failures. A failure is always the same error,
// and what it is the cause of wraps that error.
type Errors struct {
	// Public returns a new error for a failure. It is called with locks held.
	Public func(*Error) error
	// Failure returns the failure that Public has made an error of, nil for other errors.
	Failure func(error) *Error
}

// SetErrors makes failures known to programs by other errors than *Error. It must be called
// before the first task is added.
func (g *Graph) SetErrors(e Errors) { g.errors = e }

// OnlyCancelled reports whether an error is ErrCancelled, wrapped or joined with itself, and no other failure.
func OnlyCancelled(err error) bool {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return OnlyCancelled(e.Unwrap())
	case interface{ Unwrap() []error }:
		list := e.Unwrap()
		return len(list) > 0 && !slices.ContainsFunc(list, func(err error) bool { return !OnlyCancelled(err) })
	}
	return errors.Is(err, ErrCancelled)
}

// shown returns the error that a program gets.
func (e *Error) shown() error {
	if e.public != nil {
		return e.public
	}
	return e
}

// failure returns e with the error that a program gets for it.
func (g *Graph) failure(e *Error) *Error {
	if g.errors.Public != nil {
		e.public = g.errors.Public(e)
	}
	return e
}

// failureOf returns the failure that err is the error of, nil if it is no task's.
func (g *Graph) failureOf(err error) *Error {
	if g.errors.Failure != nil {
		return g.errors.Failure(err)
	}
	e, _ := err.(*Error)
	return e
}

// dependentError returns the error of a task one of whose predecessors has failed.
func (n *Node) dependentError(predecessor *Error) error {
	return n.scope.graph.failure(&Error{Task: n.label, Cause: predecessor.shown(), Dependent: true}).shown()
}

// Error returns the task's label and the cause, and for a dependent the root cause.
func (e *Error) Error() string {
	if e.Dependent {
		return fmt.Sprintf("task %q not run: it depends on failed %v", e.Task, e.Cause)
	}
	return fmt.Sprintf("task %q: %v", e.Task, e.Cause)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }
