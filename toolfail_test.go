package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/shaders"
)

// waysToLeave are the ways in which a callback can end without returning.
var waysToLeave = map[string]func(){"panic": func() { panic("callback") }, "runtime.Goexit": runtime.Goexit}

// failingTool returns a tool of which one callback leaves in that way while unwell is true.
func failingTool(name string, unwell *atomic.Bool, calls *atomic.Int64, leave func()) ompt.Callbacks {
	var tool ompt.Callbacks
	f := reflect.ValueOf(&tool).Elem().FieldByName(name)
	f.Set(reflect.MakeFunc(f.Type(), func([]reflect.Value) []reflect.Value {
		if unwell.Load() {
			calls.Add(1)
			leave()
		}
		if f.Type().NumOut() == 1 {
			return []reflect.Value{reflect.ValueOf(ompt.ControlToolSuccess)}
		}
		return nil
	}))
	return tool
}

// A callback panics or ends its goroutine, whichever that is. The process goes on, no wait
// hangs, the program's tasks have the right results, and Close reports what has happened.
func TestToolCallbacksThatFail(t *testing.T) {
	for f := range reflect.TypeFor[ompt.Callbacks]().Fields() {
		if f.Type.Kind() != reflect.Func {
			continue
		}
		for way, leave := range waysToLeave {
			t.Run(f.Name+" "+way, func(t *testing.T) { failInCallbacks(t, f.Name, way, leave) })
		}
	}
}

func failInCallbacks(t *testing.T, name, way string, leave func()) {
	var unwell atomic.Bool
	var calls atomic.Int64
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // for waits that would hang
	defer cancel()
	var rt *vkomp.Runtime
	// A callback may end the goroutine of a construct: each runs on one of its own.
	construct := func(what string, f func() error) {
		t.Helper()
		over := make(chan error, 1)
		go func() {
			err := fmt.Errorf("the goroutine ended by %s", way)
			defer func() { over <- err }()
			err = f()
		}()
		select {
		case err := <-over:
			if errors.Is(err, context.DeadlineExceeded) || err != nil && !strings.Contains(err.Error(), way) {
				t.Errorf("%s: %v", what, err)
			}
		case <-ctx.Done():
			t.Fatalf("%s hangs", what)
		}
	}
	unwell.Store(true)
	construct("open", func() (err error) {
		rt, err = vkomp.Open(vkomp.Options{Tool: failingTool(name, &unwell, &calls, leave)})
		return err
	})
	if rt == nil {
		t.Fatal("no runtime")
	}
	k := newKernel(t, rt, shaders.Saxpy)
	x, y, z := constant(100, 1), constant(100, 1), constant(100, 1)
	add := func(to []float32, noWait bool) error {
		return rt.Target(ctx, vkomp.Target{
			Kernel: k, Range: vkomp.Range{X: len(to)}, NoWait: noWait, DependArgs: true,
			Args: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(to), vkomp.Value(uint32(len(to))), vkomp.Value(float32(1))},
		})
	}
	nothing := func(context.Context) error { return nil }
	for what, f := range map[string]func() error{
		"target":   func() error { return add(y, false) },
		"deferred": func() error { return errors.Join(add(y, true), add(y, true)) },
		"data":     func() error { return rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(x)}}, nothing) },
		"update": func() error {
			return errors.Join(
				rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}, NoWait: true, Depend: []vkomp.Depend{vkomp.Out(x)}}),
				rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(x)}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(x)}}),
				rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(x)}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(x)}}))
		},
		"task": func() error {
			return errors.Join(rt.Task(ctx, vkomp.Task{Body: nothing, Depend: []vkomp.Depend{vkomp.Out(x)}}),
				rt.Task(ctx, vkomp.Task{Body: nothing, If: vkomp.If(false), Depend: []vkomp.Depend{vkomp.In(x)}}))
		},
		"detach": func() (err error) {
			var e vkomp.Event
			// This is deferred because Task ends the goroutine if the callback TaskCreate does.
			defer func() { err = errors.Join(err, e.Fulfill()) }()
			return rt.Task(ctx, vkomp.Task{Body: nothing, Detach: &e})
		},
		"taskgroup":     func() error { return rt.Taskgroup(ctx, nothing) },
		"join":          func() error { return rt.Taskwait(ctx, vkomp.In(x)) },
		"deferred join": func() error { return rt.TaskwaitNoWait(ctx, vkomp.In(x)) },
		"memcpy":        func() error { return rt.Memcpy(ctx, vkomp.HostPtr(constant(100, 0)), vkomp.HostPtr(x), 400) },
		"control": func() error {
			rt.ControlTool(ompt.ControlToolFlush, 0, nil)
			return nil
		},
	} {
		construct(what, f)
		for range 2 {
			construct(what+", taskwait", func() error { return rt.Taskwait(ctx) })
		}
	}
	unwell.Store(false)
	construct("what is well waits", func() error { return rt.Taskwait(ctx) })
	must(t, errors.Join(add(z, false), add(z, true), rt.Taskwait(ctx)))
	if z[0] != 3 || z[99] != 3 {
		t.Errorf("with a tool that is well again: %v and %v, want 3", z[0], z[99])
	}
	unwell.Store(true)
	construct("close", func() error {
		err := rt.CloseContext(ctx)
		if calls.Load() > 0 && !strings.Contains(fmt.Sprint(err), "callback "+strings.TrimSuffix(name, "EMI")) {
			t.Errorf("close: %v, want the failure of %s", err, name)
		}
		return nil
	})
	if calls.Load() == 0 {
		t.Errorf("%s was not called", name)
	}
}

// logs is a slog.Handler that calls a function with the runtime's warnings and errors.
type logs func(record slog.Record)

func (logs) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (l logs) Handle(_ context.Context, r slog.Record) error  { l(r); return nil }
func (l logs) WithAttrs([]slog.Attr) slog.Handler             { return l }
func (l logs) WithGroup(string) slog.Handler                  { return l }

// A callback's failure is logged without a lock that another failure would need: the program's
// log handler may call the runtime, and so the tool again.
func TestLogOfAFailedCallbackMayCallTheTool(t *testing.T) {
	var rt *vkomp.Runtime
	logged := 0
	handler := logs(func(r slog.Record) {
		if !strings.Contains(r.Message, "callback") {
			return
		}
		if logged++; logged == 1 {
			rt.ControlTool(ompt.ControlToolStart, 0, nil)
		}
	})
	var err error
	rt, err = vkomp.Open(vkomp.Options{Logger: slog.New(handler), Tool: ompt.Callbacks{
		TaskCreate:  func(ompt.TaskCreateEvent) { panic("created") },
		ControlTool: func(ompt.ControlToolEvent) ompt.ControlToolResult { panic("controlled") },
	}})
	must(t, err)
	made := make(chan error, 1)
	go func() {
		made <- rt.Task(context.Background(), vkomp.Task{Body: func(context.Context) error { return nil }})
	}()
	select {
	case err := <-made:
		must(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("the handler waits for the lock of whoever calls it")
	}
	err = rt.Close()
	for _, part := range []string{"TaskCreate", "created", "ControlTool", "controlled"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("Close: %v, without %q", err, part)
		}
	}
	if logged != 2 {
		t.Errorf("%d failures were logged, want 2", logged)
	}
}
