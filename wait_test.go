package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

func TestTaskgroupWaitsForDescendantsAndNobodyElse(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	release := make(chan struct{})
	var outside, descendants atomic.Int32
	generate(t, rt, t.Context(), vkomp.Task{Body: func(context.Context) error { <-release; outside.Add(1); return nil }})
	var nest func(depth int) func(context.Context) error
	nest = func(depth int) func(context.Context) error {
		return func(ctx context.Context) error {
			descendants.Add(1)
			if depth == 0 {
				return nil
			}
			// Nothing waits for the children here.
			return errors.Join(rt.Task(ctx, vkomp.Task{Body: nest(depth - 1)}), rt.Task(ctx, vkomp.Task{Body: nest(depth - 1)}))
		}
	}
	err := rt.Taskgroup(t.Context(), func(ctx context.Context) error { return rt.Task(ctx, vkomp.Task{Body: nest(5)}) })
	if n := descendants.Load(); err != nil || n != 63 || outside.Load() != 0 {
		t.Errorf("%d of 63 descendants ran, %d tasks outside of the group ended: %v", n, outside.Load(), err)
	}
	close(release)
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Error(err)
	}
	if err := rt.Taskgroup(t.Context(), nil); !errors.Is(err, vkomp.ErrInvalidArgument) {
		t.Errorf("without a body: %v", err)
	}
}

func TestTaskgroupReturnsTheFirstFailureOnceAndWaitsForAll(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	first, second := errors.New("first"), errors.New("second")
	x := []int{0}
	release := make(chan struct{})
	var ended atomic.Int32
	err := rt.Taskgroup(t.Context(), func(ctx context.Context) error {
		generate(t, rt, ctx, vkomp.Task{Body: func(ctx context.Context) error {
			// The group reports the failure of a descendant.
			return rt.Task(ctx, vkomp.Task{Label: "grandchild", Body: func(context.Context) error { defer close(release); return first }})
		}})
		generate(t, rt, ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { <-release; ended.Add(1); return second }})
		generate(t, rt, ctx, vkomp.Task{Body: func(context.Context) error { ended.Add(1); return nil }})
		return nil
	})
	var failed *vkomp.TaskError
	if !errors.As(err, &failed) || errors.Is(err, first) == errors.Is(err, second) {
		t.Errorf("got %v, want one of the two failures", err)
	}
	if n := ended.Load(); n != 2 {
		t.Errorf("%d of 2 tasks had ended", n)
	}
	ran := false
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: func(context.Context) error { ran = true; return nil }})
	if err := rt.Taskwait(t.Context()); err != nil || !ran {
		t.Errorf("a task after the report: ran %v, %v", ran, err)
	}
}

func TestFailureReportedInsideTheGroupIsNotReportedByIt(t *testing.T) {
	rt := openTasks(t)
	broken := errors.New("broken")
	fails := vkomp.Task{Body: func(context.Context) error { return broken }}
	err := rt.Taskgroup(t.Context(), func(ctx context.Context) error {
		generate(t, rt, ctx, fails)
		if err := rt.Taskwait(ctx); !errors.Is(err, broken) {
			t.Errorf("Taskwait in the group: %v", err)
		}
		inner := rt.Taskgroup(ctx, func(ctx context.Context) error { return rt.Task(ctx, fails) })
		if !errors.Is(inner, broken) {
			t.Errorf("the group inside: %v", inner)
		}
		return nil
	})
	if err != nil {
		t.Errorf("the group reports again: %v", err)
	}
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Errorf("Taskwait reports again: %v", err)
	}
}

func TestWaitsWhoseContextEndsNameTheTasks(t *testing.T) {
	rt := openTasks(t)
	gone := errors.New("gone")
	ended, end := context.WithCancelCause(t.Context())
	end(gone)
	var outside, inside vkomp.Event
	x := []int{0}
	generate(t, rt, t.Context(), vkomp.Task{Label: "outside", Detach: &outside, Depend: []vkomp.Depend{vkomp.Out(x)}, Body: nothing})
	generate(t, rt, t.Context(), vkomp.Task{Label: "after", Depend: []vkomp.Depend{vkomp.In(x)}, Body: nothing})
	refused(t, "taskwait", rt.Taskwait(ended), gone, `not complete: task "outside" (`, `task "after" (waits for other tasks)`)

	ctx, cancel := context.WithCancelCause(t.Context())
	group := rt.Taskgroup(ctx, func(ctx context.Context) error {
		begun := make(chan struct{})
		generate(t, rt, ctx, vkomp.Task{Label: "inside", Detach: &inside, Body: func(context.Context) error { close(begun); return nil }})
		<-begun // a task that has not begun is dropped
		cancel(gone)
		return nil
	})
	refused(t, "taskgroup", group, gone, `not complete: task "inside" (`)
	if strings.Contains(group.Error(), "outside") {
		t.Errorf("the group names a task outside of it: %v", group)
	}

	ctx, cancel = context.WithCancelCause(t.Context())
	go func() {
		awaitState(rt, "undeferred", vkomp.GraphWaiting)
		cancel(gone)
	}()
	undeferred := vkomp.Task{Label: "undeferred", If: vkomp.If(false), Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: nothing}
	refused(t, "undeferred", rt.Task(ctx, undeferred), gone, `task "undeferred" is not complete`)

	ctx, cancel = context.WithCancelCause(t.Context())
	go func() {
		awaitState(rt, "taskwait", vkomp.GraphWaiting)
		cancel(gone)
	}()
	if err := rt.Taskwait(ctx, vkomp.In(x)); !errors.Is(err, gone) || strings.Contains(err.Error(), "not complete") {
		t.Errorf("a taskwait with depend items names its own task: %v", err)
	}

	must(t, outside.Fulfill())
	must(t, inside.Fulfill())
	// The tasks that were dropped.
	_ = rt.Taskwait(t.Context())
	must(t, rt.Taskwait(ended))
}

