package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/tests/vktest"
)

func TestInteropObjectHasTheHandlesOfItsDevice(t *testing.T) {
	rt := vktest.Open(t)
	for number := range rt.NumDevices() {
		d, err := rt.Device(number)
		if err != nil {
			t.Fatal(err)
		}
		init := vkomp.InteropInit{Device: d, Types: interop.TypeTarget}
		o, err := rt.InteropInit(t.Context(), init)
		if err != nil {
			t.Fatal(err)
		}
		want := vkomp.VulkanHandles(d)
		for property, handle := range map[interop.Property]uintptr{
			interop.PropertyPlatform:            want.Instance,
			interop.PropertyDevice:              want.PhysicalDevice,
			interop.PropertyDeviceContext:       want.Device,
			interop.PropertyGetInstanceProcAddr: want.GetInstanceProcAddr,
		} {
			if got, rc := o.Ptr(property); rc != interop.RCSuccess || got != handle || got == 0 {
				t.Errorf("device %d: %s is %#x (code %d), want %#x", number, o.PropertyName(property), got, rc, handle)
			}
		}
		if n, rc := o.Int(interop.PropertyDeviceNum); rc != interop.RCSuccess || n != number {
			t.Errorf("device %d: device_num is %d (code %d)", number, n, rc)
		}

		init.Prefer = []interop.Preference{{Name: "cuda"}, {Runtime: interop.ForeignRuntimeVulkan}}
		again, err := rt.InteropInit(t.Context(), init)
		if err != nil {
			t.Fatal(err)
		}
		if again == o {
			t.Error("two objects are the same")
		}
		if h, ok := again.Vulkan(); !ok || h != want {
			t.Errorf("device %d: a second object has %+v (%v), want %+v", number, h, ok, want)
		}
	}
}

func TestInteropObjectOfTheDefaultDevice(t *testing.T) {
	rt := vktest.Open(t)
	o, err := rt.InteropInit(t.Context(), vkomp.InteropInit{Types: interop.TypeTarget})
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := o.DeviceNum(); !ok || n != rt.DefaultDevice(context.Background()).Number() {
		t.Errorf("device %d (%v), want %d", n, ok, rt.DefaultDevice(context.Background()).Number())
	}
}

func TestInteropObjectsThatCannotBeInitialisedAreNone(t *testing.T) {
	rt := vktest.Open(t)
	for name, init := range map[string]vkomp.InteropInit{
		"initial device":        {Device: rt.InitialDevice(), Types: interop.TypeTarget},
		"targetsync":            {Types: interop.TypeTargetSync},
		"target and targetsync": {Types: interop.TypeTarget | interop.TypeTargetSync},
	} {
		o, err := rt.InteropInit(t.Context(), init)
		if err != nil || o != interop.None {
			t.Errorf("%s: types %q, %v; want none and no error", name, o.Types(), err)
		}
		if err := rt.InteropDestroy(t.Context(), &o); err != nil {
			t.Errorf("%s: destroy none: %v", name, err)
		}
	}
}

