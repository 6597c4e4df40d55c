package sched

import (
	"errors"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// A task that fails can be over before its predecessors on the device are complete. Until these
// are, the task graph still names it as a predecessor of later tasks. None of those may wait
// for it to end: it has ended, and nobody would wake them.

// failure is a program with two tasks: "fails", which depends on "under way" and ends before
// it.
type failure struct {
	*rig
	t *testing.T
	x []uint32
}

func newFailure(t *testing.T) *failure {
	f := &failure{newRig(t, onQueues, 1), t, filled(16, 1)}
	f.run(launch{label: "enter", enter: []arg{to(f.x)}, included: true})
	f.d.hold()
	f.use(1)
	f.run(launch{label: "under way", kernel: "add", args: []arg{alloc(f.x)}, constant: 1, out: [][]uint32{f.x}})
	f.s.mu.Lock()
	f.s.order.PlaceOn(f.s.order.All()[2:3], f.s.order.All()[3:])
	f.s.mu.Unlock()
	return f
}

// fails generates the task. Its copy to the device depends on nothing and is in flight when the
// submission of its kernel fails, so that the task ends when the copy is complete.
func (f *failure) fails(depend ...tasks.Depend) {
	f.t.Helper()
	f.failNth(2)
	f.run(launch{label: "fails", kernel: "mix", args: []arg{alloc(f.x), to(filled(order.CopyApart/4, 3)), alloc(f.x)}, out: [][]uint32{f.x}, depend: depend})
}

// end lets the copy complete, and with it the task that fails. The result ends the task before
// it.
func (f *failure) end() (end func()) {
	f.t.Helper()
	end = f.stall(1)
	f.eventually("the task that fails is over", func() bool {
		return len(f.s.order.All()[3].InFlight()) == 0 && len(f.s.exits.done) == 0 && !f.s.exits.finishing
	})
	return end
}

// leave checks the outcome and ends the program.
func (f *failure) leave() {
	f.t.Helper()
	if err := f.scope.Wait(f.t.Context(), nil); !errors.Is(err, vk.ErrOutOfMemory) {
		f.t.Errorf("got %v", err)
	}
	f.run(launch{label: "exit", exit: []arg{from(f.x)}, included: true})
	f.expect("x", f.x, filled(16, 2)...)
	f.close()
}

func TestTaskThatIsRunInAnyCaseDoesNotWaitForAFailureThatIsOver(t *testing.T) {
	f := newFailure(t)
	f.fails()
	y := filled(16, 1)
	g := f.region(launch{label: "always", kernel: "add", args: []arg{tofrom(y)}, constant: 1, in: [][]uint32{f.x}})
	g.Always = true
	if err := f.s.Run(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	f.end()()
	f.leave()
	f.expect("y", y, filled(16, 2)...)
}

func TestTaskThatExcludesAFailureDoesNotWaitForItOnceItIsOver(t *testing.T) {
	f := newFailure(t)
	y, lock := filled(16, 1), depends(tasks.DependMutexInOutSet, filled(1, 0))
	f.fails(lock...)
	f.run(launch{label: "next", kernel: "add", args: []arg{tofrom(y)}, constant: 1, depend: lock})
	f.end()()
	f.leave()
	f.expect("y", y, filled(16, 2)...)
}

// inDomain is the runner of a task of the device that has no commands.
type inDomain func()

func (f inDomain) Start(n *tasks.Node, w *tasks.Work) {
	f()
	n.Placed(w)
	n.Complete(nil, w)
}

func (inDomain) Recycle() {}

// A task starts when the predecessor that fails is already over. It is dropped, and does not
// wait.
func TestFollowerThatStartsWhenAFailureIsOverIsDropped(t *testing.T) {
	f := newFailure(t)
	token, y := filled(1, 0), filled(16, 1)
	gate := new(heldTask)
	f.add(&tasks.Task{Label: "gate", Depend: dependOn(nil, [][]uint32{token}), Runner: gate})
	f.fails(dependOn([][]uint32{token}, nil)...)
	// This task starts before the follower, when the task that fails has its place, and ends
	// that.
	var end func()
	f.add(&tasks.Task{Label: "meanwhile", Domain: rigDomain, Depend: dependOn([][]uint32{f.x}, nil), Runner: inDomain(func() { end = f.end() })})
	f.run(launch{label: "follower", kernel: "add", args: []arg{tofrom(y)}, in: [][]uint32{f.x}})
	gate.complete(nil)
	end()
	f.leave()
	f.expect("y", y, filled(16, 1)...)
}

// A task that succeeds can be over too early as well: the second task copies y to the host at
// its end, and is over while an earlier one, whose copy this is, is still under way. An update
// that waits for it must begin then.
func TestUpdateOfSharedStorageDoesNotWaitForWhatIsOver(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	x, y, z, u, zero := filled(16, 1), filled(16, 2), filled(16, 3), filled(16, 4), filled(16, 0)
	r.run(launch{label: "enter", enter: []arg{to(x), to(u), to(zero)}, included: true})
	g := r.region(launch{label: "enter z", enter: []arg{to(z)}, included: true})
	g.Enter[0].Share = memory.ShareMust
	if err := r.s.Run(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	r.d.hold()
	mix := func(label string, out, a arg, in, written []uint32) {
		r.t.Helper()
		r.run(launch{label: label, kernel: "mix", args: []arg{out, a, alloc(zero)}, in: [][]uint32{in}, out: [][]uint32{written}, priority: 1})
	}
	// Both tasks map y. Which of them copies it to the host shows when the first is over.
	mix("first", alloc(u), tofrom(y), zero, u)
	mix("second", alloc(x), tofrom(y), zero, x)
	mix("after the second", alloc(z), alloc(x), x, z)
	updated := make(chan error, 1)
	go func() {
		g := r.region(launch{label: "update", included: true, out: [][]uint32{z}})
		g.Transfers = []transfer.Request{update(transfer.UpdateTo, z)}
		updated <- r.s.Run(t.Context(), g)
	}()
	q := r.s.order.All()[0]
	r.eventually("the update waits", func() bool { return len(targetOf(q.InFlight()[len(q.InFlight())-1].Tasks()[0]).parked) == 1 })
	entries := r.s.presence.entries
	r.d.advance(r.d.submitted)
	r.eventually("the second alone is left, and copies", func() bool {
		return len(q.InFlight()) == 1 && targetOf(q.InFlight()[0].Tasks()[0]).state == taskLate
	})
	r.eventually("the update begins", func() bool { return r.s.presence.entries > entries })
	r.d.release()
	if err := <-updated; err != nil {
		t.Error(err)
	}
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x), {s: u, kind: memory.MapRelease}, {s: zero, kind: memory.MapRelease}, {s: z, kind: memory.MapRelease}}, included: true})
}
