package vkomp_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// A task that waits for a place in the host pool has not started.
func TestTasksThatWaitForAPlaceAreDropped(t *testing.T) {
	const waiting = 100
	for _, how := range []string{"cancelled group", "ended context"} {
		t.Run(how, func(t *testing.T) {
			rt := openTasks(t, "OMP_NUM_THREADS", "1", "OMP_CANCELLATION", "true")
			ended, end := context.WithCancelCause(context.Background())
			defer end(nil)
			why := errors.New("no more time")
			var ran atomic.Int64
			err := rt.Taskgroup(context.Background(), func(ctx context.Context) error {
				gate := make(chan struct{})
				first := func(ctx context.Context) error {
					<-gate
					if how == "ended context" {
						end(why)
						return nil
					}
					return rt.CancelTaskgroup(ctx)
				}
				if how == "ended context" {
					ctx = ended
				}
				generate(t, rt, ctx, vkomp.Task{Body: first})
				for range waiting {
					generate(t, rt, ctx, vkomp.Task{Body: func(context.Context) error { ran.Add(1); return nil }})
				}
				close(gate)
				return nil
			})
			err = errors.Join(err, rt.Taskwait(context.Background()))
			if ran.Load() != 0 {
				t.Errorf("%d of %d tasks ran", ran.Load(), waiting)
			}
			if failed := how == "ended context"; failed != (err != nil) || failed && !errors.Is(err, why) {
				t.Errorf("the waits report %v", err)
			}
		})
	}
}

// cancellation sets cancel-var.
func cancellation(o *vkomp.Options) { o.LookupEnv = environment("OMP_CANCELLATION", "true") }

func TestTargetDataUnmapsWhateverFailsInside(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		body func(ctx context.Context, rt *vkomp.Runtime, x []float32) error
		want error
	}{
		"a task that the end follows fails": {func(ctx context.Context, rt *vkomp.Runtime, x []float32) error {
			return rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: func(context.Context) error { return boom }})
		}, boom},
		"its taskgroup, or the one around, is cancelled": {func(ctx context.Context, rt *vkomp.Runtime, _ []float32) error {
			return rt.CancelTaskgroup(ctx)
		}, nil},
		"the body fails": {func(context.Context, *vkomp.Runtime, []float32) error { return boom }, boom},
	} {
		for form := range 4 {
			t.Run(name, func(t *testing.T) {
				// The helper's clean-up closes the runtime, which reports leaks.
				rt := vktest.Open(t, cancellation)
				x := constant(1024, 1)
				region := vkomp.TargetData{
					Maps: []vkomp.Arg{vkomp.ToFrom(x)}, Depend: []vkomp.Depend{vkomp.InOut(x)}, NoWait: form&1 != 0, NoGroup: form&2 != 0,
				}
				err := rt.Taskgroup(context.Background(), func(ctx context.Context) error {
					return rt.TargetData(ctx, region, func(ctx context.Context) error { return c.body(ctx, rt, x) })
				})
				if !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if live := rt.Stats().Storage.LiveBytes; live != 0 {
					t.Errorf("%d bytes are still mapped", live)
				}
			})
		}
	}
}

// An included construct in a cancelled group does nothing and returns ErrCancelled.
func TestIncludedTargetInACancelledGroupReturnsErrCancelled(t *testing.T) {
	rt := vktest.Open(t, cancellation)
	k, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		t.Fatal(err)
	}
	x, y := constant(16, 1), constant(16, 0)
	err = rt.Taskgroup(context.Background(), func(ctx context.Context) error {
		if err := rt.CancelTaskgroup(ctx); !errors.Is(err, vkomp.ErrCancelled) {
			t.Errorf("got %v", err)
		}
		// A context in the group that does not end when the group is cancelled.
		err := rt.Target(context.WithoutCancel(ctx), saxpyOn(t, k, 1, x, y))
		if !errors.Is(err, vkomp.ErrCancelled) || y[0] != 0 {
			t.Errorf("got %v, y[0] = %v", err, y[0])
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestFinalTaskIsNotMergedIntoOneThatIsNot(t *testing.T) {
	rt := openTasks(t)
	generate(t, rt, context.Background(), vkomp.Task{If: vkomp.If(false), Final: true, Mergeable: true, Body: func(ctx context.Context) error {
		if !rt.InFinal(ctx) {
			t.Error("the body of a final task is not in one")
		}
		return nil
	}})
}

// An undeferred task counts as a predecessor, whether it is mergeable or not.
func TestUndeferredTaskIsAPredecessorWhileItsBodyRuns(t *testing.T) {
	for _, mergeable := range []bool{false, true} {
		rt := openTasks(t, "OMP_NUM_THREADS", "4")
		x := []int{0}
		depend := []vkomp.Depend{vkomp.InOut(x)}
		started, release, returned := make(chan struct{}), make(chan struct{}), make(chan error)
		var done atomic.Bool
		go func() {
			returned <- rt.Task(context.Background(), vkomp.Task{If: vkomp.If(false), Mergeable: mergeable, Depend: depend, Body: func(context.Context) error {
				close(started)
				<-release
				done.Store(true)
				return nil
			}})
		}()
		<-started
		generate(t, rt, context.Background(), vkomp.Task{Depend: depend, Body: func(context.Context) error {
			if !done.Load() {
				t.Errorf("mergeable %v: the successor ran beside it", mergeable)
			}
			return nil
		}})
		close(release)
		if err := errors.Join(<-returned, rt.Taskwait(context.Background())); err != nil {
			t.Error(err)
		}
	}
}

// The children of an importing task depend on earlier tasks with an exclusive item for its
// storage. The importing task must not block these.
func TestChildrenOfAnImportingTaskCanUseItsExclusiveStorage(t *testing.T) {
	rt := openTasks(t, "OMP_NUM_THREADS", "4")
	lock, before := []int{0}, []int{0}
	gate := make(chan struct{})
	generate(t, rt, context.Background(), vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(before)}, Body: func(context.Context) error { <-gate; return nil }})
	add := func(n int) func(context.Context) error {
		return func(context.Context) error { lock[0] = 10*lock[0] + n; return nil }
	}
	generate(t, rt, context.Background(), vkomp.Task{Depend: []vkomp.Depend{vkomp.In(before), vkomp.MutexInOutSet(lock)}, Body: add(1)})
	generate(t, rt, context.Background(), vkomp.Task{Transparent: vkomp.Import, Depend: []vkomp.Depend{vkomp.MutexInOutSet(lock)}, Body: func(ctx context.Context) error {
		return errors.Join(
			rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(lock)}, Body: add(2)}),
			rt.Taskwait(ctx))
	}})
	close(gate)
	if err := rt.Taskwait(context.Background()); err != nil || lock[0] != 12 {
		t.Errorf("%v, %d", err, lock[0])
	}
}

func TestCancelOfTheGroupAroundPassesThroughTheOneInside(t *testing.T) {
	rt := openTasks(t, "OMP_CANCELLATION", "true")
	err := rt.Taskgroup(context.Background(), func(outer context.Context) error {
		inside := rt.Taskgroup(outer, func(context.Context) error { return rt.CancelTaskgroup(outer) })
		if !errors.Is(inside, vkomp.ErrCancelled) {
			t.Errorf("the group inside returned %v", inside)
		}
		return inside
	})
	if err != nil {
		t.Error(err)
	}
}
