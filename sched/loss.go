package sched

import (
	"fmt"

	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
)

// A call of the device that is answered with its loss ends nothing: what was submitted
// to any of its queues may run on, the submission that was answered so included, until a
// wait for the device to be idle has come back. So a loss has two moments:
//
//	lost     nothing is submitted any more, constructs are refused, no task ends that
//	         has commands whose end the host has not seen
//	   │     (a goroutine waits for the device, without the scheduler's lock)
//	at rest  those tasks fail; memory is freed, host storage unpinned
//
// Any other failure of a call that waits says nothing about the device: the device makes
// the call again (see Device.Wait), for as long as it takes, and no task learns of it. Tasks
// are not complete meanwhile, and nothing that they use is freed. No lock is held then.

// loss is the device's, if it is lost.
type loss struct {
	// err is the error that told of it; told is closed when it is set. atRest: nothing
	// runs on the device any more.
	err    error
	told   chan struct{}
	atRest bool
	// doomed are the tasks that are to be aborted then.
	doomed []*target
	// regain and hook are Options.Regain and Options.Lost.
	regain string
	hook   func(error)
}

// loseLocked notes that a call of the device was answered with its loss; mu is held.
func (s *Scheduler) loseLocked(err error) {
	if s.loss.err != nil {
		return
	}
	s.loss.err = err
	if s.loss.regain != "" {
		s.loss.err = fmt.Errorf("%w: %s", err, s.loss.regain)
	}
	s.order.Lose(s.loss.err)
	close(s.loss.told)
	if !s.life.stopped { // else Close waits for the device
		s.life.waiters.Go(s.settleLoss)
	}
}

// Lose says that a call of the device that another made was answered with its loss.
func (s *Scheduler) Lose(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loseLocked(err)
}

// Lost returns the error that told of the device's loss, nil while it is not lost.
func (s *Scheduler) Lost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loss.err
}

// settleLoss fails all tasks under way once nothing runs on the lost device any more.
func (s *Scheduler) settleLoss() {
	if s.loss.hook != nil {
		// It completes tasks, whose observers may end the goroutine, so it runs on one of its
		// own. The tool that observes reports its failures itself, so the error is dropped.
		_ = protect.Apart(func() error {
			s.loss.hook(s.Lost())
			return nil
		})
	}
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
	s.restartCompilingLocked(w)
	s.order.WakeAll()
	s.life.wake.Broadcast()
}