func TestTaskgroupBodyErrorsAndPanics(t *testing.T) {
	rt := openTasks(t)
	broken := errors.New("broken")
	if err := rt.Taskgroup(t.Context(), func(context.Context) error { return broken }); err != broken {
		t.Errorf("the body's error: %v", err)
	}
	ran := false
	err := rt.Taskgroup(t.Context(), func(ctx context.Context) error {
		generate(t, rt, ctx, vkomp.Task{Body: func(context.Context) error { ran = true; return nil }})
		panic("ouch")
	})
	var panicked *vkomp.PanicError
	if !errors.As(err, &panicked) || !ran {
		t.Errorf("a panic: %v, and the group's task ran: %v", err, ran)
	}
	ran = false
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = rt.Taskgroup(context.Background(), func(ctx context.Context) error {
			generate(t, rt, ctx, vkomp.Task{Body: func(context.Context) error { runtime.Gosched(); ran = true; return nil }})
			runtime.Goexit()
			return nil
		})
		t.Error("Taskgroup returned")
	}()
	<-done
	if !ran {
		t.Error("a body that left by Goexit did not wait for the group's task")
	}
}

func TestCancelTaskgroupNeedsCancellation(t *testing.T) {
	for _, c := range []struct {
		value  string
		cancel bool
	}{{"true", true}, {" TRUE ", true}, {"false", false}, {"", false}} {
		t.Run(c.value, func(t *testing.T) {
			rt := openTasks(t, "OMP_NUM_THREADS", "2", "OMP_CANCELLATION", c.value)
			started, release := make(chan struct{}), make(chan struct{})
			var ran, grandchildren atomic.Int32
			x := []int{0}
			err := rt.Taskgroup(t.Context(), func(ctx context.Context) error {
				generate(t, rt, ctx, vkomp.Task{Label: "runs", Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(ctx context.Context) error {
					close(started)
					<-release
					if !c.cancel {
						return rt.CancellationPoint(ctx)
					}
					<-ctx.Done()
					if cause := context.Cause(ctx); !errors.Is(cause, vkomp.ErrCancelled) {
						t.Errorf("the body's context ended with %v", cause)
					}
					if err := rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { grandchildren.Add(1); return nil }}); !errors.Is(err, vkomp.ErrCancelled) {
						t.Errorf("a construct in the cancelled group: %v", err)
					}
					ran.Add(1)
					return rt.CancellationPoint(ctx)
				}})
				<-started
				for range 5 {
					generate(t, rt, ctx, vkomp.Task{Label: "waits", Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: func(context.Context) error { ran.Add(1); return nil }})
				}
				if err := rt.CancellationPoint(ctx); err != nil {
					t.Errorf("a cancellation point before: %v", err)
				}
				// The inner group is not the one that is cancelled, but is nested in it.
				err := rt.CancelTaskgroup(ctx)
				if point := rt.CancellationPoint(ctx); !errors.Is(point, err) {
					t.Errorf("a cancellation point afterwards: %v, want %v", point, err)
				}
				close(release)
				return err
			})
			if err != nil {
				t.Errorf("Taskgroup: %v", err)
			}
			want := int32(5)
			if c.cancel {
				want = 1
			}
			if n := ran.Load(); n != want || grandchildren.Load() != 0 {
				t.Errorf("%d bodies ran to their ends, want %d; %d grandchildren", n, want, grandchildren.Load())
			}
			// Dropped tasks do not count as failures, and their storage can be used.
			after := false
			generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: func(context.Context) error { after = true; return nil }})
			if err := rt.Taskwait(t.Context()); err != nil || !after {
				t.Errorf("after the group: ran %v, %v", after, err)
			}
		})
	}
	rt := openTasks(t, "OMP_CANCELLATION", "true")
	if err := rt.CancelTaskgroup(t.Context()); !errors.Is(err, vkomp.ErrInvalidArgument) {
		t.Errorf("outside of any taskgroup: %v", err)
	}
	if err := rt.CancellationPoint(t.Context()); err != nil {
		t.Errorf("a cancellation point outside of any taskgroup: %v", err)
	}
}

