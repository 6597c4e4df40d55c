package foreign

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/vkomp/vkomp/vk"
)

// Errors that package interop documents.
var (
	// ErrInvalid is interop.ErrInvalid.
	ErrInvalid = errors.New("not allowed by OpenMP")
	// ErrNeverSubmitted is interop.ErrNeverSubmitted.
	ErrNeverSubmitted = errors.New("foreign work was never submitted")
	// ErrNeverSignalled is interop.ErrNeverSignalled.
	ErrNeverSignalled = errors.New("foreign work has not signalled")
)

// Types is a set of interop types, with the values of interop.Types.
type Types uint8

const (
	// TypeTarget is interop.TypeTarget.
	TypeTarget Types = 1 << iota
	// TypeTargetSync is interop.TypeTargetSync.
	TypeTargetSync
)

// Object is an interop object. An interop.Object is one too, and either can be converted to
// the other. The methods that both have are documented there.
type Object struct{ state *state }

// None is omp_interop_none.
var None Object

// state is what the copies of an object share.
type state struct {
	device *Device
	types  Types
	// number counts the device's objects.
	number    int
	destroyed atomic.Bool
	// sequence is the object's sequence, nil without targetsync.
	sequence *sequence
}

// String names the object, such as "interop object 3 of device 0".
func (o Object) String() string {
	if o == None {
		return "interop object none"
	}
	return fmt.Sprintf("interop object %d of device %d", o.state.number, o.state.device.Number)
}

// Alive reports whether o is neither None, nor destroyed, nor its device closed.
func (o Object) Alive() bool {
	return o.state != nil && !o.state.destroyed.Load() && !o.state.device.closed.Load()
}

// Types returns the object's types, 0 if it is not alive.
func (o Object) Types() Types {
	if !o.Alive() {
		return 0
	}
	return o.state.types
}

// DeviceNum returns the number of the device of an object other than None.
func (o Object) DeviceNum() int { return o.state.device.Number }

// Handles returns the handles of the device of an object other than None.
func (o Object) Handles() *Handles { return &o.state.device.Handles }

// syncs returns the object's sequence, ErrInvalid if it has none or is no longer alive.
func (o Object) syncs() (*sequence, error) {
	switch {
	case o == None:
		return nil, fmt.Errorf("%w: %v: it was not initialised, or it was destroyed", ErrInvalid, o)
	case o.state.destroyed.Load():
		return nil, fmt.Errorf("%w: %v was destroyed", ErrInvalid, o)
	case o.state.device.closed.Load():
		return nil, fmt.Errorf("%w: the device of %v is closed", ErrInvalid, o)
	case o.state.sequence == nil:
		return nil, fmt.Errorf("%w: %v has no type targetsync", ErrInvalid, o)
	}
	return o.state.sequence, nil
}

// announced is syncs for work that was announced before, which may outlive the object.
func (o Object) announced() (*sequence, error) {
	if o != None && o.state.sequence != nil && !o.state.device.closed.Load() {
		return o.state.sequence, nil
	}
	return o.syncs()
}

// Semaphore returns the semaphore of an object with targetsync.
func (o Object) Semaphore() (s vk.Semaphore, ok bool) {
	seq, err := o.syncs()
	if err != nil {
		return 0, false
	}
	return seq.semaphore, true
}

// QueueInfo is a VkQueue that foreign work can be submitted to: interop.ForeignQueue.
type QueueInfo struct {
	// Handle is the VkQueue, Family the index of its family.
	Handle uintptr
	Family uint32
	// Implicit says that submissions to the queue need no semaphores to be ordered with
	// constructs.
	Implicit bool
	// Lock must be held during a submission.
	Lock sync.Locker
}

// Queue returns the queue of an object with targetsync.
func (o Object) Queue() (q QueueInfo, ok bool) {
	seq, err := o.syncs()
	if err != nil {
		return QueueInfo{}, false
	}
	return QueueInfo{seq.queue.Handle(), seq.queue.Family(), seq.implicit.Load(), seq.queue.Locker()}, true
}

// Peek returns the values that the next foreign work waits for and signals, 0 without targetsync.
func (o Object) Peek() (wait, signal uint64) {
	seq, err := o.syncs()
	if err != nil {
		return 0, 0
	}
	return seq.peek()
}

// Next announces foreign work.
func (o Object) Next() (wait, signal uint64, err error) {
	seq, err := o.syncs()
	if err != nil {
		return 0, 0, err
	}
	return seq.next()
}

// Ready waits until what signals a value has been submitted.
func (o Object) Ready(ctx context.Context, value uint64) error {
	seq, err := o.announced()
	if err != nil {
		return err
	}
	return seq.sentUpTo(ctx, value)
}

// Submitted says that the foreign work that signals a value has been submitted or, if never is
// set, that it will not be.
func (o Object) Submitted(signal uint64, never bool) error {
	seq, err := o.announced()
	if err != nil {
		return err
	}
	return seq.submitted(signal, never)
}

// Submit arranges for submit to be called with the object's queue.
func (o Object) Submit(ctx context.Context, submit func(queue uintptr) error) error {
	seq, err := o.syncs()
	if err != nil {
		return err
	}
	switch {
	case submit == nil:
		return fmt.Errorf("%w: %v: nothing to submit with", ErrInvalid, o)
	case ctx == nil: // it would be a panic of the goroutine that submits the work
		return fmt.Errorf("%w: %v: no context to submit with", ErrInvalid, o)
	}
	return seq.submit(ctx, submit)
}
