package vkomp_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// openTasks returns a runtime without non-host devices and with those environment variables.
func openTasks(t testing.TB, pairs ...string) *vkomp.Runtime {
	t.Helper()
	return vktest.Open(t, vktest.Host, func(o *vkomp.Options) {
		disabled := o.LookupEnv
		set := environment(pairs...)
		o.LookupEnv = func(name string) (string, bool) {
			if value, ok := set(name); ok {
				return value, true
			}
			return disabled(name)
		}
	})
}

// generate generates a task as a child of ctx's region.
func generate(t testing.TB, rt *vkomp.Runtime, ctx context.Context, task vkomp.Task) {
	t.Helper()
	if err := rt.Task(ctx, task); err != nil {
		t.Fatal(err)
	}
}

// awaitState waits until a task with that label is in the graph in that state.
func awaitState(rt *vkomp.Runtime, label string, state vkomp.GraphState) {
	for {
		for _, task := range rt.Graph().Tasks {
			if task.Label == label && task.State == state {
				return
			}
		}
		runtime.Gosched()
	}
}

func nothing(context.Context) error { return nil }

// goroutine returns the ID of the calling goroutine.
func goroutine() string {
	var b [64]byte
	text, _, _ := strings.Cut(string(b[:runtime.Stack(b[:], false)]), "[")
	return text
}

func TestPanicInBodyBecomesAnErrorWithItsStack(t *testing.T) {
	rt := openTasks(t)
	broken := errors.New("broken")
	for name, task := range map[string]vkomp.Task{
		"deferred":   {},
		"undeferred": {If: vkomp.If(false)},
		"merged":     {If: vkomp.If(false), Mergeable: true},
		"final":      {Final: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, value := range []any{broken, "ouch"} {
				task.Label, task.Body = "explodes", func(context.Context) error { explode(value); return nil }
				err := errors.Join(rt.Task(t.Context(), task), rt.Taskwait(t.Context()))
				var panicked *vkomp.PanicError
				var failed *vkomp.TaskError
				if !errors.As(err, &panicked) || panicked.Value != value || !strings.Contains(string(panicked.Stack), "vkomp_test.explode") {
					t.Errorf("got %v", err)
				}
				if !errors.As(err, &failed) || failed.Task != "explodes" {
					t.Errorf("the error does not name the task: %v", err)
				}
				if value == broken && !errors.Is(err, broken) {
					t.Errorf("the panic's error is not in %v", err)
				}
			}
		})
	}
}

//go:noinline
func explode(value any) { panic(value) }

func TestGoexitInBodyIsAFailure(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "1")
	exit := func(context.Context) error { runtime.Goexit(); return nil }
	generate(t, rt, t.Context(), vkomp.Task{Label: "leaves", Body: exit})
	if err := rt.Taskwait(t.Context()); err == nil || !strings.Contains(err.Error(), `"leaves"`) || !strings.Contains(err.Error(), "Goexit") {
		t.Errorf("deferred: %v", err)
	}
	// The goroutine that exited had the only place.
	ran := false
	generate(t, rt, t.Context(), vkomp.Task{Body: func(context.Context) error { ran = true; return nil }})
	if err := rt.Taskwait(t.Context()); err != nil || !ran {
		t.Errorf("the next task: ran %v, %v", ran, err)
	}
	// An included body ends the goroutine of its construct, and is then complete.
	for name, task := range map[string]vkomp.Task{"undeferred": {If: vkomp.If(false)}, "merged": {If: vkomp.If(false), Mergeable: true}} {
		var gone sync.WaitGroup
		returned := false
		gone.Go(func() {
			task.Body = exit
			_ = rt.Task(context.Background(), task)
			returned = true
		})
		gone.Wait()
		if returned {
			t.Errorf("%s: the construct returned", name)
		}
		if err := rt.Taskwait(t.Context()); err != nil && !strings.Contains(err.Error(), "Goexit") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if tasks := rt.Graph().Tasks; len(tasks) != 0 {
		t.Errorf("left in the graph: %+v", tasks)
	}
}

