package sched

import (
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/trace"
	"github.com/vkomp/vkomp/tasks"
)

// NewTrace returns the trace of the device, which the tool knows by the given number. Nothing may
// have been submitted to the device yet. The error matches vk.ErrUnsupported if the device has no
// timestamps.
func (s *Scheduler) NewTrace(number int) (*trace.Trace, error) {
	return trace.New(trace.Source{
		Device: s.device, Number: number, Queues: &s.order.Queues, Stamps: &s.stamps, Lock: &s.mu, Submit: s.submitPending, Lose: s.loseLocked,
	})
}

// submitPending submits the pending batches of all queues.
func (s *Scheduler) submitPending() {
	w := tasks.NewWork()
	defer w.Finish()
	s.mu.Lock()
	defer s.unlockLocked(w)
	s.flushAllLocked(order.AtOnce, w)
}

// TimeLocked implements transfer.Task. It begins the timing of commands of the task that are placed next (see
// trace.Stamps.Begin). op is nil if the task has no observer that hears of operations.
func (t *target) TimeLocked(q *order.Queue, level int32, op *construct.Op, amount uint64) trace.Timing {
	if op == nil {
		return trace.Timing{} // This is inlined, and all that is done where there is no tool.
	}
	return t.s.stamps.Begin(q, level, &t.timed, op, amount)
}
