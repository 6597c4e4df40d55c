package order

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vkomp/vkomp/internal/mutant"
)

const (
	// MaxInFlight is the number of submitted batches from which on commands are collected: one that
	// runs and one behind it keep the queue busy.
	MaxInFlight = 2
	// MaxCommands is the number of commands at which a pending batch is submitted however many are
	// in flight. This bounds memory.
	MaxCommands = 4096
	// keptBytes is how many bytes of batches a queue keeps for reuse, whatever the garbage collector does.
	keptBytes = 2 << 20
)

// Stats are totals of a queue.
type Stats struct {
	// Submissions counts queue submissions, and Barriers the pipeline barriers in them, including
	// those to the host. Dispatches and Copies count commands, and SemaphoreWaits the waits for
	// other queues.
	Submissions, Dispatches, Copies, Barriers, SemaphoreWaits uint64
}

// Add adds the counts of o.
func (s *Stats) Add(o Stats) {
	s.Submissions += o.Submissions
	s.Dispatches += o.Dispatches
	s.Copies += o.Copies
	s.Barriers += o.Barriers
	s.SemaphoreWaits += o.SemaphoreWaits
}

// Queue is one queue of a device, with a pending batch that collects commands and the batches in
// flight.
type Queue struct {
	index    int32
	computes bool
	// pending is the batch that collects commands.
	pending *Batch
	// inFlight are the batches that are closed and not known to be complete, oldest first, so that
	// those that are submitted come before the others. They are the end of room, whose beginning is
	// free.
	inFlight, room []*Batch
	// spare has batches for reuse, of spareBytes in all. What would be more than keptBytes is in more, from
	// which the garbage collector takes what is not used for a while.
	spare      []*Batch
	spareBytes int
	more       sync.Pool
	// completed is the last value known to be reached, and known is the clock of the last
	// batch up to that value.
	completed uint64
	known     Clock
	// last is the value of the last batch that was closed and not refused, and sent that of the
	// last one that was submitted.
	last, sent uint64
	// skips are the values that were skipped last, nil if there are none. It is read without the lock.
	skips atomic.Pointer[skips]
	barrierState
	// hostVisible is the clock of the device writes that the host sees when the batches in flight
	// are complete.
	hostVisible Clock
	// drivers counts the goroutines that wait for the queue themselves or are about to; the
	// waiter does nothing meanwhile. wake is signalled when it may have something to do: there are
	// batches in flight and no driver, or it is to end. wakeUps counts the signals.
	drivers int
	wake    *sync.Cond
	wakeUps uint64
	// waits decide how the waits of each kind go.
	waits [waitings]spinning
	// waiting says that there is a waiter. retired says that it is to end because it has nothing
	// to do, until the next submission.
	waiting, retired bool
	stats            Stats
	// cost is the estimated cost of all work that was closed, in nanoseconds, and completedCost
	// that of the complete part.
	cost, completedCost uint64
}

// Index returns the queue's index on the device.
func (q *Queue) Index() int32 { return q.index }

// Computes reports whether the queue runs kernels.
func (q *Queue) Computes() bool { return q.computes }

// Pending returns the batch that collects commands. Close replaces it.
func (q *Queue) Pending() *Batch { return q.pending }

// Idle reports whether nothing is in flight on any queue, or collects to be submitted.
func (o *Queues) Idle() bool {
	return !slices.ContainsFunc(o.all, func(q *Queue) bool { return !q.isIdle() })
}

// Gathering reports whether the queue is idle, and its pending batch waits for more commands.
func (q *Queue) Gathering() bool { return len(q.inFlight) == 0 && !q.pending.Empty() }

// InFlight returns the batches that are closed and not known to be complete, oldest first. The
// slice belongs to the queue.
func (q *Queue) InFlight() []*Batch { return q.inFlight }

// Sent returns the value of the last batch that was submitted.
func (q *Queue) Sent() uint64 { return q.sent }

// Completed returns the last value that the queue is known to have reached.
func (q *Queue) Completed() uint64 { return q.completed }

// HostVisible returns the clock of the device writes that the host sees when the batches in flight
// are complete.
func (q *Queue) HostVisible() Clock { return q.hostVisible }

// Stats returns the queue's totals.
func (q *Queue) Stats() Stats { return q.stats }

// CountCopies counts n copies between host and device, with the total number of bytes, that were
// added to the pending batch.
func (o *Queues) CountCopies(q *Queue, n int, bytes uint64) {
	q.stats.Copies += uint64(n)
	q.count(n, bytes/o.rates.Bus)
}

