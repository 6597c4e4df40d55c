package sched

import (
	"runtime"

	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

const (
	// maxInFlight is the number of submitted batches beyond which work collects:
	// one running and one behind it keep the queue from running dry.
	maxInFlight = 2
	// A pending batch of this many commands, or of this many invocations, is
	// submitted however many are in flight: it bounds memory, and keeps one
	// submission below the watchdog of consumer drivers.
	maxCommands    = 4096
	maxInvocations = 1 << 30
	// spins is how often a synchronous construct looks at the timeline before
	// it blocks: a thread hand-over costs more than a small kernel.
	spins = 64
)

// queue is one device queue. All fields are guarded by Scheduler.mu.
type queue struct {
	index int
	// pending is collecting commands; its value is the next to be submitted.
	pending *batch
	// inFlight are the submitted batches, oldest first.
	inFlight []*batch
	free     []*batch
	// completed is the last value seen reached.
	completed uint64
	// ordered: whatever is before this mark is ordered before every command of
	// later batches, by a barrier already submitted.
	ordered mark
	// hostVisible is the last value whose batch ended with a barrier to the
	// host: all that the queue wrote up to it can be read once it is reached.
	// hostReached is the last such value seen reached.
	hostVisible, hostReached uint64
	// done are tasks whose commands are complete and whose exits are not, in the
	// order of the exits; finishing is set while a goroutine works them off.
	done, spareDone []*target
	finishing       bool
	// finish is finishDone of the queue.
	finish func(*tasks.Work)
	// drivers counts goroutines that wait for the queue themselves; the waiter
	// rests meanwhile.
	drivers int
	stream  vk.Stream
}

// after returns the lowest level of the pending batch at which a command
// follows m.
func (q *queue) after(m mark) int {
	switch {
	case m.value == 0:
		return 0
	case m.value == q.pending.value:
		return m.level + 1
	case m.before(q.ordered):
		return 0
	}
	return 1
}

// afterWrites is after for the store's writes that the program ordered before
// the command by other means than an incomplete predecessor: those that are
// complete need making visible, those in flight were left unordered by the
// program and are its own affair (OpenMP orders by depend clauses, not by
// accesses).
func (q *queue) afterWrites(b *store) int {
	complete := 0
	for complete < len(b.flying) && b.flying[complete].value <= q.completed {
		b.settled = b.flying[complete]
		complete++
	}
	if complete > 0 {
		b.flying = append(b.flying[:0], b.flying[complete:]...)
	}
	return q.after(b.settled)
}

// flush submits the pending batch if the queue is about to run dry, the batch
// is at its cap, or force is set.
func (s *Scheduler) flush(q *queue, force bool, w *tasks.Work) {
	b := q.pending
	if b.empty() {
		return
	}
	if !force && len(q.inFlight) >= maxInFlight && b.commands < maxCommands && b.invocations < maxInvocations {
		return
	}
	_ = s.submit(q, w) // its tasks have the error
}

// submit submits the pending batch; when that fails, its tasks do.
func (s *Scheduler) submit(q *queue, w *tasks.Work) error {
	b := q.pending
	q.stream.Reset()
	barriers, ordered := b.encode(&q.stream)
	err := s.lost
	if err == nil {
		err = s.device.Submit(q.index, &q.stream, nil, b.value)
	}
	q.pending = q.newBatch(b.value + 1)
	if err != nil {
		// The value is skipped: marks of the failed batch stay before those of
		// every later one.
		s.failBatch(q, b, err, w)
		return err
	}
	s.stats.Submissions++
	s.stats.Barriers += uint64(barriers)
	if ordered > 0 {
		q.ordered = mark{b.value, ordered}
	}
	if b.hostRead {
		q.hostVisible = b.value
	}
	q.inFlight = append(q.inFlight, b)
	s.wake.Broadcast()
	return nil
}

// recycle keeps a batch for newBatch. It lets go of its tasks at once, and with
// them of the program's slices.
func (q *queue) recycle(b *batch) {
	clear(b.tasks)
	b.tasks = b.tasks[:0]
	q.free = append(q.free, b)
}

func (q *queue) newBatch(value uint64) *batch {
	if n := len(q.free); n > 0 {
		b := q.free[n-1]
		q.free = q.free[:n-1]
		b.reset(value)
		return b
	}
	return &batch{value: value}
}

// wait is the queue's waiter: it blocks on the oldest batch in flight while
// nobody else does, and finishes what completes.
func (s *Scheduler) wait(q *queue) {
	defer s.waiters.Done()
	for {
		s.mu.Lock()
		for len(q.inFlight) == 0 || q.drivers > 0 {
			if s.stopped {
				s.mu.Unlock()
				return
			}
			s.wake.Wait()
		}
		value := q.inFlight[0].value
		s.mu.Unlock()
		_, err := s.device.Wait(q.index, value, -1)
		s.reap(q, err)
	}
}

// drive waits for the queue on the calling goroutine as long as t's batch is in
// flight.
func (s *Scheduler) drive(q *queue, t *target, node *tasks.Node) {
	s.mu.Lock()
	q.drivers++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		q.drivers--
		s.wake.Broadcast()
		s.mu.Unlock()
	}()
	for {
		if done, _ := node.Completed(); done {
			return
		}
		s.mu.Lock()
		if len(q.inFlight) == 0 || q.inFlight[0].value > t.mark.value {
			// Held by a predecessor, or being finished elsewhere.
			s.mu.Unlock()
			return
		}
		value := q.inFlight[0].value
		s.mu.Unlock()
		s.reap(q, s.waitFor(q, value))
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
		reached, err := s.device.Completed(q.index)
		if err != nil || reached >= value {
			return err
		}
	}
	_, err := s.device.Wait(q.index, value, -1)
	return err
}

