//go:build cgo

package vk

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

	"github.com/vkomp/vkomp/internal/lockrank"
)

// Queue is a VkQueue with a timeline of its own that its submissions signal.
type Queue struct {
	device   *Device
	handle   uintptr
	family   uint32
	compute  bool
	draws    bool
	bits     int // number of valid bits of a timestamp
	pool     vulkan.CommandPool
	timeline Semaphore
	closed   atomic.Bool

	mu lockrank.Mutex[lockrank.VulkanQueue] // guards the VkQueue, its command pool, and vko_queue except for the timeline
	c  *C.vko_queue
	// waits and signals are those of the last submission, and fault is that of the last call that failed; mu guards them.
	// What C is given would be allocated for each call if it were the caller's.
	waits, signals []SemaphoreValue
	fault          C.vko_fault
	// appLock is the application's lock of an adopted VkQueue, nil for a queue of this
	// package. It is taken after mu.
	appLock sync.Locker

	// forgotten are recordings that are to be freed.
	forgotten forgotten
}

func (d *Device) openQueue(family uint32, index int) (*Queue, error) {
	kind := d.Properties().QueueFamilies[family]
	q := &Queue{device: d, family: family, compute: kind.Flags&QueueCompute != 0, draws: draws(kind)}
	if d.Properties().Features.HostQueryReset {
		q.bits = kind.TimestampValidBits
	}
	if a := d.physical.adopted; a != nil {
		given := a.queue(family, index)
		q.handle, q.appLock = given.Handle, given.Locker
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
	// A separate variable, because cgo checks the whole Go object that it gets.
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

// destroy destroys the queue's objects. The device must be idle, and q.mu held if other
// goroutines can reach q.
func (q *Queue) destroy() {
	q.closed.Store(true)
	C.vko_queue_destroy(q.c)
	q.c = nil
	vulkan.DestroySemaphore(q.device.handle, handle[vulkan.Semaphore](uint64(q.timeline)), nil)
	vulkan.DestroyCommandPool(q.device.handle, q.pool, nil)
}

// Handle returns the VkQueue.
func (q *Queue) Handle() uintptr { return q.handle }

// Family returns the queue's family, an index into Properties.QueueFamilies.
func (q *Queue) Family() uint32 { return q.family }

// Compute reports whether the queue supports dispatches. A queue without compute supports
// copies, fills, and barriers without StageCompute.
func (q *Queue) Compute() bool { return q.compute }

// Draws reports whether the queue supports graphics.
func (q *Queue) Draws() bool { return q.draws }

// TimestampBits returns the number of valid bits of the queue's timestamps, 0 if it
// supports none: see [Stream.Timestamp].
func (q *Queue) TimestampBits() int { return q.bits }

// Timeline returns the semaphore that this queue's submissions signal. It begins at 0.
func (q *Queue) Timeline() Semaphore { return q.timeline }

// Locker returns the lock of the VkQueue. Code that submits to the queue by other means
// than Submit must hold it while it does, and must call nothing of this Queue but
// Timeline, Completed and Wait. It stays usable when the device is closed.
func (q *Queue) Locker() sync.Locker {
	if q.appLock != nil {
		return q.appLock
	}
	return &q.mu
}

// enter locks the queue for a call that uses the VkQueue; it is an error if the queue is
// closed.
func (q *Queue) enter() error {
	if err := q.enterPool(); err != nil {
		return err
	}
	if q.appLock != nil {
		q.appLock.Lock()
	}
	return nil
}

// leave unlocks the queue after enter.
func (q *Queue) leave() {
	if q.appLock != nil {
		q.appLock.Unlock()
	}
	q.leavePool()
}

// enterPool is enter for a call that uses the command pool and not the VkQueue.
func (q *Queue) enterPool() error {
	q.mu.Lock()
	if q.c == nil {
		q.mu.Unlock()
		return q.errClosed()
	}
	q.freeForgotten()
	return nil
}

// leavePool unlocks the queue after enterPool.
func (q *Queue) leavePool() {
	q.mu.Unlock()
	q.device.instance.drain()
}

// Submit submits the stream's operations to the queue. They begin once all waits are
// satisfied. When they have ended, the queue's timeline is raised to signal and the
// semaphores in signals to their values. Waits and signals apply to all commands:
// whatever waits for a signal comes after everything submitted to this queue before. The
// stream may be empty or nil. The stream, waits and signals may be changed as soon as
// Submit returns.
//
// signal must be above every value submitted before. A wait must be for a value that has
// already been submitted for signalling; otherwise the queue and every later submission to
// it may hang. signals must name each semaphore at most once and not the queue's own
// timeline, and their values must be above all values that the semaphore has or gets
// before the submission ends.
//
// A stream is refused with ErrInvalid if it is malformed, exceeds the device's limits, or
// needs compute or timestamps that the queue does not support. After an error the queue
// is as it was, and is usable unless the error matches ErrDeviceLost.
func (q *Queue) Submit(s *Stream, waits, signals []SemaphoreValue, signal uint64) error {
	var words []uint64
	if s != nil {
		words = s.words
	}
	if err := q.enter(); err != nil {
		return err
	}
	defer q.leave()
	q.keep(waits, signals)
	if C.vko_queue_submit(q.c,
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(words))), C.uint64_t(len(words)),
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(q.waits))), C.uint32_t(len(q.waits)),
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(q.signals))), C.uint32_t(len(q.signals)),
		C.uint64_t(signal), &q.fault) != 0 {
		return q.device.fault("Queue.Submit", &q.fault)
	}
	return nil
}

