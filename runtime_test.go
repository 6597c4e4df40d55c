package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// environment returns a LookupEnv function for pairs of name and value.
func environment(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func TestOffloadDisabledLeavesOnlyTheInitialDevice(t *testing.T) {
	rt := vktest.Open(t, func(o *vkomp.Options) {
		o.Validation, o.LookupEnv = false, environment("OMP_TARGET_OFFLOAD", " Disabled ")
	})
	if n := rt.NumDevices(); n != 0 {
		t.Errorf("%d devices", n)
	}
	d := rt.DefaultDevice(context.Background())
	if !d.IsInitial() || d.Number() != 0 || d != rt.InitialDevice() {
		t.Errorf("the default device is %+v", d.Info())
	}
	k := newKernel(t, rt, shaders.Saxpy)
	x, y := ramp(10), constant(10, 1)
	if err := rt.Target(t.Context(), saxpyOn(t, k, 3, x, y)); err != nil {
		t.Fatal(err)
	}
	if y[9] != 28 || rt.Stats().HostRegions != 1 {
		t.Errorf("y[9] = %v after %d host regions", y[9], rt.Stats().HostRegions)
	}
}

func TestDeviceNumbers(t *testing.T) {
	rt := vktest.Open(t)
	n := rt.NumDevices()
	for number := range n + 1 {
		d, err := rt.Device(number)
		if err != nil || d.Number() != number || d.IsInitial() != (number == n) {
			t.Errorf("device %d: %+v, %v", number, d.Info(), err)
		}
	}
	if d, err := rt.Device(vkomp.InitialDeviceNumber); err != nil || d != rt.InitialDevice() {
		t.Errorf("device -1: %+v, %v", d.Info(), err)
	}
	for _, number := range []int{n + 1, -2, 1 << 40} {
		_, err := rt.Device(number)
		refused(t, "a device", err, vkomp.ErrInvalidDevice, fmt.Sprintf("vkomp: device: invalid device: number %d: ", number))
		_, err = rt.SelectDevice(fmt.Sprint(number))
		refused(t, "a selector", err, vkomp.ErrInvalidDevice, fmt.Sprintf("vkomp: select device: invalid device: number %d: ", number))
	}
	info := rt.DefaultDevice(context.Background()).Info()
	for _, selector := range []string{"0", info.UUID, strings.ToUpper(info.Name[:4]), "", " 0 ", " " + info.Name} {
		if d, err := rt.SelectDevice(selector); err != nil || d != rt.DefaultDevice(context.Background()) {
			t.Errorf("selector %q: %v", selector, err)
		}
	}
	for _, selector := range []string{"initial", " Initial ", "host", "-1", " -1", fmt.Sprint(n), fmt.Sprintf(" %d\n", n)} {
		if d, err := rt.SelectDevice(selector); err != nil || d != rt.InitialDevice() {
			t.Errorf("selector %q: %v", selector, err)
		}
	}
	_, err := rt.SelectDevice("no such device")
	refused(t, "an unknown name", err, vkomp.ErrInvalidDevice, "vkomp: select device: ", info.Name)
}

func TestDefaultDeviceCanBeSet(t *testing.T) {
	rt := vktest.Open(t, func(o *vkomp.Options) { o.Device = "initial" })
	if !rt.DefaultDevice(context.Background()).IsInitial() {
		t.Errorf("the default device is %+v", rt.DefaultDevice(context.Background()).Info())
	}
	d, err := rt.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.SetDefaultDevice(context.Background(), d); err != nil {
		t.Fatal(err)
	}
	k := newKernel(t, rt, shaders.Saxpy)
	x, y := ramp(10), constant(10, 1)
	if err := rt.Target(t.Context(), saxpyOn(t, k, 3, x, y)); err != nil {
		t.Fatal(err)
	}
	if s := rt.Stats(); s.HostRegions != 0 || s.Dispatches != 1 || y[9] != 28 {
		t.Errorf("%+v, y[9] = %v", s, y[9])
	}
	onHost := saxpyOn(t, k, 1, x, y)
	onHost.Device = rt.InitialDevice()
	if err := rt.Target(t.Context(), onHost); err != nil {
		t.Fatal(err)
	}
	if s := rt.Stats(); s.HostRegions != 1 || y[9] != 37 {
		t.Errorf("%+v, y[9] = %v", s, y[9])
	}
	refused(t, "the zero Device", rt.SetDefaultDevice(context.Background(), vkomp.Device{}), vkomp.ErrInvalidDevice, "vkomp: set default device: ")
}

func TestUnknownDeviceSelectorFailsOpen(t *testing.T) {
	rt, err := vkomp.Open(vkomp.Options{Device: "no such device"})
	if err == nil {
		rt.Close()
		t.Fatal("it was opened")
	}
	refused(t, "an unknown name", err, vkomp.ErrInvalidDevice, "vkomp: invalid device: ")
}

func TestClosedRuntimeRefusesConstructs(t *testing.T) {
	rt := vktest.Open(t)
	k := newKernel(t, rt, shaders.Saxpy)
	x, y := ramp(1000), constant(1000, 0)
	deferred := saxpyOn(t, k, 1, x, y)
	deferred.NoWait = true
	if err := rt.Target(t.Context(), deferred); err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	if y[999] != x[999] {
		t.Error("Close did not wait for a deferred task")
	}
	if err := rt.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if err := rt.Target(t.Context(), deferred); !errors.Is(err, vkomp.ErrClosed) {
		t.Errorf("Target: %v", err)
	}
	if err := rt.TargetData(t.Context(), vkomp.TargetData{}, nil); !errors.Is(err, vkomp.ErrClosed) {
		t.Errorf("TargetData: %v", err)
	}
	if err := rt.Task(t.Context(), vkomp.Task{Body: func(context.Context) error { return nil }}); !errors.Is(err, vkomp.ErrClosed) {
		t.Errorf("Task: %v", err)
	}
	if _, err := rt.NewKernel(shaders.Saxpy); !errors.Is(err, vkomp.ErrClosed) {
		t.Errorf("NewKernel: %v", err)
	}
}

func TestTasksOfOneBodyAreSiblingsAndNotOfOthers(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newKernel(t, rt, shaders.Saxpy)
		const n = 50
		x, y, z := constant(n, 1), constant(n, 0), constant(n, 0)
		// Equal depend items in two bodies do not order the two: the first body can wait for
		// something that only the second one's child does.
		gate := make(chan struct{})
		bodies := []func(ctx context.Context) error{
			func(ctx context.Context) error {
				if err := rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { <-gate; return nil }}); err != nil {
					return err
				}
				target := saxpyOn(t, k, 1, x, y)
				target.Depend, target.NoWait = []vkomp.Depend{vkomp.In(x)}, true
				if err := rt.Target(ctx, target); err != nil {
					return err
				}
				return rt.Taskwait(ctx)
			},
			func(ctx context.Context) error {
				target := saxpyOn(t, k, 1, x, z)
				target.Depend = []vkomp.Depend{vkomp.InOut(x)}
				err := rt.Target(ctx, target)
				close(gate)
				return err
			},
		}
		for _, body := range bodies {
			if err := rt.Task(t.Context(), vkomp.Task{Body: body}); err != nil {
				t.Fatal(err)
			}
		}
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if y[0] != 1 || z[0] != 1 {
			t.Errorf("y[0] = %v and z[0] = %v, want 1 and 1", y[0], z[0])
		}
	})
}

