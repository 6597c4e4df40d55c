package tests

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/tests/vktest"
)

// adoption describes the device of an application, which is simulated by another runtime with
// validation, so that everything done to the device is checked.
func adoption(t *testing.T, application *vkomp.Runtime) (*vkomp.Adoption, interop.Object) {
	t.Helper()
	var o interop.Object
	init := []vkomp.InteropInit{{Object: &o, Types: interop.TypeTarget | interop.TypeTargetSync}}
	succeed(t, application.Interop(t.Context(), vkomp.Interop{Init: init}))
	h, _ := o.Vulkan()
	q, _ := o.Queue()
	return &vkomp.Adoption{
		Instance: h.Instance, PhysicalDevice: h.PhysicalDevice, Device: h.Device, GetInstanceProcAddr: h.GetInstanceProcAddr,
		APIVersion: 1<<22 | 2<<12, Features: vkomp.AdoptedFeatures{TimelineSemaphore: true},
		Queues: []vkomp.AdoptedQueue{{Handle: q.Handle, Family: q.Family, Locker: q.Lock}},
	}, o
}

func TestRuntimeOnAnAdoptedDevice(t *testing.T) {
	application := vktest.Open(t)
	theirs := newAffine(t, application)
	a, _ := adoption(t, application)
	for range 3 {
		rt, err := vkomp.Open(vkomp.Options{Adopt: a})
		succeed(t, err)
		if n := rt.NumDevices(); n != 1 {
			t.Fatalf("%d devices, want the adopted one", n)
		}
		ours := newAffine(t, rt)
		x, y := repeated(1000, 1), repeated(1000, 1)
		for range 20 {
			offload(t, application, theirs.add(x, 1, vkomp.InOut(x)))
			offload(t, rt, ours.add(y, 2, vkomp.InOut(y)))
		}
		succeed(t, rt.Taskwait(t.Context()))
		p, err := rt.DefaultDevice(context.Background()).Alloc(t.Context(), 1<<20)
		succeed(t, err)
		succeed(t, rt.DefaultDevice(context.Background()).Free(t.Context(), p))
		succeed(t, rt.Close())
		// The application goes on using its device.
		offload(t, application, now(theirs.add(x, 1, vkomp.InOut(x))))
		if x[0] != 22 || y[0] != 41 {
			t.Fatalf("x is %d, y is %d; want 22 and 41", x[0], y[0])
		}
	}
}

// On an adopted device, too, the application's foreign work is ordered with the tasks.
func TestForeignWorkOnAnAdoptedDevice(t *testing.T) {
	application := vktest.Open(t)
	a, _ := adoption(t, application)
	for _, p := range []protocol{explicitly, calledBack} {
		rt, err := vkomp.Open(vkomp.Options{Adopt: a})
		succeed(t, err)
		got, want := newRelay(t, rt).run(50, p)
		if i := wrongAt(got, want); i >= 0 {
			t.Errorf("%s: word %d is %d, want %d", p.name, i, got[i], want[i])
		}
		succeed(t, rt.Close())
	}
}

func TestAdoptionThatCannotBe(t *testing.T) {
	application := vktest.Open(t)
	good, _ := adoption(t, application)
	for says, c := range map[string]struct {
		want   error
		change func(*vkomp.Adoption)
	}{
		"without robustBufferAccess":            {vkomp.ErrUnsupported, func(*vkomp.Adoption) {}},
		"timelineSemaphore, robustBufferAccess": {vkomp.ErrUnsupported, func(a *vkomp.Adoption) { a.Features.TimelineSemaphore = false }},
		"no Device":                             {vkomp.ErrInvalidArgument, func(a *vkomp.Adoption) { a.Device = 0 }},
		"no Locker":                             {vkomp.ErrInvalidArgument, func(a *vkomp.Adoption) { a.Queues[0].Locker = nil }},
	} {
		a := *good
		a.Queues = append([]vkomp.AdoptedQueue(nil), good.Queues...)
		c.change(&a)
		rt, err := vkomp.Open(vkomp.Options{Adopt: &a, Robust: true})
		if rt != nil || !errors.Is(err, c.want) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q in a %v", err, says, c.want)
		}
	}
}

// The application has made the device with robustBufferAccess, which Robust needs.
func TestRobustOnAnAdoptedDevice(t *testing.T) {
	application := vktest.Open(t)
	a, _ := adoption(t, application)
	a.Features.RobustBufferAccess = true
	rt, err := vkomp.Open(vkomp.Options{Adopt: a, Robust: true})
	succeed(t, err)
	y := repeated(1000, 1)
	offload(t, rt, now(newAffine(t, rt).add(y, 2, vkomp.InOut(y))))
	succeed(t, rt.Close())
	if y[0] != 3 {
		t.Errorf("y is %d, want 3", y[0])
	}
}

// A hard pause frees vkomp's objects on the device, but not the application's device.
func TestPauseOfAnAdoptedDevice(t *testing.T) {
	application := vktest.Open(t)
	theirs := newAffine(t, application)
	a, _ := adoption(t, application)
	rt, err := vkomp.Open(vkomp.Options{Adopt: a})
	succeed(t, err)
	ours := newAffine(t, rt)
	ctx := t.Context()
	x, y := repeated(1000, 1), repeated(1000, 1)
	for _, kind := range []vkomp.PauseKind{vkomp.PauseSoft, vkomp.PauseHard, vkomp.PauseHard} {
		offload(t, rt, now(ours.add(y, 2, vkomp.InOut(y))))
		succeed(t, rt.PauseResourceAll(ctx, kind))
		offload(t, application, now(theirs.add(x, 1, vkomp.InOut(x))))
	}
	offload(t, rt, now(ours.add(y, 2, vkomp.InOut(y))))
	succeed(t, rt.Close())
	if x[0] != 4 || y[0] != 9 {
		t.Errorf("x is %d, y is %d; want 4 and 9", x[0], y[0])
	}
}

// A kernel that needs a feature which the application has not named is refused, and the error says that the adoption lacks
// it, and not that the device does.
func TestKernelThatNeedsMoreThanTheAdoptedDeviceHas(t *testing.T) {
	application := vktest.Open(t)
	a, _ := adoption(t, application)
	rt, err := vkomp.Open(vkomp.Options{Adopt: a})
	succeed(t, err)
	kernel, err := rt.NewKernel(throughSource)
	succeed(t, err)
	err = rt.Target(t.Context(), vkomp.Target{Kernel: kernel, Range: vkomp.Range{X: 1}, Args: []vkomp.Arg{
		vkomp.Value(uint64(0)), vkomp.Value(uint32(1)),
	}})
	if !errors.Is(err, vkomp.ErrUnsupported) || !strings.Contains(err.Error(), "PhysicalStorageBufferAddresses") || !strings.HasSuffix(err.Error(), "was adopted without") {
		t.Errorf("%v, want an ErrUnsupported with the capability that the device was adopted without", err)
	}
	succeed(t, rt.Close())
}
