package order

import (
	"errors"
	"slices"

	"github.com/vkomp/vkomp/internal/mutant"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// Urgency says when a pending batch is closed.
type Urgency uint8

const (
	// Gather closes the batch if its queue is about to become idle or the batch is full, unless
	// it had better wait for more commands.
	Gather Urgency = iota
	// Refill closes the batch if its queue is about to become idle or the batch is full.
	Refill
	// AtOnce closes the batch.
	AtOnce
)

// Flush closes the pending batch of a queue if it is time for that. Whatever Gather has left is
// closed by a Refill, for which the caller has all queues when a batch is complete. The error is
// that of Close.
func (o *Queues) Flush(q *Queue, u Urgency) error {
	switch b := q.pending; {
	case b.Empty(),
		u < AtOnce && len(q.inFlight) >= MaxInFlight && !b.full(o.rates),
		u == Gather && o.gathers(q):
		return nil
	}
	return o.Close(q)
}

// Close closes the pending batch of a queue: it gets its place in the order of the submissions, and
// commands that are placed from now on go into another batch. The caller has to call SubmitClosed.
// The error is the loss of the device; then TakeRefused returns the batch.
func (o *Queues) Close(q *Queue) error {
	b := q.pending
	if o.closing != nil {
		o.closing(b)
	}
	if o.lost != nil {
		q.pending = q.newBatch(b.value+1, b.clock)
		copy(q.pending.waits, b.waits)
		o.reject(b, o.lost)
		return o.lost
	}
	o.setWaits(b)
	ordered := b.countBarriers()
	o.closings++
	b.stage, b.seq = closed, o.closings
	q.last = b.value
	q.addInFlight(b)
	o.unsent = append(o.unsent, b)
	for p, other := range o.all {
		b.seen[p] = other.completed
	}
	if ordered > 0 {
		q.ordered = SyncPoint{Value: b.value, Level: ordered, Queue: q.index}
		for p, v := range b.seen {
			q.seen[p] = v + mutant.OffBy(mutant.SeenTooMuch)
		}
	}
	if b.hostRead {
		b.showHost(q.hostVisible)
	}
	q.pending = q.newBatch(b.value+1, b.clock)
	q.retired = false
	return nil
}

// showHost adds to c, a clock of device writes that the host sees, those that it sees when the batch is complete, which
// ends with a barrier to the host.
func (b *Batch) showHost(c Clock) {
	c.Join(b.clock)
	c.Join(b.seen)
	c[b.queue.index] = b.value
}

// setWaits sets the waits of the batch's submission: those that no other wait implies. They are for the
// values that the queues have reached, if these are later: that costs nothing.
func (o *Queues) setWaits(b *Batch) {
	waits := b.points[:0]
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
	b.points = waits
}

// SubmitClosed submits the batches that are closed, one after the other in the order of their closing,
// and unlocks the lock meanwhile. If another goroutine is doing so, that is left to it; and that one leaves
// to yet another what is closed while it submits a few (see OnBacklog).
//
// It returns true when a submission has failed: the caller has to fail the tasks of the batches that
// TakeRefused returns, which are the refused one and those behind it (see refuse), before it unlocks
// the lock, and then to call SubmitClosed again. The batch with which the loss of the device was
// noticed may run, so it counts as in flight, and Lost returns the error.
func (o *Queues) SubmitClosed() (failed bool) {
	if o.submitting {
		return false
	}
	for sent := 0; len(o.unsent) > 0 && o.lost == nil; sent++ {
		if sent == submissionsAtOnce && o.startSubmitter != nil && !o.stopped {
			o.LeaveClosed()
			return false
		}
		o.submitting = true
		b := o.unsent[0]
		if n := len(o.unsent) - 1; n > 0 && mutant.Active(mutant.SubmittedOutOfOrder) {
			o.unsent[0], o.unsent[n] = o.unsent[n], b
			b = o.unsent[0]
		}
		o.mu.Unlock()
		err := o.submit(b)
		o.mu.Lock()
		o.submitting = false
		failed := o.settle(b, err)
		o.settled.Broadcast()
		if failed {
			return true
		}
	}
	return false
}

// submissionsAtOnce is the number of batches that a goroutine submits before it leaves the rest to another
// one.
const submissionsAtOnce = 4

// OnBacklog has start called, with the lock held, when closed batches are left by LeaveClosed, or by SubmitClosed when
// that has submitted a few and there are others: its caller has something else to do, and must not be kept from it
// as long as others close batches. start must start a goroutine that calls TakeBacklog, and then SubmitClosed. Without
// OnBacklog, and after Stop, SubmitClosed submits all.
func (o *Queues) OnBacklog(start func()) { o.startSubmitter = start }

// LeaveClosed is SubmitClosed for a goroutine that does not submit itself. It is not called without OnBacklog, or after
// Stop.
func (o *Queues) LeaveClosed() {
	if len(o.unsent) > 0 && !o.submitting && !o.backlogged && o.lost == nil {
		o.backlogged = true
		o.startSubmitter()
	}
}

// TakeBacklog says that the goroutine which OnBacklog's function has started is about to call SubmitClosed.
func (o *Queues) TakeBacklog() { o.backlogged = false }

// submit encodes a closed batch and submits it, without the lock.
func (o *Queues) submit(b *Batch) error {
	o.stream.Reset()
	b.encode(&o.stream)
	return o.device.Submit(int(b.queue.index), &o.stream, b.points, b.foreign, b.value)
}

// settle records the outcome of the submission of the first closed batch, and reports whether it has
// failed.
func (o *Queues) settle(b *Batch, err error) (failed bool) {
	q := b.queue
	lost := errors.Is(err, vk.ErrDeviceLost)
	if err != nil && !lost {
		o.refuse(b, err)
		return true
	}
	o.unsent = slices.Delete(o.unsent, 0, 1)
	b.stage, q.sent, b.err = submitted, b.value, err
	if lost {
		if o.lost == nil {
			o.Lose(err)
		}
		return true // the batch may run
	}
	q.stats.Submissions++
	q.stats.Barriers += uint64(b.barriers)
	q.stats.SemaphoreWaits += uint64(len(b.points))
	o.wakeWaiter(q)
	return false
}

// AwaitSubmission waits until no submission is under way and, unless the device is lost, all batches that
// are closed are submitted.
func (o *Queues) AwaitSubmission() {
	for o.submitting || o.lost == nil && len(o.unsent) > 0 {
		o.settled.Wait()
	}
}

// SubmitNow closes and submits the pending batch of a queue, and unlocks the lock meanwhile. The error
// says why the batch was not submitted: it was refused, or the device is lost. failed is called to do
// what the caller of SubmitClosed has to when that returns true.
func (o *Queues) SubmitNow(q *Queue, failed func()) error {
	b := q.pending
	if err := o.Close(q); err != nil {
		return err
	}
	b.watched = true
	for o.SubmitClosed() {
		failed()
	}
	for b.stage == closed && (o.lost == nil || o.submitting) {
		o.settled.Wait()
	}
	err := b.err
	if b.stage == closed || b.stage == submitted && err != nil {
		err = o.lost
	}
	if b.watched = false; b.spare {
		b.Recycle()
	}
	return err
}
