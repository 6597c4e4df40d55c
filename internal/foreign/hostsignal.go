package foreign

import "time"

// point is a value of the semaphore of a sequence.
type point struct {
	sequence *sequence
	value    uint64
}

// signalFromHostLocked signals the points from the host when the values before them are reached,
// in the background if they are not yet; order is held.
func (d *Device) signalFromHostLocked(points []point) {
	if d.lost() != nil {
		return
	}
	now := true
	for _, p := range points {
		v, err := d.Timelines.SemaphoreValue(p.sequence.semaphore)
		now = now && err == nil && v >= p.value-1
	}
	for k := 0; now && k < len(points); k++ {
		now = points[k].sequence.raiseLocked(points[k].value)
	}
	if now {
		return
	}
	d.background.Go(func() {
		for _, p := range points {
			if !p.sequence.reaches(p.value - 1) {
				return
			}
		}
		for _, p := range points {
			for !p.sequence.raise(p.value) {
				// The call has failed. Somebody else may signal the value before the next try.
				_, _ = d.Timelines.WaitSemaphore(p.sequence.semaphore, p.value, hostSignalLook)
			}
		}
	})
}

// reaches waits until a value is reached or the runtime gives up waiting. It returns false if the
// device is lost.
func (seq *sequence) reaches(value uint64) bool {
	for {
		reached, err := seq.device.Timelines.WaitSemaphore(seq.semaphore, value, hostSignalLook)
		if reached || ended(err) {
			return reached
		}
		seq.device.order.Lock()
		gaveUp := seq.gaveUp
		seq.device.order.Unlock()
		if gaveUp {
			// finish has signalled what it could.
			return true
		}
	}
}

// raiseLocked signals a value from the host unless the semaphore has reached it. It returns false
// if the call has failed and should be tried again; the device's order is held.
func (seq *sequence) raiseLocked(value uint64) bool {
	t := seq.device.Timelines
	v, err := t.SemaphoreValue(seq.semaphore)
	if err == nil && v < value {
		err = t.SignalSemaphore(seq.semaphore, value)
	}
	return err == nil || ended(err)
}

// raise is raiseLocked for callers that do not hold the order.
func (seq *sequence) raise(value uint64) bool {
	seq.device.order.Lock()
	defer seq.device.order.Unlock()
	return seq.raiseLocked(value)
}

// hostSignalLook is how often a goroutine that waits for a value checks whether the runtime has
// given up on it.
const hostSignalLook = 100 * time.Millisecond
