package sched

import "github.com/vkomp/vkomp/sched/order"

// Costs, in nanoseconds, by which queues are compared. Only their proportions
// matter; they are those of drivers measured, in whole microseconds.
const (
	// stallCost is that of a barrier, for which what is before it drains.
	stallCost = 4_000
	// crossCost is that of following a command of another queue: a submission of its
	// own on either side, and the semaphore's way from one to the other.
	crossCost = 16_000
	// startCost is that of a queue which has nothing to do.
	startCost = 8_000
	// foreignCost is that of foreign work that a queue waits for. Nobody knows how long it
	// takes; what does not follow it had better be elsewhere.
	foreignCost = 1_000_000
	// Kernels are taken to need a nanosecond for each invocation, copies one for each
	// copyRate bytes.
	copyRate = 8
	// copyApart is from how many bytes a copy is worth a crossing.
	copyApart = 256 << 10
)

// stall returns the estimated time, in nanoseconds, for which a batch keeps its queue
// from beginning what comes after it.
func (b *batch) stall() uint64 { return b.work + stallCost*uint64(max(len(b.levels)-1, 0)) }

// kernelQueue returns the queue for a kernel of that many nanoseconds which follows
// what s.order.gather has.
func (s *Scheduler) kernelQueue(work uint64) *queue {
	if s.order.gather.Families != 0 {
		return s.among(s.order.computing, work)
	}
	if len(s.order.computing) == 1 {
		return s.order.computing[0]
	}
	if s.order.placement == PlaceRandom {
		return s.order.computing[s.order.random.IntN(len(s.order.computing))]
	}
	return s.earliest(s.order.computing, work)
}

// copyQueue returns the queue for copies and fills of so many bytes that follow what
// s.order.gather has.
func (s *Scheduler) copyQueue(bytes uint64) *queue {
	switch {
	case s.order.gather.Families != 0:
		return s.among(s.order.queues, bytes/copyRate)
	case len(s.order.queues) == 1:
		return s.order.queues[0]
	case s.order.placement == PlaceRandom:
		return s.order.queues[s.order.random.IntN(len(s.order.queues))]
	case len(s.order.copying) > 0 && bytes >= copyApart:
		return s.earliest(s.order.copying, bytes/copyRate)
	}
	return s.earliest(s.order.computing, bytes/copyRate)
}

// among returns the queue for work on memory that only some families may use: one of
// these, or any if there is none, which begin refuses.
func (s *Scheduler) among(queues []*queue, work uint64) *queue {
	var few [16]*queue
	allowed := few[:0]
	for _, q := range queues {
		if s.allowed(q) {
			allowed = append(allowed, q)
		}
	}
	switch {
	case len(allowed) == 0:
		return queues[0]
	case s.order.placement == PlaceRandom:
		return allowed[s.order.random.IntN(len(allowed))]
	}
	return s.earliest(allowed, work)
}

// allowed reports whether the queue is of a family that may use what s.order.gather is for.
func (s *Scheduler) allowed(q *queue) bool {
	return s.order.gather.Families == 0 || s.order.gather.Families&(1<<s.order.infos[q.index].Family) != 0
}

// earliest returns the queue on which the work is estimated to finish first, the
// first of those that are as good.
func (s *Scheduler) earliest(queues []*queue, work uint64) *queue {
	best, first := queues[0], ^uint64(0)
	for _, q := range queues {
		if at := s.finishOn(q, work); at < first {
			best, first = q, at
		}
	}
	return best
}

// finishOn estimates in how many nanoseconds work that follows what s.order.gather has is
// done if q does it.
func (s *Scheduler) finishOn(q *queue, work uint64) uint64 {
	level, ready := int32(0), uint64(0)
	for i := range s.order.gather.Len() {
		if m := s.order.gather.At(i); s.waitsFor(q, m) {
			ready = max(ready, s.order.queues[m.Queue].until(m)+crossCost)
		} else {
			level = max(level, q.after(m))
		}
	}
	begin := q.backlog() + q.pending.work + stallCost*uint64(level)
	if len(q.inFlight) == 0 && q.pending.empty() {
		begin += startCost
	}
	return max(begin, ready) + work
}

// until estimates in how many nanoseconds the queue has done what is up to m.
func (q *queue) until(m order.SyncPoint) uint64 {
	switch {
	case m.Value <= q.completed:
		return 0
	case m.Value == q.pending.value:
		return q.backlog() + q.pending.work + stallCost*uint64(m.Level)
	}
	if i, _ := q.find(m.Value + 1); i > 0 {
		return q.inFlight[i-1].cost - q.landed
	}
	return 0
}
