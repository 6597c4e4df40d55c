//go:build cgo

package vk

// #include "vko.h"
import "C"

import (
	"errors"
	"time"

	vulkan "github.com/vulkan-go/vulkan"
)

// backoff returns how long to wait before trying again a call that failed for want of
// memory. The first try is 0.
func backoff(try int) time.Duration {
	const first, longest = 50 * time.Microsecond, 10 * time.Millisecond
	return min(first<<min(try, 10), longest)
}

// WaitIdle blocks until everything that was submitted to the device's queues has ended.
// It holds the lock of each queue while it waits for that queue (see [Queue.Locker]). On
// an adopted device it waits only for what was submitted through this package. A call
// that fails while the device is still working is tried again.
//
// A nil error and one that matches ErrDeviceLost both mean that none of that work runs
// any more, so that the objects it used can be destroyed. The only other error matches
// ErrClosed. It is not enough that timelines have reached the values that the work
// signals, because the driver may still use the submissions' objects.
func (d *Device) WaitIdle() error {
	var errs []error
	for _, q := range d.allQueues() {
		errs = append(errs, q.waitIdle())
	}
	return errors.Join(errs...)
}

// waitIdle is Device.WaitIdle for one queue.
func (q *Queue) waitIdle() error {
	for try := 0; ; try++ {
		q.mu.Lock()
		if q.c == nil {
			q.mu.Unlock()
			return q.errClosed()
		}
		r := q.device.noteLoss(q.finish())
		q.mu.Unlock()
		switch r {
		case Success:
			return nil
		case ErrorDeviceLost:
			return check("vkQueueWaitIdle", r, "queue of family %d", q.family)
		}
		time.Sleep(backoff(try))
	}
}

// finish waits for the queue, with q.mu held. After Success and ErrorDeviceLost the
// queue is idle.
func (q *Queue) finish() Result {
	if q.appLock != nil {
		// The application's submissions may wait for a signal that the application has not
		// sent yet. Only the loss of the device ends those too.
		if r := q.waited(Result(C.vko_queue_finish(q.c))); r != ErrorDeviceLost {
			return r
		}
		q.appLock.Lock()
		defer q.appLock.Unlock()
	}
	return Result(vulkan.QueueWaitIdle(dispatchable[vulkan.Queue](q.handle)))
}
