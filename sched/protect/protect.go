// Package protect calls code of the program's, or touches its storage, so that whatever
// happens there is an error: a panic, a fault, the end of the goroutine. It is for this
// repository alone.
//
// Such code can return, panic, or leave by runtime.Goexit, which is what t.Fatal does. A
// panic becomes an error everywhere. Goexit cannot be stopped: the goroutine ends. Where the
// caller can bear that, because what it still has to do is deferred, [Call] calls the code;
// where it cannot, [Apart] and [Start] do. [Touch] is for storage that may be gone.
package protect

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// PanicError is a panic of user code that the runtime called.
type PanicError struct {
	Value any
	Stack []byte
}

// Error names the panic's value and where it happened.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// Unwrap returns the panic's value if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ErrGoexit: the code neither returned nor panicked.
var ErrGoexit = errors.New("it left by runtime.Goexit")

// Call calls f and returns its error, a panic as a *PanicError. Code that leaves by
// runtime.Goexit ends the caller's goroutine all the same: then only what the caller has
// deferred is done.
func Call(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = Left(v)
		}
	}()
	return f()
}

// Left returns the error of code that did not return, by what a deferred function
// recovered, nil for runtime.Goexit.
func Left(recovered any) error {
	if recovered == nil {
		return ErrGoexit
	}
	return &PanicError{Value: recovered, Stack: debug.Stack()}
}

// Apart calls f on a goroutine of its own and waits for it: it always returns. Leaving by
// runtime.Goexit is an error, and so is an access to storage that is not mapped any more.
// It costs a microsecond or so.
func Apart(f func() error) error { return Start(f)() }

// Start calls f as Apart does, and returns what waits for it and returns its error.
func Start(f func() error) (end func() error) {
	err := ErrGoexit
	over := make(chan struct{})
	go func() {
		defer close(over)
		debug.SetPanicOnFault(true)
		err = Call(f)
	}()
	return func() error {
		<-over
		return err
	}
}

// Touch calls f, which accesses the program's storage and does nothing else. That can be
// gone, where it is a file's that was unmapped or truncated, say: then the fault is the
// error.
func Touch(f func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch v := recover().(type) {
		case nil:
		case interface { // a runtime.Error: see debug.SetPanicOnFault
			error
			Addr() uintptr
		}:
			err = fmt.Errorf("access to host storage at %#x failed: %w", v.Addr(), v)
		default:
			panic(v)
		}
	}()
	f()
	return nil
}
