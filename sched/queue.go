package sched

import (
	"cmp"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/vkomp/vkomp/sched/internal/mutant"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

const (
	// maxInFlight is the number of submitted batches beyond which work collects:
	// one running and one behind it keep the queue from running dry.
	maxInFlight = 2
	// A pending batch of this many commands, or of this much estimated work, is
	// submitted however many are in flight: it bounds memory, and keeps one
	// submission below the watchdog of consumer drivers.
	maxCommands = 4096
	maxWork     = 1 << 30
	// maxFree is how many batches a queue keeps for reuse.
	maxFree = 64
	// spins is how often a synchronous construct looks at the timeline before
	// it blocks: a thread hand-over costs more than a small kernel.
	spins = 64
)

// queue is one device queue. All fields are guarded by Scheduler.mu.
type queue struct {
	index    int32
	computes bool
	// pending is collecting commands; its value is the next to be submitted.
	pending *batch
	// inFlight are the submitted batches, oldest first, all past completed. They lie in
	// room, in which those before them were.
	inFlight, room []*batch
	free           []*batch
	// completed is the last value known to be reached, known the clock of the last
	// batch up to there.
	completed uint64
	known     order.Clock
	// last is the value of the last batch that was submitted.
	last uint64
	// ordered: whatever is before this point is ordered before every command of
	// later batches, by a barrier already submitted.
	ordered order.SyncPoint
	// seen is what the host had seen the end of when it submitted the last barrier of
	// the queue: whatever comes later on the queue sees it too.
	seen order.Clock
	// hostVisible is what the host sees of what the device wrote once the batches in
	// flight are complete.
	hostVisible order.Clock
	// drivers counts goroutines that wait for the queue themselves, or are about to;
	// the waiter rests meanwhile. wake is signalled when it may have something to do:
	// batches are in flight and there is no driver. wakeUps counts that.
	drivers int
	wake    *sync.Cond
	wakeUps uint64
	// waiting: there is a waiter. retired: it is to end, having nothing to do, until the
	// next submission.
	waiting, retired bool
	stream           vk.Stream
	stats            QueueStats
	// cost is the estimated cost of all that was ever submitted, in nanoseconds, landed
	// that of what is complete.
	cost, landed uint64
}

// backlog is the estimated cost of what is in flight, in nanoseconds.
func (q *queue) backlog() uint64 { return q.cost - q.landed }

// after returns the lowest level of the pending batch at which a command
// follows m, which is on the queue, or complete: then it has to see it.
func (q *queue) after(m order.SyncPoint) int32 {
	switch {
	case m.Value == 0, q.pending.clock.Covers(m), q.seen.Covers(m):
		return 0
	case m.Queue != q.index:
		return 1
	case m.Value == q.pending.value:
		return m.Level + 1
	case m.Before(q.ordered):
		return 0
	}
	return 1
}

// join has what q's pending batch gets from now on follow the points of r, and
// returns the lowest level at which it does. Batches of other queues that it has to
// wait for are submitted: what is waited for is on its way. An error is that of such
// a submission.
func (s *Scheduler) join(q *queue, r *order.SyncSet, w *tasks.Work) (level int32, err error) {
	r = s.withoutSkipped(r)
	late := false
	for i := range r.Len() {
		m := r.At(i)
		if !s.waitsFor(q, m) {
			continue
		}
		p := s.order.queues[m.Queue]
		if m.Value > p.last {
			err = cmp.Or(err, s.submit(p, w))
		}
		late = true
	}
	if late && err == nil && !q.pending.empty() {
		// What is there already would wait as well.
		err = s.submit(q, w)
	}
	if err != nil {
		return 0, err
	}
	for i := range r.Len() {
		m := r.At(i)
		if s.waitsFor(q, m) {
			p := s.order.queues[m.Queue]
			value, known := p.knownAt(m.Value)
			q.pending.wait(m.Queue, value, known)
			if b := p.flying(value); b != nil {
				q.seen.Join(b.seen)
			}
		}
	}
	for i := range r.Len() {
		level = max(level, q.after(r.At(i)))
	}
	if mutant.Active(mutant.LevelTooLow) {
		level = max(level-1, 0)
	}
	return level, nil
}

// skipped reports whether m is of a batch that could not be submitted, and its queue has
// submitted no other since.
func (s *Scheduler) skipped(m order.SyncPoint) bool {
	q := s.order.queues[m.Queue]
	return q.last < m.Value && m.Value < q.pending.value
}

// withoutSkipped returns r with what skipped points were to follow in their place: their
// commands are never to run, so there is nothing else to wait for.
func (s *Scheduler) withoutSkipped(r *order.SyncSet) *order.SyncSet {
	some := false
	for i := range r.Len() {
		some = some || s.skipped(r.At(i))
	}
	if !some {
		return r
	}
	s.order.unskipped.Set(order.SyncPoint{})
	for i := range r.Len() {
		m := r.At(i)
		if !s.skipped(m) {
			s.order.unskipped.Add(m)
			continue
		}
		q := s.order.queues[m.Queue]
		s.order.unskipped.Add(order.SyncPoint{Value: q.last, Level: order.MaxLevel, Queue: m.Queue})
		for p, value := range q.pending.waits {
			s.order.unskipped.Add(order.SyncPoint{Value: value, Level: order.MaxLevel, Queue: int32(p)})
		}
	}
	return &s.order.unskipped
}

// followed is what commands follow that are placed in the pending batch behind all
// complete writes to what they use.
func (s *Scheduler) followed(q *queue) order.Clock {
	copy(s.order.ended, q.pending.clock)
	for p, o := range s.order.queues {
		s.order.ended[p] = max(s.order.ended[p], o.completed)
	}
	return s.order.ended
}

// waitsFor reports whether q has to wait for another queue in order to follow m.
// What the host has seen the end of a barrier makes visible.
func (s *Scheduler) waitsFor(q *queue, m order.SyncPoint) bool {
	return m.Queue != q.index && m.Value > s.order.queues[m.Queue].completed && !q.pending.clock.Covers(m)
}

// gatherStore adds what commands on bytes of a store come after whatever the program
// says: transfers in flight, and writes that the program ordered before them by other
// means than an incomplete predecessor. Those that are complete need making visible;
// those in flight were left unordered by the program and are its own affair (OpenMP
// orders by depend clauses, not by accesses).
func (s *Scheduler) gatherStore(m *store, bytes order.Span) {
	s.order.gather.Limit(m.families)
	for g := range m.past.Within(bytes) {
		if !mutant.Active(mutant.WritesForgotten) {
			s.gatherWrote(g)
		}
		if !mutant.Active(mutant.TransfersForgotten) {
			s.gatherIf(&g.Moved, false)
		}
	}
}

// gatherWrites is gatherStore without the transfers.
func (s *Scheduler) gatherWrites(m *store, bytes order.Span) {
	s.order.gather.Limit(m.families)
	for g := range m.past.Within(bytes) {
		s.gatherWrote(g)
	}
}

// gatherWrote adds the complete writes of a segment. A write in flight, which the
// commands need not follow, does not stand for those that it comes after.
func (s *Scheduler) gatherWrote(g *order.Segment) {
	if s.gatherIf(&g.Wrote, true) || mutant.Active(mutant.EarlierWritesForgotten) {
		return
	}
	for i := range g.Under.Len() {
		m := g.Under.At(i)
		if done := s.order.queues[m.Queue].completed; m.Value > done {
			// There may be others before it.
			m = order.SyncPoint{Value: done, Level: order.MaxLevel, Queue: m.Queue}
		}
		s.order.gather.Add(m)
	}
}

// gatherIf adds the points that are complete, or those that are not. It reports whether
// these are all.
func (s *Scheduler) gatherIf(r *order.SyncSet, complete bool) (all bool) {
	all = true
	for i := range r.Len() {
		if at := r.At(i); (at.Value <= s.order.queues[at.Queue].completed) == complete {
			s.order.gather.Add(at)
		} else {
			all = false
		}
	}
	return all
}

// flush submits the pending batch if the queue is about to run dry, the batch
// is at its cap, or force is set.
func (s *Scheduler) flush(q *queue, force bool, w *tasks.Work) {
	b := q.pending
	if b.empty() {
		return
	}
	if !force && len(q.inFlight) >= maxInFlight && b.commands < maxCommands && b.work < maxWork {
		return
	}
	_ = s.submit(q, w) // its tasks have the error
}

// submit submits the pending batch; when that fails, its tasks do, at once or, with a
// device that is lost, when that is at rest.
func (s *Scheduler) submit(q *queue, w *tasks.Work) error {
	b := q.pending
	q.stream.Reset()
	barriers, ordered := b.encode(&q.stream, q.computes)
	waits := s.waitsOf(b)
	err := s.loss.err
	if err == nil {
		err = s.device.Submit(int(q.index), &q.stream, waits, b.foreign, b.value)
		if errors.Is(err, vk.ErrDeviceLost) {
			// It may run.
			s.sent(q, b)
			s.lose(err)
			return err
		}
	}
	if err != nil {
		// The value is skipped: points of the failed batch stay before those of
		// every later one, which waits for what it was to wait for.
		q.pending = q.newBatch(b.value+1, b.clock)
		copy(q.pending.waits, b.waits)
		s.failBatch(q, b, err, w)
		return err
	}
	s.sent(q, b)
	for p, o := range s.order.queues {
		b.seen[p] = o.completed
	}
	q.stats.Submissions++
	q.stats.Barriers += uint64(barriers)
	q.stats.SemaphoreWaits += uint64(len(waits))
	if ordered > 0 {
		q.ordered = order.SyncPoint{Value: b.value, Level: ordered, Queue: q.index}
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
	s.wakeWaiter(q)
	return nil
}

// wakeWaiter has the queue's waiter wait for what is in flight, unless a driver does.
func (s *Scheduler) wakeWaiter(q *queue) {
	if q.drivers > 0 || len(q.inFlight) == 0 {
		return
	}
	if !q.waiting {
		s.startWaiter(q)
	}
	q.wakeUps++
	q.wake.Signal()
}

// stopDriving ends one driver's part in waiting for the queue.
func (s *Scheduler) stopDriving(q *queue) {
	q.drivers--
	s.wakeWaiter(q)
}

// sent makes the pending batch one in flight.
func (s *Scheduler) sent(q *queue, b *batch) {
	q.last = b.value
	q.pending = q.newBatch(b.value+1, b.clock)
	s.order.submissions++
	b.seq = s.order.submissions
	q.launch(b)
}

// launch adds a batch to those in flight.
func (q *queue) launch(b *batch) {
	q.cost += b.stall()
	b.cost = q.cost
	if n := len(q.inFlight); n == cap(q.inFlight) {
		// They begin again where those were that have landed, once these are half of
		// the room: so a batch costs the same however many are in flight.
		if n >= cap(q.room)/2 {
			q.room = make([]*batch, 0, max(8, 2*cap(q.room)))
		}
		q.inFlight = append(q.room, q.inFlight...)
		clear(q.inFlight[n:cap(q.inFlight)])
	}
	q.inFlight = append(q.inFlight, b)
}

// find returns the place in inFlight of the first batch that signals value or more, and
// whether it signals value.
func (q *queue) find(value uint64) (int, bool) {
	return slices.BinarySearchFunc(q.inFlight, value, func(b *batch, v uint64) int { return cmp.Compare(b.value, v) })
}

// flying returns the batch in flight that signals value, or nil.
func (q *queue) flying(value uint64) *batch {
	if i, found := q.find(value); found {
		return q.inFlight[i]
	}
	return nil
}

// underWay returns the batch that signals value, in flight or pending, or nil.
func (q *queue) underWay(value uint64) *batch {
	if value == q.pending.value {
		return q.pending
	}
	return q.flying(value)
}

// waitsOf returns the waits of a batch that no other one of them implies. What its
// queues have reached since it was to wait for them it gets at no cost.
func (s *Scheduler) waitsOf(b *batch) []timeline.Point {
	waits := s.order.waits[:0]
	for p, value := range b.waits {
		if value > 0 && !mutant.Active(mutant.WaitDropped) {
			value, known := s.order.queues[p].knownAt(value)
			b.wait(int32(p), value, known)
			waits = append(waits, timeline.Point{Queue: timeline.Queue(p), Value: value - mutant.OffBy(mutant.WaitTooLow) + mutant.OffBy(mutant.WaitTooHigh)})
		}
	}
	if len(waits) > 1 {
		kept := waits[:0]
		for i, p := range waits {
			implied := false
			for k, o := range waits {
				_, known := s.order.queues[o.Queue].knownAt(o.Value)
				// Those before i that were dropped are implied themselves.
				implied = implied || k != i && known[p.Queue]+mutant.OffBy(mutant.WaitImpliedTooEarly) >= p.Value
			}
			if !implied {
				kept = append(kept, p)
			}
		}
		waits = kept
	}
	s.order.waits = waits[:0]
	return waits
}

// recycle keeps a batch for newBatch. It lets go of its tasks at once, and with
// them of the program's slices.
func (q *queue) recycle(b *batch) {
	empty(&b.tasks)
	if len(q.free) < maxFree {
		q.free = append(q.free, b)
	}
}

// newBatch returns an empty batch, which follows what the one before it does.
func (q *queue) newBatch(value uint64, known order.Clock) *batch {
	var b *batch
	if n := len(q.free); n > 0 {
		b = q.free[n-1]
		q.free = q.free[:n-1]
		b.reset(value)
	} else {
		b = &batch{value: value, clock: make(order.Clock, len(known)), waits: make(order.Clock, len(known)), seen: make(order.Clock, len(known))}
	}
	copy(b.clock, known)
	return b
}

// startWaiter starts the queue's waiter; mu is held, or nobody else knows s.
func (s *Scheduler) startWaiter(q *queue) {
	q.waiting = true
	s.life.waiters.Go(func() { s.wait(q) })
}

// wait is the queue's waiter: it blocks on the oldest batch in flight while
// nobody else does, and finishes what completes.
func (s *Scheduler) wait(q *queue) {
	over := false
	defer func() {
		if !over {
			// An observer ended the goroutine.
			s.mu.Lock()
			defer s.mu.Unlock()
			s.startWaiter(q)
		}
	}()
	for {
		s.mu.Lock()
		for len(q.inFlight) == 0 || q.drivers > 0 || s.loss.err != nil {
			if s.life.stopped || q.retired && len(q.inFlight) == 0 {
				q.waiting, over = false, true
				s.life.wake.Broadcast()
				s.mu.Unlock()
				return
			}
			q.wake.Wait()
		}
		value := q.inFlight[0].value
		s.stats.HostWaits++
		s.mu.Unlock()
		s.reap(q, value, s.awaitValue(q.index, value))
	}
}

// drive waits for the task's queue on the calling goroutine as long as the task's
// batch is in flight. handOver can have made the caller a driver of a queue before.
func (s *Scheduler) drive(t *target, node *tasks.Node) {
	s.mu.Lock()
	q := t.driven
	defer func() {
		if q != nil {
			// An observer ended the goroutine.
			s.stopDriving(q)
		}
		s.mu.Unlock()
	}()
	t.drives, t.driven = false, nil
	for {
		next := s.order.queues[t.order.at.Queue]
		if done, _ := node.Completed(); done || s.loss.err != nil || len(next.inFlight) == 0 || next.inFlight[0].value > t.order.at.Value {
			// Complete, held by a predecessor, or being finished elsewhere.
			next = nil
		}
		if next != q {
			if next != nil {
				next.drivers++
			}
			if q != nil {
				s.stopDriving(q)
			}
			q = next
		}
		if q == nil {
			return
		}
		value := q.inFlight[0].value
		s.stats.HostWaits++
		func() {
			s.mu.Unlock()
			defer s.mu.Lock()
			s.reap(q, value, s.waitFor(q, value))
		}()
	}
}

// waitFor waits for a value, looking a few times before it blocks.
func (s *Scheduler) waitFor(q *queue, value uint64) error {
	looks := spins
	if runtime.GOMAXPROCS(0) == 1 {
		// A software driver needs the only processor to get anywhere.
		looks = 1
	}
	for range looks {
		reached, err := s.device.Completed(int(q.index))
		if err == nil && reached >= value {
			return nil
		}
		if err != nil {
			break
		}
	}
	return s.awaitValue(q.index, value)
}

// reap finishes the tasks of the batches up to a value, and of those that are complete
// as well, after a wait for that value. err, the wait's, is the loss of the device.
func (s *Scheduler) reap(q *queue, value uint64, err error) {
	w := tasks.NewWork()
	defer w.Finish()
	s.mu.Lock()
	if err != nil {
		s.lose(err)
		s.mu.Unlock()
		return
	}
	reached, err := s.device.Completed(int(q.index))
	s.arrive(q, max(value, reached))
	if errors.Is(err, vk.ErrDeviceLost) {
		s.lose(err)
		s.mu.Unlock()
		s.finishDone(w)
		return
	}
	// Refill the queues before the host parts: they may take long.
	for _, q := range s.order.queues {
		s.flush(q, false, w)
	}
	s.mu.Unlock()
	s.finishDone(w)
}

// arrive notes that the device has reached a value of q's timeline, and with it
// whatever the batches up to there follow on other queues: all their tasks are done.
// Exits come in the order of the submissions, in which no batch is before one that
// it follows.
func (s *Scheduler) arrive(q *queue, value uint64) {
	s.order.landed = s.order.landed[:0]
	s.land(q, value)
	if len(s.order.landed) > 1 && !mutant.Active(mutant.ExitsUnordered) {
		slices.SortFunc(s.order.landed, func(a, b landing) int { return cmp.Compare(a.seq, b.seq) })
	}
	for i, l := range s.order.landed {
		s.exits.done = append(s.exits.done, l.tasks...)
		l.queue.recycle(l.batch)
		s.order.landed[i] = landing{}
	}
}

// landing is a batch that is complete.
type landing struct {
	*batch
	queue *queue
}

// land takes the batches of q up to a value off those in flight, and those that they
// follow.
func (s *Scheduler) land(q *queue, value uint64) {
	n := 0
	for n < len(q.inFlight) && q.inFlight[n].value <= value+mutant.OffBy(mutant.CompleteTooEarly) {
		b := q.inFlight[n]
		q.landed = b.cost
		s.readStamps(b)
		copy(q.known, b.clock)
		if b.hostRead {
			s.order.hostReached.Join(b.clock)
			s.order.hostReached.Join(b.seen)
			s.order.hostReached[q.index] = b.value
		}
		s.order.landed = append(s.order.landed, landing{b, q})
		n++
	}
	q.completed = max(q.completed, value)
	if n == 0 {
		return
	}
	clear(q.inFlight[:n])
	q.inFlight = q.inFlight[n:]
	for i, v := range q.known {
		if p := s.order.queues[i]; p.completed < v {
			s.land(p, v)
		}
	}
}