func TestInteropMistakesAreErrors(t *testing.T) {
	rt := vktest.Open(t)
	o, err := rt.InteropInit(t.Context(), vkomp.InteropInit{Types: interop.TypeTarget})
	if err != nil {
		t.Fatal(err)
	}
	other := vktest.Open(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		init vkomp.InteropInit
		want error
		says string
	}{
		{t.Context(), vkomp.InteropInit{}, vkomp.ErrInvalidArgument, "without an interop type"},
		{t.Context(), vkomp.InteropInit{Types: 0x80}, vkomp.ErrInvalidArgument, "0x80"},
		{t.Context(), vkomp.InteropInit{Types: interop.TypeTarget, Prefer: []interop.Preference{{}}}, vkomp.ErrInvalidArgument, "item 0"},
		{t.Context(), vkomp.InteropInit{Types: interop.TypeTarget, Device: other.DefaultDevice(context.Background())}, vkomp.ErrInvalidDevice, "another runtime"},
		{ended, vkomp.InteropInit{Types: interop.TypeTarget}, context.Canceled, "interop init"},
	} {
		o, err := rt.InteropInit(c.ctx, c.init)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || o != interop.None {
			t.Errorf("got %v, want %q in a %v", err, c.says, c.want)
		}
	}

	before := o
	for name, err := range map[string]error{
		"no object":       rt.InteropDestroy(t.Context(), nil),
		"another runtime": other.InteropDestroy(t.Context(), &o),
	} {
		if !errors.Is(err, vkomp.ErrInvalidArgument) {
			t.Errorf("destroy, %s: got %v", name, err)
		}
	}
	if err := rt.InteropDestroy(ended, &o); !errors.Is(err, context.Canceled) {
		t.Errorf("destroy with an ended context: %v", err)
	}
	if _, ok := o.Vulkan(); !ok || o != before {
		t.Error("a refused destroy changed the object")
	}
}

func TestDestroyingAnInteropObjectEndsItsCopies(t *testing.T) {
	rt := vktest.Open(t)
	o, err := rt.InteropInit(t.Context(), vkomp.InteropInit{Types: interop.TypeTarget})
	if err != nil {
		t.Fatal(err)
	}
	alias := o
	if err := rt.InteropDestroy(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	if o != interop.None {
		t.Error("the destroyed object is not none")
	}
	if _, rc := alias.Ptr(interop.PropertyDevice); rc != interop.RCEmpty {
		t.Errorf("a copy reads %d, want %d", rc, interop.RCEmpty)
	}
	if err := rt.InteropDestroy(t.Context(), &alias); !errors.Is(err, vkomp.ErrInvalidArgument) || !strings.Contains(err.Error(), "destroyed before") {
		t.Errorf("destroyed twice: got %v", err)
	}
}

func TestInteropObjectsAreStaleOnceTheRuntimeIsClosed(t *testing.T) {
	rt := vktest.Open(t)
	o, err := rt.InteropInit(t.Context(), vkomp.InteropInit{Types: interop.TypeTarget})
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	for p := interop.PropertyFirst; p < interop.Property(o.NumProperties()); p++ {
		_, ri := o.Int(p)
		h, rh := o.Ptr(p)
		_, rs := o.Str(p)
		if ri != interop.RCEmpty || rh != interop.RCEmpty || rs != interop.RCEmpty || h != 0 {
			t.Errorf("%s reads %d, %d (%#x), %d", o.PropertyName(p), ri, rh, h, rs)
		}
	}
	if err := rt.InteropDestroy(t.Context(), &o); !errors.Is(err, vkomp.ErrClosed) {
		t.Errorf("InteropDestroy: %v", err)
	}
	if _, err := rt.InteropInit(t.Context(), vkomp.InteropInit{Types: interop.TypeTarget}); !errors.Is(err, vkomp.ErrClosed) {
		t.Errorf("InteropInit: %v", err)
	}
}

func ExampleRuntime_InteropInit() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()

	// #pragma omp interop init(target: obj)
	obj, err := rt.InteropInit(ctx, vkomp.InteropInit{Types: interop.TypeTarget})
	if err != nil {
		log.Fatal(err)
	}
	name, _ := obj.Str(interop.PropertyFrName)
	device, rc := obj.Ptr(interop.PropertyDeviceContext)
	fmt.Println(name, obj.PropertyTypeDesc(interop.PropertyDeviceContext), device != 0, obj.RCDesc(rc))

	// The initial device has no foreign runtime.
	host, err := rt.InteropInit(ctx, vkomp.InteropInit{Types: interop.TypeTarget, Device: rt.InitialDevice()})
	fmt.Println(host == interop.None, err)

	// #pragma omp interop destroy(obj)
	err = rt.InteropDestroy(ctx, &obj)
	fmt.Println(obj == interop.None, err)
	// Output:
	// vulkan VkDevice true success
	// true <nil>
	// true <nil>
}
