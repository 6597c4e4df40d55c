package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/vkomp/vkomp"
)

// These tests check what the package documentation says about goroutines that share a runtime.

// fails is the body of a task that fails.
func fails(err error) func(context.Context) error { return func(context.Context) error { return err } }

func nothingToDo(context.Context) error { return nil }

// Siblings of one region share waits and errors.
func TestContextsOfTheInitialTaskShareWaitsAndErrors(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	type request struct{}
	a, b := context.WithValue(t.Context(), request{}, "a"), context.WithValue(t.Context(), request{}, "b")
	ofA := errors.New("of a")
	generate(t, rt, a, vkomp.Task{Body: fails(ofA)})
	if err := rt.Taskwait(b); !errors.Is(err, ofA) {
		t.Errorf("the wait of b: %v", err)
	}
	if err := rt.Taskwait(a); err != nil {
		t.Errorf("reported to both: %v", err)
	}
}

// Separate taskgroups have waits and errors of their own, but share dependences: a task that does
// not run because of another group's task is reported by its own group too.
func TestTaskgroupsReportTheirOwnTasks(t *testing.T) {
	for _, first := range []string{"a", "b"} {
		rt := openTasks(t, "OMP_NUM_THREADS", "2")
		ofA, x := errors.New("of a"), []int{0}
		gate, made := make(chan struct{}), make(chan struct{})
		waits := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{})}
		results := map[string]chan error{"a": make(chan error, 1), "b": make(chan error, 1)}
		group := func(name string, task vkomp.Task) {
			results[name] <- rt.Taskgroup(t.Context(), func(ctx context.Context) error {
				generate(t, rt, ctx, task)
				made <- struct{}{}
				<-waits[name]
				return nil
			})
		}
		go group("a", vkomp.Task{Label: "of a", Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { <-gate; return ofA }})
		<-made
		go group("b", vkomp.Task{Label: "of b", Depend: []vkomp.Depend{vkomp.In(x)}, Body: func(context.Context) error {
			t.Error("a dependent of a failed task ran")
			return nil
		}})
		<-made
		close(gate)
		other := map[string]string{"a": "b", "b": "a"}[first]
		close(waits[first])
		if err := <-results[first]; !errors.Is(err, ofA) {
			t.Errorf("group %s, the first to wait, reports %v", first, err)
		}
		close(waits[other])
		if err := <-results[other]; !errors.Is(err, ofA) {
			t.Errorf("group %s, the second, reports %v", other, err)
		}
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Errorf("reported once more: %v", err)
		}
	}
}

// A taskgroup whose context ends leaves nothing behind that makes later tasks fail, whether these are generated
// before or after what it has left behind is complete.
func TestTaskgroupCutShortFailsNothingLater(t *testing.T) {
	for name, at := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) { taskgroupCutShort(t, at) })
	}
}

func taskgroupCutShort(t *testing.T, complete bool) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	x, y, why, broken := []int{0}, []int{0}, errors.New("why"), errors.New("broken")
	started, gate := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancelCause(t.Context())
	err := rt.Taskgroup(ctx, func(ctx context.Context) error {
		generate(t, rt, ctx, vkomp.Task{Label: "failed", Depend: []vkomp.Depend{vkomp.Out(y)}, Body: fails(broken)})
		for len(rt.Graph().Tasks) > 0 {
			rt.Taskyield(ctx)
		}
		// One fails because its context has ended, and one is dropped for that reason.
		generate(t, rt, ctx, vkomp.Task{Label: "runs", Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(ctx context.Context) error {
			close(started)
			<-gate
			return context.Cause(ctx)
		}})
		<-started
		generate(t, rt, ctx, vkomp.Task{Label: "dropped", Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: nothingToDo})
		cancel(why)
		return nil
	})
	if !errors.Is(err, why) {
		t.Errorf("the group returned %v", err)
	}
	release := sync.OnceFunc(func() { close(gate) })
	defer release()
	if complete {
		release()
		for len(rt.Graph().Tasks) > 0 {
			rt.Taskyield(t.Context())
		}
	}
	ran := false
	err = rt.Taskgroup(t.Context(), func(ctx context.Context) error {
		defer release()
		return rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(x), vkomp.In(y)}, Body: func(context.Context) error { ran = true; return nil }})
	})
	if err != nil || !ran {
		t.Errorf("a later group on the same storage: %v, ran %v", err, ran)
	}
	// The enclosing wait returns real failures; those of dropped tasks were reported before.
	err = rt.Taskwait(t.Context())
	if !errors.Is(err, why) || !errors.Is(err, broken) || !strings.Contains(err.Error(), `"runs"`) || strings.Contains(err.Error(), `"dropped"`) || strings.Contains(err.Error(), "not run") {
		t.Errorf("the next wait reports %v", err)
	}
}

