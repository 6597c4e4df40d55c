package vkomp_test

import (
	"context"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// A target that is the only one to map large slices uses them in place, where device and host
// have one memory, and moves them elsewhere.
func TestLargeTargetMovesNoByte(t *testing.T) {
	rt := vktest.Open(t)
	ctx := t.Context()
	k, err := rt.NewKernel(shaders.Saxpy)
	must(t, err)
	const n = 2 << 20 // 8 MiB each
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i], y[i] = float32(i%1000), 1
	}
	saxpy := func(x, y vkomp.Arg, elements int) {
		t.Helper()
		must(t, rt.Target(ctx, vkomp.Target{
			Kernel: k, Range: vkomp.Range{X: elements},
			Args: []vkomp.Arg{x, y, vkomp.Value(uint32(elements)), vkomp.Value(float32(2))},
		}))
	}
	moved := func() uint64 {
		s := rt.Stats()
		return s.BytesToDevice + s.BytesFromDevice
	}
	// What moves each time a slice of n elements is copied that could be used in place.
	copied := uint64(4 * n)
	device, err := rt.Device(0)
	must(t, err)
	switch memory := device.Decisions()[0]; memory.Choice {
	case "unified":
		copied = 0
	case "all mapped by the host, not cached", "a small part mapped by the host", "not mapped by the host":
	default:
		t.Fatalf("memory is %q", memory.Choice)
	}
	saxpy(vkomp.To(x), vkomp.ToFrom(y), n)
	if moved() != 3*copied {
		t.Errorf("%d bytes moved", moved())
	}
	for i := range y {
		if want := 1 + 2*float32(i%1000); y[i] != want || x[i] != float32(i%1000) {
			t.Fatalf("y[%d] = %v, want %v; x[%d] = %v", i, y[i], want, i, x[i])
		}
	}
	if s := rt.Stats(); s.Storage.Allocations != 0 {
		t.Errorf("%d allocations left", s.Storage.Allocations)
	}

	// Slices that the device must not write in place, and those that a region maps, are
	// copied.
	before := moved()
	saxpy(vkomp.To(x), vkomp.To(y), n)
	if moved()-before != 4*n+copied {
		t.Errorf("%d bytes moved for a slice that the kernel writes and that is not mapped back", moved()-before)
	}
	if y[1] != 3 {
		t.Errorf("the host sees what the device wrote: %v", y[1])
	}
	before = moved()
	must(t, rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(y)}}, func(context.Context) error {
		y[1] = 100
		saxpy(vkomp.To(x), vkomp.ToFrom(y), n)
		if y[1] != 100 {
			t.Errorf("inside of the region the host sees %v", y[1])
		}
		return nil
	}))
	if moved()-before != 8*n+copied || y[1] != 5 {
		t.Errorf("%d bytes moved for a region, y[1] = %v", moved()-before, y[1])
	}
	// Small slices are not worth it.
	before = moved()
	saxpy(vkomp.To(x[:1000]), vkomp.ToFrom(y[:1000]), 1000)
	if moved()-before != 12000 {
		t.Errorf("%d bytes moved for a small target", moved()-before)
	}
}