func TestCancelledGroupInsideLeavesTheOneAroundAlone(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "1", "OMP_CANCELLATION", "true")
	var outer, inner atomic.Int32
	count := func(n *atomic.Int32) vkomp.Task {
		return vkomp.Task{Body: func(context.Context) error { n.Add(1); return nil }}
	}
	err := rt.Taskgroup(t.Context(), func(ctx context.Context) error {
		// With one place the tasks below do not start before the wait.
		release := make(chan struct{})
		generate(t, rt, ctx, vkomp.Task{Body: func(context.Context) error { <-release; return nil }})
		generate(t, rt, ctx, count(&outer))
		defer func() { generate(t, rt, ctx, count(&outer)) }()
		return rt.Taskgroup(ctx, func(ctx context.Context) error {
			defer close(release)
			generate(t, rt, ctx, count(&inner))
			return rt.CancelTaskgroup(ctx)
		})
	})
	// The inner task was ready when the group was cancelled and may have started.
	if err != nil || outer.Load() != 2 {
		t.Errorf("%d of 2 tasks of the outer group ran: %v", outer.Load(), err)
	}
	// Cancelling from a task cancels the group that the task belongs to.
	var dropped atomic.Int32
	err = rt.Taskgroup(t.Context(), func(ctx context.Context) error {
		x := []int{0}
		generated := make(chan struct{})
		defer close(generated)
		generate(t, rt, ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(ctx context.Context) error {
			<-generated
			return rt.CancelTaskgroup(ctx)
		}})
		generate(t, rt, ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.In(x)}, Body: func(context.Context) error { dropped.Add(1); return nil }})
		return nil
	})
	if err != nil || dropped.Load() != 0 {
		t.Errorf("cancelled by a task: %d tasks ran after it, %v", dropped.Load(), err)
	}
}

func TestUndeferredTaskThatCancelsItsGroupHasNotFailed(t *testing.T) {
	rt := openTasks(t, "OMP_CANCELLATION", "true")
	for _, mergeable := range []bool{false, true} {
		err := rt.Taskgroup(t.Context(), func(ctx context.Context) error {
			if err := rt.Task(ctx, vkomp.Task{If: vkomp.If(false), Mergeable: mergeable, Body: rt.CancelTaskgroup}); err != nil {
				t.Errorf("mergeable %v: Task: %v", mergeable, err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("mergeable %v: %v", mergeable, err)
		}
		// In a group that is not cancelled, ErrCancelled is an error.
		err = rt.Taskgroup(t.Context(), func(ctx context.Context) error {
			err := rt.Task(ctx, vkomp.Task{If: vkomp.If(false), Mergeable: mergeable, Body: func(context.Context) error { return vkomp.ErrCancelled }})
			if !errors.Is(err, vkomp.ErrCancelled) {
				t.Errorf("mergeable %v, not cancelled: %v", mergeable, err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("mergeable %v: %v", mergeable, err)
		}
	}
}

// ErrCancelled is no failure in a cancelled group, by itself and wrapped, but what is joined with it is one.
func TestCancellationHidesNoOtherFailure(t *testing.T) {
	rt := openTasks(t, "OMP_CANCELLATION", "true")
	broken := errors.New("broken")
	for name, body := range map[string]func(ctx context.Context, body func(ctx context.Context) error) error{
		"taskgroup": func(ctx context.Context, body func(ctx context.Context) error) error { return body(ctx) },
		"task": func(ctx context.Context, body func(ctx context.Context) error) error {
			return rt.Task(ctx, vkomp.Task{Body: body})
		},
		"undeferred": func(ctx context.Context, body func(ctx context.Context) error) error {
			return rt.Task(ctx, vkomp.Task{Body: body, If: vkomp.If(false)})
		},
		"merged": func(ctx context.Context, body func(ctx context.Context) error) error {
			return rt.Task(ctx, vkomp.Task{Body: body, If: vkomp.If(false), Mergeable: true})
		},
	} {
		group := func(body2 func(ctx context.Context) error) error {
			return rt.Taskgroup(t.Context(), func(ctx context.Context) error { return body(ctx, body2) })
		}
		if err := group(func(ctx context.Context) error {
			return errors.Join(fmt.Errorf("at a point: %w", rt.CancelTaskgroup(ctx)), rt.CancellationPoint(ctx))
		}); err != nil {
			t.Errorf("%s: cancelled alone: %v", name, err)
		}
		if err := group(func(ctx context.Context) error { return errors.Join(broken, rt.CancelTaskgroup(ctx)) }); !errors.Is(err, broken) {
			t.Errorf("%s: joined: %v", name, err)
		}
		if err := group(func(ctx context.Context) error {
			generate(t, rt, ctx, vkomp.Task{Label: "child", Body: func(context.Context) error { return broken }})
			return errors.Join(rt.Taskwait(ctx), rt.CancelTaskgroup(ctx))
		}); !errors.Is(err, broken) {
			t.Errorf("%s: the failure of a child: %v", name, err)
		}
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Errorf("%s: reported twice: %v", name, err)
		}
	}
}

// The goroutine of a taskgroup's body ends, so that the group cannot return a failure: the wait around it does.
func TestFailureInAGroupThatEndsByGoexitIsReported(t *testing.T) {
	rt := openTasks(t)
	broken := errors.New("broken")
	x := []int{0}
	leave := func(ctx context.Context) error {
		var gone sync.WaitGroup
		gone.Go(func() {
			_ = rt.Taskgroup(ctx, func(ctx context.Context) error {
				generate(t, rt, ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { return broken }})
				runtime.Goexit()
				return nil
			})
		})
		gone.Wait()
		return nil
	}
	again := func() { // it was reported, so that a dependent is run
		t.Helper()
		ran := false
		generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.In(x)}, Body: func(context.Context) error { ran = true; return nil }})
		if err := rt.Taskwait(t.Context()); err != nil || !ran {
			t.Errorf("a later dependent: ran %v, %v", ran, err)
		}
	}
	if err := errors.Join(leave(t.Context()), rt.Taskwait(t.Context())); !errors.Is(err, broken) {
		t.Errorf("taskwait: %v", err)
	}
	again()
	if err := rt.Taskgroup(t.Context(), leave); !errors.Is(err, broken) {
		t.Errorf("taskgroup: %v", err)
	}
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Errorf("reported twice: %v", err)
	}
	again()
}

