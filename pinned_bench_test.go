package vkomp_test

import (
	"context"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
)

// BenchmarkPinned measures deferred kernels on mapped slices in programs that have pinned storage: other storage than the
// slices, or the slices themselves.
func BenchmarkPinned(b *testing.B) {
	for _, name := range []string{"nothing", "others", "mapped"} {
		b.Run(name, func(b *testing.B) {
			if err := benchmarkPinned(b, name); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func benchmarkPinned(b *testing.B, pinned string) error {
	b.ReportAllocs()
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		return err
	}
	defer rt.Close()
	ctx := context.Background()
	k, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		return err
	}
	x, y := constant(64, 1), constant(64, 0)
	if pinned != "nothing" {
		p, err := vkomp.AllocPinned[float32](ctx, rt, 4096)
		if err != nil {
			return err
		}
		defer p.Free(ctx)
		if pinned == "mapped" {
			x, y = p.Slice()[:64], p.Slice()[1024:1088]
		}
	}
	maps := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y)}}
	return rt.TargetData(ctx, maps, func(ctx context.Context) error {
		run := func(n int) error {
			for i := range n {
				err := rt.Target(ctx, vkomp.Target{
					Kernel: k, Range: vkomp.Range{X: 64}, NoWait: true,
					Args:   []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y), vkomp.Value(uint32(64)), vkomp.Value(float32(1))},
					Depend: []vkomp.Depend{vkomp.In(x), vkomp.InOut(y)},
				})
				if err != nil {
					return err
				}
				if i%window == window-1 {
					if err := rt.Taskwait(ctx); err != nil {
						return err
					}
				}
			}
			return rt.Taskwait(ctx)
		}
		if err := run(4 * window); err != nil {
			return err
		}
		b.ResetTimer()
		err := run(b.N)
		b.StopTimer()
		return err
	})
}
