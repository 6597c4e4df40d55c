package order

import (
	"errors"
	"runtime"
	"time"

	"github.com/vkomp/vkomp/vk"
)

// A goroutine waits for each queue that has batches in flight: the queue's waiter, or a driver,
// which is a goroutine that waits for a task of the queue anyway. Besides, goroutines wait for
// chunks of rings.

// Wait is a wait for a value of a queue's timeline. Await makes it, and Awaited ends it.
type Wait struct {
	// Queue is the queue, nil for no wait, and Value the submitted value.
	Queue *Queue
	Value uint64
	// Limit is for how long the wait may block, 0 for any time. TimedOut says that it has ended without the
	// value, because of that or of an error, which a wait without a limit finds out.
	Limit    time.Duration
	TimedOut bool
	// by is whose wait it is. spin is for how long it looks at the timeline before it blocks, and
	// took how long it took, 0 if the first look showed the value.
	by         waiting
	spin, took time.Duration
}

// waiting is whose a wait is. The waits of each kind are of a length of their own.
type waiting uint8

const (
	// byDriver: the construct waits for what it has just submitted.
	byDriver waiting = iota
	// byWaiter: the device has been at work for some time already.
	byWaiter
	// forChunk: a chunk of a ring is to be used again.
	forChunk
	waitings
)

// sends reports whether a batch of the queue is submitted and not known to be complete.
func (q *Queue) sends() bool { return len(q.inFlight) > 0 && q.inFlight[0].stage == submitted }

// wakeWaiter makes the queue's waiter wait for the submitted batches, unless a driver does.
func (o *Queues) wakeWaiter(q *Queue) {
	if q.drivers > 0 || !q.sends() {
		return
	}
	if !q.waiting {
		o.StartWaiter(q)
	}
	q.wakeUp()
}

// wakeUp makes the queue's waiter, if there is one, check whether it has something to do.
func (q *Queue) wakeUp() {
	q.wakeUps++
	q.wake.Signal()
}

// StartWaiter starts the queue's waiter.
func (o *Queues) StartWaiter(q *Queue) {
	q.waiting = true
	o.startWaiter(q)
}

// NextWait is called by the queue's waiter. It blocks until the queue has submitted batches for
// which no driver waits, and returns the wait for the oldest, or false if the waiter is to end.
func (o *Queues) NextWait(q *Queue) (w Wait, ok bool) {
	for !q.sends() || q.drivers > 0 || o.lost != nil {
		if idle := len(q.inFlight) == 0; o.stopped && (idle || q.drivers > 0 || o.lost != nil) || q.retired && idle {
			q.waiting = false
			return Wait{}, false
		}
		q.wake.Wait()
	}
	return q.wait(q.inFlight[0].value, byWaiter), true
}

// WakeUps returns the number of times that the queue's waiter was to check whether it has something to do.
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
	if q.retired {
		q.wakeUp() // the waiter is to end, and may have waited for the driver alone
	}
	o.wakeWaiter(q)
}

// NextDrive returns the next wait of a goroutine that waits for a task whose last point is p:
// without a queue if the batch at p is pending or complete, or the device is lost. It blocks while
// another goroutine submits the batch that is to be waited for.
func (o *Queues) NextDrive(p SyncPoint) Wait {
	q := o.all[p.Queue]
	for o.lost == nil && len(q.inFlight) > 0 && q.inFlight[0].value <= p.Value && !q.sends() {
		o.settled.Wait()
	}
	if o.lost != nil || len(q.inFlight) == 0 || q.inFlight[0].value > p.Value {
		return Wait{}
	}
	return q.wait(q.inFlight[0].value, byDriver)
}

// WaitForChunk returns a wait for the batch of a sync point, which has been submitted.
func (o *Queues) WaitForChunk(p SyncPoint) Wait { return o.all[p.Queue].wait(p.Value, forChunk) }

// wait returns a wait for a submitted value.
func (q *Queue) wait(value uint64, by waiting) Wait {
	return Wait{Queue: q, Value: value, by: by, spin: q.waits[by].next()}
}

// Stop makes all waiters end when nothing is in flight.
func (o *Queues) Stop() {
	o.stopped = true
	o.WakeAll()
}

// WakeAll makes all waiters check whether they have something to do.
func (o *Queues) WakeAll() {
	for _, q := range o.all {
		q.wakeUp()
	}
}

// Retire makes the waiters of idle queues end until the next submission.
func (o *Queues) Retire() {
	for _, q := range o.all {
		q.retired = true
		q.wakeUp()
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

// looksAtOnce is the number of looks at a timeline, some 0.1 µs each, in a row.
const looksAtOnce = 4

// Await waits until the device has reached the value. While it spins, other threads and goroutines come to run
// between two looks: on a machine with few processors, a software driver needs theirs to make progress. It is
// called without the lock. The error is the loss of the device. A wait with a limit can end without the value and
// without an error: see TimedOut.
func (o *Queues) Await(w *Wait) error {
	if over, err := o.look(w); over {
		return err
	}
	begun := o.now()
	var refused error
	defer func() {
		// A wait that the driver has refused does not show how long waits take.
		if refused == nil {
			w.took = max(o.now()-begun, 1)
		}
	}()
	for o.now()-begun < w.spin {
		vk.Yield()
		runtime.Gosched()
		for range looksAtOnce {
			if over, err := o.look(w); over {
				return err
			}
		}
	}
	queue := int(w.Queue.index)
	if w.Limit <= 0 {
		_, err := o.device.Wait(queue, w.Value, -1)
		return err
	}
	reached, err := o.device.Wait(queue, w.Value, w.Limit)
	if errors.Is(err, vk.ErrDeviceLost) {
		return err
	}
	w.TimedOut, refused = !reached, err
	return nil
}

// look reports whether a wait is over, because the timeline has reached the value or, which is the error, the device is
// lost. If the timeline cannot be read otherwise, the wait does not go on to look.
func (o *Queues) look(w *Wait) (over bool, err error) {
	at, err := o.device.Completed(int(w.Queue.index))
	switch {
	case err == nil:
		return at >= w.Value, nil
	case errors.Is(err, vk.ErrDeviceLost):
		return true, err
	}
	w.spin = 0
	return false, nil
}

// Awaited records how long a wait took that Await has made.
func (o *Queues) Awaited(w *Wait) {
	if w.took > 0 {
		w.Queue.waits[w.by].ended(w.spin, w.took)
	}
}

// epoch is where the clock of waits begins.
var epoch = time.Now()

// now reads the clock of waits.
func (o *Queues) now() time.Duration {
	if o.clock != nil {
		return o.clock()
	}
	return time.Since(epoch)
}
