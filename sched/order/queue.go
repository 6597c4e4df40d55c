package order

import (
	"cmp"
	"slices"
	"sync"

	"github.com/vkomp/vkomp/sched/internal/mutant"
	"github.com/vkomp/vkomp/vk"
)

const (
	// MaxInFlight is the number of submitted batches beyond which work collects:
	// one running and one behind it keep the queue from running dry.
	MaxInFlight = 2
	// A pending batch of MaxCommands commands, or of this much estimated work, is
	// submitted however many are in flight: it bounds memory, and keeps one
	// submission below the watchdog of consumer drivers.
	MaxCommands = 4096
	maxWork     = 1 << 30
	// maxFree is how many batches a queue keeps for reuse.
	maxFree = 64
)

// Stats are totals of a queue.
type Stats struct {
	// Submissions counts queue submissions, Barriers the pipeline barriers in them, those
	// to the host included. Dispatches and Copies count commands, SemaphoreWaits the waits
	// for other queues.
	Submissions, Dispatches, Copies, Barriers, SemaphoreWaits uint64
}

// Queue is one queue of a device: a pending batch, which collects commands, and those in
// flight.
type Queue struct {
	index    int32
	computes bool
	// pending is collecting commands; its value is the next to be submitted.
	pending *Batch
	// inFlight are the submitted batches, oldest first, all past completed. They are the
	// end of room, at whose beginning those were that have landed.
	inFlight, room []*Batch
	free           []*Batch
	// completed is the last value known to be reached, known the clock of the last
	// batch up to there.
	completed uint64
	known     Clock
	// last is the value of the last batch that was submitted.
	last uint64
	// ordered: whatever is before this point is ordered before every command of
	// later batches, by a barrier already submitted.
	ordered SyncPoint
	// seen is what the host had seen the end of when it submitted the last barrier of
	// the queue: whatever comes later on the queue sees it too.
	seen Clock
	// hostVisible is what the host sees of what the device wrote once the batches in
	// flight are complete.
	hostVisible Clock
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
	stats            Stats
	// cost is the estimated cost of all that was ever submitted, in nanoseconds, landed
	// that of what is complete.
	cost, landed uint64
}

// Index returns the queue's index on the device.
func (q *Queue) Index() int32 { return q.index }

// Computes reports whether the queue runs kernels.
func (q *Queue) Computes() bool { return q.computes }

// Pending returns the batch that collects commands. It is another one after a submission.
func (q *Queue) Pending() *Batch { return q.pending }

// InFlight returns the batches that are submitted and not known to be complete, oldest
// first. The slice is the queue's.
func (q *Queue) InFlight() []*Batch { return q.inFlight }

// Last returns the value of the last batch that was submitted.
func (q *Queue) Last() uint64 { return q.last }

// Completed returns the last value that the queue is known to have reached.
func (q *Queue) Completed() uint64 { return q.completed }

// HostVisible returns what the host sees of what the device wrote once the batches in
// flight are complete.
func (q *Queue) HostVisible() Clock { return q.hostVisible }

// Stats returns the queue's totals.
func (q *Queue) Stats() Stats { return q.stats }

// CountCopies counts copies, of so many bytes in all, that were added to the pending batch.
func (q *Queue) CountCopies(n int, bytes uint64) {
	q.stats.Copies += uint64(n)
	q.pending.commands += n
	q.pending.work += bytes / copyRate
}

// CountFill counts a fill, of so many bytes, that was added to the pending batch.
func (q *Queue) CountFill(bytes uint64) {
	q.pending.commands++
	q.pending.work += bytes / copyRate
}

// CountDispatches counts dispatches that were added to the pending batch, whose estimated
// cost is work, in nanoseconds.
func (q *Queue) CountDispatches(n int, work uint64) {
	q.stats.Dispatches += uint64(n)
	q.pending.commands += n
	q.pending.work += work
}

// backlog is the estimated cost of what is in flight, in nanoseconds.
func (q *Queue) backlog() uint64 { return q.cost - q.landed }

// after returns the lowest level of the pending batch at which a command
// follows p, which is on the queue, or complete: then it has to see it.
func (q *Queue) after(p SyncPoint) int32 {
	switch {
	case p.Value == 0, q.pending.clock.Covers(p), q.seen.Covers(p):
		return 0
	case p.Queue != q.index:
		return 1
	case p.Value == q.pending.value:
		return p.Level + 1
	case p.Before(q.ordered):
		return 0
	}
	return 1
}

// launch adds a batch to those in flight.
func (q *Queue) launch(b *Batch) {
	q.cost += b.stall()
	b.cost = q.cost
	if n := len(q.inFlight); n == cap(q.inFlight) {
		// They begin again where those were that have landed, once these are half of
		// the room: so a batch costs the same however many are in flight.
		if n >= cap(q.room)/2 {
			q.room = make([]*Batch, 0, max(8, 2*cap(q.room)))
		}
		q.inFlight = append(q.room, q.inFlight...)
		clear(q.inFlight[n:cap(q.inFlight)])
	}
	q.inFlight = append(q.inFlight, b)
}

// find returns the place in inFlight of the first batch that signals value or more, and
// whether it signals value.
func (q *Queue) find(value uint64) (int, bool) {
	return slices.BinarySearchFunc(q.inFlight, value, func(b *Batch, v uint64) int { return cmp.Compare(b.value, v) })
}

// flying returns the batch in flight that signals value, or nil.
func (q *Queue) flying(value uint64) *Batch {
	if i, found := q.find(value); found {
		return q.inFlight[i]
	}
	return nil
}

// underWay returns the batch that signals value, in flight or pending, or nil.
func (q *Queue) underWay(value uint64) *Batch {
	if value == q.pending.value {
		return q.pending
	}
	return q.flying(value)
}

// knownAt returns the value to wait for in order to follow v, one that is submitted,
// and what whoever waits for it follows on other queues besides.
func (q *Queue) knownAt(v uint64) (value uint64, known Clock) {
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

// Recycle keeps a batch that has landed, or was refused, for reuse. It lets go of its tasks
// at once, and with them of the program's slices.
func (q *Queue) Recycle(b *Batch) {
	clear(b.tasks)
	b.tasks = b.tasks[:0]
	if len(q.free) < maxFree {
		q.free = append(q.free, b)
	}
}

// newBatch returns an empty batch, which follows what the one before it does.
func (q *Queue) newBatch(value uint64, known Clock) *Batch {
	var b *Batch
	if n := len(q.free); n > 0 {
		b = q.free[n-1]
		q.free = q.free[:n-1]
		b.reset(value)
	} else {
		b = &Batch{value: value, clock: make(Clock, len(known)), waits: make(Clock, len(known)), seen: make(Clock, len(known))}
	}
	copy(b.clock, known)
	return b
}