// The failure is that of a child of the predecessor, which exports its children.
func TestTaskwaitWithDependReportsTheFailureOfAnExportedChildOnce(t *testing.T) {
	for _, transparent := range []vkomp.Transparency{vkomp.Export, vkomp.ImpEx} {
		rt := openTasks(t, "OMP_NUM_THREADS", "2")
		broken := errors.New("broken")
		x := []int{0}
		generated, release := make(chan struct{}), make(chan struct{})
		generate(t, rt, t.Context(), vkomp.Task{Label: "exporting", Transparent: transparent, Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(ctx context.Context) error {
			defer close(generated)
			return rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { <-release; return broken }})
		}})
		<-generated
		incomplete := func(label string) bool {
			return slices.ContainsFunc(rt.Graph().Tasks, func(task vkomp.GraphTask) bool {
				return task.Label == label && task.State != vkomp.GraphComplete
			})
		}
		go func() {
			defer close(release)
			for !incomplete("taskwait") || incomplete("exporting") {
				runtime.Gosched()
			}
		}()
		if err := rt.Taskwait(t.Context(), vkomp.In(x)); !errors.Is(err, broken) {
			t.Errorf("%v: Taskwait with depend: %v", transparent, err)
		}
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Errorf("%v: Taskwait: %v", transparent, err)
		}
		must(t, rt.Close())
	}
}

func TestJoinIsDroppedWhenItsContextHasEnded(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	x, y := []int{0}, []int{0}
	release := make(chan struct{})
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { <-release; return nil }})
	ctx, cancel := context.WithCancel(t.Context())
	if err := rt.TaskwaitNoWait(ctx, vkomp.In(x), vkomp.Out(y)); err != nil {
		t.Fatal(err)
	}
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.In(y)}, Body: func(context.Context) error { t.Error("what follows it ran"); return nil }})
	cancel()
	close(release)
	if err := rt.Taskwait(t.Context()); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `"taskwait nowait"`) {
		t.Errorf("Taskwait: %v", err)
	}
}

// Every wait below ends by its deadline while a task cannot complete. Afterwards the tasks that
// have not started are dropped, and running ones finish.
func TestDeadlineEndsEveryWait(t *testing.T) {
	late := errors.New("too late")
	depend := func(x []int) []vkomp.Depend { return []vkomp.Depend{vkomp.InOut(x)} }
	for name, wait := range map[string]func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x []int, body func(context.Context) error) error{
		"Taskwait": func(ctx context.Context, rt *vkomp.Runtime, _ vkomp.Kernel, _ []int, _ func(context.Context) error) error {
			return rt.Taskwait(ctx)
		},
		"Taskwait depend": func(ctx context.Context, rt *vkomp.Runtime, _ vkomp.Kernel, x []int, _ func(context.Context) error) error {
			return rt.Taskwait(ctx, depend(x)...)
		},
		"Taskgroup": func(ctx context.Context, rt *vkomp.Runtime, _ vkomp.Kernel, x []int, body func(context.Context) error) error {
			return rt.Taskgroup(ctx, func(ctx context.Context) error { return rt.Task(ctx, vkomp.Task{Depend: depend(x), Body: body}) })
		},
		"undeferred Task": func(ctx context.Context, rt *vkomp.Runtime, _ vkomp.Kernel, x []int, body func(context.Context) error) error {
			return rt.Task(ctx, vkomp.Task{If: vkomp.If(false), Depend: depend(x), Body: body})
		},
		"merged Task": func(ctx context.Context, rt *vkomp.Runtime, _ vkomp.Kernel, x []int, body func(context.Context) error) error {
			return rt.Task(ctx, vkomp.Task{If: vkomp.If(false), Mergeable: true, Depend: depend(x), Body: body})
		},
		"included Target": func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x []int, _ func(context.Context) error) error {
			return rt.Target(ctx, vkomp.Target{Kernel: k, Range: vkomp.Range{X: 1}, Depend: depend(x)})
		},
		"TargetData": func(ctx context.Context, rt *vkomp.Runtime, _ vkomp.Kernel, x []int, body func(context.Context) error) error {
			return rt.TargetData(ctx, vkomp.TargetData{Depend: depend(x)}, body)
		},
	} {
		t.Run(name, func(t *testing.T) {
			rt := openTasks(t, "OMP_NUM_THREADS", "2")
			never := func(context.Context) error { t.Error("a task that had not started has run"); return nil }
			k := newKernel(t, rt, vkomp.KernelSource{Name: "k", Host: func(*vkomp.HostCall) error { return never(nil) }})
			x := []int{0}
			started, release := make(chan struct{}), make(chan struct{})
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			generate(t, rt, ctx, vkomp.Task{Label: "runs", Depend: depend(x), Body: func(context.Context) error { close(started); <-release; x[0] = 7; return nil }})
			<-started
			generate(t, rt, ctx, vkomp.Task{Label: "dropped", Depend: depend(x), Body: never})
			go cancel(late)
			if err := wait(ctx, rt, k, x, never); !errors.Is(err, late) {
				t.Errorf("got %v, want the cause of the context's end", err)
			}
			if x[0] != 0 {
				t.Error("the wait was for the task that is held open")
			}
			close(release)
			// After this wait the storage belongs to the program again.
			err := rt.Taskwait(t.Context())
			if x[0] != 7 {
				t.Error("Taskwait returned before the running task had ended")
			}
			if !errors.Is(err, late) || !strings.Contains(err.Error(), `"dropped"`) {
				t.Errorf("the dropped task: %v", err)
			}
			ran := false
			generate(t, rt, t.Context(), vkomp.Task{Depend: depend(x), Body: func(context.Context) error { ran = true; return nil }})
			if err := rt.Taskwait(t.Context()); err != nil || !ran {
				t.Errorf("afterwards: ran %v, %v", ran, err)
			}
		})
	}
}