func TestHostTaskBetweenTargetTasksSeesAndChangesTheirData(t *testing.T) {
	inModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newKernel(t, rt, shaders.Saxpy)
		const n = 200
		x, y := constant(n, 1), constant(n, 0)
		target := saxpyOn(t, k, 1, x, y)
		target.NoWait, target.Depend = true, []vkomp.Depend{vkomp.InOut(y)}
		for round := range 10 {
			if err := rt.Target(t.Context(), target); err != nil {
				t.Fatal(err)
			}
			err := rt.Task(t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(y)}, Body: func(context.Context) error {
				for i := range y {
					if want := float32(11*round + 1); y[i] != want {
						t.Errorf("round %d: y[%d] = %v on the host, want %v", round, i, y[i], want)
						break
					}
					y[i] += 10
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if y[n-1] != 110 {
			t.Errorf("y = %v, want 110", y[n-1])
		}
	})
}

func TestTaskwaitEndsWithItsContextAndTheTasksGoOn(t *testing.T) {
	rt := vktest.Open(t)
	gate := make(chan struct{})
	var ran atomic.Bool
	if err := rt.Task(t.Context(), vkomp.Task{Body: func(context.Context) error { <-gate; ran.Store(true); return nil }}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := rt.Taskwait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := rt.Target(ctx, vkomp.Target{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Target with an ended context: %v", err)
	}
	close(gate)
	if err := rt.Taskwait(t.Context()); err != nil || !ran.Load() {
		t.Errorf("after the gate: %v, ran %v", err, ran.Load())
	}
}

func TestTaskBodyFailures(t *testing.T) {
	rt := vktest.Open(t)
	broken := errors.New("broken")
	x := ramp(1)
	tasks := []vkomp.Task{
		{Label: "breaks", Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { return broken }},
		{Label: "depends", Depend: []vkomp.Depend{vkomp.In(x)}, Body: func(context.Context) error { t.Error("a dependent ran"); return nil }},
		{Label: "panics", Body: func(context.Context) error { panic(broken) }},
	}
	for _, task := range tasks {
		if err := rt.Task(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	err := rt.Taskwait(t.Context())
	var panicked *vkomp.PanicError
	if !errors.Is(err, broken) || !errors.As(err, &panicked) {
		t.Fatalf("got %v", err)
	}
	for _, says := range []string{`"breaks"`, `"panics"`, "1 dependent"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%q is not in %v", says, err)
		}
	}
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Errorf("reported twice: %v", err)
	}
	if err := rt.Task(t.Context(), vkomp.Task{Label: "empty"}); !errors.Is(err, vkomp.ErrInvalidArgument) || !strings.Contains(err.Error(), `"empty"`) {
		t.Errorf("no body: %v", err)
	}
}

func TestCloseWaitsForGrandchildrenAndReportsTheirFailures(t *testing.T) {
	rt, err := vkomp.Open(vkomp.Options{LookupEnv: environment("OMP_TARGET_OFFLOAD", "disabled")})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	gate := make(chan struct{})
	err = rt.Task(t.Context(), vkomp.Task{Body: func(ctx context.Context) error {
		return rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { <-gate; return broken }})
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Fatalf("Taskwait waited for a grandchild: %v", err)
	}
	close(gate)
	if err := rt.Close(); !errors.Is(err, broken) {
		t.Errorf("Close: %v", err)
	}
}

func TestTargetDataBodyPanicStillUnmaps(t *testing.T) {
	rt := vktest.Open(t)
	x := ramp(10)
	err := rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x)}}, func(context.Context) error { panic("ouch") })
	var panicked *vkomp.PanicError
	if !errors.As(err, &panicked) {
		t.Errorf("got %v", err)
	}
	if n := rt.Stats().Storage.Allocations; n != 0 {
		t.Errorf("%d allocations left", n)
	}
}

