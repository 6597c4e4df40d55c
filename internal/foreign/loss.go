package foreign

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// On a lost device no semaphore gets another value, and nothing can be submitted. So nothing is
// awaited of it, its objects refuse foreign work, and they can be destroyed at once.

// lossTimelines tells the scheduler when a call returns that the device is lost. It makes no
// calls on a lost device, and returns ErrClosed for calls with a semaphore after free.
type lossTimelines struct {
	Timelines
	Scheduler

	mu lockrank.Mutex[lockrank.Leaf]
	// users counts the calls with a semaphore that are in progress; unused is signalled when
	// there is none.
	users  int
	unused *sync.Cond
	freed  bool
}

func newLossTimelines(t Timelines, s Scheduler) *lossTimelines {
	l := &lossTimelines{Timelines: t, Scheduler: s}
	l.unused = sync.NewCond(&l.mu)
	return l
}

// beginCall begins a call with a semaphore, which endCall ends.
func (l *lossTimelines) beginCall() error {
	if err := l.Lost(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.freed {
		return fmt.Errorf("%w: the semaphores of interop objects were given back", vk.ErrClosed)
	}
	l.users++
	return nil
}

func (l *lossTimelines) endCall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users--; l.users == 0 {
		l.unused.Broadcast()
	}
}

// free waits for the calls with semaphores to end, and lets no other begin.
func (l *lossTimelines) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.freed = true
	for l.users > 0 {
		l.unused.Wait()
	}
}

// ended reports whether the error of a call with a semaphore says that no call can succeed any
// more, because the device is lost or the semaphores have been destroyed. Any other error, for
// want of memory, concerns that one call only.
func ended(err error) bool { return errors.Is(err, vk.ErrDeviceLost) || errors.Is(err, vk.ErrClosed) }

// lossQueue does for a queue what lossTimelines does for semaphores.
type lossQueue struct {
	Queue
	scheduler Scheduler
}

// tell tells the scheduler of the device's loss if err is that, and returns the error.
func tell(s Scheduler, err error) error {
	if errors.Is(err, vk.ErrDeviceLost) {
		s.Lose(err)
		return s.Lost()
	}
	return err
}

// CreateTimeline implements Timelines.
func (l *lossTimelines) CreateTimeline(initial uint64) (vk.Semaphore, error) {
	if err := l.Lost(); err != nil {
		return 0, err
	}
	s, err := l.Timelines.CreateTimeline(initial)
	return s, tell(l, err)
}

// SemaphoreValue implements Timelines.
func (l *lossTimelines) SemaphoreValue(s vk.Semaphore) (uint64, error) {
	if err := l.beginCall(); err != nil {
		return 0, err
	}
	defer l.endCall()
	value, err := l.Timelines.SemaphoreValue(s)
	return value, tell(l, err)
}

// WaitSemaphore implements Timelines.
func (l *lossTimelines) WaitSemaphore(s vk.Semaphore, value uint64, timeout time.Duration) (bool, error) {
	if err := l.beginCall(); err != nil {
		return false, err
	}
	defer l.endCall()
	reached, err := l.Timelines.WaitSemaphore(s, value, timeout)
	return reached, tell(l, err)
}

// SignalSemaphore implements Timelines.
func (l *lossTimelines) SignalSemaphore(s vk.Semaphore, value uint64) error {
	if err := l.beginCall(); err != nil {
		return err
	}
	defer l.endCall()
	return tell(l, l.Timelines.SignalSemaphore(s, value))
}

// Order implements Queue.
func (l lossQueue) Order(waits, signals []vk.SemaphoreValue) error {
	if err := l.scheduler.Lost(); err != nil {
		return err
	}
	return tell(l.scheduler, l.Queue.Order(waits, signals))
}

// lost returns the error with which the device was lost, nil while it is not lost.
func (d *Device) lost() error {
	if d.Scheduler == nil {
		return nil
	}
	return d.Scheduler.Lost()
}

// lost returns an error if the device is lost.
func (seq *sequence) lost() error {
	if err := seq.device.lost(); err != nil {
		return fmt.Errorf("%s: %w", seq.name, err)
	}
	return nil
}

// Lose ends the waits for foreign work on a lost device. The scheduler calls it.
func (d *Device) Lose() {
	for _, seq := range d.all() {
		seq.lose()
	}
}

func (seq *sequence) lose() {
	w := tasks.NewWork()
	defer w.Finish()
	seq.run(w, func() {
		for _, s := range seq.steps {
			if s.foreign && s.submit == nil && !s.ready {
				s.ready, s.host = true, true
			}
		}
		// This wakes who waits in Ready.
		close(seq.changed)
		seq.changed = make(chan struct{})
	})
}
