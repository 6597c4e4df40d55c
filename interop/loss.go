package interop

import (
	"errors"
	"fmt"
	"time"

	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// A device that is lost comes to nothing any more: no value is reached that is not, and
// nothing can be submitted. So nothing is awaited of it, objects that have a stream refuse
// foreign work, and to destroy them takes no order.

// lossTimelines tells the scheduler of a loss, and calls no lost device.
type lossTimelines struct {
	Timelines
	Scheduler
}

// lossQueue is the same for a queue.
type lossQueue struct {
	Queue
	scheduler Scheduler
}

// tell tells the scheduler of a loss, if err is one, and returns the error.
func tell(s Scheduler, err error) error {
	if errors.Is(err, vk.ErrDeviceLost) {
		s.Lose(err)
		return s.Lost()
	}
	return err
}

// CreateTimeline implements Timelines.
func (l lossTimelines) CreateTimeline(initial uint64) (vk.Semaphore, error) {
	if err := l.Lost(); err != nil {
		return 0, err
	}
	s, err := l.Timelines.CreateTimeline(initial)
	return s, tell(l, err)
}

// SemaphoreValue implements Timelines.
func (l lossTimelines) SemaphoreValue(s vk.Semaphore) (uint64, error) {
	if err := l.Lost(); err != nil {
		return 0, err
	}
	value, err := l.Timelines.SemaphoreValue(s)
	return value, tell(l, err)
}

// WaitSemaphore implements Timelines.
func (l lossTimelines) WaitSemaphore(s vk.Semaphore, value uint64, timeout time.Duration) (bool, error) {
	if err := l.Lost(); err != nil {
		return false, err
	}
	reached, err := l.Timelines.WaitSemaphore(s, value, timeout)
	return reached, tell(l, err)
}

// SignalSemaphore implements Timelines.
func (l lossTimelines) SignalSemaphore(s vk.Semaphore, value uint64) error {
	if err := l.Lost(); err != nil {
		return err
	}
	return tell(l, l.Timelines.SignalSemaphore(s, value))
}

// Order implements Queue.
func (l lossQueue) Order(waits, signals []vk.SemaphoreValue) error {
	if err := l.scheduler.Lost(); err != nil {
		return err
	}
	return tell(l.scheduler, l.Queue.Order(waits, signals))
}

// lost returns the error that told of the device's loss, nil while it is not lost.
func (d *Device) lost() error {
	if d.Scheduler == nil {
		return nil
	}
	return d.Scheduler.Lost()
}

// lost is the error of what needs the stream's device, if that is lost.
func (st *stream) lost() error {
	if err := st.device.lost(); err != nil {
		return fmt.Errorf("%s: %w", st.name, err)
	}
	return nil
}

// Lose lets go of all foreign work of a device that is lost: what comes after it waits no
// longer. The scheduler tells of the loss.
func (d *Device) Lose() {
	for _, st := range d.all() {
		st.lose()
	}
}

func (st *stream) lose() {
	w := tasks.NewWork()
	defer w.Finish()
	st.run(w, func() {
		for _, s := range st.steps {
			if s.foreign && s.submit == nil && !s.ready {
				s.ready, s.host = true, true
			}
		}
		// Whoever waits in Ready looks again.
		close(st.changed)
		st.changed = make(chan struct{})
	})
}
