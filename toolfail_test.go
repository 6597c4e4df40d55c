package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
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

// A callback that ends its goroutine loses its own event alone: the tool hears of every other allocation and deletion
// once, with its begin and its end, and of the end of the region. A copy of which only the begin was told is not made.
func TestToolHearsOfTheOtherOperationsWhenACallbackEndsItsGoroutine(t *testing.T) {
	for _, noWait := range []bool{false, true} {
		for leaves := 1; leaves <= 14; leaves++ {
			t.Run(fmt.Sprintf("operation event %d, nowait %v", leaves, noWait), func(t *testing.T) {
				var mu sync.Mutex
				type event struct {
					id  ompt.ID
					end ompt.ScopeEndpoint
				}
				heard, ended := make(map[event]int), 0
				types, copies := make(map[ompt.TargetDataOp]int), make(map[ompt.ID]bool)
				calls := 0
				o := vkomp.Options{Tool: ompt.Callbacks{
					TargetDataOpEMI: func(e ompt.TargetDataOpEMIEvent) {
						mu.Lock()
						calls++
						heard[event{*e.HostOpID, e.Endpoint}]++
						if e.Endpoint == ompt.ScopeBegin {
							types[e.Type]++
							copies[*e.HostOpID] = strings.Contains(e.Type.String(), "transfer")
						}
						leave := calls == leaves
						mu.Unlock()
						if leave {
							runtime.Goexit()
						}
					},
					TargetEMI: func(e ompt.TargetEMIEvent) {
						mu.Lock()
						defer mu.Unlock()
						if e.Endpoint == ompt.ScopeEnd {
							ended++
						}
					},
				}}
				vktest.Path(vkomp.MemoryStaged)(&o)
				rt, err := vkomp.Open(o)
				must(t, err)
				defer rt.Close() // its error is that of the callback
				if rt.DefaultDevice(t.Context()).IsInitial() {
					t.Skip("needs a Vulkan device")
				}
				k := newKernel(t, rt, shaders.Saxpy)
				region := saxpyOn(t, k, 1, constant(100, 1), constant(100, 1))
				region.NoWait = noWait
				over := make(chan struct{})
				go func() {
					defer close(over)
					_ = rt.Target(context.Background(), region) // it may fail with the callback
				}()
				<-over
				if err := rt.Taskwait(t.Context()); err != nil && !strings.Contains(err.Error(), "Goexit") {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				for e, n := range heard {
					other := event{e.id, ompt.ScopeBegin}
					if e.end == ompt.ScopeBegin {
						other.end = ompt.ScopeEnd
					}
					if n != 1 || heard[other] != 1 && !copies[e.id] {
						t.Errorf("operation %d: %d times endpoint %v, and %d times the other one", e.id, n, e.end, heard[other])
					}
				}
				allocs := types[ompt.TargetDataAlloc] + types[ompt.TargetDataAllocAsync]
				deletes := types[ompt.TargetDataDelete] + types[ompt.TargetDataDeleteAsync]
				if allocs != 2 || deletes != 2 || ended != 1 {
					t.Errorf("%d allocations, %d deletions and %d ends of the region, want 2, 2 and 1", allocs, deletes, ended)
				}
			})
		}
	}
}

// A callback ends the goroutine of a construct that waits, with each of the events in turn, those of the wait's own task, too.
// Each region and each wait in it that has begun ends once, and a taskgroup whose body has returned waits for its tasks, which
// run.
func TestToolHearsTheEndOfWaitsWhenACallbackEndsItsGoroutine(t *testing.T) {
	type event struct {
		wait bool
		kind ompt.SyncRegion
		end  ompt.ScopeEndpoint
	}
	for _, races := range []bool{false, true} {
		for leaves := 1; leaves <= 20; leaves++ {
			t.Run(fmt.Sprintf("event %d, race %v", leaves, races), func(t *testing.T) {
				var mu sync.Mutex
				var calls, ran int
				heard := make(map[event]int)
				// called is the end of each callback. Those of the taskgroup's task are called by its own goroutine.
				called := func(body bool) {
					mu.Lock()
					if !body {
						calls++
					}
					leave := !body && calls == leaves
					mu.Unlock()
					if leave {
						runtime.Goexit()
					}
				}
				hear := func(wait bool) func(ompt.SyncRegionEvent) {
					return func(e ompt.SyncRegionEvent) {
						mu.Lock()
						heard[event{wait, e.Kind, e.Endpoint}]++
						mu.Unlock()
						called(false)
					}
				}
				rt, err := vkomp.Open(vkomp.Options{Race: races, Tool: ompt.Callbacks{
					SyncRegion: hear(false), SyncRegionWait: hear(true),
					TaskCreate: func(e ompt.TaskCreateEvent) { called(e.Flags&ompt.TaskTaskwait == 0) },
				}})
				must(t, err)
				defer rt.Close() // its error is that of the callback
				begun, awaited := false, make([]int, 1)
				for _, f := range []func(){
					func() {
						_ = rt.Taskgroup(t.Context(), func(ctx context.Context) error {
							begun = true
							return rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { ran++; return nil }})
						})
					},
					func() { _ = rt.Taskwait(t.Context()) },
					func() { _ = rt.Taskwait(t.Context(), vkomp.InOut(awaited)) },
				} {
					over := make(chan struct{})
					go func() {
						defer close(over)
						f()
					}()
					<-over
				}
				if begun && ran != 1 {
					t.Errorf("the task of the taskgroup ran %d times", ran)
				}
				for e, n := range heard {
					other := e
					other.end = ompt.ScopeBegin + ompt.ScopeEnd - e.end
					if n != heard[other] {
						t.Errorf("wait %v of %v: %d times %v, and %d times the other end", e.wait, e.kind, n, e.end, heard[other])
					}
				}
			})
		}
	}
}

