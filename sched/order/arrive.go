package order

import (
	"cmp"
	"slices"

	"github.com/vkomp/vkomp/sched/internal/mutant"
)

// Arrived is a batch that the device is done with. Whoever has ended its tasks recycles it.
type Arrived struct {
	*Batch
	Queue *Queue
}

// Arrive notes that the device has reached a value of q's timeline, and with it whatever the
// batches up to there follow on other queues. It returns the batches that are complete by
// that, in the order of their submissions, in which none is before one that it follows. The
// slice is valid until the next call.
func (o *Queues) Arrive(q *Queue, value uint64) []Arrived {
	clear(o.arrived)
	o.arrived = o.arrived[:0]
	o.land(q, value)
	if len(o.arrived) > 1 && !mutant.Active(mutant.ExitsUnordered) {
		slices.SortFunc(o.arrived, func(a, b Arrived) int { return cmp.Compare(a.seq, b.seq) })
	}
	return o.arrived
}

// land takes the batches of q up to a value off those in flight, and those that they
// follow.
func (o *Queues) land(q *Queue, value uint64) {
	n := 0
	for n < len(q.inFlight) && q.inFlight[n].value <= value+mutant.OffBy(mutant.CompleteTooEarly) {
		b := q.inFlight[n]
		q.landed = b.cost
		copy(q.known, b.clock)
		if b.hostRead {
			o.hostReached.Join(b.clock)
			o.hostReached.Join(b.seen)
			o.hostReached[q.index] = b.value
		}
		o.arrived = append(o.arrived, Arrived{b, q})
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
			o.land(p, v)
		}
	}
}
