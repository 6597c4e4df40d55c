package interop

import (
	"context"
	"sync"

	"github.com/vkomp/vkomp/internal/foreign"
	"github.com/vkomp/vkomp/vk"
)

// Errors of foreign work.
var (
	// ErrNeverSubmitted: foreign work was announced with Next and will not be submitted.
	ErrNeverSubmitted = foreign.ErrNeverSubmitted
	// ErrNeverSignalled: foreign work was reported as submitted and has not signalled its value.
	ErrNeverSignalled = foreign.ErrNeverSignalled
)

// Semaphore returns the VkSemaphore of an object with targetsync, a timeline. Foreign
// work waits for values of it and signals others: see [Object.Next].
func (o Object) Semaphore() (s vk.Semaphore, ok bool) {
	return foreign.Object(o).Semaphore()
}

// ForeignQueue is a VkQueue that foreign work can be submitted to.
type ForeignQueue struct {
	// Handle is the VkQueue.
	Handle uintptr
	// Family is the index of its queue family.
	Family uint32
	// Implicit: what is submitted to the queue is ordered with the object's constructs
	// by that alone.
	Implicit bool
	// Lock is held by whoever submits to the queue, and not for long, nor while a method of
	// an object is called, or a construct: these take it. Who waits for what was submitted
	// uses a fence: others submit meanwhile.
	Lock sync.Locker
}

// Queue returns the queue of an object with targetsync.
//
// Where it is the object's own, as far as there are such queues, foreign work needs no
// semaphores (the implicit protocol): what was submitted there before a construct is
// complete before the construct's task begins, what is submitted after it begins when
// that task is complete. The construct sees to it with empty submissions to the queue,
// of which one may wait for what is yet to be submitted elsewhere. Nobody can tell whether
// something was submitted between two constructs: their tasks are complete in the order of
// the constructs, and one must not wait for the other against that order. Using
// [Object.Next] ends all this. On a queue that vkomp uses too there is [Object.Submit].
func (o Object) Queue() (q ForeignQueue, ok bool) {
	of, ok := foreign.Object(o).Queue()
	return ForeignQueue(of), ok
}

// Next announces foreign work that will be submitted to any queue of the device (the
// explicit protocol): the submission waits for the value wait of the object's
// semaphore, signals the value signal, and is followed by [Object.Submitted]. The
// constructs that come later wait for it, on the device, once it is submitted; foreign
// work of one object is in the order of its announcement.
//
// Work that comes to nothing is taken back with [Object.Withdraw]. An object may be
// destroyed meanwhile: that comes after the work, as any construct does.
func (o Object) Next() (wait, signal uint64, err error) {
	return foreign.Object(o).Next()
}

// Ready waits until what signals a value of the semaphore has been submitted. Work
// that waits for the value can then be submitted to any queue; before, only to one
// that nothing else uses, since it would hold up what signals the value.
func (o Object) Ready(ctx context.Context, value uint64) error {
	return foreign.Object(o).Ready(ctx, value)
}

// Submitted says that the foreign work has been submitted that signals a value, which
// [Object.Next] gave. Tasks that wait for nothing else are started by the call, as by
// the end of any predecessor, the host's part of them included.
//
// Work that was not announced may be submitted as well, by a program that gives the
// object work and constructs on one goroutine: with the values that PropertyWaitValue and
// PropertySignalValue have at the time.
func (o Object) Submitted(signal uint64) error {
	return foreign.Object(o).Submitted(signal, false)
}

// Withdraw says that the foreign work announced to signal a value never will be
// submitted. The value is signalled when its turn comes, for those who wait for it.
func (o Object) Withdraw(signal uint64) error {
	return foreign.Object(o).Submitted(signal, true)
}

// Submit has submit called, with the object's queue and under its lock, to submit
// foreign work there without semaphores of its own, which counts as created by this
// call. submit neither waits for the device nor calls vkomp.
//
// Where the queue is the object's own (see [Object.Queue]) submit is called at once, and
// its error is Submit's. Otherwise it is called on another goroutine, when everything
// that the work comes after has been submitted: the work would hold that up. When it
// fails, or panics, or ctx ends before its turn, the next construct's
// task fails, or the construct itself if it has none; or else the runtime's Close.
func (o Object) Submit(ctx context.Context, submit func(queue uintptr) error) error {
	return foreign.Object(o).Submit(ctx, submit)
}

// Buffer is where storage lies on a device: Size bytes from Offset on in the VkBuffer.
type Buffer struct {
	// Buffer is the VkBuffer.
	Buffer vk.Buffer
	// Offset and Size are in bytes.
	Offset, Size uint64
	// Address is the device address of the first byte, 0 where the device has none.
	Address uint64
}
