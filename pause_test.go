package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// adder returns a function that adds 1 to the mapped y on the device.
func adder(t *testing.T, rt *vkomp.Runtime, y []float32) func(noWait bool) {
	t.Helper()
	k, err := rt.NewKernel(shaders.Saxpy)
	must(t, err)
	ones := make([]float32, len(y))
	for i := range ones {
		ones[i] = 1
	}
	return func(noWait bool) {
		t.Helper()
		must(t, rt.Target(t.Context(), vkomp.Target{
			Kernel: k, Range: vkomp.Range{X: len(y)}, NoWait: noWait, Depend: []vkomp.Depend{vkomp.InOut(y)},
			Args: []vkomp.Arg{vkomp.To(ones), vkomp.ToFrom(y), vkomp.Value(uint32(len(y))), vkomp.Value(float32(1))},
		}))
	}
}

func TestSoftPauseKeepsWhatIsOnTheDevice(t *testing.T) {
	for name, option := range map[string]func(*vkomp.Options){"as it comes": func(*vkomp.Options) {}, "staging": vktest.Staging} {
		t.Run(name, func(t *testing.T) {
			rt := vktest.Open(t, option)
			ctx, d := t.Context(), rt.DefaultDevice(t.Context())
			y := make([]float32, 1<<16)
			add := adder(t, rt, y)
			p, err := d.Alloc(ctx, 8)
			must(t, err)
			must(t, rt.Memcpy(ctx, p, vkomp.HostPtr([]uint64{7}), 8))
			must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(y)}}))
			address := d.MappedPtr(vkomp.HostPtr(y))
			for range 3 {
				add(false)
				held := rt.Stats()
				must(t, rt.PauseResource(ctx, vkomp.PauseSoft, d))
				left := rt.Stats()
				if left.Staging.BlockBytes != 0 || left.Storage.LiveBytes != held.Storage.LiveBytes || left.Dispatches != held.Dispatches {
					t.Errorf("before %+v, after %+v", held, left)
				}
				if at := d.MappedPtr(vkomp.HostPtr(y)); at != address {
					t.Errorf("what was at %v is at %v", address, at)
				}
			}
			add(false)
			got := make([]uint64, 1)
			must(t, rt.Memcpy(ctx, vkomp.HostPtr(got), p, 8))
			must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(y)}}))
			if y[0] != 4 || y[len(y)-1] != 4 || got[0] != 7 {
				t.Errorf("y is %v ... %v and the allocation has %d, want 4 and 7", y[0], y[len(y)-1], got[0])
			}
			must(t, d.Free(ctx, p))
		})
	}
}

