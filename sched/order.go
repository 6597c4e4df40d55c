package sched

import (
	"sync/atomic"
	"time"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
)

// deviceOrder keeps the order of the device's work, with working memory for placing commands.
type deviceOrder struct {
	order.Queues
	// placing is the wait set of the commands that are placed next.
	placing order.WaitSet
	// later is Scheduler.refill as a function value, which is made once. refilling says that it is
	// to be called when all tasks that are ready have been started.
	later     func(*tasks.Work)
	refilling bool
	// release is the timer that submits what has been kept for more commands to come, and starts what is in
	// the intake, after patience. holding says that it is running.
	release  *time.Timer
	holding  atomic.Bool
	patience time.Duration
}

// gatherTime is the longest time for which commands are kept for more commands to come. The tasks of
// a burst are created faster, and whatever waits for the commands without a call of SubmitGathered, as on a
// channel, loses no more than this, and what Go's timers come late in an idle process, up to a millisecond.
const gatherTime = 200 * time.Microsecond

// targetOfLocked returns the target to which a task of the order belongs. A resident task becomes one.
func (s *Scheduler) targetOfLocked(t *order.Task, w *tasks.Work) *target {
	if l, ok := t.Owner.(*resident); ok {
		return l.becomeTargetLocked(w)
	}
	return t.Owner.(*target)
}

// beginLocked returns the pending batch of a queue, and the sync point in it for commands that follow
// s.order.placing (see order.Queues.Begin).
func (s *Scheduler) beginLocked(q *order.Queue, w *tasks.Work) (*order.Batch, order.SyncPoint, error) {
	b, at, err := s.order.Begin(q, &s.order.placing)
	if err != nil {
		s.failRefusedLocked(w)
	}
	return b, at, err
}

// unlockLocked unlocks mu, and submits the batches that have been closed (see order.Queues.SubmitClosed). Whoever
// may have closed a batch calls it in place of mu.Unlock, so that no batch is left. If a submission
// fails, so do the tasks of the batch.
func (s *Scheduler) unlockLocked(w *tasks.Work) {
	s.submitClosedLocked(w)
	s.mu.Unlock()
}

// submitClosedLocked submits the batches that have been closed, and unlocks mu meanwhile.
func (s *Scheduler) submitClosedLocked(w *tasks.Work) {
	for s.order.SubmitClosed() {
		s.failRefusedLocked(w)
	}
}

// submitBacklog submits closed batches that another goroutine has left (see order.Queues.OnBacklog).
func (s *Scheduler) submitBacklog() {
	w := tasks.NewWork()
	defer w.Finish()
	s.mu.Lock()
	s.order.TakeBacklog()
	s.unlockLocked(w)
}

// flushLocked closes the pending batch of a queue if it is time for that (see order.Queues.Flush).
func (s *Scheduler) flushLocked(q *order.Queue, u order.Urgency, w *tasks.Work) {
	if s.order.Flush(q, u) != nil {
		s.failRefusedLocked(w)
	} else if u == order.Gather && q.Gathering() {
		s.releaseLater()
	}
}

// releaseLater has SubmitGathered called after patience, unless that is to be already. It needs no lock.
func (s *Scheduler) releaseLater() {
	if !s.order.holding.Load() && s.order.holding.CompareAndSwap(false, true) {
		s.order.release.Reset(s.order.patience)
	}
}

// released is what the timer calls.
func (s *Scheduler) released() {
	s.order.holding.Store(false)
	s.SubmitGathered()
}

// SubmitGathered submits what has been kept for more commands to come, and what is in the intake.
// It is called by a goroutine that is about to wait for tasks, and otherwise after gatherTime. It calls no function of
// the program.
func (s *Scheduler) SubmitGathered() {
	var w *tasks.Work
	if s.intake.open.Load() {
		w = s.startIntake(false)
	} else {
		w = tasks.NewWork()
	}
	s.refill(w)
	s.finishApart(w)
}

// refill closes the pending batches of all queues that are about to become idle. It ends refilling.
func (s *Scheduler) refill(w *tasks.Work) {
	s.mu.Lock()
	defer s.unlockLocked(w)
	s.order.refilling = false
	s.flushAllLocked(order.Refill, w)
}

// flushAllLocked is flushLocked for all queues.
func (s *Scheduler) flushAllLocked(u order.Urgency, w *tasks.Work) {
	for _, q := range s.order.All() {
		s.flushLocked(q, u, w)
	}
}

// closeLocked closes the pending batch of a queue. The error is the loss of the device.
func (s *Scheduler) closeLocked(q *order.Queue, w *tasks.Work) error {
	err := s.order.Close(q)
	if err != nil {
		s.failRefusedLocked(w)
	}
	return err
}

// submitNowLocked closes and submits the pending batch of a queue, and unlocks mu. It returns the error of that.
// Before that the tasks of the batch have failed, unless the device is lost: then they do when it is at
// rest.
func (s *Scheduler) submitNowLocked(q *order.Queue, w *tasks.Work) error {
	defer s.mu.Unlock()
	err := s.order.SubmitNow(q, func() { s.failRefusedLocked(w) })
	if err != nil {
		s.failRefusedLocked(w)
	}
	return err
}

// failRefusedLocked fails the tasks of batches that never run: those that the device has refused and,
// once a lost device is at rest, all that were left.
func (s *Scheduler) failRefusedLocked(w *tasks.Work) {
	if err := s.order.Lost(); err != nil {
		s.loseLocked(err)
	}
	for _, b := range s.order.TakeRefused() {
		s.failBatchLocked(b, w)
	}
}

// failBatchLocked fails the tasks of a batch that never runs. A task that has failed already, itself
// or by a predecessor, keeps that failure.
func (s *Scheduler) failBatchLocked(b *order.Batch, w *tasks.Work) {
	s.stamps.Drop(b)
	for _, task := range b.Tasks() {
		t, cause := s.targetOfLocked(task, w), b.Err()
		if t.failed != nil {
			cause = t.failed
		} else if failure := t.node.FailedBy(); failure != nil && t.state != taskLate {
			cause = failure
		}
		s.endLocked(t, cause, w)
	}
	b.Recycle()
	s.life.wake.Broadcast()
}

// arriveLocked records that the device has reached a value of a queue. The tasks of the batches that
// are complete by that have their exits next, in the order of the submissions. Where reading the timestamps shows that
// the device is lost, the tasks of that batch and of later ones are left to settleLoss.
func (s *Scheduler) arriveLocked(q *order.Queue, value uint64) {
	arrived := s.order.Arrive(q, value)
	for i, b := range arrived {
		s.stamps.Read(b)
		if s.loss.err != nil {
			s.order.Return(arrived[i:])
			arrived = arrived[:i]
			break
		}
		// The tasks themselves are not read here: there can be thousands, and their memory would
		// be fetched once now and again when they finish.
		s.exits.done = append(s.exits.done, b.Tasks()...)
	}
	s.order.Recycle(arrived)
	s.sweepIdleLocked()
}
