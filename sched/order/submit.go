package order

import (
	"errors"

	"github.com/vkomp/vkomp/sched/internal/mutant"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// Refused is a batch that is not to be run. Whoever takes it fails its tasks and recycles it.
type Refused struct {
	*Batch
	Queue *Queue
	Err   error
}

// TakeRefused returns the batches that were refused since it was last called.
func (o *Queues) TakeRefused() []Refused {
	refused := o.refused
	o.refused = nil
	return refused
}

// Lost returns the error that told of the loss of the device, nil while it is not lost.
func (o *Queues) Lost() error { return o.lost }

// Lose says that the device is lost: from now on all submissions fail with the error.
func (o *Queues) Lose(err error) { o.lost = err }

// Flush submits the pending batch if the queue is about to run dry, the batch is at its cap,
// or force is set. An error is that of Submit.
func (o *Queues) Flush(q *Queue, force bool) error {
	b := q.pending
	if b.Empty() {
		return nil
	}
	if !force && len(q.inFlight) >= MaxInFlight && b.commands < MaxCommands && b.work < maxWork {
		return nil
	}
	return o.Submit(q)
}

// Submit submits the pending batch. After an error the batch is among TakeRefused's; but when
// the error is the first that tells of the loss of the device, the batch may run and counts
// as in flight, and Lost returns the error.
func (o *Queues) Submit(q *Queue) error {
	b := q.pending
	q.stream.Reset()
	barriers, ordered := b.encode(&q.stream, q.computes)
	waits := o.waitsOf(b)
	err := o.lost
	if err == nil {
		err = o.device.Submit(int(q.index), &q.stream, waits, b.foreign, b.value)
		if errors.Is(err, vk.ErrDeviceLost) {
			// It may run.
			o.sent(q, b)
			o.lost = err
			return err
		}
	}
	if err != nil {
		// The value is skipped: points of the refused batch stay before those of
		// every later one, which waits for what it was to wait for.
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

// sent makes the pending batch one in flight.
func (o *Queues) sent(q *Queue, b *Batch) {
	q.last = b.value
	q.pending = q.newBatch(b.value+1, b.clock)
	o.submissions++
	b.seq = o.submissions
	q.launch(b)
}

// waitsOf returns the waits of a batch that no other one of them implies. What its
// queues have reached since it was to wait for them it gets at no cost.
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
				// Those before i that were dropped are implied themselves.
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

// RefuseAll makes refused batches of all that are pending or in flight, with an error. The
// device is at rest.
func (o *Queues) RefuseAll(err error) {
	for _, q := range o.all {
		for _, b := range append(q.inFlight, q.pending) {
			o.refused = append(o.refused, Refused{b, q, err})
		}
		q.inFlight, q.landed = nil, q.cost
		q.pending = q.newBatch(q.pending.value+1, q.pending.clock)
	}
}
