package order

import (
	"time"

	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// QueueInfo describes a queue of a device.
type QueueInfo struct {
	// Family is the queue's family, by its number in Vulkan.
	Family int
	// Compute: it runs kernels. Every queue makes copies and fills.
	Compute bool
	// TimestampBits is how many bits its timestamps have; 0: it writes none.
	TimestampBits int
}

// Foreign is what orders other work on the device with a batch: values of semaphores that
// are no queue's timeline.
type Foreign struct {
	// Waits are values that somebody has submitted the signal of. Signals are what the
	// device signals itself.
	Waits, Signals []vk.SemaphoreValue
}

// Device is what the queues ask of a device. It need not lock Submit of one queue.
type Device interface {
	// Submit runs the stream once the waits are satisfied, values of the timelines of
	// other queues that have been submitted, and those of foreign; then it signals the
	// queue's timeline and what foreign says. The stream and the slices are the caller's
	// again when it returns. On an error nothing was submitted, unless it is
	// vk.ErrDeviceLost: then it may run.
	Submit(queue int, s *vk.Stream, waits []timeline.Point, foreign Foreign, signal uint64) error
	// Completed returns the value that the queue's timeline has reached.
	Completed(queue int) (uint64, error)
	// Wait waits for a value of the queue's timeline; a negative timeout is none. It
	// reports whether the value was reached. Without a timeout it outlasts failures that
	// say nothing of what the device does: an error is the device's loss. It is called
	// without locks.
	Wait(queue int, value uint64, timeout time.Duration) (bool, error)
}
