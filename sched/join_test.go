package sched

import (
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/tasks"
)

// joined generates a task without work that depends on the writer of in, and on which tasks
// depend that name token.
func (r *rig) joined(in, token []uint32) {
	r.t.Helper()
	r.join("join", append(depends(tasks.DependIn, in), depends(tasks.DependOut, token)...)...)
}

func TestJoinBetweenTargetTasksStaysOnTheDevice(t *testing.T) {
	for _, pending := range []bool{false, true} {
		inEveryMemory(t, func(t *testing.T, r *rig) {
			x, token := filled(16, 1), array32(1)
			r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
			if pending {
				r.busy()
			}
			r.d.hold()
			before, submits := r.dispatches(), r.d.submits
			r.adds("before", tasks.DependInOut, x, 1)
			r.joined(x, token)
			r.run(launch{label: "after", kernel: "mix", args: []arg{alloc(x), alloc(x), alloc(x)}, depend: depends(tasks.DependIn, token)})
			if got := r.dispatches() - before; got != 2 {
				t.Errorf("%d of 2 kernels are placed while the device stands still", got)
			}
			r.d.release()
			r.taskwait()
			// There is one submission for each kernel, or one for both.
			if want := map[bool]int{false: 2, true: 1}[pending]; r.d.submits-submits != want {
				t.Errorf("%d submissions, want %d", r.d.submits-submits, want)
			}
			r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
			r.expect("x", x, filled(16, 10)...)
		})
	}
}

// A task that depends on a task without work comes after all predecessors of that, the later of
// its two batches included.
func TestJoinStandsForTheLastOfItsPredecessors(t *testing.T) {
	for _, swapped := range []bool{false, true} {
		inEveryMemory(t, func(t *testing.T, r *rig) {
			x, y, token := filled(16, 1), filled(16, 2), array32(1)
			r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
			r.busy()
			r.adds("x", tasks.DependInOut, x, 1)
			for range 5 {
				r.adds("y", tasks.DependInOut, y, 1)
			}
			of := depends(tasks.DependIn, x, y)
			if swapped {
				of = depends(tasks.DependIn, y, x)
			}
			r.join("join", append(of, depends(tasks.DependOut, token)...)...)
			r.run(launch{label: "after", kernel: "mix", args: []arg{alloc(x), alloc(y), alloc(y)}, depend: depends(tasks.DependIn, token)})
			r.d.release()
			r.taskwait()
			r.run(launch{label: "exit", exit: []arg{from(x), {s: y, kind: memory.MapRelease}}, included: true})
			r.expect("x", x, filled(16, 20)...)
		})
	}
}

// A task without work whose predecessors are complete, or which has none, is complete at once
// and submits nothing.
func TestJoinOfNothingInFlightIsCompleteAtOnce(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x, token := filled(16, 1), array32(1)
	r.joined(x, token)
	if r.scope.Pending() {
		t.Error("a join of nothing waits")
	}
	r.mix("before", x, array32(16), array32(16), 0)
	r.taskwait()
	before := r.d.submits
	r.joined(x, token)
	if r.scope.Pending() || r.d.submits != before {
		t.Error("a join of what is complete waits")
	}
}

func TestJoinOfHostAndTargetTasksIsKeptByTheHost(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, y, z, token := filled(16, 1), filled(16, 1), filled(16, 1), array32(1)
		r.d.hold()
		r.run(launch{label: "target", kernel: "add", args: []arg{tofrom(x)}, constant: 1, depend: depends(tasks.DependOut, x)})
		host := &heldTask{}
		r.add(&tasks.Task{Label: "host", Depend: depends(tasks.DependOut, y), Runner: host})
		r.join("join", append(depends(tasks.DependIn, x, y), depends(tasks.DependOut, token)...)...)
		r.run(launch{label: "after", kernel: "add", args: []arg{tofrom(z)}, constant: 1, depend: depends(tasks.DependIn, token)})
		if got := r.dispatches(); got != 1 {
			t.Errorf("%d kernels are placed before either predecessor is complete", got)
		}
		host.complete(nil)
		if got := r.dispatches(); got != 1 {
			t.Errorf("%d kernels are placed before the target task is complete", got)
		}
		r.d.release()
		r.taskwait()
		r.expect("z", z, filled(16, 2)...)
	})
}

// When a predecessor of a task without work fails, that does not run, and neither does a task
// that depends on it.
func TestFailurePassesThroughAJoin(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, z, token := filled(16, 1), filled(16, 1), array32(1)
		r.d.submit = func(call int) error {
			if call == 3 {
				return errSubmitMemory
			}
			return nil
		}
		r.d.hold()
		r.run(launch{label: "fills 1", kernel: "set", args: []arg{from(filled(4, 0))}})
		r.run(launch{label: "fills 2", kernel: "set", args: []arg{from(filled(4, 0))}})
		r.run(launch{label: "fails", kernel: "add", args: []arg{tofrom(x)}, constant: 1, depend: depends(tasks.DependOut, x)})
		r.joined(x, token)
		r.run(launch{label: "after", kernel: "add", args: []arg{tofrom(z)}, constant: 1, depend: depends(tasks.DependIn, token)})
		r.d.release()
		err := r.scope.Wait(t.Context(), nil)
		if want := `task "fails": ` + errSubmitMemory.Error() + " (2 dependent tasks not run)"; err == nil || err.Error() != want {
			t.Errorf("got %v", err)
		}
		r.expect("x", x, filled(16, 1)...)
		r.expect("z", z, filled(16, 1)...)
	})
}
