package sched

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/tasks"
)

// dispatches returns how many kernels have been placed so far.
func (r *rig) dispatches() uint64 { return r.s.Stats().Dispatches }

// adds runs a kernel that adds c to out, with a depend item of that kind.
func (r *rig) adds(label string, kind tasks.DependKind, out []uint32, c uint32) {
	r.t.Helper()
	r.run(launch{label: label, kernel: "add", args: []arg{alloc(out)}, constant: c, depend: depends(kind, out)})
}

// heldTask is the runner of a host task that starts, and is complete when the test says so.
// Tasks that become ready then are started by the test's goroutine.
type heldTask struct{ node atomic.Pointer[tasks.Node] }

func (h *heldTask) Start(n *tasks.Node, _ *tasks.Work) { h.node.Store(n) }
func (*heldTask) Recycle()                             {}
func (h *heldTask) running() bool                      { return h.node.Load() != nil }

func (h *heldTask) complete(err error) {
	w := tasks.NewWork()
	h.node.Load().Complete(err, w)
	w.Finish()
}

// gate adds a host task with x as an inout item, which the test completes.
func (r *rig) gate(x []uint32) *heldTask {
	gate := &heldTask{}
	r.add(&tasks.Task{Label: "gate", Domain: tasks.Host, Runner: gate, Depend: depends(tasks.DependInOut, x)})
	return gate
}

func TestExclusionOnTheDeviceMakesNoRoundTrip(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		const n = 20
		x := filled(16, 1)
		r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
		r.busy()
		before := r.d.submits
		for i := range uint32(n) {
			r.adds("link", tasks.DependMutexInOutSet, x, 1<<i)
		}
		r.s.mu.Lock()
		batch := r.s.order.All()[0].Pending()
		if len(batch.Tasks()) != n || r.d.submits != before {
			t.Errorf("%d of %d tasks are in the pending batch, %d were submitted", len(batch.Tasks()), n, r.d.submits-before)
		}
		r.s.mu.Unlock()
		r.d.release()
		r.taskwait()
		if r.d.submits != before+1 || r.d.barriers[len(r.d.barriers)-1] < n-1 {
			t.Errorf("%d submissions with %v barriers", r.d.submits-before, r.d.barriers[before:])
		}
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		r.expect("x", x, filled(16, 1<<n)...)
	})
}

// Tasks with mutexinoutset items map their storage each for itself: every one of them has to be
// complete, with its copies, before the next one enters.
func TestExclusionWithoutADataRegionTakesTurns(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x := filled(48, 1)
		for i := range 20 {
			part := x[16*(i%3):][:16]
			r.run(launch{label: "one", kernel: "add", args: []arg{tofrom(part)}, constant: 1, depend: depends(tasks.DependMutexInOutSet, part)})
			r.run(launch{label: "all", kernel: "add", args: []arg{tofrom(x)}, constant: 10, depend: depends(tasks.DependMutexInOutSet, x)})
		}
		r.taskwait()
		want := append(append(filled(16, 208), filled(16, 208)...), filled(16, 207)...)
		r.expect("x", x, want[:]...)
	})
}

func TestHostTaskIsExcludedUntilTheTargetTaskIsComplete(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x := filled(16, 1)
		r.d.hold()
		r.run(launch{label: "holder", kernel: "add", args: []arg{tofrom(x)}, constant: 1, depend: depends(tasks.DependMutexInOutSet, x)})
		first := r.d.submitted
		taker := &heldTask{}
		r.add(&tasks.Task{Label: "taker", Depend: depends(tasks.DependMutexInOutSet, x), Runner: taker})
		if taker.running() {
			t.Error("the host task started while the target task was in flight")
		}
		r.d.advance(first)
		r.eventually("start", taker.running)
		if x[0] != 2 {
			t.Errorf("the host task started with x = %d", x[0])
		}
		r.run(launch{label: "later", kernel: "add", args: []arg{tofrom(x)}, constant: 100, depend: depends(tasks.DependMutexInOutSet, x)})
		if got := r.dispatches(); got != 1 {
			t.Errorf("%d kernels were placed while the host task had the storage", got)
		}
		x[0] += 10
		taker.complete(nil)
		r.d.release()
		r.taskwait()
		r.expect("x", x[:2], 112, 102)
	})
}

