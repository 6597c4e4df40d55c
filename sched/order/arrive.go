package order

import (
	"cmp"
	"slices"

	"github.com/vkomp/vkomp/internal/mutant"
)

// Arrive records that the timeline of q has reached a value, which implies that everything is
// complete that the batches up to there follow on other queues. It returns the batches that are
// complete now, in the order of submission, so that none comes before one that it follows. The
// caller ends their tasks and then calls Recycle. The slice is valid until the next call.
func (o *Queues) Arrive(q *Queue, value uint64) []*Batch {
	o.arrived = o.arrived[:0]
	o.takeComplete(q, value)
	if len(o.arrived) > 1 && !mutant.Active(mutant.ExitsUnordered) {
		slices.SortFunc(o.arrived, func(a, b *Batch) int { return cmp.Compare(a.seq, b.seq) })
	}
	return o.arrived
}

// Return puts batches that Arrive has returned, the last ones, back in flight: the device is lost, and may not have run
// them.
func (o *Queues) Return(arrived []*Batch) {
	for _, b := range slices.Backward(arrived) {
		b.queue.inFlight = slices.Insert(b.queue.inFlight, 0, b)
	}
	clear(arrived)
}

// Recycle recycles the batches that Arrive has returned, and forgets them: the garbage collector may take those that
// their queues do not keep.
func (o *Queues) Recycle(arrived []*Batch) {
	for _, b := range arrived {
		b.Recycle()
	}
	clear(arrived)
}

// takeComplete removes the batches of q up to a value from those in flight, and the batches of
// other queues that they follow. A batch whose submission is under way stays, even if the device is
// through with it: the goroutine that submits it refers to it.
func (o *Queues) takeComplete(q *Queue, value uint64) {
	value = min(value, q.sent)
	n := 0
	for n < len(q.inFlight) && q.inFlight[n].stage == submitted && q.inFlight[n].value <= value+mutant.OffBy(mutant.CompleteTooEarly) {
		b := q.inFlight[n]
		q.completedCost = b.cost
		copy(q.known, b.clock)
		if b.hostRead {
			b.showHost(o.hostReached)
		}
		o.arrived = append(o.arrived, b)
		n++
	}
	q.completed = max(q.completed, value)
	if n == 0 {
		return
	}
	clear(q.inFlight[:n])
	q.inFlight = q.inFlight[n:]
	for i, v := range q.known {
		if p := o.all[i]; p.completed < v {
			o.takeComplete(p, v)
		}
	}
}
