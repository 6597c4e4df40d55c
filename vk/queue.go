//go:build cgo

package vk

// #cgo noescape vko_queue_submit
// #cgo nocallback vko_queue_submit
// #cgo noescape vko_queue_order
// #cgo nocallback vko_queue_order
// #cgo noescape vko_scan
// #cgo nocallback vko_scan
// #include "vko.h"
import "C"

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"
)

// Queue is a VkQueue with a timeline of its own, which its submissions signal.
type Queue struct {
	device   *Device
	handle   uintptr
	family   uint32
	compute  bool
	bits     int // of a timestamp
	pool     vulkan.CommandPool
	timeline Semaphore
	closed   atomic.Bool

	mu sync.Mutex // the VkQueue, its command pool, and in C all of vko_queue but the timeline
	c  *C.vko_queue
	// given locks the VkQueue beside mu, which is taken before, and is nil for a queue
	// that is not the application's.
	given sync.Locker
}

func (d *Device) openQueue(family uint32, index int) (*Queue, error) {
	kind := d.Properties().QueueFamilies[family]
	q := &Queue{device: d, family: family, compute: kind.Flags&QueueCompute != 0}
	if d.Properties().Features.HostQueryReset {
		q.bits = kind.TimestampValidBits
	}
	if a := d.physical.adopted; a != nil {
		given := a.queue(family, index)
		q.handle, q.given = given.Handle, given.Locker
	} else {
		var h vulkan.Queue
		vulkan.GetDeviceQueue(d.handle, family, uint32(index), &h)
		q.handle = address(h)
	}
	info := vulkan.CommandPoolCreateInfo{
		SType: vulkan.StructureTypeCommandPoolCreateInfo,
		Flags: vulkan.CommandPoolCreateFlags(vulkan.CommandPoolCreateTransientBit |
			vulkan.CommandPoolCreateResetCommandBufferBit),
		QueueFamilyIndex: family,
	}
	// A variable of its own: cgo inspects the whole Go object that it is given.
	var pool vulkan.CommandPool
	r := vulkan.CreateCommandPool(d.handle, &info, nil, &pool)
	info.Free()
	q.pool = pool
	if err := check("vkCreateCommandPool", Result(r), "queue family %d", family); err != nil {
		return nil, err
	}
	var f C.vko_fault
	if C.vko_queue_create(d.c, C.uintptr_t(q.handle), q.cFamily(), C.vkoHandle(name(q.pool)), &q.c, &f) != 0 {
		vulkan.DestroyCommandPool(d.handle, q.pool, nil)
		return nil, faultError("PhysicalDevice.Open", &f)
	}
	q.timeline = Semaphore(C.vko_queue_timeline(q.c))
	return q, nil
}

// destroy ends the queue; the device is idle, and q.mu held where others know q.
func (q *Queue) destroy() {
	q.closed.Store(true)
	C.vko_queue_destroy(q.c)
	q.c = nil
	vulkan.DestroySemaphore(q.device.handle, handle[vulkan.Semaphore](uint64(q.timeline)), nil)
	vulkan.DestroyCommandPool(q.device.handle, q.pool, nil)
}

// Handle is the VkQueue.
func (q *Queue) Handle() uintptr { return q.handle }

// Family is the queue's family, an index into Properties.QueueFamilies.
func (q *Queue) Family() uint32 { return q.family }

// Compute says whether the queue takes dispatches. One that does not takes copies,
// fills, and barriers without StageCompute.
func (q *Queue) Compute() bool { return q.compute }

// TimestampBits is how many bits the queue's timestamps have: see [Stream.Timestamp].
// 0: it writes none.
func (q *Queue) TimestampBits() int { return q.bits }

// Timeline is the semaphore that this queue's submissions signal. It begins at 0.
func (q *Queue) Timeline() Semaphore { return q.timeline }

// Locker locks the VkQueue: who submits to it by other means than Submit holds it
// meanwhile, and calls nothing of this Queue but Timeline, Completed and Wait. It
// stays usable when the device is closed.
func (q *Queue) Locker() sync.Locker {
	if q.given != nil {
		return q.given
	}
	return &q.mu
}

// enter locks the queue for a call that uses the VkQueue, unless it is closed.
func (q *Queue) enter() error {
	q.mu.Lock()
	if q.c == nil {
		q.mu.Unlock()
		return q.errClosed()
	}
	if q.given != nil {
		q.given.Lock()
	}
	return nil
}

// leave ends what enter began.
func (q *Queue) leave() {
	if q.given != nil {
		q.given.Unlock()
	}
	q.mu.Unlock()
	q.device.instance.drain()
}

