package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
	"github.com/vkomp/vkomp/vk"
)

// Whoever notices the loss of a device, nobody waits for it afterwards; its objects can be
// destroyed, and after a hard pause the device can be used again.
func TestHardPauseBringsALostDeviceBack(t *testing.T) {
	vktest.LongConcurrent(t)
	for name, learn := range map[string]func(rt *vkomp.Runtime, own *interop.Object, add func() error) error{
		"a target":             func(_ *vkomp.Runtime, _ *interop.Object, add func() error) error { return add() },
		"destroy":              func(rt *vkomp.Runtime, own *interop.Object, _ func() error) error { return destroy(rt, own) },
		"work of an own queue": func(_ *vkomp.Runtime, own *interop.Object, _ func() error) error { _, _, err := own.Next(); return err },
	} {
		t.Run(name, func(t *testing.T) {
			faults := vktest.InjectFaults(t, "manyqueue")
			kept := &records{}
			rt, err := vkomp.Open(vkomp.Options{Logger: slog.New(kept)})
			must(t, err)
			ctx, d := t.Context(), rt.DefaultDevice(t.Context())
			x, y := []uint32{0}, make([]float32, 100)
			k, err := rt.NewKernel(shaders.Saxpy)
			must(t, err)
			add := func() error {
				return rt.Target(ctx, vkomp.Target{Kernel: k, Range: vkomp.Range{X: len(y)}, Args: []vkomp.Arg{
					vkomp.To(ones(len(y))), vkomp.ToFrom(y), vkomp.Value(uint32(len(y))), vkomp.Value(float32(1)),
				}})
			}
			must(t, add())
			p, err := d.Alloc(ctx, 64)
			must(t, err)
			own, shared, other := newObject(t, rt, targetAndSync), newObject(t, rt, targetAndSync), newObject(t, rt, targetAndSync)
			gone := []interop.Object{own, shared, other}
			_, signal, err := other.Next() // whose work never signals
			must(t, err)
			must(t, other.Submitted(signal))
			_, signal, err = shared.Next() // whose work is never submitted
			must(t, err)
			must(t, rt.Interop(ctx, later(use(shared), vkomp.InOut(x))))

			faults.Fail("vkQueueSubmit", 1, 1, vk.ErrorDeviceLost)
			const says = "PauseResource with PauseHard brings the device back"
			err = learn(rt, &own, add)
			if name == "destroy" {
				must(t, err)
			} else {
				refused(t, "who learns of it", err, vkomp.ErrDeviceLost, says)
			}
			refused(t, "the tasks", rt.Taskwait(ctx), vkomp.ErrDeviceLost, says)
			refused(t, "target", add(), vkomp.ErrDeviceLost, says)
			refused(t, "use", rt.Interop(ctx, use(shared)), vkomp.ErrDeviceLost, says, shared.String())
			refused(t, "use, nowait", rt.Interop(ctx, later(use(shared), vkomp.InOut(x))), vkomp.ErrDeviceLost, says)
			_, _, err = shared.Next()
			refused(t, "Next", err, vkomp.ErrDeviceLost, says)
			refused(t, "Ready", shared.Ready(ctx, signal), vkomp.ErrDeviceLost, says)
			refused(t, "Submitted", shared.Submitted(signal), vkomp.ErrDeviceLost, says)
			refused(t, "Submit", shared.Submit(ctx, func(uintptr) error { return nil }), vkomp.ErrDeviceLost, says)
			_, err = rt.InteropBuffer(shared, p, 64)
			refused(t, "InteropBuffer", err, vkomp.ErrDeviceLost, says)
			must(t, shared.Withdraw(signal))
			none := interop.None
			must(t, rt.Interop(ctx, vkomp.Interop{Init: []vkomp.InteropInit{{Object: &none, Types: interop.TypeTarget}}}))
			if none != interop.None {
				t.Error("the lost device has a new object")
			}

			refused(t, "pause", rt.PauseResource(ctx, vkomp.PauseHard, d), vkomp.ErrBusy, "interop objects that are not destroyed")
			if own != interop.None {
				must(t, destroy(rt, &own, vkomp.InOut(x)))
			}
			must(t, destroy(rt, &shared, vkomp.InOut(x)))
			must(t, destroy(rt, &other))
			ran := false
			must(t, rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.In(x)}, Body: func(context.Context) error { ran = true; return nil }}))
			must(t, rt.Taskwait(ctx))
			if !ran {
				t.Error("the task after the objects' end was not run")
			}
			must(t, rt.PauseResource(ctx, vkomp.PauseHard, d))

			must(t, add())
			if y[0] != 2 {
				t.Errorf("y is %v, want 2", y[0])
			}
			o := newObject(t, rt, targetAndSync)
			must(t, rt.Interop(ctx, later(use(o), vkomp.InOut(x))))
			must(t, destroy(rt, &o, vkomp.InOut(x)))
			for _, o := range gone {
				if o.Types() != 0 {
					t.Errorf("%v is left", o)
				}
			}
			must(t, rt.Close())
			if log := kept.text.String(); strings.Count(log, "device lost") != 1 || !strings.Contains(log, says) {
				t.Errorf("the log says %s", log)
			}
		})
	}
}

