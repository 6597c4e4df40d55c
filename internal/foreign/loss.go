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

// A device that is lost comes to nothing any more: no value is reached that is not, and
// nothing can be submitted. So nothing is awaited of it, objects that have a stream refuse
// foreign work, and to destroy them takes no order.

// lossTimelines tells the scheduler of a loss, and calls no lost device, nor any with a
// semaphore after free, which are refused with ErrClosed.
type lossTimelines struct {
	Timelines
	Scheduler

	mu lockrank.Mutex[lockrank.Leaf]
	// users counts those who are in a call with a semaphore, unused is signalled when there
	// is none.
	users  int
	unused *sync.Cond
	freed  bool
}

func newLossTimelines(t Timelines, s Scheduler) *lossTimelines {
	l := &lossTimelines{Timelines: t, Scheduler: s}
	l.unused = sync.NewCond(&l.mu)
	return l
}

// enter begins a call with a semaphore, which leave ends.
func (l *lossTimelines) enter() error {
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

func (l *lossTimelines) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users--; l.users == 0 {
		l.unused.Broadcast()
	}
}

// free lets calls with semaphores end, and no other begin.
func (l *lossTimelines) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.freed = true
	for l.users > 0 {
		l.unused.Wait()
	}
}

// ended reports whether what a call with a semaphore failed with says that none will
// succeed any more: the device is lost, or has been given back. Any other failure is of
// that one call, for want of memory, and says nothing of the semaphore.
func ended(err error) bool { return errors.Is(err, vk.ErrDeviceLost) || errors.Is(err, vk.ErrClosed) }

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
func (l *lossTimelines) CreateTimeline(initial uint64) (vk.Semaphore, error) {
	if err := l.Lost(); err != nil {
		return 0, err
	}
	s, err := l.Timelines.CreateTimeline(initial)
	return s, tell(l, err)
}

// SemaphoreValue implements Timelines.
func (l *lossTimelines) SemaphoreValue(s vk.Semaphore) (uint64, error) {
	if err := l.enter(); err != nil {
		return 0, err
	}
	defer l.leave()
	value, err := l.Timelines.SemaphoreValue(s)
	return value, tell(l, err)
}

// WaitSemaphore implements Timelines.
func (l *lossTimelines) WaitSemaphore(s vk.Semaphore, value uint64, timeout time.Duration) (bool, error) {
	if err := l.enter(); err != nil {
		return false, err
	}
	defer l.leave()
	reached, err := l.Timelines.WaitSemaphore(s, value, timeout)
	return reached, tell(l, err)
}

// SignalSemaphore implements Timelines.
func (l *lossTimelines) SignalSemaphore(s vk.Semaphore, value uint64) error {
	if err := l.enter(); err != nil {
		return err
	}
	defer l.leave()
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