func TestTargetDataReturnsItsBodysErrorAsItIs(t *testing.T) {
	for name, option := range map[string]func(*vkomp.Options){"device": func(*vkomp.Options) {}, "host": vktest.Host} {
		t.Run(name, func(t *testing.T) {
			rt := vktest.Open(t, option)
			broken := errors.New("broken")
			region := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(ramp(10))}}
			if err := rt.TargetData(t.Context(), region, func(context.Context) error { return broken }); err != broken {
				t.Errorf("got %v", err)
			}
			if err := rt.TargetData(t.Context(), region, nil); !errors.Is(err, vkomp.ErrInvalidArgument) || !strings.Contains(err.Error(), "no body") {
				t.Errorf("without a body: %v", err)
			}
			if n := rt.Stats().Storage.Allocations; n != 0 {
				t.Errorf("%d allocations left", n)
			}
		})
	}
}

// The error of a construct that is not allowed names the construct.
func TestRefusedConstructsAreNamed(t *testing.T) {
	rt := vktest.Open(t)
	k := newKernel(t, rt, shaders.Saxpy)
	x := []float32{1}
	why := errors.New("why")
	ended, end := context.WithCancelCause(t.Context())
	end(why)
	body := func(context.Context) error { return nil }
	constructs := map[string]func(ctx context.Context, label string) error{
		`target "saxpy"`: func(ctx context.Context, label string) error {
			return rt.Target(ctx, vkomp.Target{Kernel: k, Label: label})
		},
		`task "task"`: func(ctx context.Context, label string) error {
			return rt.Task(ctx, vkomp.Task{Body: body, Label: label})
		},
		`target data "target data"`: func(ctx context.Context, label string) error {
			return rt.TargetData(ctx, vkomp.TargetData{Label: label}, body)
		},
		"target enter data": func(ctx context.Context, label string) error {
			return rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}, Label: label})
		},
		"declare target": func(ctx context.Context, label string) error {
			return rt.DeclareTarget(ctx, vkomp.DeclareTarget{Enter: []vkomp.Arg{vkomp.To(x)}, Label: label})
		},
		"taskwait":  func(ctx context.Context, _ string) error { return rt.Taskwait(ctx, vkomp.In(x)) },
		"taskgroup": func(ctx context.Context, _ string) error { return rt.Taskgroup(ctx, body) },
	}
	for name, call := range constructs {
		refused(t, name, call(ended, ""), why, "vkomp: "+name+": why")
		if !strings.HasPrefix(name, "taskw") && !strings.HasPrefix(name, "taskg") { // these have no label
			refused(t, name, call(ended, "mine"), why, "mine")
		}
	}
	must(t, rt.Close())
	for name, call := range constructs {
		refused(t, name, call(t.Context(), ""), vkomp.ErrClosed, "vkomp: "+name+": runtime is closed")
	}
	_, err := rt.NewKernel(vkomp.KernelSource{Name: "later"})
	refused(t, "a kernel", err, vkomp.ErrClosed, `vkomp: kernel "later": runtime is closed`)
}
