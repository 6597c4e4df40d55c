package sched

import (
	"fmt"

	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
)

// A call of Vulkan that reports the loss of the device does not say that its work has stopped. What
// was submitted to any queue may go on, including the submission that reported the loss, until a
// wait for the device to be idle has returned. A loss therefore has two steps:
//
//	lost     nothing is submitted any more, and constructs are refused; tasks whose commands
//	         may still run do not end
//	   │     (a goroutine waits for the device, without the scheduler's lock)
//	at rest  those tasks fail; their memory is freed, and host storage is no longer in use
//
// Between the two nothing counts as complete that was not before the loss was known: waits for a lost device may
// succeed, and its timelines show any value, whatever it has done.
//
// Any other failure of a wait says nothing about the device. Device.Wait tries again for as long as
// it takes, without a lock held. Meanwhile the tasks are not complete, and nothing that they use is
// freed.

// loss is the state of a device that is lost.
type loss struct {
	// err is the error that reported the loss, nil if the device is not lost.
	err error
	// told is closed when err is set.
	told chan struct{}
	// atRest says that nothing runs on the device any more.
	atRest bool
	// doomed are the tasks that fail when the device is at rest.
	doomed []*target
	// freed is memory that the program has freed since the loss, and that is freed when the device is at rest.
	freed []*allocation.Allocation
	// recovery and hook are Options.Recovery and Options.Lost.
	recovery string
	hook     func(error)
}

// loseLocked records that a call of the device has reported its loss, unless one has before.
func (s *Scheduler) loseLocked(err error) {
	if s.loss.err != nil {
		return
	}
	s.loss.err = err
	if s.loss.recovery != "" {
		s.loss.err = fmt.Errorf("%w: %s", err, s.loss.recovery)
	}
	s.refuses.Store(true)
	s.order.Lose(s.loss.err)
	s.kernels.DropAheadLocked()
	close(s.loss.told)
	if !s.life.stopped { // otherwise Close waits for the device
		s.life.goroutines.Go(s.settleLoss)
	}
}

// Lose records that a call of the device by somebody else, such as foreign work, has reported its
// loss.
func (s *Scheduler) Lose(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loseLocked(err)
}

// Lost returns the error that reported the loss of the device, nil if it is not lost.
func (s *Scheduler) Lost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loss.err
}

// settleLoss waits until nothing runs on the lost device any more, and then fails all tasks that have
// not ended.
func (s *Scheduler) settleLoss() {
	if s.loss.hook != nil {
		// The hook runs on a goroutine of its own, because it completes tasks, whose observers may
		// end the goroutine. The tool reports failures of its functions itself, so the error is
		// dropped.
		_ = protect.Apart(func() error {
			s.loss.hook(s.Lost())
			return nil
		})
	}
	// Nothing may be submitted any more when the wait begins.
	s.mu.Lock()
	s.order.AwaitSubmission()
	s.mu.Unlock()
	_ = s.device.WaitIdle() // it is idle, whatever that returns
	w := tasks.NewWork()
	defer w.Finish()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loss.atRest = true
	s.order.RefuseAll(s.loss.err)
	s.failRefusedLocked(w)
	for i, t := range s.loss.doomed {
		s.loss.doomed[i] = nil
		s.endLocked(t, t.failed, w)
	}
	s.loss.doomed = nil
	for _, m := range s.loss.freed {
		m.Unpin()
	}
	s.loss.freed = nil
	s.restartCompilingLocked(w)
	s.order.WakeAll()
	s.life.wake.Broadcast()
}
