package vkomp_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// history is a tool that keeps what it is told in order; it is safe for concurrent use.
type history struct {
	mu     sync.Mutex
	events []string
}

func (h *history) add(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, fmt.Sprintf(format, args...))
}

func (h *history) callbacks() ompt.Callbacks {
	return ompt.Callbacks{
		DeviceInitialize: func(e ompt.DeviceInitializeEvent) { h.add("initialize %d", e.DeviceNum) },
		DeviceFinalize:   func(e ompt.DeviceFinalizeEvent) { h.add("finalize %d", e.DeviceNum) },
	}
}

func (h *history) expect(t *testing.T, want ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.events, want) {
		t.Errorf("events are %q, want %q", h.events, want)
	}
}

// withTool returns an option that registers a tool.
func withTool(tool ompt.Callbacks) func(*vkomp.Options) {
	return func(o *vkomp.Options) { o.Tool = tool }
}

func TestToolHearsOfADeviceBeforeItsFirstAndAfterItsLastUse(t *testing.T) {
	var h history
	var rt *vkomp.Runtime
	var told ompt.DeviceInitializeEvent
	// These callbacks call methods of the runtime.
	asking := ompt.Callbacks{
		DeviceInitialize: func(e ompt.DeviceInitializeEvent) {
			told = e
			h.add("%d dispatches on one of %d devices, default %d", rt.Stats().Dispatches, rt.NumDevices(), rt.DefaultDevice(context.Background()).Number())
		},
		DeviceFinalize: func(ompt.DeviceFinalizeEvent) {
			h.add("%d dispatches", rt.Stats().Dispatches)
		},
	}
	rt = vktest.Open(t, withTool(ompt.Tee(h.callbacks(), asking)))
	d := rt.DefaultDevice(context.Background())
	d.Info()
	h.expect(t)

	k := newKernel(t, rt, shaders.Saxpy)
	h.expect(t)
	x, y := ramp(100), constant(100, 0)
	for range 3 {
		deferred := saxpyOn(t, k, 1, x, y)
		deferred.NoWait = true
		deferred.Depend = []vkomp.Depend{vkomp.InOut(y)}
		if err := rt.Target(t.Context(), deferred); err != nil {
			t.Fatal(err)
		}
	}
	opened := []string{
		fmt.Sprintf("initialize %d", d.Number()),
		fmt.Sprintf("0 dispatches on one of %d devices, default %d", rt.NumDevices(), d.Number()),
	}
	h.expect(t, opened...)
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	h.expect(t, append(opened, fmt.Sprintf("finalize %d", d.Number()), "3 dispatches")...)
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	h.expect(t, append(opened, fmt.Sprintf("finalize %d", d.Number()), "3 dispatches")...)

	info := d.Info()
	if want := info.Name + " " + info.Type + " Vulkan " + info.Vulkan; told.Type != want {
		t.Errorf("the type is %q, want %q", told.Type, want)
	}
	if told.Documentation == "" {
		t.Error("no documentation")
	}
}

func TestToolHearsNothingOfDevicesThatAreNotUsed(t *testing.T) {
	var h history
	for _, options := range [][]func(*vkomp.Options){
		{withTool(h.callbacks())},
		{withTool(h.callbacks()), vktest.Host},
	} {
		rt := vktest.Open(t, options...)
		k := newKernel(t, rt, shaders.Saxpy)
		onHost := saxpyOn(t, k, 1, ramp(10), constant(10, 0))
		onHost.Device = rt.InitialDevice()
		if err := rt.Target(t.Context(), onHost); err != nil {
			t.Fatal(err)
		}
		if o, err := initObject(t.Context(), rt, rt.InitialDevice()); err != nil || o != interop.None {
			t.Errorf("an interop object of the initial device: types %q, %v", o.Types(), err)
		}
		if err := rt.Close(); err != nil {
			t.Fatal(err)
		}
	}
	h.expect(t)
}