func TestFailureFailsDependentsUntilItIsReportedAndNobodyElse(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	broken := errors.New("broken")
	x, y, z := []int{0}, []int{0}, []int{0}
	release := make(chan struct{})
	never := func(context.Context) error { t.Error("a dependent ran"); return nil }
	var siblings atomic.Int32
	sibling := func(context.Context) error { siblings.Add(1); return nil }
	generate(t, rt, t.Context(), vkomp.Task{Label: "root", Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { <-release; return broken }})
	generate(t, rt, t.Context(), vkomp.Task{Label: "dependent", Depend: []vkomp.Depend{vkomp.In(x), vkomp.Out(y)}, Body: never})
	generate(t, rt, t.Context(), vkomp.Task{Label: "dependent of it", Depend: []vkomp.Depend{vkomp.In(y)}, Body: never})
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(z)}, Body: sibling})
	close(release)
	// The undeferred task below is generated after the failure.
	for err := error(nil); err == nil; runtime.Gosched() {
		err = rt.Task(t.Context(), vkomp.Task{Label: "late", If: vkomp.If(false), Depend: []vkomp.Depend{vkomp.In(x)}, Body: never})
		var failed *vkomp.TaskError
		if !errors.Is(err, broken) || !errors.As(err, &failed) || failed.Task != "late" || !failed.Dependent {
			t.Errorf("undeferred after the failure: %v", err)
			break
		}
	}
	generate(t, rt, t.Context(), vkomp.Task{Label: "later", Depend: []vkomp.Depend{vkomp.InOut(y)}, Body: never})
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.In(z)}, Body: sibling})
	err := rt.Taskwait(t.Context())
	var failed *vkomp.TaskError
	if !errors.Is(err, broken) || !errors.As(err, &failed) || failed.Task != "root" || failed.Dependent {
		t.Errorf("Taskwait: %v", err)
	}
	if !strings.Contains(err.Error(), "3 dependent") {
		t.Errorf("dependents are not counted: %v", err)
	}
	if n := siblings.Load(); n != 2 {
		t.Errorf("%d of 2 siblings ran", n)
	}
	ran := false
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(x), vkomp.InOut(y)}, Body: func(context.Context) error { ran = true; return nil }})
	if err := rt.Taskwait(t.Context()); err != nil || !ran {
		t.Errorf("after the report: ran %v, %v", ran, err)
	}
}

func TestUndeferredFailureIsReportedByTheConstructAlone(t *testing.T) {
	rt := openTasks(t)
	broken := errors.New("broken")
	x := []int{0}
	for _, mergeable := range []bool{false, true} {
		err := rt.Task(t.Context(), vkomp.Task{Label: "u", If: vkomp.If(false), Mergeable: mergeable, Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { return broken }})
		var failed *vkomp.TaskError
		if !errors.Is(err, broken) || !errors.As(err, &failed) || failed.Task != "u" {
			t.Errorf("Task: %v", err)
		}
		ran := false
		generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.In(x)}, Body: func(context.Context) error { ran = true; return nil }})
		if err := rt.Taskwait(t.Context()); err != nil || !ran {
			t.Errorf("a later task: ran %v, %v", ran, err)
		}
	}
}

func TestIncludedBodiesRunOnTheCallersGoroutine(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	check := func(ctx context.Context, name string, caller string, task vkomp.Task) {
		ran := false
		task.Body = func(context.Context) error {
			ran = true
			if g := goroutine(); g != caller {
				t.Errorf("%s: the body ran on %s, its construct on %s", name, g, caller)
			}
			return nil
		}
		generate(t, rt, ctx, task)
		if !ran {
			t.Errorf("%s: the construct returned before the body ran", name)
		}
	}
	inside := func(ctx context.Context) error {
		g := goroutine()
		if !rt.InFinal(ctx) {
			t.Error("not in a final task")
		}
		check(ctx, "child of a final task", g, vkomp.Task{})
		check(ctx, "final child of a final task", g, vkomp.Task{Final: true})
		check(ctx, "If(true) in a final task", g, vkomp.Task{If: vkomp.If(true)})
		check(ctx, "merged child of a final task", g, vkomp.Task{Mergeable: true})
		return rt.Task(ctx, vkomp.Task{Body: func(ctx context.Context) error {
			if !rt.InFinal(ctx) {
				t.Error("a grandchild is not in a final task")
			}
			check(ctx, "grandchild of a final task", g, vkomp.Task{})
			return nil
		}})
	}
	if rt.InFinal(t.Context()) {
		t.Error("the initial task is final")
	}
	check(t.Context(), "undeferred", goroutine(), vkomp.Task{If: vkomp.If(false)})
	generate(t, rt, t.Context(), vkomp.Task{If: vkomp.If(false), Body: func(ctx context.Context) error {
		if rt.InFinal(ctx) {
			t.Error("an undeferred task is final")
		}
		return nil
	}})
	generate(t, rt, t.Context(), vkomp.Task{Final: true, Body: inside})
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestMergedTaskSharesTheRegionOfItsGenerator(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	for _, merged := range []bool{true, false} {
		release := make(chan struct{})
		var child atomic.Bool
		generate(t, rt, context.Background(), vkomp.Task{If: vkomp.If(false), Mergeable: merged, Body: func(ctx context.Context) error {
			generate(t, rt, ctx, vkomp.Task{Body: func(context.Context) error { <-release; child.Store(true); return nil }})
			return nil
		}})
		opened := make(chan struct{})
		opens := vkomp.Task{Label: "opens", Body: func(context.Context) error { close(release); close(opened); return nil }}
		if merged {
			// A child of the generator, for which its Taskwait waits.
			generate(t, rt, context.Background(), opens)
			if err := rt.Taskwait(context.Background()); err != nil {
				t.Fatal(err)
			}
			if !child.Load() {
				t.Error("Taskwait did not wait for the child of a merged task")
			}
			continue
		}
		// A grandchild of the generator, for which Taskwait does not wait.
		if err := rt.Taskwait(context.Background()); err != nil {
			t.Fatal(err)
		}
		if child.Load() {
			t.Error("the grandchild has run")
		}
		generate(t, rt, context.Background(), opens)
		<-opened
	}
}

func TestMergedTaskCanWaitForChildrenAndDependOnItsOwnStorage(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	x := []int{1}
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: func(context.Context) error { x[0] *= 3; return nil }})
	generate(t, rt, t.Context(), vkomp.Task{If: vkomp.If(false), Mergeable: true, Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: func(ctx context.Context) error {
		if x[0] != 3 {
			t.Errorf("x = %d in the merged task, want 3", x[0])
		}
		generate(t, rt, ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: func(context.Context) error { x[0] += 4; return nil }})
		return rt.Taskwait(ctx)
	}})
	if x[0] != 7 {
		t.Errorf("x = %d after the merged task, want 7", x[0])
	}
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMergeableTaskStillExcludesOthers(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "1")
	x := []int{0}
	var other atomic.Bool
	exclusive := []vkomp.Depend{vkomp.MutexInOutSet(x)}
	generate(t, rt, t.Context(), vkomp.Task{If: vkomp.If(false), Mergeable: true, Depend: exclusive, Body: func(context.Context) error {
		generate(t, rt, t.Context(), vkomp.Task{Depend: exclusive, Body: func(context.Context) error { other.Store(true); return nil }})
		letReadyRun(t, rt)
		if other.Load() {
			t.Error("two tasks with mutexinoutset of one element overlapped")
		}
		return nil
	}})
	if err := rt.Taskwait(t.Context()); err != nil || !other.Load() {
		t.Errorf("the other ran: %v, %v", other.Load(), err)
	}
}