// A callback of a memory routine ends its goroutine, with each of the events in turn. Each task and each operation that
// has begun ends once, and memory is freed of which the tool has been told so.
func TestToolHearsTheEndOfRoutinesWhenACallbackEndsItsGoroutine(t *testing.T) {
	for leaves := 1; leaves <= 18; leaves++ {
		calls := 0
		called := func() {
			if calls++; calls == leaves {
				runtime.Goexit()
			}
		}
		// live are the tasks that have not ended, open the operations.
		live, open, deletions := make(map[*ompt.Data]bool), make(map[ompt.ID]bool), 0
		rt, err := vkomp.Open(vkomp.Options{Tool: ompt.Callbacks{
			TaskCreate: func(e ompt.TaskCreateEvent) {
				live[e.NewTask] = true
				called()
			},
			TaskSchedule: func(e ompt.TaskScheduleEvent) {
				if e.PriorStatus == ompt.TaskComplete || e.PriorStatus == ompt.TaskCancel {
					if !live[e.PriorTask] {
						t.Errorf("event %d: a task ends twice", leaves)
					}
					delete(live, e.PriorTask)
				}
				called()
			},
			TargetDataOpEMI: func(e ompt.TargetDataOpEMIEvent) {
				switch {
				case e.Endpoint == ompt.ScopeBegin:
					open[*e.HostOpID] = true
					if e.Type == ompt.TargetDataDelete {
						deletions++
					}
				case e.Endpoint == ompt.ScopeEnd:
					if !open[*e.HostOpID] {
						t.Errorf("event %d: the operation %v ends twice", leaves, e.Type)
					}
					delete(open, *e.HostOpID)
				}
				called()
			},
		}})
		must(t, err)
		d := rt.DefaultDevice(t.Context())
		var p vkomp.DevicePtr
		x := vkomp.HostPtr(constant(100, 1))
		for _, f := range []func() error{
			func() (err error) { p, err = d.Alloc(t.Context(), 400); return err },
			func() error { return d.AssociatePtr(t.Context(), x, p, 400, 0) },
			func() error { return d.DisassociatePtr(t.Context(), x) },
			func() error { return d.Free(t.Context(), p) },
		} {
			over := make(chan struct{})
			go func() {
				defer close(over)
				_ = f() // what precedes it may not have been done
			}()
			<-over
		}
		if len(live) > 0 || len(open) > 0 {
			t.Errorf("event %d: %d tasks and %d operations do not end", leaves, len(live), len(open))
		}
		if n := d.Memory().Allocated.Count; deletions > 0 && n > 0 {
			t.Errorf("event %d: the memory is not freed", leaves)
		}
		_ = rt.Close() // its error is that of the callback
	}
}

