package foreign

import "time"

// point is a value of the semaphore of a sequence, or a run of values that follow one another.
type point struct {
	sequence    *sequence
	first, last uint64
}

// signalFromHostLocked signals the points from the host when the values before them are reached,
// in the background if they are not yet; order is held. A value behind one that still waits for
// its turn is signalled together with it, so that a long run of values that nobody else signals
// takes one goroutine and one call.
func (d *Device) signalFromHostLocked(points []point) {
	if d.lost() != nil {
		return
	}
	if len(points) == 1 {
		if run := points[0].sequence.hostRun; run != nil && run.last+1 == points[0].first {
			run.last = points[0].last
			return
		}
	}
	now := true
	for _, p := range points {
		v, err := d.Timelines.SemaphoreValue(p.sequence.semaphore)
		now = now && err == nil && v >= p.first-1
	}
	for k := 0; now && k < len(points); k++ {
		now = points[k].sequence.raiseLocked(points[k].last)
	}
	if now {
		return
	}
	if seq := points[0].sequence; len(points) == 1 && seq.hostRun == nil {
		seq.hostRun = &points[0]
	}
	d.background.Go(func() {
		// The last value of a run may change at any time, and is looked at with order held.
		for k := range points {
			if !points[k].sequence.reaches(points[k].first - 1) {
				return
			}
		}
		for k := range points {
			for last, done := points[k].raise(); !done; last, done = points[k].raise() {
				// The call has failed. Somebody else may signal the value before the next try.
				_, _ = d.Timelines.WaitSemaphore(points[k].sequence.semaphore, last, hostSignalLook)
			}
		}
	})
}

// raise signals the last value of the point, after which no other is added to it. It returns that
// value, and false if the call has failed and should be tried again.
func (p *point) raise() (last uint64, done bool) {
	seq := p.sequence
	seq.device.order.Lock()
	defer seq.device.order.Unlock()
	done = seq.raiseLocked(p.last)
	if done && seq.hostRun == p {
		seq.hostRun = nil
	}
	return p.last, done
}

// reaches waits until a value is reached. It returns false if the device is lost.
func (seq *sequence) reaches(value uint64) bool {
	for {
		reached, err := seq.device.Timelines.WaitSemaphore(seq.semaphore, value, hostSignalLook)
		if reached || ended(err) {
			return reached
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

// hostSignalLook is how often a goroutine that waits for a value checks whether the device is lost
// meanwhile, or whether foreign work takes too long.
const hostSignalLook = 100 * time.Millisecond
