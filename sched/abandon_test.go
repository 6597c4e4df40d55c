package sched

import (
	"errors"
	"testing"

	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/vk"
)

// moveOn generates a task with transfers on a queue.
func (r *rig) moveOn(queue int, l launch, moves ...transfer.Request) error {
	r.use(queue)
	return r.tryTransfer(l, moves...)
}

// A task has commands in two batches of one queue, and the second is not submitted: the task
// fails. It is complete only when the first batch is, and its staging memory may not be used
// for another task before that.
func TestFailedTaskOutlivesItsEarlierBatchOfTheQueue(t *testing.T) {
	r := newRig(t, onQueues, 1)
	defer r.close()
	x, y, z := filled(16, 1), filled(16, 2), filled(16, 3)
	r.run(launch{label: "enter", enter: []arg{to(x), to(y), to(z)}, included: true})
	r.d.hold()
	if err := r.moveOn(1, launch{label: "y"}, update(transfer.UpdateTo, y)); err != nil {
		t.Fatal(err)
	}
	// The update of y follows a task of another queue, and gets a batch of its own: the batch
	// with x, which has nothing to wait for, is submitted first, and that with y fails.
	r.failNth(2)
	x[0] = 7
	if err := r.moveOn(0, launch{label: "x and y"}, update(transfer.UpdateTo, x), update(transfer.UpdateFrom, y)); err != nil {
		t.Fatal(err)
	}
	r.s.mu.Lock()
	live, flying := r.s.life.live, len(r.s.order.All()[0].InFlight())
	r.s.mu.Unlock()
	if live != 2 || flying != 1 {
		t.Errorf("%d tasks are live and %d batches of the queue in flight", live, flying)
	}
	z[0] = 9
	if err := r.moveOn(2, launch{label: "z"}, update(transfer.UpdateTo, z)); err != nil {
		t.Fatal(err)
	}
	r.d.release()
	if err := r.scope.Wait(t.Context(), nil); !errors.Is(err, vk.ErrOutOfMemory) {
		t.Errorf("got %v", err)
	}
	x[0] = 0
	r.use(0)
	r.run(launch{label: "exit", exit: []arg{from(x), from(y), from(z)}, included: true})
	if x[0] != 7 || z[0] != 9 {
		t.Errorf("x[0] = %d, z[0] = %d", x[0], z[0])
	}
}

// A task has placed commands in the pending batch of an idle queue when it fails: its next
// commands depend on another queue's batch, which cannot be submitted. The commands that are
// pending have to be submitted all the same, or nobody would.
func TestCommandsOfATaskThatCannotBePlacedAreSubmitted(t *testing.T) {
	r := newRig(t, onQueues, 1)
	defer r.close()
	x, y := filled(16, 1), filled(16, 2)
	r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
	r.use(1)
	r.busy()
	if err := r.moveOn(1, launch{label: "y"}, update(transfer.UpdateTo, y)); err != nil {
		t.Fatal(err)
	}
	r.failNext()
	before := r.s.Stats().Queues[0].Submissions
	if err := r.moveOn(0, launch{label: "x and y"}, update(transfer.UpdateTo, x), update(transfer.UpdateFrom, y)); err != nil {
		t.Fatal(err)
	}
	if got := r.s.Stats().Queues[0].Submissions - before; got != 1 {
		t.Errorf("%d submissions of what was placed", got)
	}
	r.d.release()
	if err := r.scope.Wait(t.Context(), nil); !errors.Is(err, vk.ErrOutOfMemory) {
		t.Errorf("got %v", err)
	}
	r.use(0)
	r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
}

// A task on memory that commands would have written which were never submitted has nothing to
// wait for on their queue, and does not fail with them.
func TestFollowerOfWhatWasNeverSubmittedNeedsNothingOfThatQueue(t *testing.T) {
	r := newRig(t, onQueues, 1)
	defer r.close()
	x := filled(16, 1)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	r.failNext()
	if err := r.moveOn(1, launch{label: "fails", included: true}, update(transfer.UpdateTo, x)); !errors.Is(err, vk.ErrOutOfMemory) {
		t.Fatalf("got %v", err)
	}
	x[0] = 7
	before := r.s.Stats()
	if err := r.moveOn(0, launch{label: "follows", included: true}, update(transfer.UpdateTo, x)); err != nil {
		t.Error(err)
	}
	after := r.s.Stats()
	if after.Submissions != before.Submissions+1 || after.SemaphoreWaits != before.SemaphoreWaits {
		t.Errorf("%d submissions with %d waits", after.Submissions-before.Submissions, after.SemaphoreWaits-before.SemaphoreWaits)
	}
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x[0]", x[:1], 7)
}