func TestHardPauseGivesAllBack(t *testing.T) {
	var told []string
	rt := vktest.Open(t, func(o *vkomp.Options) {
		o.Tool = ompt.Callbacks{
			DeviceInitialize: func(d ompt.DeviceInitializeEvent) { told = append(told, fmt.Sprint("initialize ", d.DeviceNum)) },
			DeviceFinalize:   func(d ompt.DeviceFinalizeEvent) { told = append(told, fmt.Sprint("finalize ", d.DeviceNum)) },
		}
	})
	ctx, d := t.Context(), rt.DefaultDevice(t.Context())
	y, declared := make([]float32, 1000), []float32{5}
	must(t, rt.DeclareTarget(ctx, vkomp.DeclareTarget{Enter: []vkomp.Arg{vkomp.To(declared)}}))
	add, more := adder(t, rt, y), adder(t, rt, declared)
	p, err := d.Alloc(ctx, 4000)
	must(t, err)
	must(t, d.AssociatePtr(ctx, vkomp.HostPtr(make([]uint32, 4)), p, 16, 0))
	must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(y)}}))
	add(false)
	more(false)
	before := rt.Stats()
	must(t, rt.PauseResource(ctx, vkomp.PauseHard, d))
	after := rt.Stats()
	if after.Storage.BlockBytes != 0 || after.Staging.BlockBytes != 0 || before.Storage.BlockBytes == 0 {
		t.Errorf("memory before %+v, after %+v", before.Storage, after.Storage)
	}
	if after.Dispatches != before.Dispatches || after.Submissions != before.Submissions || len(after.Queues) != len(before.Queues) || after.Queues[0].Dispatches != before.Queues[0].Dispatches {
		t.Errorf("totals before %+v, after %+v", before, after)
	}
	if d.Memory().Opened {
		t.Error("the device is open")
	}
	if y[0] != 0 || d.IsPresent(vkomp.HostPtr(y)) || d.IsAccessible(p, 1) {
		t.Errorf("y is %v (present: %t); the allocation is accessible: %t", y[0], d.IsPresent(vkomp.HostPtr(y)), d.IsAccessible(p, 1))
	}
	// A second pause finds nothing to free.
	must(t, rt.PauseResource(ctx, vkomp.PauseHard, d))

	// The device can be used again, and has nothing from before.
	for range 4 {
		q, err := d.Alloc(ctx, 4000)
		must(t, err)
		if q == p {
			t.Errorf("%v is a pointer to other memory now", p)
		}
		defer d.Free(context.WithoutCancel(ctx), q)
	}
	refused(t, "free", d.Free(ctx, p), vkomp.ErrInvalidPointer, "")
	refused(t, "memcpy", rt.Memcpy(ctx, p, vkomp.HostPtr(make([]byte, 8)), 8), vkomp.ErrInvalidPointer, "")
	err = rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(y).Present()}})
	refused(t, "update", err, vkomp.ErrNotPresent, "")
	add(false)
	more(false)
	must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(declared)}}))
	if y[0] != 1 || declared[0] != 6 {
		t.Errorf("y is %v and what is declared %v, want 1 and 6: the host's values, and one more", y[0], declared[0])
	}
	if total := rt.Stats(); total.Dispatches != before.Dispatches+2 {
		t.Errorf("%d dispatches in all, %d before the pause and two after it", total.Dispatches, before.Dispatches)
	}
	if want := "[initialize 0 finalize 0 initialize 0]"; fmt.Sprint(told) != want {
		t.Errorf("the tool was told %v, want %s", told, want)
	}
}

func TestPauseIsRefusedWhileSomethingIsUnderWay(t *testing.T) {
	rt := vktest.Open(t, sharedQueue)
	ctx, d := t.Context(), rt.DefaultDevice(t.Context())
	y := make([]float32, 100)
	add := adder(t, rt, y)
	all := func(what string, ctx context.Context, want error, says string) {
		t.Helper()
		for _, kind := range []vkomp.PauseKind{vkomp.PauseSoft, vkomp.PauseHard} {
			refused(t, fmt.Sprint(what, ": ", kind), rt.PauseResource(ctx, kind, d), want, says)
			refused(t, fmt.Sprint(what, ": ", kind, ", initial device"), rt.PauseResource(ctx, kind, rt.InitialDevice()), want, says)
			refused(t, fmt.Sprint(what, ": ", kind, ", all"), rt.PauseResourceAll(ctx, kind), want, says)
		}
	}
	release := make(chan struct{})
	must(t, rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(y)}, Body: func(context.Context) error { <-release; return nil }}))
	add(true)
	all("tasks", ctx, vkomp.ErrBusy, "tasks are not complete")
	close(release)
	must(t, rt.Taskwait(ctx))
	var inside context.Context
	must(t, rt.Task(ctx, vkomp.Task{If: vkomp.If(false), Body: func(ctx context.Context) error {
		inside = ctx
		all("inside a task", ctx, vkomp.ErrBusy, "a task pauses nothing")
		return nil
	}}))
	all("with the context of a task", inside, vkomp.ErrBusy, "a task pauses nothing")
	must(t, rt.Taskgroup(ctx, func(ctx context.Context) error {
		all("inside a taskgroup", ctx, vkomp.ErrBusy, "a taskgroup is under way")
		return nil
	}))
	for noGroup, says := range map[bool]string{false: "a taskgroup is under way", true: "a construct is under way"} {
		must(t, rt.TargetData(ctx, vkomp.TargetData{NoGroup: noGroup, Maps: []vkomp.Arg{vkomp.ToFrom(y)}}, func(inside context.Context) error {
			all("inside a data region", inside, vkomp.ErrBusy, says)
			all("beside a data region", ctx, vkomp.ErrBusy, "a construct is under way")
			return nil
		}))
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	all("with a context that has ended", ended, context.Canceled, "")

	o := newObject(t, rt, interop.TypeTarget)
	must(t, rt.PauseResourceAll(ctx, vkomp.PauseSoft))
	refused(t, "an interop object", rt.PauseResource(ctx, vkomp.PauseHard, d), vkomp.ErrBusy, "1 interop objects")
	refused(t, "an interop object", rt.PauseResourceAll(ctx, vkomp.PauseHard), vkomp.ErrBusy, "1 interop objects")
	must(t, rt.Interop(ctx, vkomp.Interop{Destroy: []*interop.Object{&o}}))
	o = newObject(t, rt, targetAndSync)
	copied := o
	_, signal, err := o.Next()
	must(t, err)
	must(t, rt.Interop(ctx, vkomp.Interop{Destroy: []*interop.Object{&o}}))
	refused(t, "foreign work", rt.PauseResource(ctx, vkomp.PauseHard, d), vkomp.ErrBusy, fmt.Sprintf("awaits value %d", signal))
	must(t, copied.Withdraw(signal))
	must(t, rt.PauseResource(ctx, vkomp.PauseHard, d))
	refused(t, "an object from before", rt.Interop(ctx, use(copied)), interop.ErrInvalid, "was destroyed before, or its device is closed")
	add(false)
	if y[0] != 2 {
		t.Errorf("y is %v, want 2", y[0])
	}
}

