package vkomp_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vkomp/vkomp"
)

func TestDependObjectLifeCycle(t *testing.T) {
	x := []int{0}
	var o vkomp.Depobj
	refused := func(what string, err error, says string) {
		t.Helper()
		if !errors.Is(err, vkomp.ErrInvalidDepend) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	accepted := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	is := func(want vkomp.Depend) {
		t.Helper()
		if o.Depend() != want {
			t.Errorf("the object holds %+v, want %+v", o.Depend(), want)
		}
	}
	refused("update of an uninitialised object", o.Update(vkomp.DependIn), "uninitialised")
	refused("destroy of an uninitialised object", o.Destroy(), "uninitialised")
	refused("init with no dependence", o.Init(vkomp.Depend{}), "dependence type")
	refused("init with elements of no size", o.Init(vkomp.In(make([]struct{}, 3))), "elements without size")
	is(vkomp.Depend{})
	accepted("init", o.Init(vkomp.In(x)))
	refused("init of an initialised object", o.Init(vkomp.Out(x)), "destroy it first")
	is(vkomp.In(x))
	for kind, want := range map[vkomp.DependKind]vkomp.Depend{
		vkomp.DependOut: vkomp.Out(x), vkomp.DependInOut: vkomp.InOut(x), vkomp.DependMutexInOutSet: vkomp.MutexInOutSet(x),
		vkomp.DependInOutSet: vkomp.InOutSet(x), vkomp.DependIn: vkomp.In(x),
	} {
		accepted("update", o.Update(kind))
		is(want)
	}
	accepted("update", o.Update(vkomp.DependOut))
	for _, kind := range []vkomp.DependKind{vkomp.DependInOutAllMemory, vkomp.DependOutAllMemory, 0, 5, 99} {
		refused("update of storage", o.Update(kind), "depobj")
		is(vkomp.Out(x))
	}
	accepted("destroy", o.Destroy())
	is(vkomp.Depend{})

	accepted("init again", o.Init(vkomp.InOutAllMemory()))
	for kind, want := range map[vkomp.DependKind]vkomp.DependKind{
		vkomp.DependOut: vkomp.DependOutAllMemory, vkomp.DependInOut: vkomp.DependInOutAllMemory,
		vkomp.DependOutAllMemory: vkomp.DependOutAllMemory, vkomp.DependInOutAllMemory: vkomp.DependInOutAllMemory,
	} {
		accepted("update of all memory", o.Update(kind))
		if got := o.Depend(); got.Kind() != want || got.Size() != 0 {
			t.Errorf("the object holds %v of %d bytes, want %v", got.Kind(), got.Size(), want)
		}
	}
	before := o.Depend()
	for _, kind := range []vkomp.DependKind{vkomp.DependIn, vkomp.DependMutexInOutSet, vkomp.DependInOutSet, 0} {
		refused("update of all memory", o.Update(kind), "omp_all_memory")
		is(before)
	}
	accepted("destroy", o.Destroy())
}

func TestDependObjectOfAllMemoryOrders(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	x, y := []int{0}, []int{0}
	var o vkomp.Depobj
	if err := errors.Join(o.Init(vkomp.InOutAllMemory()), o.Update(vkomp.DependOut)); err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	var ended, after atomic.Bool
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.In(x)}, Body: func(context.Context) error { <-release; ended.Store(true); return nil }})
	check := func(context.Context) error {
		after.Store(true)
		if !ended.Load() {
			t.Error("a task that follows all memory did not wait")
		}
		return nil
	}
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{o.Depend()}, Body: check})
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.In(y)}, Body: check})
	letReadyRun(t, rt)
	if after.Load() {
		t.Error("a task that follows all memory has run")
	}
	close(release)
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Every construct reports an invalid depend clause at once and generates nothing.
func TestDependItemsThatAreNoneAreRefusedByEveryConstruct(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newKernel(t, rt, vkomp.KernelSource{Name: "double", SPIRV: doubleSPIRV, Host: func(*vkomp.HostCall) error { return nil }})
		v := ramp(64)
		target := vkomp.Target{Kernel: k, Range: vkomp.Range{X: 64}, Args: []vkomp.Arg{vkomp.ToFrom(v), vkomp.Value(uint32(64))}}
		never := func(context.Context) error { t.Error("a body ran"); return nil }
		constructs := map[string]func(items []vkomp.Depend) error{
			"Task": func(items []vkomp.Depend) error {
				return rt.Task(t.Context(), vkomp.Task{Depend: items, Body: never})
			},
			"undeferred Task": func(items []vkomp.Depend) error {
				return rt.Task(t.Context(), vkomp.Task{If: vkomp.If(false), Depend: items, Body: never})
			},
			"merged Task": func(items []vkomp.Depend) error {
				return rt.Task(t.Context(), vkomp.Task{If: vkomp.If(false), Mergeable: true, Depend: items, Body: never})
			},
			"detachable Task": func(items []vkomp.Depend) error {
				var event vkomp.Event
				err := rt.Task(t.Context(), vkomp.Task{Detach: &event, Depend: items, Body: never})
				if fulfilled := event.Fulfill(); !errors.Is(fulfilled, vkomp.ErrInvalidArgument) {
					t.Errorf("the event of a task that was not generated: %v", fulfilled)
				}
				return err
			},
			"transparent Task": func(items []vkomp.Depend) error {
				return rt.Task(t.Context(), vkomp.Task{Transparent: vkomp.ImpEx, Depend: items, Body: never})
			},
			"included Target": func(items []vkomp.Depend) error {
				target.NoWait, target.Depend = false, items
				return rt.Target(t.Context(), target)
			},
			"deferred Target": func(items []vkomp.Depend) error {
				target.NoWait, target.Depend = true, items
				return rt.Target(t.Context(), target)
			},
			"Target with DependArgs": func(items []vkomp.Depend) error {
				derived := target
				derived.DependArgs, derived.Depend = true, items
				return rt.Target(t.Context(), derived)
			},
			"TargetData": func(items []vkomp.Depend) error {
				return rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(v)}, Depend: items}, never)
			},
			"deferred TargetData": func(items []vkomp.Depend) error {
				return rt.TargetData(t.Context(), vkomp.TargetData{NoWait: true, Maps: []vkomp.Arg{vkomp.To(v)}, Depend: items}, never)
			},
			"Taskwait":       func(items []vkomp.Depend) error { return rt.Taskwait(t.Context(), items...) },
			"TaskwaitNoWait": func(items []vkomp.Depend) error { return rt.TaskwaitNoWait(t.Context(), items...) },
		}
		var uninitialised vkomp.Depobj
		for what, item := range map[string]vkomp.Depend{
			"the zero item": {}, "an unknown kind": vkomp.DependOn(6, v), "all memory of a slice": vkomp.DependOn(vkomp.DependInOutAllMemory, v), "an uninitialised object": uninitialised.Depend(),
			"elements without size": vkomp.Out(make([]struct{}, 2)),
		} {
			for name, construct := range constructs {
				for _, items := range [][]vkomp.Depend{{item}, {vkomp.In(v), item}} {
					if err := construct(items); !errors.Is(err, vkomp.ErrInvalidDepend) || !strings.Contains(err.Error(), "depend item") {
						t.Errorf("%s with %s: %v", name, what, err)
					}
				}
			}
		}
		s := rt.Stats()
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Errorf("a wait afterwards: %v", err)
		}
		if s.Tasks != 0 || s.Dispatches+s.HostRegions != 0 || s.Storage.Allocations != 0 || v[1] != 1 {
			t.Errorf("%d tasks, %d dispatches, %d host regions, %d allocations, v[1] = %v", s.Tasks, s.Dispatches, s.HostRegions, s.Storage.Allocations, v[1])
		}
	})
}

