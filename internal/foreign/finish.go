package foreign

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vkomp/vkomp/tasks"
)

// withdrawAll gives up foreign work that was announced and not submitted.
func (st *stream) withdrawAll() error {
	var errs []error
	w := tasks.NewWork()
	defer w.Finish()
	st.run(w, func() {
		for _, s := range st.steps {
			if s.foreign && s.submit == nil && !s.ready {
				s.ready, s.host = true, true
				errs = append(errs, fmt.Errorf("%w: value %d of %s", ErrNeverSubmitted, s.signal, st.name))
			}
		}
	})
	return errors.Join(errs...)
}

// takeFailure returns the failure that no construct has reported.
func (st *stream) takeFailure() error {
	st.device.order.Lock()
	defer st.device.order.Unlock()
	err := st.failure
	st.failure = nil
	return err
}

// release signals, in each of some streams, the foreign value whose turn it is, if any, and
// adds what it is to errs. What follows may be about to signal the next; and what is behind
// a submission of ours can be waiting, on the same queue, for what is another's to signal:
// that is signalled alone if there is any. It reports whether all that was due is signalled:
// what a call has failed to do is left for another time.
func (d *Device) release(all []*stream, errs *[]error) (done bool) {
	done = true
	for _, ours := range []bool{false, true} {
		before := len(*errs)
		for _, st := range all {
			done = st.releaseDue(ours, errs) && done
		}
		if len(*errs) > before || !done {
			break
		}
	}
	return done
}

// releaseDue is release for one stream.
func (st *stream) releaseDue(ours bool, errs *[]error) (done bool) {
	st.device.order.Lock()
	defer st.device.order.Unlock()
	value, err := st.forgetReachedLocked()
	if err != nil || len(st.foreign) == 0 || st.foreign[0].ours != ours || value < st.foreign[0].value-1 {
		return err == nil
	}
	next := st.foreign[0].value
	if st.device.Timelines.SignalSemaphore(st.semaphore, next) != nil {
		return false
	}
	st.foreign = st.foreign[1:]
	*errs = append(*errs, st.neverSignalled(next))
	return true
}

func (st *stream) neverSignalled(value uint64) error {
	return fmt.Errorf("%w: value %d of %s", ErrNeverSignalled, value, st.name)
}

// finish waits until the semaphores have their last values, or signals what is missing
// of them; what one waits for can be another's. They are over.
func (d *Device) finish(all []*stream, deadline time.Time) error {
	var errs []error
	for wait := max(time.Until(deadline), 0); ; wait = hostSignalLook {
		look := time.Now().Add(wait)
		var left []*stream
		// learned: no call has failed, so nothing more is to be learned.
		learned := true
		for _, st := range all {
			reached, err := d.Timelines.WaitSemaphore(st.semaphore, st.last.Load(), max(time.Until(look), 0))
			if reached || ended(err) {
				errs = append(errs, err)
				st.giveUp()
				continue
			}
			learned = learned && err == nil
			left = append(left, st)
		}
		if len(left) == 0 {
			return errors.Join(errs...)
		}
		// Submissions that wait for it would keep the device for ever. What is not foreign
		// comes after that.
		before := len(errs)
		learned = d.release(left, &errs) && learned
		if learned && len(errs) == before && wait == hostSignalLook {
			left = slices.DeleteFunc(left, func(st *stream) bool {
				st.giveUp()
				raised := st.raise(st.last.Load())
				if raised {
					errs = append(errs, st.neverSignalled(st.last.Load()))
				}
				return raised
			})
		}
		all = left
	}
}

// end says that no task waits for the semaphore any more.
func (st *stream) end() {
	st.device.order.Lock()
	defer st.device.order.Unlock()
	st.over = true
}

// giveUp says that nobody waits any more.
func (st *stream) giveUp() {
	st.device.order.Lock()
	defer st.device.order.Unlock()
	st.gaveUp = true
}
