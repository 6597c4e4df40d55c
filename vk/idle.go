//go:build cgo

package vk

// #include "vko.h"
import "C"

import (
	"errors"
	"time"

	vulkan "github.com/vulkan-go/vulkan"
)

// backoff is how long to leave a driver alone that has failed for want of memory, before
// another try, the first of which is 0.
func backoff(try int) time.Duration {
	const first, longest = 50 * time.Microsecond, 10 * time.Millisecond
	return min(first<<min(try, 10), longest)
}

// WaitIdle blocks until the work has ended that was submitted to the device's queues,
// and holds the lock of each queue while it waits for it (see [Queue.Locker]). Of a
// device that is adopted it is the work that was submitted here. A call that fails
// while the device works on is tried again.
//
// A nil error and one that matches ErrDeviceLost both say that none of that work runs
// any more, or ever will. The only other error matches ErrClosed. Then what the work
// used can be destroyed. That timelines have reached the values which the work signals
// does not say so: a driver may still hold the submissions.
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
		r := q.device.answered(q.finish())
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

// finish waits for the queue, with q.mu held. Success and ErrorDeviceLost say that it is
// idle.
func (q *Queue) finish() Result {
	if q.given != nil {
		// What the application submitted may wait for what it has yet to do. Only where
		// the device is lost that ends as well.
		if r := Result(C.vko_queue_finish(q.c)); r != ErrorDeviceLost {
			return r
		}
		q.given.Lock()
		defer q.given.Unlock()
	}
	return Result(vulkan.QueueWaitIdle(dispatchable[vulkan.Queue](q.handle)))
}
