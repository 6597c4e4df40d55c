package vkomp_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// closing calls Close on another goroutine. It returns once constructs of the initial task
// are refused; the error of Close will be sent on the channel.
func closing(t *testing.T, rt *vkomp.Runtime) <-chan error {
	t.Helper()
	closed := make(chan error, 1)
	go func() { closed <- rt.Close() }()
	awaitClosing(rt)
	return closed
}

// awaitClosing returns when constructs of the initial task are refused.
func awaitClosing(rt *vkomp.Runtime) {
	for rt.Taskgroup(context.Background(), func(context.Context) error { return nil }) == nil {
		runtime.Gosched()
	}
}

// Tasks generated before Close go on as they would without it.
func TestCloseCarriesOutWhatTasksStillGenerate(t *testing.T) {
	for _, where := range []string{"device", "initial device"} {
		t.Run(where, func(t *testing.T) {
			rt := vktest.Open(t, func(o *vkomp.Options) {
				if where != "device" {
					vktest.Host(o)
				}
			})
			k := newKernel(t, rt, shaders.Saxpy)
			ctx, gate := t.Context(), make(chan struct{})
			x, order := constant(64, 1), []int{0}
			var y [6][]float32
			for i := range y {
				y[i] = constant(64, 0)
			}
			add := func(ctx context.Context, y []float32, noWait bool) error {
				region := saxpyOn(t, k, 2, x, y)
				region.NoWait = noWait
				return rt.Target(ctx, region)
			}
			must(t, rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(order)}, Body: func(ctx context.Context) error {
				<-gate
				if _, err := rt.NewKernel(shaders.Saxpy); err != nil {
					return err
				}
				return errors.Join(add(ctx, y[0], false), add(ctx, y[1], true), rt.Task(ctx, vkomp.Task{Body: func(ctx context.Context) error {
					return errors.Join(add(ctx, y[2], false), rt.Task(ctx, vkomp.Task{Body: func(ctx context.Context) error { return add(ctx, y[3], true) }}))
				}}))
			}}))
			region := vkomp.TargetData{NoWait: true, Maps: []vkomp.Arg{vkomp.ToFrom(y[4])}, Depend: []vkomp.Depend{vkomp.In(order)}}
			must(t, rt.TargetData(ctx, region, func(ctx context.Context) error {
				return errors.Join(
					add(ctx, y[4], true), rt.Taskwait(ctx),
					rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(y[4])}}))
			}))
			last := saxpyOn(t, k, 2, x, y[5])
			last.NoWait, last.Depend = true, []vkomp.Depend{vkomp.In(order)}
			must(t, rt.Target(ctx, last))
			closed := closing(t, rt)
			close(gate)
			must(t, <-closed)
			for i := range y {
				if !slices.Equal(y[i], constant(64, 2)) {
					t.Errorf("result %d is %v…, want 2", i, y[i][0])
				}
			}
		})
	}
}

func TestClosingRuntimeRefusesConstructsOfTheInitialTask(t *testing.T) {
	for _, options := range [][]func(*vkomp.Options){nil, {func(o *vkomp.Options) { o.Race = true }}} {
		rt := vktest.Open(t, options...)
		k := newKernel(t, rt, shaders.Saxpy)
		ctx, gate := t.Context(), make(chan struct{})
		x, y := constant(64, 1), constant(64, 0)
		d := rt.DefaultDevice(ctx)
		p, err := d.Alloc(ctx, 256)
		must(t, err)
		// A slice mapped twice is only counted, without a task.
		held := vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}}
		must(t, rt.TargetEnterData(ctx, held))
		must(t, rt.TargetEnterData(ctx, held))
		var ran atomic.Int32
		nothing := func(context.Context) error { ran.Add(1); return nil }
		must(t, rt.Task(ctx, vkomp.Task{Body: func(ctx context.Context) error {
			<-gate
			exit := vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Delete(x)}}
			return errors.Join(rt.TargetExitData(ctx, exit), d.Free(ctx, p))
		}}))
		closed := closing(t, rt)
		var o interop.Object
		_, allocated := d.Alloc(ctx, 256)
		deferred := saxpyOn(t, k, 1, x, y)
		deferred.NoWait = true
		for what, err := range map[string]error{
			"target": rt.Target(ctx, saxpyOn(t, k, 1, x, y)), "target nowait": rt.Target(ctx, deferred),
			"task": rt.Task(ctx, vkomp.Task{Body: nothing}), "merged task": rt.Task(ctx, vkomp.Task{If: vkomp.If(false), Mergeable: true, Body: nothing}),
			"taskgroup": rt.Taskgroup(ctx, nothing), "join": rt.TaskwaitNoWait(ctx, vkomp.In(x)), "taskwait depend": rt.Taskwait(ctx, vkomp.In(x)),
			"target data":                       rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x)}}, nothing),
			"target data on the initial device": rt.TargetData(ctx, vkomp.TargetData{If: vkomp.If(false)}, nothing),
			"enter data":                        rt.TargetEnterData(ctx, held),
			"update":                            rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(x)}}),
			"alloc":                             allocated, "memset": d.Memset(ctx, p, 0, 8),
			"interop": rt.Interop(ctx, vkomp.Interop{Init: []vkomp.InteropInit{{Object: &o, Types: interop.TypeTarget}}}),
			"pause":   rt.PauseResourceAll(ctx, vkomp.PauseSoft),
		} {
			refused(t, what, err, vkomp.ErrClosed)
		}
		close(gate)
		must(t, <-closed)
		if ran.Load() != 0 {
			t.Errorf("%d bodies of refused constructs ran", ran.Load())
		}
	}
}