func TestDefaultDeviceBelongsToTheTaskRegion(t *testing.T) {
	rt := vktest.Open(t)
	device, host := rt.DefaultDevice(t.Context()), rt.InitialDevice()
	set := func(ctx context.Context, d vkomp.Device) {
		t.Helper()
		if err := rt.SetDefaultDevice(ctx, d); err != nil {
			t.Error(err)
		}
	}
	check := func(ctx context.Context, where string, want vkomp.Device) {
		t.Helper()
		if got := rt.DefaultDevice(ctx); got != want {
			t.Errorf("%s: the default device is %d, want %d", where, got.Number(), want.Number())
		}
	}
	release := make(chan struct{})
	generate(t, rt, t.Context(), vkomp.Task{Body: func(ctx context.Context) error {
		<-release
		// The generator's value was copied when the task was generated.
		check(ctx, "deferred task", device)
		set(ctx, host)
		check(ctx, "deferred task after setting it", host)
		generate(t, rt, ctx, vkomp.Task{Body: func(ctx context.Context) error { check(ctx, "its child", host); return nil }})
		return rt.Taskwait(ctx)
	}})
	set(t.Context(), host)
	close(release)
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Fatal(err)
	}
	set(t.Context(), device)
	for name, task := range map[string]vkomp.Task{"undeferred": {If: vkomp.If(false)}, "deferred": {}, "transparent": {Transparent: vkomp.ImpEx}} {
		task.Body = func(ctx context.Context) error {
			set(ctx, host)
			generate(t, rt, ctx, vkomp.Task{Body: func(ctx context.Context) error {
				check(ctx, "child of a task that set its own, "+name, host)
				return nil
			}})
			return rt.Taskwait(ctx)
		}
		generate(t, rt, t.Context(), task)
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Fatal(err)
		}
		check(t.Context(), "after a task that set its own, "+name, device)
	}
	// Constructs that are not tasks share the region's value.
	if err := rt.Taskgroup(t.Context(), func(ctx context.Context) error { set(ctx, host); return nil }); err != nil {
		t.Fatal(err)
	}
	check(t.Context(), "after a taskgroup that set it", host)
	set(t.Context(), device)
	generate(t, rt, t.Context(), vkomp.Task{If: vkomp.If(false), Mergeable: true, Body: func(ctx context.Context) error { set(ctx, host); return nil }})
	check(t.Context(), "after a merged task that set it", host)
	if err := rt.SetDefaultDevice(t.Context(), vkomp.Device{}); !errors.Is(err, vkomp.ErrInvalidDevice) {
		t.Errorf("the zero Device: %v", err)
	}
	check(t.Context(), "after a refused one", host)
}

