package order

import (
	"time"

	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// QueueInfo describes a queue of a device.
type QueueInfo struct {
	// Family is the queue family index.
	Family int
	// Compute says that the queue runs kernels. Every queue makes copies and fills.
	Compute bool
	// Draws says that the queue's family supports graphics.
	Draws bool
	// TimestampBits is the number of valid bits in its timestamps (timestampValidBits), 0 for none.
	TimestampBits int
}

// Foreign orders other work on the device with a batch, by values of semaphores that are not the
// timeline of a queue.
type Foreign struct {
	// Waits are values whose signal operations have been submitted. Signals are values that
	// the device itself signals when the batch is complete.
	Waits, Signals []vk.SemaphoreValue
}

// Device is the part of a device that queues use. Submit is not called concurrently.
type Device interface {
	// Submit runs the stream after the waits, which are submitted values of other queues'
	// timelines, and those of foreign. It then signals the given value of the queue's timeline
	// and the signals of foreign. It does not keep the stream and the slices. After an error
	// nothing was submitted, except after vk.ErrDeviceLost, when the stream may run. It is called
	// without locks held.
	Submit(queue int, s *vk.Stream, waits []timeline.Point, foreign Foreign, signal uint64) error
	// Completed returns the value that the queue's timeline has reached, 0 with an error. The error
	// matches vk.ErrDeviceLost if the device is lost; any other says nothing about the device.
	Completed(queue int) (uint64, error)
	// Wait waits for a value of the queue's timeline and reports whether it was reached. A
	// negative timeout means none. Without a timeout Wait retries after failures that do not
	// concern the device's state, so any error means that the device is lost. With a timeout only
	// an error that matches vk.ErrDeviceLost does. Wait is called without locks held.
	Wait(queue int, value uint64, timeout time.Duration) (bool, error)
}