// keep keeps a submission's semaphores for C.
func (q *Queue) keep(waits, signals []SemaphoreValue) {
	q.waits, q.signals = append(q.waits[:0], waits...), append(q.signals[:0], signals...)
}

// Order makes an empty submission that leaves the queue's own timeline alone. It orders
// work that others submit to the queue: later submissions begin after the waits, and the
// signals come after earlier submissions.
func (q *Queue) Order(waits, signals []SemaphoreValue) error {
	if err := q.enter(); err != nil {
		return err
	}
	defer q.leave()
	q.keep(waits, signals)
	if C.vko_queue_order(q.c,
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(q.waits))), C.uint32_t(len(q.waits)),
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(q.signals))), C.uint32_t(len(q.signals)), &q.fault) != 0 {
		return q.device.fault("Queue.Order", &q.fault)
	}
	return nil
}

// Completed returns the current value of the timeline. When a call has reported the loss of the device, or the
// timeline has the largest value there is, which drivers show then, the error matches ErrDeviceLost: the value would
// mean nothing.
func (q *Queue) Completed() (uint64, error) {
	if q.closed.Load() {
		return 0, q.errClosed()
	}
	value, r := q.value()
	if r < 0 {
		return 0, check("vkGetSemaphoreCounterValue", r, "queue of family %d", q.family)
	}
	return value, nil
}

// value returns the current value of the timeline, or ErrorDeviceLost if that or any call before has shown the loss of
// the device.
func (q *Queue) value() (uint64, Result) {
	now := C.vko_timeline_value(q.device.c, C.vkoHandle(q.timeline))
	r := q.device.noteLoss(Result(now.result))
	if q.device.lost.Load() {
		r = ErrorDeviceLost
	}
	return uint64(now.value), r
}

// waited returns r, the result of a wait for the timeline, or ErrorDeviceLost if the device is lost: waits may succeed
// then, whatever the device has done.
func (q *Queue) waited(r Result) Result {
	if r == Success {
		if _, now := q.value(); now == ErrorDeviceLost {
			return now
		}
	}
	return r
}

// Wait blocks until the timeline has reached value or the timeout has passed, and reports
// whether it has reached it. A negative timeout means no timeout. Device writes are
// visible to the host only if a barrier to [StageHost] precedes the signal.
//
// A call that fails while the device is still working is repeated, and the timeline's
// value is read in between, however often both fail. A wait without timeout therefore ends
// with the value reached, with an error that matches ErrDeviceLost once any call has
// reported the loss, or with one that matches ErrClosed. With a timeout, any other error
// means that the state of the device could not be determined within that time.
func (q *Queue) Wait(value uint64, timeout time.Duration) (done bool, err error) {
	if q.closed.Load() {
		return false, q.errClosed()
	}
	r := q.waited(q.device.waitSemaphore(q.device.c, q.timeline, value, timeout))
	if timeout < 0 && r != Success && r != ErrorDeviceLost {
		return false, q.errClosed()
	}
	if r < 0 {
		return false, check("vkWaitSemaphores", r, "queue of family %d, value %d", q.family, value)
	}
	return r == Success, nil
}

// trim frees the command buffers that nothing uses, and their memory.
func (q *Queue) trim() error {
	if err := q.enterPool(); err != nil {
		return err
	}
	defer q.leavePool()
	if C.vko_queue_trim(q.c, &q.fault) != 0 {
		return q.device.fault("Device.Trim", &q.fault)
	}
	return nil
}

// commandBuffers returns the number of command buffers of the queue.
func (q *Queue) commandBuffers() int {
	if q.enterPool() != nil {
		return 0
	}
	defer q.leavePool()
	return int(C.vko_queue_slots(q.c))
}

// scan checks a stream as Submit does, without submitting it. It returns the numbers of descriptor sets
// and of descriptors that a descriptor pool for the stream must have.
func (q *Queue) scan(s *Stream) (sets, descriptors uint64, err error) {
	var f C.vko_fault
	var demand C.vko_demand
	if C.vko_scan(q.device.c, q.cFamily(), (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(s.words))),
		C.uint64_t(len(s.words)), &demand, &f) != 0 {
		return 0, 0, faultError("Queue.Submit", &f)
	}
	return uint64(demand.sets), uint64(demand.descriptors), nil
}

func (q *Queue) cFamily() C.vko_family {
	return C.vko_family{index: C.uint32_t(q.family), computes: number(q.compute), timestamp_bits: C.uint32_t(q.bits)}
}

func (q *Queue) errClosed() error {
	return fmt.Errorf("%w: queue of family %d of device %q", ErrClosed, q.family, q.device.physical.properties.Name)
}
