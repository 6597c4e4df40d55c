package order

import (
	"slices"

	"github.com/vkomp/vkomp/timeline"
)

// TakeRefused returns the batches that were refused since the last call, and will never run. The
// caller fails their tasks with Batch.Err, and recycles them.
func (o *Queues) TakeRefused() []*Batch {
	refused := o.refused
	o.refused = nil
	return refused
}

// Lost returns the error with which the device was lost, or nil.
func (o *Queues) Lost() error { return o.lost }

// Lose records that the device is lost. From now on nothing is submitted, and Close fails with err.
func (o *Queues) Lose(err error) {
	o.lost = err
	o.settled.Broadcast()
}

// reject has TakeRefused return a batch.
func (o *Queues) reject(b *Batch, err error) {
	b.stage, b.err = refused, err
	o.refused = append(o.refused, b)
}

// refuse refuses a batch whose submission has failed and, with the same error, all that was placed
// behind it meanwhile: the closed and the pending batches of its queue, and those of other queues that
// wait for one of them. Their commands may depend on those that never run, and cannot be taken out
// of the batches.
//
// The values of these batches are skipped: points of a refused batch remain before those of all later
// batches of its queue, which wait for what it was to wait for.
func (o *Queues) refuse(b *Batch, err error) {
	from := o.refusing // the first value of each queue that is refused, 0 for none
	clear(from)
	begin := len(o.refused)
	kept := o.unsent[:0]
	for _, c := range o.unsent {
		if c != b && !c.behind(from) {
			kept = append(kept, c)
			continue
		}
		if q := c.queue; from[q.index] == 0 {
			from[q.index] = c.value
			o.withdraw(q, c)
		}
		o.reject(c, err)
	}
	clear(o.unsent[len(kept):])
	o.unsent = kept
	var few [8]*Batch
	replaced := few[:0]
	for _, q := range o.all {
		if p := q.pending; p.behind(from) {
			if from[q.index] == 0 {
				q.barrierState.save(&p.before)
			}
			value := p.value
			if !p.Empty() {
				value++
			}
			q.pending = q.newBatch(value, q.lastClock())
			replaced = append(replaced, p)
		}
	}
	for _, c := range o.refused[begin:] {
		o.passOn(c, from)
	}
	for _, p := range replaced {
		o.passOn(p, from)
		q := p.queue
		q.skips.Store(&skips{q.last, q.pending.value, slices.Clone(q.pending.waits)})
		if p.Empty() {
			p.Recycle()
		} else {
			o.reject(p, err)
		}
	}
}

// skips are values of a queue that were skipped, those between after and below: the commands of their batches never
// run. These were to follow the batches of the queue up to after, and those of other queues up to waits.
type skips struct {
	after, below uint64
	waits        Clock
}

// Over reports whether the device has done everything before a point of a queue and has nothing left to do there: it
// has reached the point, or the batch was refused and the device has reached what that was to follow. The next
// submission to the queue, with which it gets past values that were skipped, may be long in coming. The caller
// need not hold the lock.
func (o *Queues) Over(p timeline.Point) bool {
	reached, err := o.device.Completed(int(p.Queue))
	if err != nil || p.Value <= reached {
		return err == nil
	}
	s := o.all[p.Queue].skips.Load()
	if s == nil || reached < s.after || p.Value >= s.below {
		return false
	}
	for k, value := range s.waits {
		if value > 0 && !o.Over(timeline.Point{Queue: timeline.Queue(k), Value: value}) {
			return false
		}
	}
	return true
}

// lastClock returns the clock of the last batch of the queue that was closed and not refused.
func (q *Queue) lastClock() Clock {
	if n := len(q.inFlight); n > 0 {
		return q.inFlight[n-1].clock
	}
	return q.known
}

// passOn makes the pending batch of a refused batch's queue wait for what that was to wait for. The
// batches that are refused, from the given values on, never signal: what they were to wait for stands for
// them, and what comes before them on their queues.
func (o *Queues) passOn(b *Batch, from Clock) {
	for p, other := range o.all {
		if first := from[p]; first > 0 && b.waits[p] >= first {
			b.waits[p] = other.last
			b.waits.Join(other.pending.waits)
		}
	}
	for p, value := range b.waits {
		if next := b.queue.pending; p != int(b.queue.index) && value > next.clock[p] {
			value, known := o.all[p].knownAt(value)
			next.wait(int32(p), value, known)
		}
	}
}

// behind reports whether the batch follows, by its waits or on its queue, a batch whose value is not
// below that of its queue in from, 0 for none.
func (b *Batch) behind(from Clock) bool {
	if from[b.queue.index] > 0 {
		return true
	}
	for p, value := range from {
		if value > 0 && b.clock[p] >= value {
			return true
		}
	}
	return false
}

// RefuseAll refuses all batches that are not complete with an error. The device must be idle, and no
// submission under way.
func (o *Queues) RefuseAll(err error) {
	clear(o.unsent)
	o.unsent = o.unsent[:0]
	for _, q := range o.all {
		for _, b := range append(q.inFlight, q.pending) {
			o.reject(b, err)
		}
		q.inFlight, q.completedCost = nil, q.cost
		q.pending = q.newBatch(q.pending.value+1, q.pending.clock)
	}
}

// withdraw makes the queue as it was before a batch was closed that is not submitted.
func (o *Queues) withdraw(q *Queue, b *Batch) {
	i, _ := q.find(b.value)
	clear(q.inFlight[i:])
	q.inFlight = q.inFlight[:i]
	q.last = q.sent
	if i > 0 {
		q.last = q.inFlight[i-1].value
	}
	q.cost = b.cost - b.stall()
	q.barrierState.save(&b.before)
	copy(q.hostVisible, o.hostReached)
	for _, c := range q.inFlight {
		if c.hostRead {
			c.showHost(q.hostVisible)
		}
	}
}