func TestDeadlineIsTheCauseOfWhatItDrops(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	x := []int{0}
	release := make(chan struct{})
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { <-release; return nil }})
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if err := rt.Taskwait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Taskwait: %v", err)
	}
	if err := rt.Task(ctx, vkomp.Task{Body: nothing}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Task: %v", err)
	}
	close(release)
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Errorf("Taskwait: %v", err)
	}
}

// An undeferred task whose construct has given up fails its dependents, like any task that is not
// run.
func TestUndeferredTaskGivenUpFailsWhatFollowsIt(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	late := errors.New("too late")
	x := []int{0}
	never := func(context.Context) error { t.Error("a body ran"); return nil }
	release := make(chan struct{})
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { <-release; return nil }})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		awaitState(rt, "undeferred", vkomp.GraphWaiting)
		cancel(late)
	}()
	err := rt.Task(ctx, vkomp.Task{Label: "undeferred", If: vkomp.If(false), Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: never})
	if !errors.Is(err, late) {
		t.Errorf("Task: %v", err)
	}
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.In(x)}, Body: never})
	close(release)
	if err := rt.Taskwait(t.Context()); !errors.Is(err, late) || !strings.Contains(err.Error(), `"undeferred"`) || !strings.Contains(err.Error(), "1 dependent") {
		t.Errorf("Taskwait: %v", err)
	}
}

func TestConstructsThatGaveUpAreNotIncludedAnyMore(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	x := []int{0}
	release := make(chan struct{})
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { <-release; return nil }})
	depend := []vkomp.Depend{vkomp.In(x)}
	for label, construct := range map[string]func(ctx context.Context) error{
		"taskwait": func(ctx context.Context) error { return rt.Taskwait(ctx, depend...) },
		"undeferred": func(ctx context.Context) error {
			return rt.Task(ctx, vkomp.Task{Label: "undeferred", If: vkomp.If(false), Depend: depend, Body: nothing})
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		included := make(chan bool)
		find := func() *vkomp.GraphTask {
			for _, task := range rt.Graph().Tasks {
				if task.Label == label {
					return &task
				}
			}
			return nil
		}
		go func() {
			for find() == nil {
				runtime.Gosched()
			}
			included <- find().Included
			cancel()
		}()
		returned := make(chan error)
		go func() { returned <- construct(ctx) }()
		if !<-included {
			t.Errorf("%s: not included while its construct waits", label)
		}
		if err := <-returned; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", label, err)
		}
		if task := find(); task == nil || task.Included {
			t.Errorf("%s after its construct gave up: %+v", label, task)
		}
	}
	close(release)
	if err := rt.Taskwait(t.Context()); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `"undeferred"`) {
		t.Errorf("Taskwait: %v", err)
	}
}