func TestPoolRunsAtMostSoManyBodiesAtOnce(t *testing.T) {
	for _, places := range []int{1, 3} {
		rt := openTasks(t, "OMP_NUM_THREADS", strconv.Itoa(places))
		var running, most atomic.Int32
		var full sync.WaitGroup
		full.Add(places)
		count := func(f func()) {
			n := running.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			f()
			running.Add(-1)
		}
		for range places {
			// The tasks need all places at the same time; otherwise none of them could end.
			generate(t, rt, t.Context(), vkomp.Task{Body: func(context.Context) error {
				count(func() { full.Done(); full.Wait() })
				return nil
			}})
		}
		for range 50 {
			generate(t, rt, t.Context(), vkomp.Task{Body: func(ctx context.Context) error {
				count(runtime.Gosched)
				for range 2 {
					generate(t, rt, ctx, vkomp.Task{Body: func(context.Context) error { count(runtime.Gosched); return nil }})
				}
				err := rt.Taskwait(ctx)
				// The body has a place again.
				count(runtime.Gosched)
				return err
			}})
		}
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if m := int(most.Load()); m != places {
			t.Errorf("%d bodies at once on %d places", m, places)
		}
	}
}

func TestNestingOfAnyDepthNeedsOnePlace(t *testing.T) {
	const depth = 10000
	rt := openTasks(t, "OMP_NUM_THREADS", "1")
	sum := 0
	var nest func(level int) func(context.Context) error
	nest = func(level int) func(context.Context) error {
		return func(ctx context.Context) error {
			if level < depth {
				if err := rt.Task(ctx, vkomp.Task{Body: nest(level + 1)}); err != nil {
					return err
				}
				if err := rt.Taskwait(ctx); err != nil {
					return err
				}
			}
			sum += level
			return nil
		}
	}
	generate(t, rt, t.Context(), vkomp.Task{Body: nest(1)})
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := depth * (depth + 1) / 2; sum != want {
		t.Errorf("the levels sum up to %d, want %d", sum, want)
	}
}