// Tools that hear of tasks and of no operations: their observers' records are used again by other tasks at once,
// which the race detector watches.
func TestToolOfSchedulesAmongManyTasks(t *testing.T) {
	var schedules atomic.Int64
	rt := vktest.Open(t, func(o *vkomp.Options) {
		o.Tool = ompt.Callbacks{TaskSchedule: func(ompt.TaskScheduleEvent) { schedules.Add(1) }}
	})
	if rt.DefaultDevice(t.Context()).IsInitial() {
		t.Skip("needs a Vulkan device")
	}
	const goroutines, each = 4, 3000
	k := newKernel(t, rt, shaders.Saxpy)
	x := constant(16, 0)
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			y := constant(16, 1)
			maps := []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y)}
			err := rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Maps: maps})
			for range each {
				region := saxpyOn(t, k, 1, x, y)
				region.NoWait, region.DependArgs = true, true
				err = errors.Join(err, rt.Target(t.Context(), region))
			}
			err = errors.Join(err, rt.Taskwait(t.Context()), rt.TargetExitData(t.Context(), vkomp.TargetExitData{Maps: maps}))
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := schedules.Load(); n < 2*goroutines*each {
		t.Errorf("%d schedules of %d tasks", n, goroutines*each)
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

// A callback that ends the goroutine when a taskgroup begins to wait does not keep the tasks of the group from
// running: the goroutine ends after them.
func TestCallbackThatLeavesATaskgroupLeavesItsTasks(t *testing.T) {
	rt, err := vkomp.Open(vkomp.Options{LookupEnv: environment("OMP_NUM_THREADS", "1"), Tool: ompt.Callbacks{
		SyncRegionWait: func(e ompt.SyncRegionEvent) {
			if e.Kind == ompt.SyncRegionTaskgroup && e.Endpoint == ompt.ScopeBegin {
				runtime.Goexit()
			}
		},
	}})
	must(t, err)
	ran := false
	generate(t, rt, t.Context(), vkomp.Task{Label: "leaves", Body: func(ctx context.Context) error {
		// This body has the only place until the taskgroup waits.
		return rt.Taskgroup(ctx, func(ctx context.Context) error {
			return rt.Task(ctx, vkomp.Task{Label: "inside", Body: func(context.Context) error { ran = true; return nil }})
		})
	}})
	if err := rt.Taskwait(t.Context()); err == nil || !strings.Contains(err.Error(), `"leaves"`) {
		t.Errorf("the body that the callback ended: %v", err)
	}
	if err := rt.Close(); err == nil || strings.Contains(err.Error(), `"inside"`) || !ran {
		t.Errorf("the task of the group ran: %t; Close: %v", ran, err)
	}
}

// A callback that ends the goroutine when a taskgraph region begins leaves no record that others take for one which is
// being made.
func TestCallbackThatLeavesATaskgraphLeavesNoRecord(t *testing.T) {
	leaves := true
	rt, err := vkomp.Open(vkomp.Options{Tool: ompt.Callbacks{SyncRegion: func(ompt.SyncRegionEvent) {
		if leaves {
			runtime.Goexit()
		}
	}}})
	must(t, err)
	g := newGraphed(rt, func(ctx context.Context) error { return rt.Task(ctx, vkomp.Task{Body: nothing}) })
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = g.encounter(context.Background(), nil)
	}()
	<-over
	leaves = false
	g.expect(t, "the next encounter", true, nil)
	g.expect(t, "the one after it", false, nil)
	if err := rt.Close(); err == nil || !strings.Contains(err.Error(), "SyncRegion") {
		t.Errorf("Close: %v, want what the callback did", err)
	}
}