// A construct on the device waits for a value that the host was to signal when the device is lost. The
// host does not signal it any more, and the device comes to rest.
func TestLossBehindWithdrawnWork(t *testing.T) {
	f := vktest.InjectFaults(t)
	rt, err := vkomp.Open(vkomp.Options{})
	must(t, err)
	ctx, x := t.Context(), []uint32{0}
	k := newKernel(t, rt, shaders.Saxpy)
	o := newObject(t, rt, targetAndSync)
	_, signal, err := o.Next() // whose work never signals
	must(t, err)
	must(t, o.Submitted(signal))
	_, signal, err = o.Next()
	must(t, err)
	must(t, o.Withdraw(signal))
	must(t, rt.Interop(ctx, later(use(o), vkomp.InOut(x))))
	f.Fail("vkQueueSubmit", 1, 1, vk.ErrorDeviceLost)
	refused(t, "a target", rt.Target(ctx, saxpyOn(t, k, 1, constant(64, 1), constant(64, 0))), vkomp.ErrDeviceLost)
	refused(t, "the construct", rt.Taskwait(ctx), vkomp.ErrDeviceLost)
	must(t, destroy(rt, &o))
	must(t, rt.PauseResource(ctx, vkomp.PauseHard, rt.DefaultDevice(ctx)))
	must(t, rt.Target(ctx, saxpyOn(t, k, 1, constant(64, 1), constant(64, 0))))
	must(t, rt.Close())
}

// A copy between two devices of which one is lost fails and names the loss, whichever end it
// is.
func TestCopyBetweenDevicesOfWhichOneIsLost(t *testing.T) {
	f := vktest.InjectFaults(t)
	rt, d := openTwice(t, func(o *vkomp.Options) { o.Validation = false })
	ctx := t.Context()
	var p [2]vkomp.DevicePtr
	for i := range p {
		var err error
		p[i], err = d[i].Alloc(ctx, 64)
		must(t, err)
	}
	k := newKernel(t, rt, shaders.Saxpy)
	must(t, rt.Target(ctx, saxpyOn(t, k, 1, constant(64, 1), constant(64, 0))))
	f.Fail("vkQueueSubmit", 1, 1, vk.ErrorDeviceLost)
	refused(t, "a target", rt.Target(ctx, saxpyOn(t, k, 1, constant(64, 1), constant(64, 0))), vkomp.ErrDeviceLost)
	f.Mend()
	refused(t, "a copy to it", rt.Memcpy(ctx, p[0], p[1], 64), vkomp.ErrDeviceLost, "the destination")
	refused(t, "a copy from it", rt.Memcpy(ctx, p[1], p[0], 64), vkomp.ErrDeviceLost, "the source")
	if err := d[1].Lost(); err != nil {
		t.Errorf("the other device: %v", err)
	}
	must(t, d[1].Free(ctx, p[1]))
}

// destroy ends an object by the construct.
func destroy(rt *vkomp.Runtime, o *interop.Object, depend ...vkomp.Depend) error {
	i := vkomp.Interop{Destroy: []*interop.Object{o}, Depend: depend}
	if err := rt.Interop(context.Background(), i); err != nil {
		return err
	}
	if *o != interop.None {
		return errors.New("the object is not destroyed")
	}
	return nil
}

// ones returns n times 1.
func ones(n int) []float32 {
	all := make([]float32, n)
	for k := range all {
		all[k] = 1
	}
	return all
}

// A runtime can be closed at any moment after its last construct, also while the driver still
// executes what that has submitted.
func TestCloseAfterTheLastConstruct(t *testing.T) {
	vktest.LongConcurrent(t)
	for _, layer := range []string{"", "manyqueue"} {
		t.Run(fmt.Sprintf("layer %q", layer), func(t *testing.T) {
			if layer != "" {
				vktest.Layers(t, layer)
			}
			a := make([]uint32, 4)
			for range 100 {
				rt, err := vkomp.Open(vkomp.Options{})
				must(t, err)
				o := newObject(t, rt, interop.TypeTargetSync)
				for range 3 {
					must(t, rt.Interop(t.Context(), later(use(o), vkomp.InOut(a))))
				}
				must(t, rt.Interop(t.Context(), later(vkomp.Interop{Destroy: []*interop.Object{&o}}, vkomp.InOut(a))))
				must(t, rt.Taskwait(t.Context()))
				must(t, rt.Close())
			}
		})
	}
}