// Once foreign work is withdrawn, only submissions of the runtime itself are left of a
// destroyed interop object; a hard pause waits for them.
func TestHardPauseWaitsForTheRuntimesOwnSubmissions(t *testing.T) {
	vktest.Long(t)
	vktest.Layers(t, "manyqueue")
	t.Setenv("VKOMP_MANYQUEUE_DELAY_US", "20000")
	rt := vktest.Open(t)
	ctx, d := t.Context(), rt.DefaultDevice(t.Context())
	for range 5 {
		o := newObject(t, rt, targetAndSync)
		copied := o
		_, signal, err := o.Next()
		must(t, err)
		must(t, rt.Interop(ctx, vkomp.Interop{Destroy: []*interop.Object{&o}}))
		must(t, copied.Withdraw(signal))
		must(t, rt.PauseResource(ctx, vkomp.PauseHard, d))
	}
}

func TestPauseMistakesAreErrors(t *testing.T) {
	rt, other := vktest.Open(t), vktest.Open(t)
	ctx, d := t.Context(), rt.DefaultDevice(t.Context())
	for _, kind := range []vkomp.PauseKind{0, 4, -1} {
		refused(t, "kind", rt.PauseResource(ctx, kind, d), vkomp.ErrInvalidArgument, fmt.Sprint("PauseKind(", int(kind), ")"))
		refused(t, "kind", rt.PauseResourceAll(ctx, kind), vkomp.ErrInvalidArgument, "only soft (1), hard (2) and stop tool (3)")
	}
	refused(t, "no device", rt.PauseResource(ctx, vkomp.PauseSoft, vkomp.Device{}), vkomp.ErrInvalidDevice, "")
	refused(t, "another's device", rt.PauseResource(ctx, vkomp.PauseHard, other.DefaultDevice(ctx)), vkomp.ErrInvalidDevice, "")
	must(t, other.Close())
	refused(t, "closed", other.PauseResourceAll(ctx, vkomp.PauseSoft), vkomp.ErrClosed, "")
}

func TestHardPauseOfTheInitialDevice(t *testing.T) {
	rt := vktest.Open(t)
	ctx, d := t.Context(), rt.InitialDevice()
	p, err := d.Alloc(ctx, 64)
	must(t, err)
	must(t, rt.PauseResource(ctx, vkomp.PauseSoft, d))
	if !d.IsAccessible(p, 64) {
		t.Error("a soft pause ended an allocation")
	}
	must(t, rt.PauseResource(ctx, vkomp.PauseHard, d))
	refused(t, "free", d.Free(ctx, p), vkomp.ErrInvalidPointer, "freed")
	if left := d.Memory().Allocated; left.Count > 0 {
		t.Errorf("%+v is allocated", left)
	}
}

