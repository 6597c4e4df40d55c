package interop

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
// that is signalled alone if there is any. It returns the streams where that failed.
func (d *Device) release(all []*stream, errs *[]error) (failed []*stream) {
	for _, ours := range []bool{false, true} {
		before := len(*errs)
		for _, st := range all {
			if err := st.releaseDue(ours, errs); err != nil {
				*errs = append(*errs, err)
				failed = append(failed, st)
			}
		}
		if len(*errs) > before {
			break
		}
	}
	return failed
}

func (st *stream) releaseDue(ours bool, errs *[]error) error {
	st.device.order.Lock()
	defer st.device.order.Unlock()
	value, err := st.forgetReached()
	if err != nil || len(st.foreign) == 0 || st.foreign[0].ours != ours || value < st.foreign[0].value-1 {
		return err
	}
	next := st.foreign[0].value
	*errs = append(*errs, fmt.Errorf("%w: value %d of %s", ErrNeverSignalled, next, st.name))
	// Once is enough.
	st.foreign = st.foreign[1:]
	return st.device.Timelines.SignalSemaphore(st.semaphore, next)
}

// finish waits until the semaphores have their last values, or signals what is missing
// of them; what one waits for can be another's. They are over.
func (d *Device) finish(all []*stream, deadline time.Time) error {
	var errs []error
	for wait := max(time.Until(deadline), 0); ; wait = hostSignalLook {
		look := time.Now().Add(wait)
		var left []*stream
		for _, st := range all {
			reached, err := d.Timelines.WaitSemaphore(st.semaphore, st.last.Load(), max(time.Until(look), 0))
			if err == nil && !reached {
				left = append(left, st)
				continue
			}
			errs = append(errs, err, st.giveUp(false))
		}
		if len(left) == 0 {
			return errors.Join(errs...)
		}
		// Submissions that wait for it would keep the device for ever. What is not foreign
		// comes after that.
		before := len(errs)
		failed := d.release(left, &errs)
		for _, st := range failed {
			errs = append(errs, st.giveUp(true))
		}
		all = slices.DeleteFunc(left, func(st *stream) bool { return slices.Contains(failed, st) })
		if len(errs) == before && wait == hostSignalLook {
			for _, st := range all {
				errs = append(errs, st.giveUp(true))
			}
			return errors.Join(errs...)
		}
	}
}

// end says that no task waits for the semaphore any more.
func (st *stream) end() {
	st.device.order.Lock()
	defer st.device.order.Unlock()
	st.over = true
}

// giveUp says that nobody waits any more, and signals the last value if that is missing.
func (st *stream) giveUp(missing bool) error {
	st.device.order.Lock()
	defer st.device.order.Unlock()
	st.gaveUp = true
	if !missing {
		return nil
	}
	return errors.Join(fmt.Errorf("%w: value %d of %s", ErrNeverSignalled, st.last.Load(), st.name), st.raise(st.last.Load()))
}