// Every construct that waits frees its place for the tasks it waits for.
func TestEveryWaitGivesItsPlaceBack(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "1")
	x := []int{0}
	k := newKernel(t, rt, vkomp.KernelSource{Name: "k", Host: func(*vkomp.HostCall) error { return nil }})
	deferred := vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: func(context.Context) error { x[0]++; return nil }}
	depend := []vkomp.Depend{vkomp.InOut(x)}
	for name, wait := range map[string]func(ctx context.Context) error{
		"Taskwait":        func(ctx context.Context) error { return rt.Taskwait(ctx) },
		"Taskwait depend": func(ctx context.Context) error { return rt.Taskwait(ctx, depend...) },
		"Taskgroup": func(ctx context.Context) error {
			return rt.Taskgroup(ctx, func(ctx context.Context) error { return rt.Task(ctx, deferred) })
		},
		"undeferred Task": func(ctx context.Context) error {
			return rt.Task(ctx, vkomp.Task{If: vkomp.If(false), Depend: depend, Body: nothing})
		},
		"merged Task": func(ctx context.Context) error {
			return rt.Task(ctx, vkomp.Task{If: vkomp.If(false), Mergeable: true, Depend: depend, Body: nothing})
		},
		"included Target": func(ctx context.Context) error {
			return rt.Target(ctx, vkomp.Target{Kernel: k, Range: vkomp.Range{X: 1}, Args: []vkomp.Arg{vkomp.ToFrom(x)}, Depend: depend})
		},
		"TargetData": func(ctx context.Context) error {
			return rt.TargetData(ctx, vkomp.TargetData{Depend: depend}, nothing)
		},
		"undeferred Task that waits": func(ctx context.Context) error {
			return rt.Task(ctx, vkomp.Task{If: vkomp.If(false), Body: func(ctx context.Context) error {
				if err := rt.Task(ctx, deferred); err != nil {
					return err
				}
				return rt.Taskwait(ctx)
			}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			generate(t, rt, t.Context(), vkomp.Task{Body: func(ctx context.Context) error {
				for range 3 {
					if err := rt.Task(ctx, deferred); err != nil {
						return err
					}
					if err := wait(ctx); err != nil {
						return err
					}
				}
				return rt.Taskwait(ctx)
			}})
			if err := rt.Taskwait(t.Context()); err != nil {
				t.Error(err)
			}
			// There is exactly one place again.
			var running atomic.Int32
			for range 20 {
				generate(t, rt, t.Context(), vkomp.Task{Body: func(context.Context) error {
					if n := running.Add(1); n > 1 {
						t.Errorf("%d bodies at once", n)
					}
					for range 100 {
						runtime.Gosched()
					}
					running.Add(-1)
					return nil
				}})
			}
			if err := rt.Taskwait(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPriorityOrdersReadyTasksUpToItsMaximum(t *testing.T) {
	for _, c := range []struct {
		maximum string
		want    []int
	}{
		// Without OMP_MAX_TASK_PRIORITY all priorities are 0.
		{"", []int{1, 5, 3, 9, -2, 5}},
		{"5", []int{5, 9, 5, 3, 1, -2}},
		{"100", []int{9, 5, 5, 3, 1, -2}},
	} {
		rt := openTasks(t, "OMP_NUM_THREADS", "1", "OMP_MAX_TASK_PRIORITY", c.maximum)
		k := newKernel(t, rt, vkomp.KernelSource{Name: "notes", Host: func(*vkomp.HostCall) error { return nil }})
		release := make(chan struct{})
		generate(t, rt, t.Context(), vkomp.Task{Body: func(context.Context) error { <-release; return nil }})
		var ran []int
		for _, p := range []int{1, 5, 3, 9, -2, 5} {
			generate(t, rt, t.Context(), vkomp.Task{Priority: p, Body: func(context.Context) error { ran = append(ran, p); return nil }})
		}
		// A target region of the initial device has a priority as well.
		before := -1
		note := newKernel(t, rt, vkomp.KernelSource{Name: "notes", Host: func(*vkomp.HostCall) error { before = len(ran); return nil }})
		for _, target := range []vkomp.Target{{Kernel: k}, {Kernel: note, Priority: 100}} {
			target.Range, target.NoWait = vkomp.Range{X: 1}, true
			if err := rt.Target(t.Context(), target); err != nil {
				t.Fatal(err)
			}
		}
		close(release)
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(ran, c.want) {
			t.Errorf("with a maximum of %q tasks ran in the order %v, want %v", c.maximum, ran, c.want)
		}
		if want := map[string]int{"": 6, "5": 3, "100": 0}[c.maximum]; before != want {
			t.Errorf("with a maximum of %q the target region came after %d tasks, want %d", c.maximum, before, want)
		}
	}
}

func TestTaskyieldLetsAReadyTaskRun(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "1")
	var other atomic.Bool
	generate(t, rt, t.Context(), vkomp.Task{Body: func(ctx context.Context) error {
		if err := rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { other.Store(true); return nil }}); err != nil {
			return err
		}
		// There is one place, and this body holds it.
		for !other.Load() {
			rt.Taskyield(ctx)
		}
		return rt.Taskwait(ctx)
	}})
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Fatal(err)
	}
	rt.Taskyield(t.Context())
}

func TestTransparentTasksConnectTheirChildrenWithTheirSiblings(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	for _, c := range []struct {
		kind             vkomp.Transparency
		imports, exports bool
	}{
		{vkomp.NotImpex, false, false}, {vkomp.Import, true, false}, {vkomp.Export, false, true}, {vkomp.ImpEx, true, true},
	} {
		t.Run(strconv.Itoa(int(c.kind)), func(t *testing.T) {
			x, y := []int{0}, []int{0}
			// x is used before the transparent task and by its child: only an imported
			// dependence orders these two.
			release := make(chan struct{})
			childRan := make(chan struct{})
			var before, child, after atomic.Bool
			generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error {
				if !c.imports {
					// The child runs first; otherwise this would never end.
					<-childRan
				} else {
					<-release
				}
				before.Store(true)
				return nil
			}})
			generated := make(chan struct{})
			generate(t, rt, t.Context(), vkomp.Task{Transparent: c.kind, Body: func(ctx context.Context) error {
				defer close(generated)
				return rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.In(x)}, Body: func(context.Context) error {
					if c.imports != before.Load() {
						t.Errorf("the sibling before had ended: %v", before.Load())
					}
					close(childRan)
					return nil
				}})
			}})
			<-generated
			if c.imports {
				letReadyRun(t, rt)
			}
			close(release)
			<-childRan
			if err := rt.Taskwait(t.Context()); err != nil {
				t.Fatal(err)
			}

			// y is used by the child and by a sibling that depends on the transparent task:
			// only an exported dependence orders these two.
			release, generated = make(chan struct{}), make(chan struct{})
			ended := make(chan struct{})
			generate(t, rt, t.Context(), vkomp.Task{Transparent: c.kind, Depend: []vkomp.Depend{vkomp.Out(y)}, Body: func(ctx context.Context) error {
				defer close(generated)
				return rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(y)}, Body: func(context.Context) error {
					defer close(ended)
					<-release
					child.Store(true)
					return nil
				}})
			}})
			<-generated
			generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.In(y)}, Body: func(context.Context) error {
				after.Store(true)
				if c.exports != child.Load() {
					t.Errorf("the child of the task before had ended: %v", child.Load())
				}
				return nil
			}})
			// Twice: the transparent task ends, its successor becomes ready, and runs.
			letReadyRun(t, rt)
			letReadyRun(t, rt)
			letReadyRun(t, rt)
			if after.Load() == c.exports {
				t.Errorf("the successor has run: %v", after.Load())
			}
			close(release)
			if err := rt.Taskwait(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-ended
		})
	}
	err := rt.Task(t.Context(), vkomp.Task{Transparent: 4, Body: nothing})
	if !errors.Is(err, vkomp.ErrInvalidArgument) || !strings.Contains(err.Error(), "transparent(4)") {
		t.Errorf("transparent(4): %v", err)
	}
}

// letReadyRun returns when every task that was ready at the call has started. It is for a runtime
// with one free place, on which tasks of equal priority start in the order in which they became
// ready.
func letReadyRun(t testing.TB, rt *vkomp.Runtime) {
	t.Helper()
	ran := make(chan struct{})
	generate(t, rt, context.Background(), vkomp.Task{Label: "after all that is ready", Body: func(context.Context) error { close(ran); return nil }})
	<-ran
}

