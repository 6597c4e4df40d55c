package vkomp

import (
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
)

// TaskError is the failure of one task, as a construct or a wait reports it: for errors.As.
type TaskError struct {
	// Task is the task's label.
	Task string
	// Cause is the failure itself. For a task that was not run because a task that it
	// depends on has failed, it is that task's *TaskError.
	Cause error
	// Dependent: the task was not run because one that it depends on has failed.
	Dependent bool
}

// Error names the task and, for a task that was not run, the root cause.
func (e *TaskError) Error() string {
	if e.Dependent {
		return fmt.Sprintf("task %q not run: it depends on failed %v", e.Task, e.Cause)
	}
	return fmt.Sprintf("task %q: %v", e.Task, e.Cause)
}

// Unwrap returns the cause.
func (e *TaskError) Unwrap() error { return e.Cause }

// PanicError is a panic in code of the program's that the runtime calls: a task's body, a
// kernel's Host variant, a Mapper's functions, a report of progress. For errors.As.
type PanicError struct {
	// Value is what panic was called with.
	Value any
	// Stack is the stack of the goroutine that panicked, as debug.Stack has it.
	Stack []byte
}

// Error names the panic's value and where it happened.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// Unwrap returns the panic's value if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// reported is an error that leaves the runtime: in it errors.As finds failures of tasks and
// panics by the types that programs know.
type reported struct{ error }

// report makes err, which may be nil, one that leaves the runtime.
func report(err error) error {
	if err == nil {
		return nil
	}
	return reported{err}
}

// Unwrap returns the error as the runtime has it.
func (r reported) Unwrap() error { return r.error }

// As finds the first failure of a task, or the first panic.
func (r reported) As(target any) bool {
	switch target := target.(type) {
	case **TaskError:
		var failed *tasks.Error
		if errors.As(r.error, &failed) {
			*target = taskError(failed)
			return true
		}
	case **PanicError:
		var panicked *protect.PanicError
		if errors.As(r.error, &panicked) {
			*target, _ = translated(panicked).(*PanicError)
			return true
		}
	}
	return false
}

// taskError returns the failure of a task as programs know it.
func taskError(e *tasks.Error) *TaskError {
	return &TaskError{Task: e.Task, Cause: translated(e.Cause), Dependent: e.Dependent}
}

// translated returns an error that is of a type of the runtime's as programs know it, and
// any other as it is.
func translated(err error) error {
	switch err := err.(type) {
	case *tasks.Error:
		return taskError(err)
	case *protect.PanicError:
		return &PanicError{err.Value, err.Stack}
	}
	return err
}

// protected calls code of the program's and returns its error, a panic as a *PanicError.
func protected(f func() error) error { return translated(protect.Call(f)) }
