//go:build cgo

package vk

// #include "vko.h"
import "C"

import (
	"math"
	"slices"
	"time"

	vulkan "github.com/vulkan-go/vulkan"
)

// CreateTimeline creates a timeline semaphore that belongs to no queue, with the given
// initial value. DestroySemaphore destroys it.
func (d *Device) CreateTimeline(initial uint64) (Semaphore, error) {
	if err := d.enter(); err != nil {
		return 0, err
	}
	defer d.leave()
	var h C.vkoHandle
	r := C.vko_semaphore_create(d.c, C.uint64_t(initial), &h)
	if err := check("vkCreateSemaphore", Result(r), "a timeline from %d on", initial); err != nil {
		return 0, err
	}
	s := Semaphore(h)
	d.keepSemaphore(s)
	return s, nil
}

// keepSemaphore records a semaphore as the device's.
func (d *Device) keepSemaphore(s Semaphore) {
	d.count("VkSemaphore", 1)
	d.mu.Lock()
	d.semaphores[s] = struct{}{}
	d.mu.Unlock()
}

// DestroySemaphore destroys a semaphore made by CreateTimeline. The submissions that wait
// for it or signal it must have ended: see [Device.WaitIdle]. Unknown semaphores,
// semaphores that were destroyed before, and timelines of queues are ignored.
func (d *Device) DestroySemaphore(s Semaphore) {
	if d.enter() != nil {
		return
	}
	defer d.leave()
	d.mu.Lock()
	_, ok := d.semaphores[s]
	delete(d.semaphores, s)
	delete(d.exportable, s)
	d.mu.Unlock()
	if ok {
		d.destroySemaphore(s)
	}
}

func (d *Device) destroySemaphore(s Semaphore) {
	vulkan.DestroySemaphore(d.handle, handle[vulkan.Semaphore](uint64(s)), nil)
	d.count("VkSemaphore", -1)
}

// SemaphoreValue returns the current value of a timeline semaphore.
func (d *Device) SemaphoreValue(s Semaphore) (uint64, error) {
	if err := d.enterSemaphore("Device.SemaphoreValue", s); err != nil {
		return 0, err
	}
	defer d.leave()
	value, r := d.semaphoreValue(s)
	if r < 0 {
		return 0, check("vkGetSemaphoreCounterValue", r, "semaphore %#x", uint64(s))
	}
	return value, nil
}

// WaitSemaphore blocks until a timeline semaphore has reached value or the timeout has
// passed, and reports whether it has reached it. A negative timeout means no timeout. For
// the visibility of device writes, for failures and for errors, see [Queue.Wait].
func (d *Device) WaitSemaphore(s Semaphore, value uint64, timeout time.Duration) (bool, error) {
	if err := d.enterSemaphore("Device.WaitSemaphore", s); err != nil {
		return false, err
	}
	c := d.c
	d.life.RUnlock() // otherwise a waiting Close would block the SignalSemaphore that ends the wait
	r := d.waitSemaphore(c, s, value, timeout)
	if timeout < 0 && r != Success && r != ErrorDeviceLost {
		return false, d.errClosed()
	}
	if r < 0 {
		return false, check("vkWaitSemaphores", r, "semaphore %#x, value %d", uint64(s), value)
	}
	return r == Success, nil
}

// SignalSemaphore raises a timeline semaphore to value (vkSignalSemaphore), which must be
// above its current value and below all values that pending submissions will signal.
// Earlier host writes are visible to submissions that wait for it. Timelines of queues
// cannot be signalled by the host.
func (d *Device) SignalSemaphore(s Semaphore, value uint64) error {
	const op = "Device.SignalSemaphore"
	if err := d.enterSemaphore(op, s); err != nil {
		return err
	}
	defer d.leave()
	if slices.ContainsFunc(d.allQueues(), func(q *Queue) bool { return q.timeline == s }) {
		return invalid(op, "semaphore %#x is the timeline of a queue", uint64(s))
	}
	now, r := d.semaphoreValue(s)
	if r < 0 {
		return check("vkGetSemaphoreCounterValue", r, "semaphore %#x", uint64(s))
	}
	if value <= now {
		return invalid(op, "value %d of semaphore %#x, which has %d", value, uint64(s), now)
	}
	if r := Result(C.vko_semaphore_signal(d.c, C.vkoHandle(s), C.uint64_t(value))); r < 0 {
		return check("vkSignalSemaphore", r, "semaphore %#x, value %d", uint64(s), value)
	}
	return nil
}

// enterSemaphore is enter for a call that uses a semaphore.
func (d *Device) enterSemaphore(op string, s Semaphore) error {
	if s == 0 {
		return invalid(op, "no semaphore")
	}
	return d.enter()
}

func (d *Device) semaphoreValue(s Semaphore) (uint64, Result) {
	now := C.vko_semaphore_value(d.c, C.vkoHandle(s))
	return uint64(now.value), d.noteLoss(Result(now.result))
}

// waitSemaphore returns Success, Timeout or an error. A wait can fail for want of memory
// while the device is still working. Then it reads the semaphore's value and waits again,
// until the value is reached or the timeout has passed. Otherwise only the loss of the
// device, which any call may have reported, and its Close end the wait.
func (d *Device) waitSemaphore(c *C.vko_device, s Semaphore, value uint64, timeout time.Duration) (r Result) {
	defer func() {
		if r == Success && d.lost.Load() {
			r = ErrorDeviceLost // see Queue.waited
		}
		d.instance.drain()
	}()
	nanoseconds := uint64(math.MaxUint64)
	if timeout >= 0 {
		nanoseconds = uint64(timeout)
	}
	var begun time.Time
	for try := 0; ; try++ {
		r = d.noteLoss(Result(C.vko_semaphore_wait(c, C.vkoHandle(s), C.uint64_t(value), C.uint64_t(nanoseconds))))
		if r == Success || r == ErrorDeviceLost || r == Timeout && timeout >= 0 {
			return r
		}
		if timeout >= 0 && begun.IsZero() {
			begun = time.Now() // the wait failed at once instead of taking time
		}
		now := C.vko_semaphore_value(c, C.vkoHandle(s))
		switch look := d.noteLoss(Result(now.result)); {
		case look == ErrorDeviceLost:
			return look
		case look < 0:
		case uint64(now.value) >= value:
			return Success
		default:
			r = Timeout
		}
		if timeout >= 0 {
			left := timeout - time.Since(begun)
			if left <= 0 {
				return r
			}
			nanoseconds = uint64(left)
		}
		time.Sleep(backoff(try))
		switch {
		case d.lost.Load():
			return ErrorDeviceLost
		case d.queues[0].closed.Load():
			return r
		}
	}
}