// An undeferred task has dependences, waits and failures of its own.
func TestTasksOfRequestsShareNothing(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "4")
	x, ofA := []int{0}, errors.New("of a")
	started, gate, hold := make(chan struct{}), make(chan struct{}), make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	request := func(body func(ctx context.Context) error) error {
		return rt.Task(t.Context(), vkomp.Task{If: vkomp.If(false), Label: "request", Body: func(ctx context.Context) error {
			return errors.Join(body(ctx), rt.Taskwait(ctx))
		}})
	}
	// find returns the ID of a's task, 0 if it is complete.
	find := func(g vkomp.Graph) uint64 {
		for _, task := range g.Tasks {
			if task.Label == "of a" {
				return task.ID
			}
		}
		return 0
	}
	a := make(chan error)
	go func() {
		a <- request(func(ctx context.Context) error {
			err := rt.Task(ctx, vkomp.Task{Label: "of a", Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { close(started); <-gate; return ofA }})
			<-hold
			return err
		})
	}()
	<-started
	other := func(when string) {
		ran := false
		err := request(func(ctx context.Context) error {
			err := errors.Join(
				rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOutAllMemory()}, Body: nothingToDo}),
				rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: func(context.Context) error { ran = true; return nil }}))
			g := rt.Graph()
			for _, edge := range g.Edges {
				if edge.From == find(g) {
					t.Errorf("%s: tasks of another request follow it", when)
					open() // otherwise they would wait for ever
				}
			}
			return err
		})
		if err != nil || !ran {
			t.Errorf("%s, on the same storage: %v, ran %v", when, err, ran)
		}
	}
	other("beside a task of a")
	open()
	for find(rt.Graph()) != 0 {
		rt.Taskyield(t.Context())
	}
	other("after the failure of a's task, which a has not reported")
	close(hold)
	if err := <-a; !errors.Is(err, ofA) {
		t.Errorf("a: %v", err)
	}
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Errorf("the initial task: %v", err)
	}
}

// Failures with the same text are reported once, with their number, by Taskwait and by Close.
func TestFailuresThatAreAlikeAreCounted(t *testing.T) {
	const n = 3000
	sentinel := errors.New("sentinel")
	generateAll := func(t *testing.T, rt *vkomp.Runtime, nested bool) {
		x := make([]int, n)
		for i := range n {
			task := vkomp.Task{Label: "item", Body: func(context.Context) error { return fmt.Errorf("broken: %w", sentinel) }}
			switch i % 3 {
			case 1:
				task.Depend = []vkomp.Depend{vkomp.Out(x[i : i+1])}
			case 2:
				task.Label, task.Body = "panics", func(context.Context) error { panic("at the disco") }
			}
			if nested {
				child := task
				task = vkomp.Task{Body: func(ctx context.Context) error { return rt.Task(ctx, child) }}
			}
			generate(t, rt, t.Context(), task)
		}
		generate(t, rt, t.Context(), vkomp.Task{Label: "another", Body: fails(errors.New("broken"))})
	}
	check := func(t *testing.T, err error) {
		t.Helper()
		var failed *vkomp.TaskError
		var panicked *vkomp.PanicError
		if !errors.Is(err, sentinel) || !errors.As(err, &failed) || !errors.As(err, &panicked) {
			t.Fatalf("got %.1000v", err)
		}
		text := err.Error()
		for part, times := range map[string]int{
			`task "item": broken: sentinel (and 1999 more like it)`: 1, `task "panics": panic: at the disco`: 1, `(and 999 more like it)`: 1,
			`task "another": broken`: 1, "broken": 2,
		} {
			if strings.Count(text, part) != times {
				t.Errorf("%q is there %d times, want %d, in %.3000s", part, strings.Count(text, part), times, text)
			}
		}
	}
	t.Run("taskwait", func(t *testing.T) {
		rt := openTasks(t, "OMP_NUM_THREADS", "2")
		generateAll(t, rt, false)
		check(t, rt.Taskwait(t.Context()))
	})
	for _, nested := range []bool{false, true} {
		t.Run(fmt.Sprint("close, nested ", nested), func(t *testing.T) {
			rt, err := vkomp.Open(vkomp.Options{LookupEnv: environment("OMP_TARGET_OFFLOAD", "disabled", "OMP_NUM_THREADS", "2")})
			must(t, err)
			generateAll(t, rt, nested)
			check(t, rt.Close())
		})
	}
}