// initObject returns an interop object with type target; that opens the device.
func initObject(ctx context.Context, rt *vkomp.Runtime, d vkomp.Device) (o interop.Object, err error) {
	err = rt.Interop(ctx, vkomp.Interop{Device: d, Init: []vkomp.InteropInit{{Object: &o, Types: interop.TypeTarget}}})
	return o, err
}

func TestEveryWayToOpenADeviceTellsTheTool(t *testing.T) {
	for name, open := range map[string]func(context.Context, *vkomp.Runtime) error{
		"interop": func(ctx context.Context, rt *vkomp.Runtime) error {
			_, err := initObject(ctx, rt, vkomp.Device{})
			return err
		},
		"target data": func(ctx context.Context, rt *vkomp.Runtime) error {
			return rt.TargetData(ctx, vkomp.TargetData{}, func(context.Context) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			var h history
			rt := vktest.Open(t, withTool(h.callbacks()))
			if err := open(t.Context(), rt); err != nil {
				t.Fatal(err)
			}
			if err := rt.Close(); err != nil {
				t.Fatal(err)
			}
			h.expect(t, "initialize 0", "finalize 0")
		})
	}
}

func TestConcurrentFirstUsesInitializeADeviceOnce(t *testing.T) {
	var h history
	var rt *vkomp.Runtime
	tool := h.callbacks()
	tool.DeviceInitialize = ompt.Tee(tool, ompt.Callbacks{DeviceInitialize: func(ompt.DeviceInitializeEvent) {
		if n := rt.Stats().Submissions; n != 0 {
			t.Errorf("%d submissions before the tool knows of the device", n)
		}
	}}).DeviceInitialize
	rt = vktest.Open(t, withTool(tool))
	k := newKernel(t, rt, shaders.Saxpy)
	var users sync.WaitGroup
	start := make(chan struct{})
	for range 8 {
		x, y := ramp(64), constant(64, 0)
		target := saxpyOn(t, k, 1, x, y)
		users.Go(func() {
			<-start
			if err := rt.Target(context.Background(), target); err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	users.Wait()
	h.expect(t, "initialize 0")
	if n := rt.Stats().Dispatches; n != 8 {
		t.Errorf("%d dispatches, want 8", n)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	h.expect(t, "initialize 0", "finalize 0")
}

func TestToolMayRegisterOneEventOnly(t *testing.T) {
	var h history
	all := h.callbacks()
	for _, tool := range []ompt.Callbacks{
		{DeviceInitialize: all.DeviceInitialize},
		{DeviceFinalize: all.DeviceFinalize},
	} {
		rt := vktest.Open(t, withTool(tool))
		if _, err := initObject(t.Context(), rt, vkomp.Device{}); err != nil {
			t.Fatal(err)
		}
		if err := rt.Close(); err != nil {
			t.Fatal(err)
		}
	}
	h.expect(t, "initialize 0", "finalize 0")
}

func ExampleOptions_tool() {
	var names []string
	rt, err := vkomp.Open(vkomp.Options{Tool: ompt.Callbacks{
		DeviceInitialize: func(e ompt.DeviceInitializeEvent) { names = append(names, e.Type) },
		DeviceFinalize:   func(e ompt.DeviceFinalizeEvent) { fmt.Println("device", e.DeviceNum, "was used") },
	}})
	if err != nil {
		log.Fatal(err)
	}
	k, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		log.Fatal(err)
	}
	x, y := []float32{1}, []float32{2}
	target, err := shaders.SaxpyTarget(k, 3, x, y)
	if err != nil {
		log.Fatal(err)
	}
	if err := rt.Target(context.Background(), target); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(names), "device, it speaks Vulkan:", strings.Contains(names[0], "Vulkan 1."))
	fmt.Println(rt.Close())
	// Output:
	// 1 device, it speaks Vulkan: true
	// device 0 was used
	// <nil>
}
