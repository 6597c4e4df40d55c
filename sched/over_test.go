package sched

import (
	"errors"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// A task can be over, and what waited for it restarted, before what it follows on the
// device is complete: until then the graph names it to those that follow it. Nobody who
// starts then is to wait for it.

// failure is a program whose task "fails" ends before "under way" does, which it follows.
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

// fails makes the task. Its copy to the device follows nothing, and is on its way when
// its kernel is not submitted: that is what it waits for.
func (f *failure) fails(depend ...tasks.Depend) {
	f.t.Helper()
	f.failNth(2)
	f.run(launch{label: "fails", kernel: "mix", args: []arg{alloc(f.x), to(filled(order.CopyApart/4, 3)), alloc(f.x)}, out: [][]uint32{f.x}, depend: depend})
}

// end ends the task that fails, and returns what ends the one that it follows.
func (f *failure) end() (end func()) {
	f.t.Helper()
	end = f.stall(1)
	f.eventually("the task that fails is over", func() bool {
		return len(f.s.order.All()[3].InFlight()) == 0 && len(f.s.exits.done) == 0 && !f.s.exits.finishing
	})
	return end
}

// leave ends the program.
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

// inDomain is the runner of a task of the device without commands.
type inDomain func()

func (f inDomain) Start(n *tasks.Node, w *tasks.Work) {
	f()
	n.Placed(w)
	n.Complete(nil, w)
}

func (inDomain) Drop(*tasks.Node) {}

// A follower can be on its way when what it follows fails.
func TestFollowerThatStartsWhenAFailureIsOverIsDropped(t *testing.T) {
	f := newFailure(t)
	token, y := filled(1, 0), filled(16, 1)
	gate := new(heldTask)
	f.add(&tasks.Task{Label: "gate", Depend: dependOn(nil, [][]uint32{token}), Runner: gate})
	f.fails(dependOn([][]uint32{token}, nil)...)
	// It starts ahead of the follower, once the task that fails has its place.
	var end func()
	f.add(&tasks.Task{Label: "meanwhile", Domain: rigDomain, Depend: dependOn([][]uint32{f.x}, nil), Runner: inDomain(func() { end = f.end() })})
	f.run(launch{label: "follower", kernel: "add", args: []arg{tofrom(y)}, in: [][]uint32{f.x}})
	gate.complete(nil)
	end()
	f.leave()
	f.expect("y", y, filled(16, 1)...)
}

// No failure: a task is over while the one before it copies its results home.
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
	// Both hold y: that the second is to copy it home turns out when the first is over.
	mix("first", alloc(u), tofrom(y), zero, u)
	mix("second", alloc(x), tofrom(y), zero, x)
	mix("after the second", alloc(z), alloc(x), x, z)
	updated := make(chan error, 1)
	go func() {
		g := r.region(launch{label: "update", included: true, out: [][]uint32{z}})
		g.Transfers = []Transfer{update(UpdateTo, z)}
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