func TestEmptySlicesOrderNothing(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	x := []int{1, 2}
	release := make(chan struct{})
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x), vkomp.Out(x[:0])}, Body: func(context.Context) error { <-release; return nil }})
	for _, item := range []vkomp.Depend{vkomp.In(x[1:1]), vkomp.InOut([]int(nil)), vkomp.InOutSet(x[2:]), vkomp.In([]struct{}{})} {
		ran := make(chan struct{})
		generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{item}, Body: func(context.Context) error { close(ran); return nil }})
		// It runs although the other task is not complete.
		<-ran
	}
	close(release)
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestIterateGivesTheItemsOfItsRange(t *testing.T) {
	x := make([]int, 10)
	for _, c := range []struct {
		begin, end, step int
		want             []int
	}{
		{0, 3, 1, []int{0, 1, 2}}, {0, 3, 0, []int{0, 1, 2}}, {1, 8, 3, []int{1, 4, 7}}, {2, 2, 1, nil}, {3, 1, 1, nil},
		{3, 0, -1, []int{3, 2, 1}}, {9, 0, -4, []int{9, 5, 1}}, {0, 3, -1, nil},
	} {
		var want []vkomp.Depend
		for _, i := range c.want {
			want = append(want, vkomp.In(x[i:i+1]))
		}
		got := vkomp.Iterate(c.begin, c.end, c.step, func(i int) vkomp.Depend { return vkomp.In(x[i : i+1]) })
		if !slices.Equal(got, want) {
			t.Errorf("%d:%d:%d gives %+v, want %+v", c.begin, c.end, c.step, got, want)
		}
	}
}