// The tool ends with a pause of the initial device or of all devices.
func TestPauseThatStopsTheTool(t *testing.T) {
	for _, c := range []struct {
		name  string
		pause func(ctx context.Context, rt *vkomp.Runtime) error
		opens bool
		want  string
	}{
		{"a device", func(ctx context.Context, rt *vkomp.Runtime) error {
			return rt.PauseResource(ctx, vkomp.PauseStopTool, rt.DefaultDevice(ctx))
		}, false, "[initialize 0 finalize 0 initialize 0 finalize 0]"},
		{"the initial device", func(ctx context.Context, rt *vkomp.Runtime) error {
			return rt.PauseResource(ctx, vkomp.PauseStopTool, rt.InitialDevice())
		}, true, "[initialize 0 finalize 0]"},
		{"all", func(ctx context.Context, rt *vkomp.Runtime) error {
			return rt.PauseResourceAll(ctx, vkomp.PauseStopTool)
		}, false, "[initialize 0 finalize 0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told []string
			rt, err := vkomp.Open(vkomp.Options{Tool: ompt.Callbacks{
				DeviceInitialize: func(d ompt.DeviceInitializeEvent) { told = append(told, fmt.Sprint("initialize ", d.DeviceNum)) },
				DeviceFinalize:   func(d ompt.DeviceFinalizeEvent) { told = append(told, fmt.Sprint("finalize ", d.DeviceNum)) },
			}})
			must(t, err)
			y := make([]float32, 10)
			add := adder(t, rt, y)
			add(false)
			must(t, c.pause(t.Context(), rt))
			if opened := rt.DefaultDevice(t.Context()).Memory().Opened; opened != c.opens {
				t.Errorf("the device is open: %t", opened)
			}
			add(false)
			must(t, rt.Close())
			if fmt.Sprint(told) != c.want || y[0] != 2 {
				t.Errorf("the tool was told %v, want %s; y is %v", told, c.want, y[0])
			}
		})
	}
}

// The tool hears of its end once, also if the runtime is closed while a pause stops it.
func TestCloseWhileAPauseStopsTheTool(t *testing.T) {
	var ends atomic.Int32
	told, leave := make(chan struct{}), make(chan struct{})
	rt, err := vkomp.Open(vkomp.Options{Tool: ompt.Callbacks{ImplicitTask: func(e ompt.ImplicitTaskEvent) {
		if e.Endpoint == ompt.ScopeEnd && ends.Add(1) == 1 {
			close(told)
			<-leave
		}
	}}})
	must(t, err)
	paused := make(chan error, 1)
	go func() { paused <- rt.PauseResourceAll(context.Background(), vkomp.PauseStopTool) }()
	<-told
	err = rt.Close()
	close(leave)
	must(t, errors.Join(err, <-paused))
	if n := ends.Load(); n != 1 {
		t.Errorf("the tool was told %d times that the initial task ends", n)
	}
}

// A record that was made while a tool listened is replayed after the tool was stopped.
func TestRecordOutlivesTheTool(t *testing.T) {
	tasks := 0
	rt := vktest.Open(t, func(o *vkomp.Options) {
		o.Tool = ompt.Callbacks{TaskCreate: func(ompt.TaskCreateEvent) { tasks++ }}
	})
	k := newKernel(t, rt, shaders.Saxpy)
	x, y := constant(64, 1), constant(64, 0)
	var records vkomp.TaskgraphRecords
	region := func() {
		t.Helper()
		must(t, rt.Taskgraph(t.Context(), vkomp.Taskgraph{Records: &records}, func(ctx context.Context) error {
			target := saxpyOn(t, k, 2, x, y)
			target.NoWait, target.Depend = true, []vkomp.Depend{vkomp.InOut(y)}
			return errors.Join(
				rt.TargetEnterData(ctx, vkomp.TargetEnterData{NoWait: true, Maps: []vkomp.Arg{vkomp.To(x), vkomp.To(y)}, Depend: []vkomp.Depend{vkomp.InOut(y)}}),
				rt.Target(ctx, target),
				rt.TargetUpdate(ctx, vkomp.TargetUpdate{NoWait: true, Motions: []vkomp.Arg{vkomp.From(y)}, Depend: []vkomp.Depend{vkomp.InOut(y)}}),
				rt.TargetExitData(ctx, vkomp.TargetExitData{NoWait: true, Maps: []vkomp.Arg{vkomp.Release(x), vkomp.Release(y)}, Depend: []vkomp.Depend{vkomp.InOut(y)}}),
			)
		}))
	}
	region()
	heard := tasks
	must(t, rt.PauseResourceAll(t.Context(), vkomp.PauseStopTool))
	region()
	region()
	if y[0] != 6 || heard == 0 || tasks != heard {
		t.Errorf("y is %v, and the tool heard of %d tasks, then of %d more", y[0], heard, tasks-heard)
	}
}

