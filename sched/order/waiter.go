package order

import "runtime"

// A goroutine waits for each queue that has batches in flight: the queue's waiter, or a driver,
// which is a goroutine that waits for a task of the queue anyway.

// spins is the number of times that Await reads the timeline before it blocks, because a thread
// switch costs more than a small kernel.
const spins = 64

// wakeWaiter makes the queue's waiter wait for the batches in flight, unless a driver does.
func (o *Queues) wakeWaiter(q *Queue) {
	if q.drivers > 0 || len(q.inFlight) == 0 {
		return
	}
	if !q.waiting {
		o.StartWaiter(q)
	}
	q.wakeUps++
	q.wake.Signal()
}

// StartWaiter starts the queue's waiter.
func (o *Queues) StartWaiter(q *Queue) {
	q.waiting = true
	o.startWaiter(q)
}

// NextWait is called by the queue's waiter. It blocks until the queue has batches in flight for
// which no driver waits, and returns the value to wait for, or false if the waiter is to end.
func (o *Queues) NextWait(q *Queue) (value uint64, ok bool) {
	for len(q.inFlight) == 0 || q.drivers > 0 || o.lost != nil {
		if o.stopped || q.retired && len(q.inFlight) == 0 {
			q.waiting = false
			return 0, false
		}
		q.wake.Wait()
	}
	return q.inFlight[0].value, true
}

// WakeUps returns the number of times that the queue's waiter was woken.
func (q *Queue) WakeUps() uint64 { return q.wakeUps }

// Waiting reports whether the queue has a waiter.
func (q *Queue) Waiting() bool { return q.waiting }

// Drivers returns the number of the queue's drivers.
func (q *Queue) Drivers() int { return q.drivers }

// AddDriver announces a goroutine that will wait for the queue itself.
func (q *Queue) AddDriver() { q.drivers++ }

// StopDriving ends what AddDriver has announced.
func (o *Queues) StopDriving(q *Queue) {
	q.drivers--
	o.wakeWaiter(q)
}

// NextDrive returns the queue and the value for which a goroutine should wait that waits for a
// task whose last point is p. It reports false if the batch at p is pending or complete, or the
// device is lost.
func (o *Queues) NextDrive(p SyncPoint) (q *Queue, value uint64, ok bool) {
	q = o.all[p.Queue]
	if o.lost != nil || len(q.inFlight) == 0 || q.inFlight[0].value > p.Value {
		return nil, 0, false
	}
	return q, q.inFlight[0].value, true
}

// Stop makes all waiters end when nothing is in flight.
func (o *Queues) Stop() {
	o.stopped = true
	o.WakeAll()
}

// WakeAll makes all waiters check whether they have something to do.
func (o *Queues) WakeAll() {
	for _, q := range o.all {
		q.wake.Signal()
	}
}

// Retire makes the waiters of idle queues end until the next submission. Retiring reports
// whether one is left.
func (o *Queues) Retire() {
	for _, q := range o.all {
		q.retired = true
		q.wake.Signal()
	}
}

// Retiring reports whether a waiter that is to end after Retire is still there.
func (o *Queues) Retiring() bool {
	for _, q := range o.all {
		if q.retired && q.waiting {
			return true
		}
	}
	return false
}

// AwaitValue waits until the device has reached a submitted value of a queue's timeline. It is
// called without the lock. The error is the loss of the device.
func (o *Queues) AwaitValue(queue int32, value uint64) error {
	_, err := o.device.Wait(int(queue), value, -1)
	return err
}

// Await is like AwaitValue, but first reads the timeline a few times before it blocks.
func (o *Queues) Await(q *Queue, value uint64) error {
	looks := spins
	if runtime.GOMAXPROCS(0) == 1 {
		// A software driver needs the only processor to make progress.
		looks = 1
	}
	for range looks {
		reached, err := o.device.Completed(int(q.index))
		if err == nil && reached >= value {
			return nil
		}
		if err != nil {
			break
		}
	}
	return o.AwaitValue(q.index, value)
}