func TestGroupsInsideBelongToTheGroupAround(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2", "OMP_CANCELLATION", "true")
	x := []int{0}
	depend := []vkomp.Depend{vkomp.InOut(x)}
	// Cancelling the outer group drops the tasks of the inner one, which is not a failure.
	err := rt.Taskgroup(t.Context(), func(outer context.Context) error {
		release := make(chan struct{})
		generate(t, rt, outer, vkomp.Task{Depend: depend, Body: func(context.Context) error { <-release; return nil }})
		return rt.Taskgroup(outer, func(ctx context.Context) error {
			generate(t, rt, ctx, vkomp.Task{Depend: depend, Body: func(context.Context) error { t.Error("a task of a cancelled group ran"); return nil }})
			err := rt.CancelTaskgroup(outer)
			close(release)
			if point := rt.CancellationPoint(ctx); !errors.Is(point, vkomp.ErrCancelled) {
				t.Errorf("a cancellation point in the inner group: %v", point)
			}
			return err
		})
	})
	if err != nil {
		t.Errorf("cancelled groups: %v", err)
	}
	// The outer group waits for the tasks of an inner group whose wait has given up, and reports
	// their failures.
	broken := errors.New("broken")
	release := make(chan struct{})
	var ended atomic.Bool
	err = rt.Taskgroup(t.Context(), func(ctx context.Context) error {
		short, cancel := context.WithCancel(ctx)
		err := rt.Taskgroup(short, func(ctx context.Context) error {
			begun := make(chan struct{})
			generate(t, rt, ctx, vkomp.Task{Label: "late", Depend: depend, Body: func(context.Context) error { close(begun); <-release; ended.Store(true); return broken }})
			<-begun
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the inner group: %v", err)
		}
		go close(release)
		return nil
	})
	if !errors.Is(err, broken) || !ended.Load() {
		t.Errorf("the outer group: %v; the task had ended: %v", err, ended.Load())
	}
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Errorf("reported twice: %v", err)
	}
}

func TestTaskgroupWaitsForItsJoins(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	x := []int{0}
	release := make(chan struct{})
	var ended atomic.Bool
	// The task is not part of the group, but the join inside depends on it.
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { <-release; ended.Store(true); return nil }})
	err := rt.Taskgroup(t.Context(), func(ctx context.Context) error {
		err := rt.TaskwaitNoWait(ctx, vkomp.In(x))
		go close(release)
		return err
	})
	if err != nil || !ended.Load() {
		t.Errorf("Taskgroup: %v; what its join follows had ended: %v", err, ended.Load())
	}
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTargetWhoseContextEndsGoesOnAndGivesItsSlicesBack(t *testing.T) {
	for _, m := range modes[:2] {
		t.Run(m.name, func(t *testing.T) {
			rt := vktest.Open(t, m.option)
			k := newKernel(t, rt, shaders.Saxpy)
			const n = 1000
			x, y, z, held := ramp(n), constant(n, 0), constant(n, 0), []int{0}
			release := make(chan struct{})
			generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(y), vkomp.Out(held)}, Body: func(context.Context) error { <-release; return nil }})
			ctx, cancel := context.WithCancel(t.Context())
			dropped := saxpyOn(t, k, 1, x, z)
			dropped.NoWait, dropped.Label, dropped.Depend = true, "dropped", []vkomp.Depend{vkomp.In(held), vkomp.Out(z)}
			if err := rt.Target(ctx, dropped); err != nil {
				t.Fatal(err)
			}
			target := saxpyOn(t, k, 2, x, y)
			target.Label, target.Depend = "goes on", []vkomp.Depend{vkomp.InOut(y)}
			go func() {
				awaitState(rt, "goes on", vkomp.GraphWaiting)
				cancel()
			}()
			if err := rt.Target(ctx, target); !errors.Is(err, context.Canceled) {
				t.Errorf("Target: %v", err)
			}
			close(release)
			if err := rt.Taskwait(t.Context()); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `"dropped"`) || strings.Contains(err.Error(), `"goes on"`) {
				t.Errorf("Taskwait: %v", err)
			}
			if y[n-1] != 2*x[n-1] || z[n-1] != 0 {
				t.Errorf("y = %v and z = %v, want %v and 0", y[n-1], z[n-1], 2*x[n-1])
			}
			if s := rt.Stats(); s.Storage.Allocations != 0 || s.Staging.Allocations != 0 {
				t.Errorf("%d storage and %d staging allocations left", s.Storage.Allocations, s.Staging.Allocations)
			}
		})
	}
}

func TestAbandonedTaskgroupLeavesItsFailuresToTheNextWait(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	broken := errors.New("broken")
	started, release := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	err := rt.Taskgroup(ctx, func(ctx context.Context) error {
		return rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { close(started); <-release; return broken }})
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Taskgroup: %v", err)
	}
	close(release)
	if err := rt.Taskwait(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Taskwait: %v", err)
	}
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Errorf("reported twice: %v", err)
	}
}

func TestTaskwaitWithDependReportsThatFailureOnce(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	broken, other := errors.New("broken"), errors.New("other")
	x, y := []int{0}, []int{0}
	fail := func(on []int, err error) {
		generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(on)}, Body: func(context.Context) error { return err }})
	}
	fail(x, broken)
	fail(y, other)
	if err := rt.Taskwait(t.Context(), vkomp.In(x)); !errors.Is(err, broken) || errors.Is(err, other) {
		t.Errorf("Taskwait with depend: %v", err)
	}
	ran := false
	generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: func(context.Context) error { ran = true; return nil }})
	if err := rt.Taskwait(t.Context()); !errors.Is(err, other) || errors.Is(err, broken) || !ran {
		t.Errorf("Taskwait: %v; a task on reported storage ran: %v", err, ran)
	}
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Errorf("reported twice: %v", err)
	}
}

