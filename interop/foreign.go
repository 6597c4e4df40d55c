package interop

import (
	"context"
	"sync"

	"github.com/vkomp/vkomp/internal/foreign"
	"github.com/vkomp/vkomp/vk"
)

// Errors of foreign work.
var (
	// ErrNeverSubmitted says that foreign work was announced with Next and not submitted before
	// the runtime was closed.
	ErrNeverSubmitted = foreign.ErrNeverSubmitted
	// ErrNeverSignalled says that foreign work was reported as submitted and has not signalled
	// its value within vkomp.Options.ForeignTimeout when the runtime was closed.
	ErrNeverSignalled = foreign.ErrNeverSignalled
)

// Semaphore returns the VkSemaphore of an object with targetsync, a timeline semaphore. Foreign
// work waits for its values and signals others: see [Object.Next].
func (o Object) Semaphore() (s vk.Semaphore, ok bool) {
	return foreign.Object(o).Semaphore()
}

// ForeignQueue is a VkQueue that foreign work can be submitted to.
type ForeignQueue struct {
	// Handle is the VkQueue.
	Handle uintptr
	// Family is the index of its queue family.
	Family uint32
	// Implicit says that submissions to the queue are ordered with the object's constructs
	// without semaphores.
	Implicit bool
	// Lock must be held during a submission to the queue, and only then: constructs and the
	// methods of objects take it. To wait for a submission, use a fence, because others may
	// submit to the queue in the meantime.
	Lock sync.Locker
}

// Queue returns the queue of an object with targetsync.
//
// If the device has queues reserved for it (Options.InteropQueues), the object has a queue of
// its own, and foreign work there needs no semaphores (the implicit protocol): work that was
// submitted before a construct is complete before the construct's task begins, and work that
// is submitted later begins when that task is complete. For this, constructs make empty
// submissions to the queue, which may wait for work that is yet to be submitted elsewhere: nothing
// else that others wait for may be submitted there.
// Because vkomp does not see whether anything was submitted between two constructs, their
// tasks are complete in the order of the constructs, and the first must not depend on the
// second. The first call of [Object.Next] ends the implicit protocol.
//
// If the queue is one that vkomp uses too, use [Object.Submit] or the explicit protocol.
func (o Object) Queue() (q ForeignQueue, ok bool) {
	of, ok := foreign.Object(o).Queue()
	return ForeignQueue(of), ok
}

// Next announces foreign work that will be submitted to any queue of the device (the
// explicit protocol). The submission has to wait for the value wait of the object's semaphore
// and to signal the value signal; after it [Object.Submitted] is to be called. Constructs that
// come later wait for the work, on the device once it is submitted. Foreign work of one object
// is executed in the order in which it was announced.
//
// Announced work that will not be submitted must be withdrawn: see [Object.Withdraw]. The
// object may be destroyed in the meantime, since that comes after the work, as any construct.
func (o Object) Next() (wait, signal uint64, err error) {
	return foreign.Object(o).Next()
}

// Ready waits until the work that signals a value of the semaphore has been submitted. Then
// work that waits for the value can be submitted to any queue. Before that, it may only be
// submitted to a queue that nothing else uses, because elsewhere it could hold up the work for
// which it waits. The object's own queue is one only if no work is given to [Object.Submit], which
// makes its submissions there too, when everything before them has been submitted. If ctx ends
// first, the error names the foreign work that is awaited.
func (o Object) Ready(ctx context.Context, value uint64) error {
	return foreign.Object(o).Ready(ctx, value)
}

// Submitted says that the foreign work that signals a value was submitted; the value is one
// that [Object.Next] has returned. The call starts tasks that wait for nothing else, with what
// the host has to do for them.
//
// A program that uses the object on one goroutine only may also submit work without
// announcing it, with the values that PropertyWaitValue and PropertySignalValue have then.
func (o Object) Submitted(signal uint64) error {
	return foreign.Object(o).Submitted(signal, false)
}

// Withdraw says that announced foreign work will not be submitted. Its value is signalled from
// the host once the value before it is reached, for those that wait for it.
func (o Object) Withdraw(signal uint64) error {
	return foreign.Object(o).Submitted(signal, true)
}

// Submit arranges for submit to be called with the object's queue, while the queue's lock is
// held, to submit foreign work there that needs no semaphores. In the object's order the work
// stands where Submit was called. submit must not wait for the device or call vkomp.
//
// If the queue is the object's own (see [Object.Queue]), submit is called at once, and Submit
// returns its error. Otherwise submit is called on another goroutine, when everything before
// the work has been submitted. If it fails or panics, or if ctx ends before, that is the
// failure of the next construct's task, or of the construct if it has no task, or is returned
// by Runtime.Close if there is no further construct. The context of a taskgroup's body, or that of a
// TargetData, ends with the group, which does not wait for foreign work: work that may come later
// takes the context outside.
func (o Object) Submit(ctx context.Context, submit func(queue uintptr) error) error {
	return foreign.Object(o).Submit(ctx, submit)
}

// Buffer says where storage lies on a device: Size bytes from Offset on in a VkBuffer.
type Buffer struct {
	// Buffer is the VkBuffer.
	Buffer vk.Buffer
	// Offset and Size are in bytes.
	Offset, Size uint64
	// Address is the device address of the first byte, 0 where the device has none.
	Address uint64
}