// Constructs called during a pause wait for its end, and a pause does not wait for constructs.
func TestPausesAmongConstructs(t *testing.T) {
	rt := vktest.Open(t, func(o *vkomp.Options) { o.Validation = false })
	ctx, d := t.Context(), rt.DefaultDevice(t.Context())
	done := make(chan struct{})
	var workers sync.WaitGroup
	for range 4 {
		y := make([]float32, 100)
		add := adder(t, rt, y)
		workers.Go(func() {
			want := float32(0)
			for {
				select {
				case <-done:
					return
				default:
				}
				want++
				add(int(want)%2 == 0)
				if int(want)%2 == 0 {
					must(t, rt.Taskwait(ctx))
				}
				if y[0] != want {
					t.Errorf("y is %v, want %v", y[0], want)
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	paused := map[vkomp.PauseKind]int{}
	for paused[vkomp.PauseSoft] < 20 || paused[vkomp.PauseHard] < 20 {
		for _, kind := range []vkomp.PauseKind{vkomp.PauseSoft, vkomp.PauseHard} {
			switch err := rt.PauseResource(ctx, kind, d); {
			case err == nil:
				paused[kind]++
			case !errors.Is(err, vkomp.ErrBusy):
				t.Fatal(err)
			}
		}
		runtime.Gosched()
	}
	close(done)
	workers.Wait()
}

// An allocation or a release comes before a pause or after it, and never meets a device that is being given up.
func TestPausesAmongAllocations(t *testing.T) {
	rt := vktest.Open(t, func(o *vkomp.Options) { o.Validation = false })
	ctx, d := t.Context(), rt.DefaultDevice(t.Context())
	done := make(chan struct{})
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				p, err := d.Alloc(ctx, 1000)
				if err != nil {
					t.Errorf("alloc: %v", err)
					return
				}
				// A hard pause may have freed it.
				if err := d.Free(ctx, p); err != nil && !errors.Is(err, vkomp.ErrInvalidPointer) {
					t.Errorf("free: %v", err)
					return
				}
			}
		})
	}
	for paused := 0; paused < 30; {
		kind := []vkomp.PauseKind{vkomp.PauseHard, vkomp.PauseHard, vkomp.PauseSoft}[paused%3]
		switch err := rt.PauseResource(ctx, kind, d); {
		case err == nil:
			paused++
		case !errors.Is(err, vkomp.ErrBusy):
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	close(done)
	workers.Wait()
	if n := rt.Stats().Storage.Allocations; n != 0 {
		t.Errorf("%d allocations are left", n)
	}
}

// A program that computes from time to time frees the device for others in between.
func ExampleRuntime_PauseResource() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	device := rt.DefaultDevice(ctx)

	p, err := device.Alloc(ctx, 1<<20)
	if err != nil {
		log.Fatal(err)
	}
	// omp_pause_resource(omp_pause_soft, device)
	err = rt.PauseResource(ctx, vkomp.PauseSoft, device)
	fmt.Println(err, device.IsAccessible(p, 1<<20))
	// omp_pause_resource(omp_pause_hard, device)
	err = rt.PauseResource(ctx, vkomp.PauseHard, device)
	fmt.Println(err, device.IsAccessible(p, 1<<20), rt.Stats().Storage.BlockBytes)
	// Output:
	// <nil> true
	// <nil> false 0
}