func TestWaitClausesThatMakeNoSense(t *testing.T) {
	rt := openTasks(t)
	x := []int{0}
	var object vkomp.Depobj
	if err := object.Init(vkomp.MutexInOutSet(x)); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"mutexinoutset on Taskwait":       rt.Taskwait(t.Context(), vkomp.MutexInOutSet(x)),
		"mutexinoutset on TaskwaitNoWait": rt.TaskwaitNoWait(t.Context(), vkomp.In(x), vkomp.MutexInOutSet(x)),
		"mutexinoutset by an object":      rt.Taskwait(t.Context(), object.Depend()),
		"TaskwaitNoWait without items":    rt.TaskwaitNoWait(t.Context()),
		"the zero item on Taskwait":       rt.Taskwait(t.Context(), vkomp.Depend{}),
	} {
		if !errors.Is(err, vkomp.ErrInvalidDepend) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := rt.Stats().Tasks; n != 0 {
		t.Errorf("%d tasks were generated", n)
	}
}

// waitsWithDepend are the constructs that wait with depend items and return the failure of a predecessor.
var waitsWithDepend = map[string]func(rt *vkomp.Runtime, ctx context.Context, item vkomp.Depend) error{
	"taskwait": func(rt *vkomp.Runtime, ctx context.Context, item vkomp.Depend) error { return rt.Taskwait(ctx, item) },
	"target data": func(rt *vkomp.Runtime, ctx context.Context, item vkomp.Depend) error {
		return rt.TargetData(ctx, vkomp.TargetData{Depend: []vkomp.Depend{item}}, func(context.Context) error { return nil })
	},
}

// A wait with depend items reports the failure on which it depends with the tasks that were not run because of it, but not
// for a taskgroup that it is not part of: that reports its own tasks, and what depends on them is not run until then.
func TestWaitWithDependReportsNothingForATaskgroupOfOthers(t *testing.T) {
	broken := errors.New("broken")
	for name, wait := range waitsWithDepend {
		for k := range 4 {
			late, own := k&1 != 0, k&2 != 0
			t.Run(fmt.Sprintf("%s/late %v/the failure is the group's own %v", name, late, own), func(t *testing.T) {
				rt := openTasks(t, "OMP_NUM_THREADS", "4")
				x, y, z, v := []int{0}, []int{0}, []int{0}, []int{0}
				gate, slow := make(chan struct{}), make(chan struct{})
				never := func(context.Context) error { t.Error("a dependent ran"); return nil }
				generate(t, rt, t.Context(), vkomp.Task{Label: "slow", Depend: []vkomp.Depend{vkomp.Out(z)}, Body: func(context.Context) error { <-slow; return nil }})
				fails := func(ctx context.Context) {
					generate(t, rt, ctx, vkomp.Task{Label: "fails", Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { <-gate; return broken }})
					generate(t, rt, t.Context(), vkomp.Task{Label: "beside", Depend: []vkomp.Depend{vkomp.In(x), vkomp.Out(v)}, Body: never})
				}
				if !own {
					fails(t.Context())
				}
				depend := []vkomp.Depend{vkomp.In(x), vkomp.Out(y)}
				if late { // it is dropped only after the wait
					depend = append(depend, vkomp.In(z))
				}
				err := rt.Taskgroup(t.Context(), func(ctx context.Context) error {
					if own {
						fails(ctx)
					}
					generate(t, rt, ctx, vkomp.Task{Label: "dependent", Depend: depend, Body: never})
					close(gate)
					refused(t, "the wait", wait(rt, t.Context(), vkomp.In(v)), broken, "(1 dependent tasks not run)")
					close(slow)
					if err := rt.Taskwait(t.Context(), vkomp.In(z)); err != nil {
						t.Errorf("the wait for another task: %v", err)
					}
					generate(t, rt, ctx, vkomp.Task{Label: "its dependent", Depend: []vkomp.Depend{vkomp.In(y)}, Body: never})
					return nil
				})
				refused(t, "the taskgroup", err, broken, `"fails"`)
				generate(t, rt, t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.In(x), vkomp.In(y), vkomp.In(v)}, Body: nothing})
				must(t, rt.Taskwait(t.Context()))
			})
		}
	}
}

// After a wait for the last stage has reported a failure, all stages are run again.
func TestStagesGoOnAfterAFailureThatAWaitWithDependReported(t *testing.T) {
	broken := errors.New("broken")
	for name, wait := range waitsWithDepend {
		rt := openTasks(t, "OMP_NUM_THREADS", "2")
		x, y, z := []int{0}, []int{0}, []int{0}
		for round := range 6 {
			ran := 0
			stage := func(context.Context) error { ran++; return nil }
			first := stage
			if round%2 == 0 {
				first = func(context.Context) error { return broken }
			}
			generate(t, rt, t.Context(), vkomp.Task{Label: "first", Depend: []vkomp.Depend{vkomp.Out(x)}, Body: first})
			generate(t, rt, t.Context(), vkomp.Task{Label: "second", Depend: []vkomp.Depend{vkomp.In(x), vkomp.Out(y)}, Body: stage})
			generate(t, rt, t.Context(), vkomp.Task{Label: "last", Depend: []vkomp.Depend{vkomp.In(y), vkomp.Out(z)}, Body: stage})
			if err := wait(rt, t.Context(), vkomp.In(z)); round%2 == 0 {
				refused(t, name, err, broken, `"first"`, "(2 dependent tasks not run)")
			} else if err != nil || ran != 3 {
				t.Errorf("%s, round %d: %d stages ran, %v", name, round, ran, err)
			}
		}
		must(t, rt.Taskwait(t.Context()))
	}
}

