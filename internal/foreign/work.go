package foreign

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// next announces foreign work, which waits for one value and signals another.
func (seq *sequence) next() (wait, signal uint64, err error) {
	w := tasks.NewWork()
	defer w.Finish()
	seq.adding.Lock()
	defer seq.adding.Unlock()
	if err := seq.usable(); err != nil {
		return 0, 0, err
	}
	if err := seq.explicitLocked(w); err != nil {
		return 0, 0, err
	}
	seq.run(w, func() {
		if err = seq.usable(); err == nil {
			wait = seq.last.Load()
			signal = seq.addLocked(&step{foreign: true}).signal
		}
	})
	return wait, signal, err
}

// peek returns what next would, without the announcement.
func (seq *sequence) peek() (wait, signal uint64) {
	wait = seq.last.Load()
	return wait, wait + 1
}

// submitted records that foreign work has been submitted or, if host is set, that it never will
// be. Work that was not announced is added if its value is the next.
func (seq *sequence) submitted(value uint64, host bool) (err error) {
	if err := seq.lost(); err != nil {
		// Lose has withdrawn the work.
		if host {
			return nil
		}
		return err
	}
	w := tasks.NewWork()
	defer w.Finish()
	last := uint64(0)
	seq.run(w, func() {
		last = seq.last.Load()
		err = seq.markLocked(value, host)
	})
	if value != last+1 || host {
		return err
	}
	seq.adding.Lock()
	defer seq.adding.Unlock()
	seq.run(w, func() {
		if value == seq.last.Load()+1 && seq.usable() == nil {
			seq.addLocked(&step{foreign: true})
		}
		err = seq.markLocked(value, false)
	})
	if err != nil {
		return err
	}
	return seq.explicitLocked(w)
}

// markLocked records that announced work was submitted, or withdrawn; the device's order is held.
func (seq *sequence) markLocked(value uint64, host bool) error {
	switch s := seq.findLocked(value); {
	case value > seq.last.Load() || value <= seq.first:
		return fmt.Errorf("%w: %s: value %d was not handed out: the last one was %d", ErrInvalid, seq.name, value, seq.last.Load())
	case s == nil:
		return fmt.Errorf("%w: %s: value %d was signalled, or is on its way: it cannot be said twice", ErrInvalid, seq.name, value)
	case !s.foreign || s.submit != nil:
		return fmt.Errorf("%w: %s: value %d is vkomp's own to signal", ErrInvalid, seq.name, value)
	case s.ready:
		return fmt.Errorf("%w: %s: value %d was said to be submitted before", ErrInvalid, seq.name, value)
	default:
		s.ready, s.host = true, host
		return nil
	}
}

// submit calls f to submit foreign work, at once if the object has a queue of its own, else when
// everything before the work has been sent.
func (seq *sequence) submit(ctx context.Context, f func(queue uintptr) error) (err error) {
	w := tasks.NewWork()
	defer w.Finish()
	seq.adding.Lock()
	defer seq.adding.Unlock()
	if err := seq.usable(); err != nil {
		return err
	}
	if !seq.implicit.Load() {
		seq.run(w, func() {
			if err = seq.usable(); err == nil {
				seq.addLocked(&step{foreign: true, submit: f, ctx: ctx})
			}
		})
		return err
	}
	// The order on the object's own queue is that of the submissions.
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return seq.lend(func(queue uintptr) error {
		// The runtime may have begun to close while the lock was awaited. It takes the lock, too, before it destroys
		// the device. The scheduler, whose lock comes before that of a queue, is not asked about a loss again.
		if err := seq.open(); err != nil {
			return err
		}
		return f(queue)
	})
}

// call makes the submission of a step that was given to Submit. Everything before it has been
// sent.
func (seq *sequence) call(s *step) {
	failure, sent := errNoReturn, false
	// Deferred, because submit may call runtime.Goexit.
	defer func() {
		w := tasks.NewWork()
		defer w.Finish()
		seq.run(w, func() {
			if failure != nil {
				seq.failures = append(seq.failures, fmt.Errorf("%s: foreign work of value %d: %w", seq.name, s.signal, failure))
			}
			s.ready, s.host = true, !sent
		})
	}()
	if failure = context.Cause(s.ctx); failure != nil {
		return
	}
	if failure = seq.queue.Order(seq.before(s.signal), nil); failure != nil {
		return
	}
	failure = errNoReturn
	defer func() {
		// This is behind what submit has submitted, if anything. Nothing else says when that ends, so a call that fails
		// is made again.
		err := seq.queue.Order(nil, seq.at(s.signal))
		for err != nil && !ended(err) {
			time.Sleep(hostSignalLook)
			err = seq.queue.Order(nil, seq.at(s.signal))
		}
		if sent = err == nil; failure == nil {
			failure = err
		}
	}()
	failure = seq.lend(s.submit)
}

// errNoReturn is the failure of a submit function that called runtime.Goexit.
var errNoReturn = errors.New("the function ended its goroutine")

// lend calls f with the queue, whose lock is held.
func (seq *sequence) lend(f func(queue uintptr) error) error {
	lock := seq.queue.Locker()
	lock.Lock()
	defer lock.Unlock()
	return protect.Call(func() error { return f(seq.queue.Handle()) })
}

// usable returns an error if the sequence takes no more work: the object was destroyed, the
// runtime is being closed, or the device is lost. Who adds a step asks with the device's order
// held, as Device.Withdraw holds it, so that no step is added after that.
func (seq *sequence) usable() error {
	if err := seq.open(); err != nil {
		return err
	}
	return seq.lost()
}

// open is usable but for the loss of the device. It takes no lock.
func (seq *sequence) open() error {
	switch {
	case seq.destroyed.Load():
		return fmt.Errorf("%w: %s was destroyed", ErrInvalid, seq.name)
	case seq.device.closing.Load():
		return seq.endsWithRuntime()
	}
	return nil
}

// endsWithRuntime returns the error of a sequence whose runtime is being closed, as its own queue may be already.
func (seq *sequence) endsWithRuntime() error {
	return fmt.Errorf("%w: %s: its runtime is being closed", ErrInvalid, seq.name)
}

// gatherLocked adds a step for what was submitted to the object's own queue, behind which it
// makes an empty submission; adding is held.
func (seq *sequence) gatherLocked(w *tasks.Work) error {
	next := seq.last.Load() + 1
	if err := seq.queue.Order(seq.before(next), seq.at(next)); errors.Is(err, vk.ErrClosed) {
		return seq.endsWithRuntime()
	} else if err != nil {
		return err
	}
	seq.run(w, func() { seq.addLocked(&step{ready: true, gathered: true}) })
	return nil
}

// explicitLocked ends the implicit protocol; adding is held.
func (seq *sequence) explicitLocked(w *tasks.Work) error {
	if !seq.implicit.Load() {
		return nil
	}
	if err := seq.gatherLocked(w); err != nil {
		return err
	}
	seq.device.order.Lock()
	defer seq.device.order.Unlock()
	seq.implicit.Store(false)
	return nil
}