// A region that has begun ends even though its task can generate nothing more.
func TestDataRegionUnderWayEndsWhileTheRuntimeIsClosed(t *testing.T) {
	rt := vktest.Open(t)
	gate, x := make(chan struct{}), constant(64, 1)
	must(t, rt.Task(t.Context(), vkomp.Task{Body: func(context.Context) error { <-gate; return nil }}))
	var closed <-chan error
	must(t, rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(x)}}, func(ctx context.Context) error {
		closed = closing(t, rt)
		refused(t, "a construct of the body", rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(x)}}), vkomp.ErrClosed)
		return nil
	}))
	close(gate)
	must(t, <-closed) // nothing has leaked
}

// After Close nothing is left to wait for: that the context has ended does not matter.
func TestCloseContextAfterCloseReturnsNil(t *testing.T) {
	rt := vktest.Open(t)
	must(t, rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{}))
	must(t, rt.Close())
	ended, end := context.WithCancel(t.Context())
	end()
	for range 50 {
		must(t, rt.CloseContext(ended))
	}
}

// A Close that gives up says what it would have to wait for, and frees nothing.
func TestCloseContextNamesWhatIsNotComplete(t *testing.T) {
	rt := vktest.Open(t)
	ctx := t.Context()
	k := newKernel(t, rt, shaders.Saxpy)
	x, y, order := constant(64, 1), constant(64, 0), []int{0}
	broken := errors.New("broken")
	gate, started, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var event vkomp.Event
	must(t, rt.Task(ctx, vkomp.Task{Label: "detached", Detach: &event, Body: func(context.Context) error { return nil }}))
	must(t, rt.Task(ctx, vkomp.Task{Label: "blocked", Depend: []vkomp.Depend{vkomp.Out(order)}, Body: func(ctx context.Context) error {
		close(started)
		<-gate
		err := rt.Task(ctx, vkomp.Task{Label: "inside", Body: func(ctx context.Context) error {
			defer close(over)
			err := rt.CloseContext(ctx)
			refused(t, "close from inside", err, vkomp.ErrBusy)
			return broken
		}})
		if err != nil {
			close(over)
		}
		return err
	}}))
	for range 3 {
		waiting := saxpyOn(t, k, 2, x, y)
		waiting.NoWait, waiting.Depend = true, []vkomp.Depend{vkomp.InOut(order)}
		must(t, rt.Target(ctx, waiting))
	}
	<-started
	giveUp := func(says ...string) {
		t.Helper()
		why := errors.New("why")
		ended, end := context.WithCancelCause(ctx)
		end(why)
		refused(t, "close", rt.CloseContext(ended), why, says...)
		refused(t, "a construct afterwards", rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { return nil }}), vkomp.ErrClosed)
	}
	target := `target task "saxpy" of device 0 (waits for other tasks)`
	giveUp(`task "blocked" (started)`, `3 of `+target)
	close(gate)
	<-over
	for slices.ContainsFunc(rt.Graph().Tasks, func(task vkomp.GraphTask) bool { return task.Label != "detached" }) {
		runtime.Gosched()
	}
	giveUp(`task "detached" (its event has not been fulfilled)`)
	for _, other := range []string{"blocked", "saxpy"} {
		if err := rt.CloseContext(ended(ctx)); strings.Contains(err.Error(), other) {
			t.Errorf("%v names %q, which is complete", err, other)
		}
	}
	first, second := closing(t, rt), closing(t, rt)
	must(t, event.Fulfill())
	// The Close that completes returns the errors of all.
	if err := errors.Join(<-first, <-second); !errors.Is(err, broken) || strings.Count(err.Error(), "broken") != 1 {
		t.Errorf("both Closes return %v", err)
	}
	if !slices.Equal(y, constant(64, 6)) {
		t.Errorf("y is %v…, want 6", y[0])
	}
}

func ended(ctx context.Context) context.Context {
	ctx, end := context.WithCancel(ctx)
	end()
	return ctx
}

// waitedFor is a context that never ends and signals when somebody waits for its end.
type waitedFor struct {
	context.Context
	once  sync.Once
	begun chan struct{}
}

func (c *waitedFor) Done() <-chan struct{} {
	c.once.Do(func() { close(c.begun) })
	return nil
}

// A concurrent Close waits for the first as long as its context allows.
func TestSecondCloseWaitsForTheFirst(t *testing.T) {
	rt := vktest.Open(t)
	gate := make(chan struct{})
	var done atomic.Bool
	must(t, rt.Task(t.Context(), vkomp.Task{Label: "slow", Body: func(context.Context) error { <-gate; done.Store(true); return nil }}))
	first := closing(t, rt)
	refused(t, "bounded", rt.CloseContext(ended(t.Context())), context.Canceled, `task "slow"`)
	waits, second := &waitedFor{Context: t.Context(), begun: make(chan struct{})}, make(chan error, 1)
	go func() { second <- rt.CloseContext(waits) }()
	select {
	case <-waits.begun:
	case err := <-second:
		t.Error("the second Close did not wait")
		second <- err
	}
	close(gate)
	must(t, <-second)
	if !done.Load() {
		t.Error("the second Close returned before the task was complete")
	}
	must(t, <-first)
	must(t, rt.Close())
}
