package foreign

import (
	"errors"
	"fmt"
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

// takeFailure returns the failures that no construct has reported.
func (seq *sequence) takeFailure() error {
	seq.device.order.Lock()
	defer seq.device.order.Unlock()
	err := errors.Join(seq.failures...)
	seq.failures = nil
	return err
}

// Release signals, from the host, the values for which only foreign work can be to blame: that work
// was said to be submitted, everything before it has come, and for Options.Timeout no semaphore of
// the objects has got another value. While one gets values, such work may be on its way behind other
// work on the same queue. The error, ErrNeverSignalled, names the values.
//
// Somebody has to look now and then: the time is counted between calls. Of each semaphore one value
// is signalled, because later work may then signal the next by itself, and has as long for it.
//
// Where the signal is the runtime's own submission behind foreign work, as for work given to Submit,
// the host never signals. The queue comes to that submission when the work ends, Vulkan allows no
// other signal of its value meanwhile, and a device whose queue does not end cannot be closed.
func (d *Device) Release() error {
	all := d.all()
	d.order.Lock()
	defer d.order.Unlock()
	if !d.stillLocked(all) {
		return nil
	}
	var errs []error
	for _, seq := range all {
		errs = append(errs, seq.releaseLocked())
	}
	return errors.Join(errs...)
}

// stillLocked looks at the semaphores of all sequences, and reports whether no look in the last
// Options.Timeout has found another value than the one before. order is held.
func (d *Device) stillLocked(all []*sequence) bool {
	known := true
	for _, seq := range all {
		switch value, err := seq.forgetReachedLocked(); {
		case err != nil:
			known = false
		case value != seq.seen || d.still.IsZero():
			seq.seen, d.still = value, time.Now()
		}
	}
	return known && time.Since(d.still) >= d.Timeout
}

// releaseLocked is Release for one sequence; the device's order is held. If the call fails, a later
// one makes it again.
func (seq *sequence) releaseLocked() error {
	if len(seq.foreign) == 0 || seq.foreign[0].ours || seq.seen != seq.foreign[0].value-1 {
		return nil
	}
	value := seq.foreign[0].value
	if seq.device.Timelines.SignalSemaphore(seq.semaphore, value) != nil {
		return nil
	}
	seq.foreign = seq.foreign[1:]
	return fmt.Errorf("%w: value %d of %s", ErrNeverSignalled, value, seq.name)
}

// finish waits until the semaphores have reached their last values, and calls Release meanwhile:
// submissions that wait for foreign values would keep the device busy for ever. All other values
// follow from these.
func (d *Device) finish() error {
	var errs []error
	for _, seq := range d.all() {
		for {
			reached, err := d.Timelines.WaitSemaphore(seq.semaphore, seq.last.Load(), hostSignalLook)
			if ended(err) {
				errs = append(errs, err)
			}
			if reached || ended(err) {
				break
			}
			if err := d.Release(); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