// reap finishes the tasks of completed batches; err is the error that the wait
// for them ended with.
func (s *Scheduler) reap(q *queue, err error) {
	w := tasks.NewWork()
	defer w.Finish()
	s.mu.Lock()
	if err == nil {
		var reached uint64
		if reached, err = s.device.Completed(q.index); err == nil {
			q.completed = max(q.completed, reached)
		}
	}
	if err != nil {
		s.failAll(err, w)
		s.mu.Unlock()
		return
	}
	for len(q.inFlight) > 0 && q.inFlight[0].value <= q.completed {
		b := q.inFlight[0]
		q.inFlight = append(q.inFlight[:0], q.inFlight[1:]...)
		if b.hostRead {
			q.hostReached = b.value
		}
		q.done = append(q.done, b.tasks...)
		q.recycle(b)
	}
	// Refill the queue before the host parts: they may take long.
	s.flush(q, false, w)
	s.mu.Unlock()
	s.finishDone(q, w)
}

// finishDone finishes the tasks that the device is done with, one after the
// other: a task's exit must not overtake that of one it follows. If another
// goroutine is at it, that one sees to what was added.
func (s *Scheduler) finishDone(q *queue, w *tasks.Work) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.finishing {
		return
	}
	q.finishing = true
	s.finishRound(q, w)
	if len(q.done) > 0 {
		// The caller has tasks to start and a construct to return from: other
		// programs' tasks, of which there may always be more, must not keep it.
		s.waiters.Go(func() { s.finishRest(q) })
		return
	}
	q.finishing = false
}

// finishRound finishes what is in q.done now, under mu, which it gives up
// meanwhile.
func (s *Scheduler) finishRound(q *queue, w *tasks.Work) {
	done := q.done
	q.done, q.spareDone = q.spareDone[:0], nil
	s.mu.Unlock()
	for i, t := range done {
		done[i] = nil
		s.finish(t, w)
	}
	s.mu.Lock()
	q.spareDone = done[:0]
}

// finishRest takes over from finishDone until nothing is left.
func (s *Scheduler) finishRest(q *queue) {
	for {
		w := tasks.NewWork()
		s.mu.Lock()
		if len(q.done) == 0 {
			q.finishing = false
			s.mu.Unlock()
			w.Finish()
			return
		}
		s.finishRound(q, w)
		s.mu.Unlock()
		w.Finish()
	}
}
