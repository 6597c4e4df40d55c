package sched

import (
	"errors"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// deviceOrder is the order of the device's work, with working memory of what places commands.
type deviceOrder struct {
	order.Queues
	// placing is what the commands follow that are placed next, recorder is for placePhase.
	placing  order.WaitSet
	recorder recorder
}

// targetOf returns the target that a task of a batch is.
func targetOf(t *order.Task) *target { return t.Owner.(*target) }

// followUses has the commands that are placed next follow the uses of bytes of a store (see
// order.Queues.AddUses).
func (s *Scheduler) followUses(m *store, bytes order.Span) {
	s.order.placing.Limit(m.families)
	s.order.AddUses(&s.order.placing, &m.uses, bytes)
}

// followWrites is followUses for the writes alone.
func (s *Scheduler) followWrites(m *store, bytes order.Span) {
	s.order.placing.Limit(m.families)
	s.order.AddWrites(&s.order.placing, &m.uses, bytes)
}

// begin returns the pending batch of a queue and the sync point in it for commands that
// follow s.order.placing.
func (s *Scheduler) begin(q *order.Queue, w *tasks.Work) (*order.Batch, order.SyncPoint, error) {
	b, at, err := s.order.Begin(q, &s.order.placing)
	if err != nil {
		s.failRefused(w)
	}
	return b, at, err
}

// flush submits the pending batch of a queue if it is time for that, or force is set. When
// that fails, the tasks of the batch have the error.
func (s *Scheduler) flush(q *order.Queue, force bool, w *tasks.Work) {
	if s.order.Flush(q, force) != nil {
		s.failRefused(w)
	}
}

// submit submits the pending batch of a queue; when that fails, its tasks do, at once or, with
// a device that is lost, when that is at rest.
func (s *Scheduler) submit(q *order.Queue, w *tasks.Work) error {
	err := s.order.Submit(q)
	if err != nil {
		s.failRefused(w)
	}
	return err
}

// failRefused fails the tasks of the batches that the device refused, or with which a lost
// device is done.
func (s *Scheduler) failRefused(w *tasks.Work) {
	if err := s.order.Lost(); err != nil {
		s.lose(err)
	}
	for _, b := range s.order.TakeRefused() {
		s.failBatch(b, w)
	}
}

func (s *Scheduler) failBatch(b order.Refused, w *tasks.Work) {
	s.dropStamps(b.Queue.Index(), b.Value())
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
		s.end(t, cause, w)
	}
	b.Queue.Recycle(b.Batch)
	s.life.wake.Broadcast()
}

// arrive notes that the device has reached a value of a queue: the tasks of the batches that
// are complete by that have their exits next, in the order of the submissions.
func (s *Scheduler) arrive(q *order.Queue, value uint64) {
	for _, b := range s.order.Arrive(q, value) {
		s.readStamps(b.Queue.Index(), b.Value())
		for _, t := range b.Tasks() {
			s.exits.done = append(s.exits.done, targetOf(t))
		}
		b.Queue.Recycle(b.Batch)
	}
}
