package sched

import (
	"fmt"

	"github.com/vkomp/vkomp/internal/invariants"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
)

// target is a target task. Until the task is placed, the goroutine that starts it owns the target;
// after that Scheduler.mu guards it.
type target struct {
	s    *Scheduler
	node *tasks.Node
	Region

	// dispatch is the launch of Region.Kernel.
	dispatch dispatch
	traits   traits

	// The following fields are guarded by s.mu, except that transfer.List.Begin and
	// End are called without it.

	// entry holds the blocks and the memory that the task uses, transfers its copies and fills,
	// order the places of its commands, and exit what happens to its maps at the end.
	entry     entry
	transfers transfer.List
	order     order.Places
	exit      exit
	// failed is the failure with which the task ends when its commands are complete, or nil.
	failed error
	// parked are the tasks that cannot enter before this one has ended.
	parked parkedTasks
	state  taskState
	// absentExit says that the target is in presence.absentExits.
	absentExit bool
	// lane is what Lane returns.
	lane ringLane
	// awaited is what the task shares with the construct that waits for it, or nil.
	awaited *awaited

	*observed
}

// newTarget returns a target for the region. It copies what the task needs after Run has returned.
func (s *Scheduler) newTarget(r *Region) *target {
	t, _ := s.spare.Get().(*target)
	if t == nil {
		t = &target{s: s}
		t.order.Owner = t
		t.dispatch.buffers = []Buffer{}
	}
	enter, exit := append(t.Enter[:0], r.Enter...), append(t.Exit[:0], r.Exit...)
	addresses := append(t.Addresses[:0], r.Addresses...)
	t.Region = *r
	t.to(taskCreated)
	t.Enter, t.Exit, t.Depend = enter, exit, nil
	t.Addresses, t.Transfers, t.Pointers = addresses, nil, nil
	t.Images = append([]transfer.Image(nil), r.Images...)
	if r.Buffers != nil {
		t.dispatch.buffers = append(t.dispatch.buffers, r.Buffers...)
		t.Buffers = t.dispatch.buffers
	}
	return t
}

// Drop implements tasks.Dropper.
func (t *target) Drop(*tasks.Node, error) { t.unpin() }

// Recycle implements tasks.Runner. It resets the target, which keeps no allocations any more, and keeps it for
// another task. Nothing may refer to it.
func (t *target) Recycle() {
	if invariants.Enabled && len(t.entry.pins)+len(t.entry.hosts) > 0 {
		panic(fmt.Sprintf("sched: target %q still keeps allocations", t.Label))
	}
	t.dispatch.release()
	t.forgetObserved()
	// The fields are reset one by one, because a literal of this size would be built on the stack
	// and copied.
	empty(&t.Enter)
	empty(&t.Exit)
	empty(&t.Addresses)
	enter, exit, addresses := t.Enter, t.Exit, t.Addresses
	t.Region = Region{}
	t.Enter, t.Exit, t.Addresses = enter, exit, addresses
	t.node, t.failed, t.parked, t.lane = nil, nil, t.parked[:0], ringLane{}
	t.dispatch.reset()
	t.entry.reset()
	t.transfers.Reset()
	t.order.Reset()
	t.exit.reset()
	t.to(taskIdle)
	t.traits, t.absentExit, t.awaited = 0, false, nil
	t.s.spare.Put(t)
}

// empty removes all elements of a slice, and the references in them, but keeps its memory.
func empty[T any](s *[]T) {
	if len(*s) > 0 {
		clear(*s)
		*s = (*s)[:0]
	}
}