func TestUndeferredExportingTaskIsFollowedByAllLaterSiblings(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	x := []int{0}
	release := make(chan struct{})
	ended := make(chan struct{})
	var child, after atomic.Bool
	generate(t, rt, t.Context(), vkomp.Task{If: vkomp.If(false), Transparent: vkomp.Export, Body: func(ctx context.Context) error {
		return rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error {
			defer close(ended)
			<-release
			child.Store(true)
			return nil
		}})
	}})
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.In(x)}, Body: func(context.Context) error {
		after.Store(true)
		if !child.Load() {
			t.Error("a later sibling did not follow the child")
		}
		return nil
	}})
	letReadyRun(t, rt)
	letReadyRun(t, rt)
	if after.Load() {
		t.Error("the later sibling has run")
	}
	close(release)
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-ended
}

// OpenMP 6.0 §17.9.5: tasks that depend on an exporting task, even through others, and the children
// of an importing one among them, can depend on the exporting task's children.
func TestChildrenOfAnExportingTaskAreFollowedThroughOthers(t *testing.T) {
	for name, between := range map[string]vkomp.Task{
		"through a plain task":   {},
		"by an importing task's": {Transparent: vkomp.Import},
	} {
		t.Run(name, func(t *testing.T) {
			rt := openTasks(t, "OMP_NUM_THREADS", "2")
			x, y, z := []int{0}, []int{0}, []int{0}
			release := make(chan struct{})
			var child, after atomic.Bool
			generate(t, rt, t.Context(), vkomp.Task{Transparent: vkomp.Export, Depend: []vkomp.Depend{vkomp.Out(y)}, Body: func(ctx context.Context) error {
				return rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error {
					<-release
					child.Store(true)
					return nil
				}})
			}})
			last := vkomp.Task{Depend: []vkomp.Depend{vkomp.In(z), vkomp.In(x)}, Body: func(context.Context) error {
				after.Store(true)
				if !child.Load() {
					t.Error("the child of the exporting task has not ended")
				}
				return nil
			}}
			between.Depend = []vkomp.Depend{vkomp.In(y), vkomp.Out(z)}
			between.Body = func(ctx context.Context) error {
				if between.Transparent == vkomp.NotImpex {
					return nil
				}
				return rt.Task(ctx, last)
			}
			generate(t, rt, t.Context(), between)
			if between.Transparent == vkomp.NotImpex {
				generate(t, rt, t.Context(), last)
			}
			// The exporting task ends, then the one in between, and the last one could run.
			for range 4 {
				letReadyRun(t, rt)
			}
			if after.Load() {
				t.Error("the last task has run")
			}
			close(release)
			if err := rt.Taskwait(t.Context()); err != nil {
				t.Fatal(err)
			}
			for !after.Load() {
				letReadyRun(t, rt)
			}
		})
	}
}

func TestDetachedTaskIsCompleteWhenItsEventIsFulfilledToo(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	for name, c := range map[string]struct{ undeferred, before, inside bool }{
		"before the body":                      {before: true},
		"in the body":                          {inside: true},
		"after the body":                       {},
		"in the body of an undeferred task":    {undeferred: true, inside: true},
		"after the body of an undeferred task": {undeferred: true},
	} {
		t.Run(name, func(t *testing.T) {
			x := []int{0}
			var event vkomp.Event
			var returned, fulfilled, after atomic.Bool
			start, bodyDone := make(chan struct{}), make(chan struct{})
			generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { <-start; return nil }})
			fulfil := func() {
				fulfilled.Store(true)
				if err := event.Fulfill(); err != nil {
					t.Error(err)
				}
			}
			task := vkomp.Task{Label: "detached", Detach: &event, If: vkomp.If(!c.undeferred), Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: func(context.Context) error {
				if c.inside {
					fulfil()
				}
				returned.Store(true)
				close(bodyDone)
				return nil
			}}
			if c.undeferred {
				close(start)
			}
			generate(t, rt, t.Context(), task)
			if c.undeferred && !returned.Load() {
				t.Error("Task has returned before the body")
			}
			if c.before {
				fulfil()
				if err := event.Fulfill(); !errors.Is(err, vkomp.ErrFulfilled) || !strings.Contains(err.Error(), `"detached"`) {
					t.Errorf("fulfilled twice: %v", err)
				}
			}
			generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.In(x)}, Body: func(context.Context) error {
				after.Store(true)
				if !fulfilled.Load() || !returned.Load() {
					t.Errorf("the successor began: fulfilled %v, body done %v", fulfilled.Load(), returned.Load())
				}
				return nil
			}})
			if !c.undeferred {
				letReadyRun(t, rt)
				if after.Load() {
					t.Error("the successor ran before the body")
				}
				close(start)
				<-bodyDone
			}
			if !c.inside && !c.before {
				letReadyRun(t, rt)
				letReadyRun(t, rt)
				if after.Load() {
					t.Error("the successor ran before the event was fulfilled")
				}
				done := make(chan struct{})
				go func() { defer close(done); fulfil() }()
				<-done
			}
			if err := rt.Taskwait(t.Context()); err != nil || !after.Load() {
				t.Errorf("Taskwait: %v; the successor ran: %v", err, after.Load())
			}
			if err := event.Fulfill(); err != nil {
				t.Errorf("fulfilled when the task is complete: %v", err)
			}
		})
	}
	if err := (vkomp.Event{}).Fulfill(); !errors.Is(err, vkomp.ErrInvalidArgument) {
		t.Errorf("the zero Event: %v", err)
	}
}

