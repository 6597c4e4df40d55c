package sched

import (
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/internal/mutant"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/timeline"
)

// freeAfter frees storage whose last use is up to a sync set.
func freeAfter(a *memory.Allocator, st memory.Storage, last *order.SyncSet) {
	var few [8]timeline.Point
	points := few[:0]
	for i := range last.Len() {
		m := last.At(i)
		points = append(points, timeline.Point{Queue: timeline.Queue(m.Queue), Value: m.Value})
	}
	a.Free(st, timeline.FrontierOf(points))
}

// addFrontier adds sync points after all commands so far that f covers.
func (s *Scheduler) addFrontier(r *order.SyncSet, f timeline.Frontier) {
	for i := range f.Len() {
		p := f.At(i)
		q := s.order.queues[p.Queue]
		m := order.SyncPoint{Value: p.Value, Level: order.MaxLevel, Queue: q.index}
		if p.Value == q.pending.value {
			m.Level = int32(max(len(q.pending.levels)-1, 0))
		}
		r.Add(m)
	}
}

// knownAt returns the value to wait for in order to follow v, one that is submitted,
// and what whoever waits for it follows on other queues besides.
func (q *queue) knownAt(v uint64) (value uint64, known order.Clock) {
	if v <= q.completed {
		// What is reached can be waited for at no cost, and covers the most.
		return q.completed, q.known
	}
	// The values of batches that could not be submitted are skipped: the next one
	// follows what they did.
	i, _ := q.find(v)
	if i == len(q.inFlight) {
		return q.completed, q.known
	}
	if mutant.Active(mutant.FrontierTooNew) {
		return q.inFlight[i].value, q.pending.clock
	}
	return q.inFlight[i].value, q.inFlight[i].clock
}

// mayFollow is follows for the commands of a task that is not complete: also true where
// the device is done with them, and anything else is not. Who came after them then had
// nothing to wait for, and what follows that does not show it.
func (s *Scheduler) mayFollow(r *order.SyncSet, m order.SyncPoint) bool {
	return r.Len() > 0 && m.Value <= s.order.queues[m.Queue].completed || s.follows(r, m)
}

// follows reports whether what is after r is known to be after m too: it can be
// without the program having asked for it.
func (s *Scheduler) follows(r *order.SyncSet, m order.SyncPoint) bool {
	for i := range r.Len() {
		a := r.At(i)
		if a.Queue == m.Queue && !a.Before(m) {
			return true
		}
		q := s.order.queues[a.Queue]
		known := q.pending.clock
		if a.Value <= q.last {
			_, known = q.knownAt(a.Value)
		}
		if known.Covers(m) {
			return true
		}
	}
	return false
}