// CountWithin counts the commands of n copies within the device, and of fills, with the total
// number of bytes, that were added to the pending batch.
func (o *Queues) CountWithin(q *Queue, copies, fills int, bytes uint64) {
	q.stats.Copies += uint64(copies)
	q.count(copies+fills, bytes/o.rates.Memory)
}

// CountDispatches counts the dispatches of a launch that were added to the pending batch.
func (o *Queues) CountDispatches(q *Queue, n int, l Launch) {
	q.stats.Dispatches += uint64(n)
	q.count(n, l.Invocations/o.rates.Invocations)
	q.pending.unbounded = q.pending.unbounded || !l.Bounded
}

// CountBarriers counts n barriers among the commands that were added to a level of the pending batch.
func (o *Queues) CountBarriers(q *Queue, n int) {
	q.stats.Barriers += uint64(n)
	q.count(0, uint64(n)*StallCost)
}

// count counts commands of the pending batch, whose estimated cost is work, in nanoseconds.
func (q *Queue) count(commands int, work uint64) {
	q.pending.commands += commands
	q.pending.work += work
}

// backlog returns the estimated cost of the work in flight, in nanoseconds.
func (q *Queue) backlog() uint64 { return q.cost - q.completedCost }

// after returns the lowest level of the pending batch at which a command follows p, which is on
// the same queue, or complete and only has to be made visible.
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

// addInFlight adds a batch to those in flight.
func (q *Queue) addInFlight(b *Batch) {
	q.cost += b.stall()
	b.cost = q.cost
	if n := len(q.inFlight); n == cap(q.inFlight) {
		// When half of the room is free at its beginning, the batches move there, so that
		// adding one costs the same however many are in flight.
		if n >= cap(q.room)/2 {
			q.room = make([]*Batch, 0, max(8, 2*cap(q.room)))
		}
		q.inFlight = append(q.room, q.inFlight...)
		clear(q.inFlight[n:cap(q.inFlight)])
	}
	q.inFlight = append(q.inFlight, b)
}

// find returns the index in inFlight of the first batch that signals value or more, and
// whether it signals value.
func (q *Queue) find(value uint64) (int, bool) {
	return slices.BinarySearchFunc(q.inFlight, value, func(b *Batch, v uint64) int { return cmp.Compare(b.value, v) })
}

// batchInFlight returns the batch in flight that signals value, or nil.
func (q *Queue) batchInFlight(value uint64) *Batch {
	if i, found := q.find(value); found {
		return q.inFlight[i]
	}
	return nil
}

// knownAt returns the value of a closed batch to wait for in order to follow v, and the clock of what
// follows on other queues from waiting for it.
func (q *Queue) knownAt(v uint64) (value uint64, known Clock) {
	if v <= q.completed {
		// A value that was reached costs no wait, and its clock covers the most.
		return q.completed, q.known
	}
	// The values of batches that were refused are skipped. The next batch follows what
	// they were to follow.
	i, _ := q.find(v)
	if i == len(q.inFlight) {
		return q.completed, q.known
	}
	if mutant.Active(mutant.FrontierTooNew) {
		return q.inFlight[i].value, q.pending.clock
	}
	return q.inFlight[i].value, q.inFlight[i].clock
}

// Recycle has the batch's queue keep it for reuse, when it is complete or was refused. It drops the
// references to the batch's tasks at once, which refer to the program's slices.
func (b *Batch) Recycle() {
	q := b.queue
	clear(b.tasks)
	b.tasks = b.tasks[:0]
	if b.watched {
		b.spare = true
		return
	}
	b.kept = b.memory()
	if q.spareBytes+b.kept > keptBytes {
		q.more.Put(b)
		return
	}
	q.spare = append(q.spare, b)
	q.spareBytes += b.kept
}

// takeSpare returns a batch for reuse, or nil.
func (q *Queue) takeSpare() *Batch {
	last := len(q.spare) - 1
	if last < 0 {
		b, _ := q.more.Get().(*Batch)
		return b
	}
	b := q.spare[last]
	q.spare[last] = nil
	q.spare = q.spare[:last]
	q.spareBytes -= b.kept
	return b
}

// newBatch returns an empty batch that follows what the one before it follows.
func (q *Queue) newBatch(value uint64, known Clock) *Batch {
	b := q.takeSpare()
	if b != nil {
		b.reset(value)
	} else {
		n := len(known)
		b = &Batch{queue: q, value: value, clock: make(Clock, n), waits: make(Clock, n), seen: make(Clock, n), before: barrierState{seen: make(Clock, n)}}
	}
	copy(b.clock, known)
	b.before.save(&q.barrierState)
	return b
}
