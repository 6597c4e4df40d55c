package vkomp_test

import (
	"context"
	"slices"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

func TestUpdateCopiesWhateverTheCount(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		x := fill(1000, 1)
		for holders := 1; holders < 4; holders++ {
			enter(t, rt, vkomp.Alloc(x))
			for i := range x {
				x[i] = uint32(holders)
			}
			update(t, rt, vkomp.To(x[100:900]))
			if got := onDevice(t, rt, d, x); holders > 1 && got[0] != uint32(100*(holders-1)) || got[100] != uint32(holders) || got[899] != uint32(holders) {
				t.Errorf("%d holders: on the device is %d, %d … %d", holders, got[0], got[100], got[899])
			}
			setOnDevice(t, rt, d, x, fill(1000, uint32(100*holders)))
			update(t, rt, vkomp.From(x[1:999]))
			if x[0] != uint32(holders) || x[1] != uint32(100*holders) || x[998] != x[1] || x[999] != x[0] {
				t.Errorf("%d holders: on the host is %d, %d … %d, %d", holders, x[0], x[1], x[998], x[999])
			}
		}
		for range 3 {
			exit(t, rt, vkomp.Release(x))
		}
		if present(d, x) {
			t.Error("an update has counted")
		}
	})
}

func TestUpdateOfAbsentStorageIsLeftOut(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		x, y := fill(100, 1), fill(100, 1)
		enter(t, rt, vkomp.To(y))
		y[0] = 5
		update(t, rt, vkomp.To(x), vkomp.To(y), vkomp.From(x).Section(vkomp.Span{Count: 50, Stride: 2}))
		if present(d, x) || onDevice(t, rt, d, y)[0] != 5 {
			t.Error("absent storage was mapped, or kept the rest from being copied")
		}
		exit(t, rt, vkomp.Release(y))
	})
}

func TestUpdateTakesNoNoticeOfAFalseIf(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		x := fill(100, 1)
		enter(t, rt, vkomp.To(x))
		x[0] = 2
		must(t, rt.TargetUpdate(t.Context(), vkomp.TargetUpdate{If: vkomp.If(false), Motions: []vkomp.Arg{vkomp.To(x)}}))
		if got := onDevice(t, rt, d, x)[0]; got != 1 {
			t.Errorf("x[0] = %d on the device after an update that was not to be", got)
		}
		must(t, rt.TargetUpdate(t.Context(), vkomp.TargetUpdate{If: vkomp.If(true), Motions: []vkomp.Arg{vkomp.To(x)}}))
		if got := onDevice(t, rt, d, x)[0]; got != 2 {
			t.Errorf("x[0] = %d on the device", got)
		}
		exit(t, rt, vkomp.Release(x))
	})
}

// An update uses what is mapped when it runs, not when it is encountered.
func TestDeferredUpdateFindsWhatIsMappedBeforeIt(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		x := fill(100, 1)
		release := held(t, rt, vkomp.InOut(x))
		must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(x)}, Depend: []vkomp.Depend{vkomp.InOut(x)}, NoWait: true}))
		enter(t, rt, vkomp.To(x))
		for i := range x {
			x[i] = 2
		}
		release()
		must(t, rt.Taskwait(ctx))
		if got := onDevice(t, rt, d, x)[99]; got != 2 {
			t.Errorf("x[99] = %d on the device, want 2", got)
		}
		exit(t, rt, vkomp.Release(x))
	})
}

func TestUpdatesBetweenKernelsAreInOrder(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		k := newKernel(t, rt, reach)
		x, n := fill(64, 0), make([]uint32, 1)
		enter(t, rt, vkomp.To(x), vkomp.To(n))
		want := slices.Clone(x)
		for round := range uint32(50) {
			depend := []vkomp.Depend{vkomp.InOut(x), vkomp.InOut(n)}
			must(t, rt.Target(ctx, vkomp.Target{Kernel: k, Range: vkomp.Range{X: 64}, Args: []vkomp.Arg{vkomp.ToFrom(x), vkomp.ToFrom(n), vkomp.Value(round)}, Depend: depend, NoWait: true}))
			must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(x[:32]), vkomp.From(x[32:]).Section(vkomp.Span{Count: 16, Stride: 2})}, Depend: depend, NoWait: true}))
			generate(t, rt, ctx, vkomp.Task{Depend: depend, Body: func(context.Context) error {
				for i := range x {
					x[i] = 3*x[i] + 1
				}
				return nil
			}})
			must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(x)}, Depend: depend, NoWait: true}))
			for i := range want {
				if i < 32 || i%2 == 0 {
					want[i] += round
				}
				want[i] = 3*want[i] + 1
			}
		}
		must(t, rt.Taskwait(ctx))
		if got := onDevice(t, rt, d, x); !slices.Equal(got, want) || !slices.Equal(x, want) {
			t.Errorf("device %d\nhost %d\nwant %d", got, x, want)
		}
		exit(t, rt, vkomp.Release(x), vkomp.Release(n))
	})
}

// Of the modifiers of maps, motions have Present alone.
func TestMotionsHaveNoModifiersOfMaps(t *testing.T) {
	rt := vktest.Open(t, vktest.Host)
	x := make([]float32, 8)
	for name, a := range map[string]vkomp.Arg{"Always": vkomp.To(x).Always(), "Close": vkomp.From(x).Close(), "Self": vkomp.To(x).Self(), "Deleting": vkomp.From(x).Deleting()} {
		err := rt.TargetUpdate(t.Context(), vkomp.TargetUpdate{Motions: []vkomp.Arg{a}})
		refused(t, name, err, vkomp.ErrInvalidArgument, "Present is that of motions")
	}
	must(t, rt.TargetUpdate(t.Context(), vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(x).Present()}}))
}
