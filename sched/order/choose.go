package order

// These costs, in nanoseconds, serve to compare queues, so only their proportions matter. They
// were measured with real drivers, to the microsecond.
const (
	// StallCost is the cost of a barrier, which waits until the commands before it are complete.
	StallCost = 4_000
	// CrossCost is the cost of following a command of another queue: a separate submission on
	// each of the two queues, and a semaphore between them.
	CrossCost = 16_000
	// startCost is the cost of submitting to an idle queue.
	startCost = 8_000
	// foreignCost is the assumed cost of foreign work for which a queue waits. Its duration is
	// unknown, so commands that do not depend on it should go to other queues.
	foreignCost = 1_000_000
	// Kernels are assumed to need a nanosecond for each invocation, and copies one for every
	// copyRate bytes.
	copyRate = 8
	// CopyApart is the number of bytes above which a copy may go to another queue.
	CopyApart = 256 << 10
)

// stall returns the estimated time, in nanoseconds, for which a batch keeps its queue
// from beginning what comes after it.
func (b *Batch) stall() uint64 { return b.work + StallCost*uint64(max(len(b.levels)-1, 0)) }

// KernelQueue returns the queue for a kernel of that many nanoseconds which follows s.
func (o *Queues) KernelQueue(s *WaitSet, work uint64) *Queue {
	if s.families != 0 {
		return o.among(o.computing, s, work)
	}
	if len(o.computing) == 1 {
		return o.computing[0]
	}
	if o.random != nil {
		return o.computing[o.random.IntN(len(o.computing))]
	}
	return o.earliest(o.computing, s, work)
}

// CopyQueue returns the queue for copies and fills of so many bytes that follow s.
func (o *Queues) CopyQueue(s *WaitSet, bytes uint64) *Queue {
	switch {
	case s.families != 0:
		return o.among(o.all, s, bytes/copyRate)
	case len(o.all) == 1:
		return o.all[0]
	case o.random != nil:
		return o.all[o.random.IntN(len(o.all))]
	case len(o.copying) > 0 && bytes >= CopyApart:
		return o.earliest(o.copying, s, bytes/copyRate)
	}
	return o.earliest(o.computing, s, bytes/copyRate)
}

// AnyQueue returns the queue on which that many nanoseconds of work that follows s is
// estimated to finish first.
func (o *Queues) AnyQueue(s *WaitSet, work uint64) *Queue { return o.earliest(o.all, s, work) }

// among returns the queue for work on memory that only some queue families may use: one of queues
// that is allowed, or else any of queues, which Begin then refuses.
func (o *Queues) among(queues []*Queue, s *WaitSet, work uint64) *Queue {
	var few [16]*Queue
	allowed := few[:0]
	for _, q := range queues {
		if o.allowed(q, s) {
			allowed = append(allowed, q)
		}
	}
	switch {
	case len(allowed) == 0:
		return queues[0]
	case o.random != nil:
		return allowed[o.random.IntN(len(allowed))]
	}
	return o.earliest(allowed, s, work)
}

// allowed reports whether the queue is of a family that s allows.
func (o *Queues) allowed(q *Queue, s *WaitSet) bool {
	return s.families == 0 || s.families&(1<<o.infos[q.index].Family) != 0
}

// earliest returns the queue on which the work is estimated to finish first, the first one in
// case of a tie.
func (o *Queues) earliest(queues []*Queue, s *WaitSet, work uint64) *Queue {
	best, first := queues[0], ^uint64(0)
	for _, q := range queues {
		if at := o.finishOn(q, s, work); at < first {
			best, first = q, at
		}
	}
	return best
}

// finishOn estimates after how many nanoseconds work that follows s is complete if q runs it.
func (o *Queues) finishOn(q *Queue, s *WaitSet, work uint64) uint64 {
	level, ready := int32(0), uint64(0)
	for i := range s.Len() {
		if p := s.At(i); o.waitsFor(q, p) {
			ready = max(ready, o.all[p.Queue].until(p)+CrossCost)
		} else {
			level = max(level, q.after(p))
		}
	}
	begin := q.backlog() + q.pending.work + StallCost*uint64(level)
	if len(q.inFlight) == 0 && q.pending.Empty() {
		begin += startCost
	}
	return max(begin, ready) + work
}

// until estimates after how many nanoseconds the queue has completed the commands up to p.
func (q *Queue) until(p SyncPoint) uint64 {
	switch {
	case p.Value <= q.completed:
		return 0
	case p.Value == q.pending.value:
		return q.backlog() + q.pending.work + StallCost*uint64(p.Level)
	}
	if i, _ := q.find(p.Value + 1); i > 0 {
		return q.inFlight[i-1].cost - q.completedCost
	}
	return 0
}
