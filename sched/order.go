package sched

import (
	"errors"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// deviceOrder is the order of the device's work, and working memory for placing commands.
type deviceOrder struct {
	order.Queues
	// placing is the wait set of the commands that are placed next. recorder records the
	// commands of transfers for placePhaseLocked.
	placing  order.WaitSet
	recorder recorder
}

// targetOf returns the target whose place in the order t is.
func targetOf(t *order.Task) *target { return t.Owner.(*target) }

// followUsesLocked makes the commands that are placed next follow the earlier uses of bytes of a
// store (see order.Queues.AddUses).
func (s *Scheduler) followUsesLocked(m *store, bytes order.Span) {
	s.order.placing.Limit(m.families)
	s.order.AddUses(&s.order.placing, &m.uses, bytes)
}

// followWritesLocked is followUsesLocked for the writes alone.
func (s *Scheduler) followWritesLocked(m *store, bytes order.Span) {
	s.order.placing.Limit(m.families)
	s.order.AddWrites(&s.order.placing, &m.uses, bytes)
}

// beginLocked returns the pending batch of a queue and the sync point in it for commands that
// follow s.order.placing.
func (s *Scheduler) beginLocked(q *order.Queue, w *tasks.Work) (*order.Batch, order.SyncPoint, error) {
	b, at, err := s.order.Begin(q, &s.order.placing)
	if err != nil {
		s.failRefusedLocked(w)
	}
	return b, at, err
}

// flushLocked submits the pending batch of a queue if it is time for that, or force is set. When
// that fails, the tasks of the batch have the error.
func (s *Scheduler) flushLocked(q *order.Queue, force bool, w *tasks.Work) {
	if s.order.Flush(q, force) != nil {
		s.failRefusedLocked(w)
	}
}

// submitLocked submits the pending batch of a queue; when that fails, its tasks do, at once or, with
// a device that is lost, when that is at rest.
func (s *Scheduler) submitLocked(q *order.Queue, w *tasks.Work) error {
	err := s.order.Submit(q)
	if err != nil {
		s.failRefusedLocked(w)
	}
	return err
}

// failRefusedLocked fails the tasks of batches that never run: those that the device refused and,
// once a lost device is idle, all that were left.
func (s *Scheduler) failRefusedLocked(w *tasks.Work) {
	if err := s.order.Lost(); err != nil {
		s.loseLocked(err)
	}
	for _, b := range s.order.TakeRefused() {
		s.failBatchLocked(b, w)
	}
}

func (s *Scheduler) failBatchLocked(b order.Refused, w *tasks.Work) {
	s.dropStampsLocked(b.Queue.Index(), b.Value())
	for _, task := range b.Tasks() {
		t, cause := targetOf(task), b.Err
		if errors.Is(cause, vk.ErrDeviceLost) {
			cause = s.loss.err
		}
		if t.failed != nil {
			cause = t.failed
		} else if failure := t.node.FailedBy(); failure != nil && t.state != taskLate {
			cause = failure
		}
		s.endLocked(t, cause, w)
	}
	b.Queue.Recycle(b.Batch)
	s.life.wake.Broadcast()
}

// arriveLocked notes that the device has reached a value of a queue: the tasks of the batches that
// are complete by that have their exits next, in the order of the submissions.
func (s *Scheduler) arriveLocked(q *order.Queue, value uint64) {
	for _, b := range s.order.Arrive(q, value) {
		s.readStampsLocked(b.Queue.Index(), b.Value())
		// The tasks themselves are not read before they finish: there can be thousands, and
		// their memory would be fetched twice.
		s.exits.done = append(s.exits.done, b.Tasks()...)
		b.Queue.Recycle(b.Batch)
	}
}
