package trace

import (
	"sync"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

// Device is the part of a device that a trace uses. All methods but Calibrate can be called with
// the lock of the Source held.
type Device interface {
	// Properties returns the properties of the device. The caller must not change them.
	Properties() *vk.Properties
	// Completed returns the value that the queue's timeline has reached.
	Completed(queue int) (uint64, error)
	// CreateQueryPool makes a pool of reset timestamp queries (see vk.Device).
	CreateQueryPool(count uint32) (vk.QueryPool, error)
	// DestroyQueryPool destroys a pool.
	DestroyQueryPool(vk.QueryPool)
	// ResetQueryPool resets queries of a pool on the host.
	ResetQueryPool(p vk.QueryPool, first, count uint32) error
	// Timestamps reads the results of queries into ticks.
	Timestamps(p vk.QueryPool, first uint32, ticks []uint64) error
	// Calibrate reads the clocks of the device and of the host at the same moment.
	Calibrate() (vk.Calibration, error)
}

// Source is the device that is traced, and what the trace needs of the scheduler that uses it.
type Source struct {
	// Device is the device, Number the number by which the tool knows it.
	Device Device
	Number int
	// Queues are the queues of the device, and Stamps the timestamps of their commands.
	Queues *order.Queues
	Stamps *Stamps
	// Lock guards Queues and Stamps.
	Lock sync.Locker
	// Submit submits the pending batches of all queues. It is called without Lock held.
	Submit func()
	// Lose is called with Lock held when a call of Device has reported that the device is lost.
	Lose func(error)
}