func TestTargetTaskIsExcludedUntilTheHostTaskIsComplete(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, y := filled(16, 1), filled(16, 1)
		holder := &heldTask{}
		r.add(&tasks.Task{Label: "holder", Depend: depends(tasks.DependMutexInOutSet, x), Runner: holder})
		for range 2 {
			r.run(launch{label: "taker", kernel: "add", args: []arg{tofrom(x)}, constant: 1, depend: depends(tasks.DependMutexInOutSet, x)})
		}
		r.run(launch{label: "other", kernel: "add", args: []arg{tofrom(y)}, constant: 1, depend: depends(tasks.DependMutexInOutSet, y)})
		if got := r.dispatches(); got != 1 {
			t.Errorf("%d kernels were placed", got)
		}
		x[0] = 5
		holder.complete(nil)
		r.taskwait()
		r.expect("x", x[:2], 7, 3)
		r.expect("y", y[:1], 2)
	})
}

// Exclusion is no dependence: when a task fails, those that it excluded run all the same.
func TestFailureDoesNotPassFromOneExcludedTaskToAnother(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x := filled(16, 1)
		r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
		r.busy()
		r.adds("first", tasks.DependMutexInOutSet, x, 1)
		r.failNext()
		r.d.release()
		r.eventually("failure", func() bool { return r.graph.Counts().Failures > 0 })
		r.adds("second", tasks.DependMutexInOutSet, x, 10)
		err := r.scope.Wait(context.Background(), nil)
		if err == nil || !strings.Contains(err.Error(), `"first"`) || strings.Contains(err.Error(), "not run") || strings.Contains(err.Error(), "second") {
			t.Errorf("got %v", err)
		}
		r.busy()
		r.adds("third", tasks.DependMutexInOutSet, x, 100)
		r.adds("fourth", tasks.DependMutexInOutSet, x, 100)
		r.failNext()
		r.d.release()
		err = r.scope.Wait(context.Background(), nil)
		if err == nil || !strings.Contains(err.Error(), `"third"`) || !strings.Contains(err.Error(), `"fourth"`) || strings.Contains(err.Error(), "not run") {
			t.Errorf("of one batch got %v", err)
		}
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		r.expect("x", x, filled(16, 11)...)
	})
}

// Members of one inoutset share a level of the batch, on both sides of which there is a barrier
// to the other tasks.
func TestSetOnTheDeviceSharesALevel(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x := filled(64, 1)
		r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
		r.busy()
		for range 3 {
			for i := range 4 {
				part := x[16*i:][:16]
				r.run(launch{label: "member", kernel: "add", args: []arg{alloc(part)}, constant: uint32(i + 1), depend: depends(tasks.DependInOutSet, x)})
			}
			r.adds("all", tasks.DependInOut, x, 10)
		}
		r.d.release()
		r.taskwait()
		if got := r.d.barriers[len(r.d.barriers)-1]; got != 5 {
			t.Errorf("%d barriers", got)
		}
		r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapFrom}}, included: true})
		want := slices.Concat(filled(16, 34), filled(16, 37), filled(16, 40), filled(16, 43))
		r.expect("x", x, want...)
	})
}

// A host task waits for its turn behind a target task. Later target tasks do not come before
// it: if they did, a steady flow of them would keep it from ever starting.
func TestHostTakerIsNotOvertakenByLaterTargetTasks(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x := filled(16, 1)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	r.d.hold()
	r.adds("holder", tasks.DependMutexInOutSet, x, 1)
	taker := &heldTask{}
	r.add(&tasks.Task{Label: "taker", Depend: depends(tasks.DependMutexInOutSet, x), Runner: taker})
	before := r.dispatches()
	for range 100 {
		r.adds("later", tasks.DependMutexInOutSet, x, 1)
	}
	if n := r.dispatches() - before; n != 0 {
		t.Errorf("%d target tasks placed ahead of the host task that came before them", n)
	}
	r.d.release()
	r.eventually("start", taker.running)
	taker.complete(nil)
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
}