func TestDetachedTaskThatIsNotRunOrFailsNeedsNoEvent(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2", "OMP_CANCELLATION", "true")
	broken := errors.New("broken")
	x := []int{0}
	var event, other vkomp.Event
	generate(t, rt, t.Context(), vkomp.Task{Label: "fails", Detach: &event, Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { return broken }})
	generate(t, rt, t.Context(), vkomp.Task{Detach: &other, Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: func(context.Context) error { t.Error("a dependent ran"); return nil }})
	if err := rt.Taskwait(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Taskwait: %v", err)
	}
	if err := errors.Join(event.Fulfill(), other.Fulfill()); err != nil {
		t.Errorf("fulfilled afterwards: %v", err)
	}
	var event2 vkomp.Event
	if err := rt.Task(t.Context(), vkomp.Task{Detach: &event2, If: vkomp.If(false), Body: func(context.Context) error { return broken }}); !errors.Is(err, broken) {
		t.Errorf("undeferred: %v", err)
	}
	var event3 vkomp.Event
	err := rt.Taskgroup(t.Context(), func(ctx context.Context) error {
		release := make(chan struct{})
		generate(t, rt, ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { <-release; return nil }})
		generate(t, rt, ctx, vkomp.Task{Detach: &event3, Depend: []vkomp.Depend{vkomp.In(x)}, Body: func(context.Context) error { t.Error("a cancelled task ran"); return nil }})
		err := rt.CancelTaskgroup(ctx)
		close(release)
		return err
	})
	if err != nil {
		t.Errorf("a cancelled group with a detachable task: %v", err)
	}
	// The body leaves at a cancellation point, before anybody else has the event.
	var event4 vkomp.Event
	err = rt.Taskgroup(t.Context(), func(ctx context.Context) error {
		begun, cancelled := make(chan struct{}), make(chan struct{})
		generate(t, rt, ctx, vkomp.Task{Detach: &event4, Body: func(ctx context.Context) error {
			close(begun)
			<-cancelled
			return rt.CancellationPoint(ctx)
		}})
		<-begun
		defer close(cancelled)
		return rt.CancelTaskgroup(ctx)
	})
	if err := errors.Join(err, event4.Fulfill(), event4.Fulfill()); err != nil {
		t.Errorf("left at a cancellation point: %v", err)
	}
}

// Target tasks that depend on a detachable task start when its event is fulfilled.
func TestTargetTaskFollowsTheEventOfADetachedTask(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newKernel(t, rt, shaders.Saxpy)
		x, y := constant(100, 0), constant(100, 1)
		var event vkomp.Event
		generate(t, rt, t.Context(), vkomp.Task{Detach: &event, Depend: []vkomp.Depend{vkomp.Out(x)}, Body: nothing})
		target := saxpyOn(t, k, 2, x, y)
		target.NoWait, target.Depend = true, []vkomp.Depend{vkomp.In(x)}
		if err := rt.Target(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		fulfilled := make(chan error)
		go func() {
			for i := range x {
				x[i] = 3
			}
			fulfilled <- event.Fulfill()
		}()
		if err := <-fulfilled; err != nil {
			t.Fatal(err)
		}
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if y[99] != 7 {
			t.Errorf("y = %v, want 7", y[99])
		}
	})
}

func TestTaskClausesThatExcludeEachOther(t *testing.T) {
	rt := openTasks(t)
	var event vkomp.Event
	never := func(context.Context) error { t.Error("a body ran"); return nil }
	refused := func(ctx context.Context, what string, task vkomp.Task) {
		if err := rt.Task(ctx, task); !errors.Is(err, vkomp.ErrInvalidArgument) || !strings.Contains(err.Error(), `"odd"`) {
			t.Errorf("%s: %v", what, err)
		}
		if err := event.Fulfill(); !errors.Is(err, vkomp.ErrInvalidArgument) {
			t.Errorf("%s: the event is one: %v", what, err)
		}
	}
	refused(t.Context(), "no body", vkomp.Task{Label: "odd"})
	refused(t.Context(), "detach and mergeable", vkomp.Task{Label: "odd", Detach: &event, Mergeable: true, Body: never})
	refused(t.Context(), "transparent", vkomp.Task{Label: "odd", Transparent: 9, Body: never})
	generate(t, rt, t.Context(), vkomp.Task{Final: true, Body: func(ctx context.Context) error {
		refused(ctx, "detach in a final task", vkomp.Task{Label: "odd", Detach: &event, Body: never})
		return nil
	}})
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Error(err)
	}
	if n := rt.Stats().Tasks; n != 1 {
		t.Errorf("%d tasks were generated, want 1", n)
	}
	// A final task itself can be detachable.
	generate(t, rt, t.Context(), vkomp.Task{Final: true, Detach: &event, Body: nothing})
	if err := errors.Join(event.Fulfill(), rt.Taskwait(t.Context())); err != nil {
		t.Error(err)
	}
}

