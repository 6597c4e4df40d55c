// Package protect calls the program's functions and accesses its storage in such a way that
// whatever goes wrong there becomes an error: a panic, a fault, or the end of the goroutine. It
// is internal to this module.
//
// Such a function can return, panic, or call runtime.Goexit, as t.Fatal does. A panic becomes an
// error everywhere. Goexit cannot be stopped: the goroutine ends. Callers that can bear that,
// because they have deferred what remains to be done, use [Call]; others use [Apart] or [Start].
// [Touch] is for storage that may have been unmapped.
package protect

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// PanicError is a panic of a function of the program that the runtime called.
type PanicError struct {
	// Value is what was passed to panic.
	Value any
	// Stack is the stack trace of the goroutine that panicked.
	Stack []byte
}

// Public, unless it is nil, makes the error that programs get for a panic; without it they get the
// *PanicError. The root package sets it when it is initialised, and nothing sets it later.
var Public func(*PanicError) error

// Error names the panic's value and where it happened.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// Unwrap returns the panic's value if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ErrGoexit is the error of a function that called runtime.Goexit.
var ErrGoexit = errors.New("it left by runtime.Goexit")

// Call calls f and returns its error. A panic becomes a *PanicError. If f calls runtime.Goexit, the
// caller's goroutine ends and only its deferred calls still run.
func Call(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = NotReturned(v)
		}
	}()
	return f()
}

// NotReturned returns the error of a function that did not return. The argument is the result of recover
// in a deferred call, nil for runtime.Goexit.
func NotReturned(recovered any) error {
	if recovered == nil {
		return ErrGoexit
	}
	p := &PanicError{Value: recovered, Stack: debug.Stack()}
	if Public != nil {
		return Public(p)
	}
	return p
}

// Apart calls f on another goroutine and waits for it, so it always returns. A call of
// runtime.Goexit becomes an error, and so does an access to storage that is no longer mapped.
// It costs about a microsecond.
func Apart(f func() error) error { return Start(f)() }

// Start calls f as Apart does, without waiting. The result waits for f and returns its error.
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

// Touch calls f, which accesses the program's storage and does nothing else. If the storage is no
// longer there, for example because it is a file's that was unmapped or truncated, the fault
// becomes an error.
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
