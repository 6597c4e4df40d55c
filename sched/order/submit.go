package order

import (
	"errors"

	"github.com/vkomp/vkomp/internal/mutant"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// Refused is a batch that will never run. The caller of TakeRefused fails its tasks and recycles
// it.
type Refused struct {
	*Batch
	// Queue is the queue to which the batch belonged.
	Queue *Queue
	// Err says why the batch was refused.
	Err error
}

// TakeRefused returns the batches that were refused since the last call.
func (o *Queues) TakeRefused() []Refused {
	refused := o.refused
	o.refused = nil
	return refused
}

// Lost returns the error with which the device was lost, or nil.
func (o *Queues) Lost() error { return o.lost }

// Lose records that the device is lost. From now on all submissions fail with err.
func (o *Queues) Lose(err error) { o.lost = err }

// Urgency says when a pending batch is submitted.
type Urgency uint8

const (
	// Gather submits the batch if its queue is about to become idle or the batch is full, unless
	// it had better wait for more commands.
	Gather Urgency = iota
	// Refill submits the batch if its queue is about to become idle or the batch is full.
	Refill
	// AtOnce submits the batch.
	AtOnce
)

// Flush submits the pending batch of a queue if it is time for that. Whatever Gather has left is
// submitted by a Refill, for which the caller has all queues when a batch is complete. The error
// is that of Submit.
func (o *Queues) Flush(q *Queue, u Urgency) error {
	switch b := q.pending; {
	case b.Empty(),
		u < AtOnce && len(q.inFlight) >= MaxInFlight && !b.full(o.rates),
		u == Gather && o.gathers(q):
		return nil
	}
	return o.Submit(q)
}

// Submit submits the pending batch. After an error TakeRefused returns the batch, except after
// the error by which the loss of the device was noticed: that batch may run, so it counts as in
// flight, and Lost returns the error.
func (o *Queues) Submit(q *Queue) error {
	b := q.pending
	if o.closing != nil {
		o.closing(q, b)
	}
	q.stream.Reset()
	barriers, ordered := b.encode(&q.stream, q.computes)
	waits := o.waitsOf(b)
	err := o.lost
	if err == nil {
		err = o.device.Submit(int(q.index), &q.stream, waits, b.foreign, b.value)
		if errors.Is(err, vk.ErrDeviceLost) {
			// The batch may run.
			o.sent(q, b)
			o.lost = err
			return err
		}
	}
	if err != nil {
		// The value is skipped: points of the refused batch remain before those of all later
		// batches, which wait for what it was to wait for.
		q.pending = q.newBatch(b.value+1, b.clock)
		copy(q.pending.waits, b.waits)
		o.refused = append(o.refused, Refused{b, q, err})
		return err
	}
	o.sent(q, b)
	for p, other := range o.all {
		b.seen[p] = other.completed
	}
	q.stats.Submissions++
	q.stats.Barriers += uint64(barriers)
	q.stats.SemaphoreWaits += uint64(len(waits))
	if ordered > 0 {
		q.ordered = SyncPoint{Value: b.value, Level: ordered, Queue: q.index}
		for p, v := range b.seen {
			q.seen[p] = v + mutant.OffBy(mutant.SeenTooMuch)
		}
	}
	if b.hostRead {
		q.hostVisible.Join(b.clock)
		q.hostVisible.Join(b.seen)
		q.hostVisible[q.index] = b.value
	}
	q.retired = false
	o.wakeWaiter(q)
	return nil
}

// sent moves the pending batch to those in flight.
func (o *Queues) sent(q *Queue, b *Batch) {
	q.last = b.value
	q.pending = q.newBatch(b.value+1, b.clock)
	o.submissions++
	b.seq = o.submissions
	q.addInFlight(b)
}

// waitsOf returns those waits of a batch that no other wait implies. They are for the values that
// the queues have reached, if these are later: that costs nothing.
func (o *Queues) waitsOf(b *Batch) []timeline.Point {
	waits := o.waits[:0]
	for p, value := range b.waits {
		if value > 0 && !mutant.Active(mutant.WaitDropped) {
			value, known := o.all[p].knownAt(value)
			b.wait(int32(p), value, known)
			waits = append(waits, timeline.Point{Queue: timeline.Queue(p), Value: value - mutant.OffBy(mutant.WaitTooLow) + mutant.OffBy(mutant.WaitTooHigh)})
		}
	}
	if len(waits) > 1 {
		kept := waits[:0]
		for i, p := range waits {
			implied := false
			for k, other := range waits {
				_, known := o.all[other.Queue].knownAt(other.Value)
				// Waits before the i-th that were dropped are implied themselves.
				implied = implied || k != i && known[p.Queue]+mutant.OffBy(mutant.WaitImpliedTooEarly) >= p.Value
			}
			if !implied {
				kept = append(kept, p)
			}
		}
		waits = kept
	}
	o.waits = waits[:0]
	return waits
}

// RefuseAll refuses all batches that are pending or in flight with an error. The device must be
// idle.
func (o *Queues) RefuseAll(err error) {
	for _, q := range o.all {
		for _, b := range append(q.inFlight, q.pending) {
			o.refused = append(o.refused, Refused{b, q, err})
		}
		q.inFlight, q.completedCost = nil, q.cost
		q.pending = q.newBatch(q.pending.value+1, q.pending.clock)
	}
}
