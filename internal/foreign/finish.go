package foreign

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vkomp/vkomp/tasks"
)

// withdrawAll gives up foreign work that was announced and not submitted.
func (seq *sequence) withdrawAll() error {
	var errs []error
	w := tasks.NewWork()
	defer w.Finish()
	seq.run(w, func() {
		for _, s := range seq.steps {
			if s.foreign && s.submit == nil && !s.ready {
				s.ready, s.host = true, true
				errs = append(errs, fmt.Errorf("%w: value %d of %s", ErrNeverSubmitted, s.signal, seq.name))
			}
		}
	})
	return errors.Join(errs...)
}

// takeFailure returns the failure that no construct has reported.
func (seq *sequence) takeFailure() error {
	seq.device.order.Lock()
	defer seq.device.order.Unlock()
	err := seq.failure
	seq.failure = nil
	return err
}

// release signals, in each of the sequences, the foreign value that is next for its semaphore,
// if there is one, and adds an error that names it to errs. Only one value is signalled at a
// time, because later work may then signal the next by itself. Values that a submission of the
// runtime signals come last: it can be behind foreign work on the same queue, and follows when
// that is released. done reports whether all calls have succeeded; the others can be tried again.
func (d *Device) release(all []*sequence, errs *[]error) (done bool) {
	done = true
	for _, ours := range []bool{false, true} {
		before := len(*errs)
		for _, seq := range all {
			done = seq.releaseDue(ours, errs) && done
		}
		if len(*errs) > before || !done {
			break
		}
	}
	return done
}

// releaseDue is release for one sequence and for values with that awaited.ours.
func (seq *sequence) releaseDue(ours bool, errs *[]error) (done bool) {
	seq.device.order.Lock()
	defer seq.device.order.Unlock()
	value, err := seq.forgetReachedLocked()
	if err != nil || len(seq.foreign) == 0 || seq.foreign[0].ours != ours || value < seq.foreign[0].value-1 {
		return err == nil
	}
	next := seq.foreign[0].value
	if seq.device.Timelines.SignalSemaphore(seq.semaphore, next) != nil {
		return false
	}
	seq.foreign = seq.foreign[1:]
	*errs = append(*errs, seq.neverSignalled(next))
	return true
}

func (seq *sequence) neverSignalled(value uint64) error {
	return fmt.Errorf("%w: value %d of %s", ErrNeverSignalled, value, seq.name)
}

// finish waits until the semaphores have reached their last values, and after the deadline
// signals those that are missing, one after the other, because the work of one object may wait
// for that of another. No task waits for the sequences any more.
func (d *Device) finish(all []*sequence, deadline time.Time) error {
	var errs []error
	for wait := max(time.Until(deadline), 0); ; wait = hostSignalLook {
		look := time.Now().Add(wait)
		var left []*sequence
		// learned says that no call has failed: what was seen is how it is.
		learned := true
		for _, seq := range all {
			reached, err := d.Timelines.WaitSemaphore(seq.semaphore, seq.last.Load(), max(time.Until(look), 0))
			if reached || ended(err) {
				errs = append(errs, err)
				seq.giveUp()
				continue
			}
			learned = learned && err == nil
			left = append(left, seq)
		}
		if len(left) == 0 {
			return errors.Join(errs...)
		}
		// Submissions that wait for foreign values would keep the device busy for ever. The
		// other values follow from these; they are signalled here only when that did not help.
		before := len(errs)
		learned = d.release(left, &errs) && learned
		if learned && len(errs) == before && wait == hostSignalLook {
			left = slices.DeleteFunc(left, func(seq *sequence) bool {
				seq.giveUp()
				last, raised := (&point{seq, seq.last.Load(), seq.last.Load()}).raise()
				if raised {
					errs = append(errs, seq.neverSignalled(last))
				}
				return raised
			})
		}
		all = left
	}
}

// end records that no task waits for the semaphore any more.
func (seq *sequence) end() {
	seq.device.order.Lock()
	defer seq.device.order.Unlock()
	seq.over = true
}

// giveUp records that the closing runtime does not wait for the semaphore any more either.
func (seq *sequence) giveUp() {
	seq.device.order.Lock()
	defer seq.device.order.Unlock()
	seq.gaveUp = true
}