// Submit hands the stream's operations to the queue, to begin once all waits are
// satisfied, and when they have ended to raise the queue's timeline to signal and
// the semaphores of signals to their values. Both ends take in all commands:
// whatever waits for a signal comes after everything submitted to this queue
// before. The stream may be empty or nil, and may be changed as soon as Submit
// returns, as may waits and signals.
//
// signal must be above every value submitted before. A wait must be for a value
// that is already submitted somewhere: a queue that waits for what is never
// signalled hangs, and with it every later submission. signals must name each
// semaphore once, not the queue's own timeline, and values above all that their
// semaphore has or is going to have when the submission ends.
//
// A stream that is malformed, outside the device's limits, or not for a queue
// that only transfers (see Compute) or has no timestamps is refused with ErrInvalid. After any error the
// queue is as it was, and usable unless the error matches ErrDeviceLost.
func (q *Queue) Submit(s *Stream, waits, signals []SemaphoreValue, signal uint64) error {
	var words []uint64
	if s != nil {
		words = s.words
	}
	var f C.vko_fault
	if err := q.enter(); err != nil {
		return err
	}
	failed := C.vko_queue_submit(q.c,
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(words))), C.uint64_t(len(words)),
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(waits))), C.uint32_t(len(waits)),
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(signals))), C.uint32_t(len(signals)),
		C.uint64_t(signal), &f)
	q.leave()
	if failed != 0 {
		return q.device.fault("Queue.Submit", &f)
	}
	return nil
}

// Order makes an empty submission which leaves the queue's own timeline alone, for
// work that others submit to the queue: what is submitted later begins after the
// waits, the signals come after what was submitted before.
func (q *Queue) Order(waits, signals []SemaphoreValue) error {
	var f C.vko_fault
	if err := q.enter(); err != nil {
		return err
	}
	failed := C.vko_queue_order(q.c,
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(waits))), C.uint32_t(len(waits)),
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(signals))), C.uint32_t(len(signals)), &f)
	q.leave()
	if failed != 0 {
		return q.device.fault("Queue.Order", &f)
	}
	return nil
}

// Completed is the timeline's value now.
func (q *Queue) Completed() (uint64, error) {
	if q.closed.Load() {
		return 0, q.errClosed()
	}
	value, r := q.device.semaphoreValue(q.timeline)
	if r < 0 {
		return 0, check("vkGetSemaphoreCounterValue", r, "queue of family %d", q.family)
	}
	return value, nil
}

// Wait blocks until the timeline has reached value or the timeout has passed, and
// says whether it has; a negative timeout is for ever. What the device wrote is
// visible to the host only after a barrier to [StageHost] before the signal.
//
// A call that fails while the device works on is made again after a while, and the
// timeline looked at meanwhile, however often both fail. So a wait for ever ends with the
// value, with an error that matches ErrDeviceLost, once any call of the device was answered
// so, or with one that matches ErrClosed. With a timeout any other error says that nothing
// was learned in that time of what the device does.
func (q *Queue) Wait(value uint64, timeout time.Duration) (done bool, err error) {
	if q.closed.Load() {
		return false, q.errClosed()
	}
	r := q.device.waitSemaphore(q.device.c, q.timeline, value, timeout)
	if timeout < 0 && r != Success && r != ErrorDeviceLost {
		return false, q.errClosed()
	}
	if r < 0 {
		return false, check("vkWaitSemaphores", r, "queue of family %d, value %d", q.family, value)
	}
	return r == Success, nil
}

// trim gives back the command buffers that nothing uses, and what they hold.
func (q *Queue) trim() error {
	if err := q.enter(); err != nil {
		return err
	}
	defer q.leave()
	var f C.vko_fault
	if C.vko_queue_trim(q.c, &f) != 0 {
		return faultError("Device.Trim", &f)
	}
	return nil
}

// commandBuffers counts the command buffers of the queue.
func (q *Queue) commandBuffers() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int(C.vko_queue_slots(q.c))
}

// scan checks a stream as Submit does, and does nothing else.
func (q *Queue) scan(s *Stream) error {
	var f C.vko_fault
	var demand C.vko_demand
	if C.vko_scan(q.device.c, q.cFamily(), (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(s.words))),
		C.uint64_t(len(s.words)), &demand, &f) != 0 {
		return faultError("Queue.Submit", &f)
	}
	return nil
}

func (q *Queue) cFamily() C.vko_family {
	return C.vko_family{index: C.uint32_t(q.family), computes: number(q.compute), timestamp_bits: C.uint32_t(q.bits)}
}

func (q *Queue) errClosed() error {
	return fmt.Errorf("%w: queue of family %d of device %q", ErrClosed, q.family, q.device.physical.properties.Name)
}