// A taskgroup reports failures of its tasks although a wait of another goroutine, outside of the group, returns them, too.
func TestTaskgroupReportsWhatAWaitOutsideReturns(t *testing.T) {
	broken := errors.New("broken")
	rt := openTasks(t, "OMP_NUM_THREADS", "2")
	for range 20 {
		x := []int{0}
		never := func(context.Context) error { t.Error("a dependent ran"); return nil }
		gate, waited := make(chan struct{}), make(chan error, 1)
		err := rt.Taskgroup(t.Context(), func(ctx context.Context) error {
			generate(t, rt, ctx, vkomp.Task{Label: "fails", Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { <-gate; return broken }})
			generate(t, rt, ctx, vkomp.Task{Label: "dependent", Depend: []vkomp.Depend{vkomp.In(x)}, Body: never})
			waiting := make(chan struct{})
			go func() {
				close(waiting)
				waited <- rt.Taskwait(t.Context())
			}()
			<-waiting // it begins before the tasks are complete, or after that
			close(gate)
			refused(t, "the wait outside", <-waited, broken, "(1 dependent tasks not run)")
			generate(t, rt, ctx, vkomp.Task{Label: "later", Depend: []vkomp.Depend{vkomp.In(x)}, Body: never})
			return nil
		})
		refused(t, "the taskgroup", err, broken, `"fails"`)
		must(t, rt.Taskwait(t.Context(), vkomp.In(x)))
		must(t, rt.Taskwait(t.Context()))
		must(t, rt.Taskgroup(t.Context(), func(ctx context.Context) error {
			generate(t, rt, ctx, vkomp.Task{Label: "fails", Body: func(context.Context) error { return broken }})
			refused(t, "the wait inside", rt.Taskwait(ctx), broken)
			return nil
		}))
	}
}

// A wait with depend items in a taskgroup reports what the group would, although a wait outside of the group has returned it.
func TestWaitWithDependReportsWhatAWaitOutsideReturned(t *testing.T) {
	broken := errors.New("broken")
	for name, wait := range waitsWithDepend {
		t.Run(name, func(t *testing.T) {
			rt := openTasks(t, "OMP_NUM_THREADS", "2")
			x := []int{0}
			generate(t, rt, t.Context(), vkomp.Task{Label: "fails", Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { return broken }})
			ran := false
			must(t, rt.Taskgroup(t.Context(), func(ctx context.Context) error {
				generate(t, rt, ctx, vkomp.Task{Label: "dependent", Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: func(context.Context) error { t.Error("a dependent ran"); return nil }})
				refused(t, "the wait outside", rt.Taskwait(t.Context()), broken, "(1 dependent tasks not run)")
				refused(t, "the wait inside", wait(rt, ctx, vkomp.In(x)), broken, "(1 dependent tasks not run)")
				generate(t, rt, ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: func(context.Context) error { ran = true; return nil }})
				return nil
			}))
			if !ran {
				t.Error("a task that depends on what was reported did not run")
			}
			must(t, rt.Taskwait(t.Context()))
		})
	}
}

// A wait with depend items reports tasks that were not run in a taskgroup whose wait was given up, too.
func TestWaitWithDependReportsForATaskgroupThatWasGivenUp(t *testing.T) {
	broken := errors.New("broken")
	for name, wait := range waitsWithDepend {
		t.Run(name, func(t *testing.T) {
			rt := openTasks(t, "OMP_NUM_THREADS", "2")
			x := []int{0}
			generate(t, rt, t.Context(), vkomp.Task{Label: "fails", Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { return broken }})
			ctx, cancel := context.WithCancel(t.Context())
			var event vkomp.Event
			err := rt.Taskgroup(ctx, func(ctx context.Context) error {
				generate(t, rt, ctx, vkomp.Task{Detach: &event, Body: nothing})
				// The undeferred task returns when the dependent is complete.
				generate(t, rt, ctx, vkomp.Task{Label: "dependent", Depend: []vkomp.Depend{vkomp.In(x)}, Body: func(context.Context) error { t.Error("a dependent ran"); return nil }})
				refused(t, "an undeferred task", rt.Task(ctx, vkomp.Task{If: vkomp.If(false), Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: nothing}), broken)
				cancel()
				return nil
			})
			refused(t, "the taskgroup", err, context.Canceled)
			must(t, event.Fulfill())
			refused(t, "the wait", wait(rt, t.Context(), vkomp.In(x)), broken, "(1 dependent tasks not run)")
			must(t, rt.Taskwait(t.Context()))
		})
	}
}