// Goroutines that a body starts may wait too; the task still has only one place.
func TestGoroutinesOfOneBodyShareItsPlace(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "1")
	var running atomic.Int32
	child := vkomp.Task{Body: func(context.Context) error {
		if n := running.Add(1); n > 1 {
			t.Errorf("%d bodies at once on one place", n)
		}
		for range 10 {
			runtime.Gosched()
		}
		running.Add(-1)
		return nil
	}}
	generate(t, rt, t.Context(), vkomp.Task{Body: func(ctx context.Context) error {
		var all sync.WaitGroup
		failures := make([]error, 4)
		for g := range failures {
			all.Go(func() {
				for range 200 {
					failures[g] = errors.Join(failures[g], rt.Task(ctx, child))
					rt.Taskyield(ctx)
					failures[g] = errors.Join(failures[g], rt.Taskwait(ctx))
				}
			})
		}
		all.Wait()
		return errors.Join(failures...)
	}})
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Error(err)
	}
}

// A region whose child exports its children is kept until these are complete too, although a failure in it waits to be
// reported.
func TestRegionsWithExportingChildrenAreKeptForThese(t *testing.T) {
	const regions = 50
	mine := errors.New("mine")
	rt, err := vkomp.Open(vkomp.Options{LookupEnv: environment("OMP_TARGET_OFFLOAD", "disabled")})
	must(t, err)
	var events [regions]vkomp.Event
	for i := range regions {
		must(t, rt.Task(t.Context(), vkomp.Task{If: vkomp.If(false), Body: func(ctx context.Context) error {
			x := make([]int, 1)
			return errors.Join(
				rt.Task(ctx, vkomp.Task{Label: "region's", Transparent: vkomp.Export, Body: func(ctx context.Context) error {
					return rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(x)}, Detach: &events[i], Body: nothing})
				}}),
				rt.Task(ctx, vkomp.Task{Label: "region's", Body: func(context.Context) error { return mine }}),
			)
		}}))
	}
	// From now on each region has a complete child whose children are not, and a failure.
	of := func(k vkomp.GraphTask) bool { return k.Label == "region's" && k.State != vkomp.GraphComplete }
	for slices.ContainsFunc(rt.Graph().Tasks, of) {
		runtime.Gosched()
	}
	for i := range events {
		must(t, events[i].Fulfill())
	}
	for deadline := time.Now().Add(20 * time.Second); rt.Orphans() > 0 && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	if n := rt.Orphans(); n != 0 {
		t.Errorf("%d regions are kept when all tasks are complete", n)
	}
	if err := rt.Close(); !errors.Is(err, mine) {
		t.Errorf("Close returned %v, want %v", err, mine)
	}
}

// A region that ends before its children is kept until they are complete, and no longer. Close reports their failures
// if nothing else has.
func TestRegionsThatEndBeforeTheirChildrenAreKeptForThese(t *testing.T) {
	const regions = 100
	mine := errors.New("mine")
	for _, grouped := range []bool{false, true} {
		rt, err := vkomp.Open(vkomp.Options{LookupEnv: environment("OMP_TARGET_OFFLOAD", "disabled")})
		must(t, err)
		gate := make(chan struct{})
		generate := func(ctx context.Context) error {
			defer close(gate)
			for i := range regions {
				must(t, rt.Task(ctx, vkomp.Task{If: vkomp.If(false), Body: func(ctx context.Context) error {
					return rt.Task(ctx, vkomp.Task{Body: func(context.Context) error {
						<-gate
						if i == 7 {
							return mine
						}
						return nil
					}})
				}}))
			}
			if n := rt.Orphans(); n != regions {
				t.Errorf("%d regions are kept while their children run, want %d", n, regions)
			}
			return nil
		}
		if grouped {
			err = rt.Taskgroup(t.Context(), generate)
		} else {
			err = generate(t.Context())
		}
		for deadline := time.Now().Add(20 * time.Second); rt.Orphans() > 0 && time.Now().Before(deadline); {
			runtime.Gosched()
		}
		if n := rt.Orphans(); n != 0 {
			t.Errorf("%d regions are kept when all tasks are complete", n)
		}
		closed := rt.Close()
		if errors.Is(err, mine) != grouped || errors.Is(closed, mine) == grouped {
			t.Errorf("grouped %v: the taskgroup returned %v, and Close %v", grouped, err, closed)
		}
	}
}
