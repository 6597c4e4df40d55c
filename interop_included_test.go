package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/tests/vktest"
)

// whenAwaited is a context that calls blocks when somebody begins to wait for its end.
type whenAwaited struct {
	context.Context
	blocks func()
}

func (c whenAwaited) Done() <-chan struct{} {
	c.blocks()
	return c.Context.Done()
}

// depending returns the construct with these depend clauses and without nowait.
func depending(i vkomp.Interop, depend ...vkomp.Depend) vkomp.Interop {
	i.Depend = depend
	return i
}

// A construct with depend and without nowait waits for its predecessors. They end here only
// when somebody waits for them.
func TestIncludedInteropWaitsForItsPredecessors(t *testing.T) {
	for name, construct := range map[string]func(o *interop.Object) vkomp.Interop{
		"init": func(*interop.Object) vkomp.Interop {
			return vkomp.Interop{Init: []vkomp.InteropInit{{Object: new(interop.Object), Types: targetAndSync}}}
		},
		"use":     func(o *interop.Object) vkomp.Interop { return use(*o) },
		"destroy": func(o *interop.Object) vkomp.Interop { return vkomp.Interop{Destroy: []*interop.Object{o}} },
		"none":    func(*interop.Object) vkomp.Interop { return use(interop.None) },
	} {
		t.Run(name, func(t *testing.T) {
			rt := vktest.Open(t)
			o := newObject(t, rt, targetAndSync)
			a, y := []uint32{0}, make([]float32, 100)
			add := adder(t, rt, y)
			waited, gate := false, make(chan struct{})
			open := sync.OnceFunc(func() { close(gate) })
			defer open()
			must(t, rt.Task(t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(a)}, Body: func(context.Context) error {
				<-gate
				a[0] = 1
				return nil
			}}))
			add(true)
			waits := whenAwaited{t.Context(), func() { waited = true; open() }}
			must(t, rt.Interop(waits, depending(construct(&o), vkomp.In(a), vkomp.In(y))))
			if !waited {
				t.Fatal("Interop has not waited")
			}
			if a[0] != 1 || y[0] != 1 {
				t.Errorf("a is %v and y[0] %v", a, y[0])
			}
			must(t, rt.Taskwait(t.Context()))
		})
	}
}

// All tasks that a final task generates are included, whatever nowait says. The predecessor is one of an
// importing task, as tasks of a final task are complete when it generates the next.
func TestEmptyTasksOfAFinalTaskAreIncluded(t *testing.T) {
	rt := vktest.Open(t)
	o := newObject(t, rt, targetAndSync)
	for name, construct := range map[string]func(ctx context.Context, item vkomp.Depend) error{
		"interop": func(ctx context.Context, item vkomp.Depend) error { return rt.Interop(ctx, later(use(o), item)) },
		"interop of none": func(ctx context.Context, item vkomp.Depend) error {
			return rt.Interop(ctx, later(use(interop.None), item))
		},
		"taskwait": func(ctx context.Context, item vkomp.Depend) error { return rt.TaskwaitNoWait(ctx, item) },
	} {
		a, gate := []uint32{0}, make(chan struct{})
		open := sync.OnceFunc(func() { close(gate) })
		var ended atomic.Bool
		must(t, rt.Task(t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(a)}, Body: func(context.Context) error {
			<-gate
			ended.Store(true)
			return nil
		}}))
		must(t, rt.Task(t.Context(), vkomp.Task{Final: true, If: vkomp.If(false), Transparent: vkomp.Import, Body: func(ctx context.Context) error {
			// A construct that does not wait has returned long before the gate opens.
			time.AfterFunc(20*time.Millisecond, open)
			err := construct(ctx, vkomp.In(a))
			if !ended.Load() {
				t.Errorf("%s has not waited", name)
			}
			return err
		}}))
		must(t, rt.Taskwait(t.Context()))
	}
}

// With nowait a construct waits for nothing, and neither does one without depend.
func TestDeferredAndMergedInteropWaitForNoTask(t *testing.T) {
	rt := vktest.Open(t)
	o := newObject(t, rt, targetAndSync)
	a, gate := []uint32{0}, make(chan struct{})
	must(t, rt.Task(t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(a)}, Body: func(context.Context) error { <-gate; return nil }}))
	must(t, rt.Interop(t.Context(), later(use(o), vkomp.InOut(a))))
	must(t, rt.Interop(t.Context(), later(use(interop.None, o), vkomp.InOut(a))))
	must(t, rt.Interop(t.Context(), later(use(o))))
	must(t, rt.Interop(t.Context(), use(o)))
	must(t, rt.Interop(t.Context(), vkomp.Interop{Destroy: []*interop.Object{&o}}))
	close(gate)
	must(t, rt.Taskwait(t.Context()))
}

// An included construct reports the failures of the predecessors that it has waited for, and
// has its effect all the same.
func TestIncludedInteropReportsItsPredecessors(t *testing.T) {
	rt := vktest.Open(t)
	a, broken := []uint32{0}, errors.New("broken")
	for range 2 {
		o := newObject(t, rt, targetAndSync)
		copied := o
		must(t, rt.Task(t.Context(), vkomp.Task{Label: "breaks", Depend: []vkomp.Depend{vkomp.Out(a)}, Body: func(context.Context) error { return broken }}))
		err := rt.Interop(t.Context(), depending(vkomp.Interop{Destroy: []*interop.Object{&o}}, vkomp.InOut(a)))
		var failed *vkomp.TaskError
		if !errors.Is(err, broken) || !errors.As(err, &failed) || !strings.Contains(err.Error(), `"breaks"`) {
			t.Errorf("got %v", err)
		}
		if o != interop.None || copied.Types() != 0 {
			t.Errorf("%v is left", copied)
		}
		// The failure of a's task has been reported, so a task that depends on it runs.
		ran := false
		must(t, rt.Task(t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.In(a)}, Body: func(context.Context) error { ran = true; return nil }}))
		must(t, rt.Taskwait(t.Context()))
		if !ran {
			t.Error("the task after it was not run")
		}
	}
}

// The context of an included construct ends while it waits for its predecessors: it returns,
// and has its effect.
func TestIncludedInteropGivesUpItsWait(t *testing.T) {
	rt := vktest.Open(t, sharedQueue)
	a, gate := []uint32{0}, make(chan struct{})
	o := newObject(t, rt, targetAndSync)
	copied := o
	_, signal, err := o.Next()
	must(t, err)
	must(t, rt.Interop(t.Context(), later(use(o), vkomp.InOut(a))))
	broken, cause := errors.New("broken"), errors.New("no more time")
	must(t, rt.Task(t.Context(), vkomp.Task{Label: "breaks", Depend: []vkomp.Depend{vkomp.In(a)}, Body: func(context.Context) error { <-gate; return broken }}))
	ctx, cancel := context.WithCancelCause(t.Context())
	err = rt.Interop(whenAwaited{ctx, func() { cancel(cause) }}, depending(vkomp.Interop{Destroy: []*interop.Object{&o}}, vkomp.InOut(a)))
	says := fmt.Sprintf("%v awaits value %d", copied, signal)
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), says) || o != interop.None {
		t.Errorf("got %v, want %q; the object is %v", err, says, o)
	}
	must(t, copied.Withdraw(signal))
	close(gate)
	// The failure of the predecessor was not reported so far.
	if err := rt.Taskwait(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Taskwait: %v", err)
	}
}
