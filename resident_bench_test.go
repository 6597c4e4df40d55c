package vkomp_test

import (
	"context"
	"errors"
	"testing"

	"github.com/vkomp/vkomp"
)

// Kernels on data that are present take the shortest way, whatever else the program has or does.

// saxpyTask is a deferred kernel on the first n elements of two arguments.
func saxpyTask(k vkomp.Kernel, n int, x, y vkomp.Arg, depend ...vkomp.Depend) vkomp.Target {
	return vkomp.Target{
		Kernel: k, Range: vkomp.Range{X: n}, NoWait: true,
		Args: []vkomp.Arg{x, y, vkomp.Value(uint32(n)), vkomp.Value(float32(1))}, Depend: depend,
	}
}

// BenchmarkPinned measures a chain of kernels on mapped slices in programs that have pinned storage: other storage than the
// slices, or the slices themselves.
func BenchmarkPinned(b *testing.B) {
	for _, pinned := range []string{"nothing", "others", "mapped"} {
		b.Run(pinned, func(b *testing.B) {
			slices := func(rt *vkomp.Runtime) (x, y []float32, err error) {
				x, y = constant(64, 1), constant(64, 0)
				if pinned == "nothing" {
					return x, y, nil
				}
				p, err := vkomp.AllocPinned[float32](context.Background(), rt, 128)
				if err == nil && pinned == "mapped" {
					x, y = p.Slice()[:64], p.Slice()[64:]
				}
				return x, y, err
			}
			err := inDataRegionOf(b, vkomp.Options{}, slices, func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x, y []float32) error {
				return rt.Target(ctx, saxpyTask(k, 64, vkomp.To(x), vkomp.ToFrom(y), vkomp.In(x), vkomp.InOut(y)))
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkFrames measures a kernel and a deferred copy of its results to the host, and 16 kernels on other storage.
func BenchmarkFrames(b *testing.B) {
	err := inDataRegion(b, vkomp.Options{}, func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x, y []float32) error {
		launch := func(s []float32) error {
			return rt.Target(ctx, saxpyTask(k, len(s), vkomp.To(x[:len(s)]), vkomp.ToFrom(s), vkomp.InOut(s)))
		}
		err := errors.Join(launch(y[:16]), rt.TargetUpdate(ctx, vkomp.TargetUpdate{
			Motions: []vkomp.Arg{vkomp.From(y[:16])}, NoWait: true, Depend: []vkomp.Depend{vkomp.In(y[:16])},
		}))
		for i := range 16 {
			err = errors.Join(err, launch(y[16+i:17+i]))
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkKernelArguments measures a chain of kernels whose arguments are mapped slices, device memory of the program, or slices
// that no clause names.
func BenchmarkKernelArguments(b *testing.B) {
	for _, c := range []struct {
		name string
		args func(x, y []float32, p vkomp.DevicePtr) (vkomp.Arg, vkomp.Arg)
	}{
		{"slices", func(x, y []float32, _ vkomp.DevicePtr) (vkomp.Arg, vkomp.Arg) { return vkomp.To(x), vkomp.ToFrom(y) }},
		{"has_device_addr", func(_, _ []float32, p vkomp.DevicePtr) (vkomp.Arg, vkomp.Arg) {
			return vkomp.HasDeviceAddr[float32](p, 64), vkomp.HasDeviceAddr[float32](p.Add(256), 64)
		}},
		{"is_device_ptr", func(_, _ []float32, p vkomp.DevicePtr) (vkomp.Arg, vkomp.Arg) {
			return vkomp.IsDevicePtr(p), vkomp.IsDevicePtr(p.Add(256))
		}},
		{"implicit", func(x, y []float32, _ vkomp.DevicePtr) (vkomp.Arg, vkomp.Arg) {
			return vkomp.Implicit(x), vkomp.Implicit(y)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var p vkomp.DevicePtr
			slices := func(rt *vkomp.Runtime) (x, y []float32, err error) {
				ctx := context.Background()
				p, err = rt.DefaultDevice(ctx).Alloc(ctx, 512)
				return constant(64, 1), constant(64, 0), err
			}
			err := inDataRegionOf(b, vkomp.Options{}, slices, func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x, y []float32) error {
				first, second := c.args(x, y, p)
				return rt.Target(ctx, saxpyTask(k, 64, first, second, vkomp.In(x), vkomp.InOut(y)))
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkStream measures what a program does that streams: a deferred copy to the device, a kernel, and a copy of its results to
// the host, where each step follows the one before. Copies are updates of mapped slices or memory routines, of ordinary slices or of
// pinned ones.
func BenchmarkStream(b *testing.B) {
	const n = 1024
	for _, pinned := range []bool{false, true} {
		var p, q vkomp.DevicePtr
		slices := func(rt *vkomp.Runtime) (x, y []float32, err error) {
			ctx := context.Background()
			p, err = rt.DefaultDevice(ctx).Alloc(ctx, 8*n)
			q = p.Add(4 * n)
			if err != nil || !pinned {
				return constant(n, 1), constant(n, 0), err
			}
			host, err := vkomp.AllocPinned[float32](ctx, rt, 2*n)
			if err != nil {
				return nil, nil, err
			}
			return host.Slice()[:n], host.Slice()[n:], nil
		}
		storage := map[bool]string{false: "slices", true: "pinned"}[pinned]
		for way, step := range map[string]func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x, y []float32) error{
			"memcpy": func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x, y []float32) error {
				return errors.Join(
					rt.MemcpyAsync(ctx, p, vkomp.HostPtr(x), 4*n, vkomp.InOut(x)),
					rt.Target(ctx, saxpyTask(k, n, vkomp.IsDevicePtr(p), vkomp.IsDevicePtr(q), vkomp.In(x), vkomp.InOut(y))),
					rt.MemcpyAsync(ctx, vkomp.HostPtr(y), q, 4*n, vkomp.InOut(y)))
			},
			"update": func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x, y []float32) error {
				return errors.Join(
					rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(x)}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(x)}}),
					rt.Target(ctx, saxpyTask(k, n, vkomp.To(x), vkomp.ToFrom(y), vkomp.In(x), vkomp.InOut(y))),
					rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(y)}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(y)}}))
			},
		} {
			b.Run(way+"/"+storage, func(b *testing.B) {
				if err := inDataRegionOf(b, vkomp.Options{}, slices, step); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
