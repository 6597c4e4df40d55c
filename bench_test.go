package vkomp_test

import (
	"context"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
)

// window is the number of deferred tasks between two waits: enough to fill batches, and few
// enough for a steady state.
const window = 512

// inDataRegion measures constructs on mapped data, on the default device of a runtime: step executes
// the i-th construct.
func inDataRegion(b *testing.B, o vkomp.Options, step func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x, y []float32) error) error {
	return inDataRegionOf(b, o, func(*vkomp.Runtime) (x, y []float32, err error) { return constant(64, 1), constant(64, 0), nil }, step)
}

// inDataRegionOf is inDataRegion for slices that the benchmark makes itself.
func inDataRegionOf(b *testing.B, o vkomp.Options, slices func(rt *vkomp.Runtime) (x, y []float32, err error), step func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x, y []float32) error) error {
	b.ReportAllocs()
	rt, err := vkomp.Open(o)
	if err != nil {
		return err
	}
	defer rt.Close()
	k, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		return err
	}
	x, y, err := slices(rt)
	if err != nil {
		return err
	}
	maps := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y)}}
	return rt.TargetData(context.Background(), maps, func(ctx context.Context) error {
		run := func(n int) error {
			for i := range n {
				if err := step(ctx, rt, k, x, y); err != nil {
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
		// All pools are filled by this.
		if err := run(4 * window); err != nil {
			return err
		}
		before := rt.Stats().Submissions
		b.ResetTimer()
		if err := run(b.N); err != nil {
			return err
		}
		b.StopTimer()
		b.ReportMetric(float64(rt.Stats().Submissions-before)/float64(b.N), "submissions/op")
		return nil
	})
}

// constructs are those that programs call most often on mapped data. The directives are
// written in place, as in programs.
var constructs = []struct {
	name string
	step func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x, y []float32) error
}{
	{"chain", func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x, y []float32) error {
		return rt.Target(ctx, vkomp.Target{
			Kernel: k, Range: vkomp.Range{X: len(y)}, Label: "step",
			Args:   []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y), vkomp.Value(uint32(len(y))), vkomp.Value(float32(1))},
			Depend: []vkomp.Depend{vkomp.In(x), vkomp.InOut(y)},
			NoWait: true,
		})
	}},
	{"dependargs", func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x, y []float32) error {
		return rt.Target(ctx, vkomp.Target{
			Kernel: k, Range: vkomp.Range{X: len(y)},
			Args:       []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y), vkomp.Value(uint32(len(y))), vkomp.Value(float32(1))},
			DependArgs: true, NoWait: true,
		})
	}},
	{"independent", func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x, y []float32) error {
		return rt.Target(ctx, vkomp.Target{
			Kernel: k, Range: vkomp.Range{X: len(y)},
			Args:   []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y), vkomp.Value(uint32(len(y))), vkomp.Value(float32(1))},
			NoWait: true,
		})
	}},
	{"mutexinoutset", func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x, y []float32) error {
		return rt.Target(ctx, vkomp.Target{
			Kernel: k, Range: vkomp.Range{X: len(y)},
			Args:   []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y), vkomp.Value(uint32(len(y))), vkomp.Value(float32(1))},
			Depend: []vkomp.Depend{vkomp.In(x), vkomp.MutexInOutSet(y)},
			NoWait: true,
		})
	}},
	{"join", func(ctx context.Context, rt *vkomp.Runtime, _ vkomp.Kernel, x, y []float32) error {
		return rt.TaskwaitNoWait(ctx, vkomp.In(x), vkomp.Out(y))
	}},
	{"synchronous", func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x, y []float32) error {
		return rt.Target(ctx, vkomp.Target{
			Kernel: k, Range: vkomp.Range{X: len(y)},
			Args: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y), vkomp.Value(uint32(len(y))), vkomp.Value(float32(1))},
		})
	}},
	{"enter and exit data", func(ctx context.Context, rt *vkomp.Runtime, _ vkomp.Kernel, x, y []float32) error {
		err := rt.TargetEnterData(ctx, vkomp.TargetEnterData{
			Maps:   []vkomp.Arg{vkomp.To(x), vkomp.Alloc(y[:32])},
			Depend: []vkomp.Depend{vkomp.In(x), vkomp.InOut(y)}, Label: "enter", NoWait: true,
		})
		if err != nil {
			return err
		}
		return rt.TargetExitData(ctx, vkomp.TargetExitData{
			Maps:   []vkomp.Arg{vkomp.Release(x), vkomp.From(y[:32])},
			Depend: []vkomp.Depend{vkomp.In(x), vkomp.InOut(y)}, Label: "exit", NoWait: true,
		})
	}},
	{"update", func(ctx context.Context, rt *vkomp.Runtime, _ vkomp.Kernel, x, y []float32) error {
		return rt.TargetUpdate(ctx, vkomp.TargetUpdate{
			Motions: []vkomp.Arg{vkomp.To(x), vkomp.From(y)},
			Depend:  []vkomp.Depend{vkomp.In(x), vkomp.InOut(y)}, Label: "update", NoWait: true,
		})
	}},
	{"synchronous update", func(ctx context.Context, rt *vkomp.Runtime, _ vkomp.Kernel, _, y []float32) error {
		return rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(y).Present()}})
	}},
	{"device pointers", func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x, y []float32) error {
		p := rt.DefaultDevice(ctx).MappedPtr(vkomp.HostPtr(x))
		return rt.Target(ctx, vkomp.Target{
			Kernel: k, Range: vkomp.Range{X: len(y)},
			Args:   []vkomp.Arg{vkomp.IsDevicePtr(p), vkomp.Implicit(y), vkomp.Value(uint32(len(y))), vkomp.Value(float32(1))},
			Depend: []vkomp.Depend{vkomp.In(x), vkomp.InOut(y)},
			NoWait: true,
		})
	}},
	{"taskwait depend", func(ctx context.Context, rt *vkomp.Runtime, _ vkomp.Kernel, _, y []float32) error {
		return rt.Taskwait(ctx, vkomp.In(y))
	}},
}

// BenchmarkConstruct measures the whole cost of constructs on mapped data: creating,
// resolving, encoding and running a kernel of one workgroup, in windows of 512.
func BenchmarkConstruct(b *testing.B) {
	for _, c := range constructs {
		b.Run(c.name, func(b *testing.B) {
			if err := inDataRegion(b, vkomp.Options{}, c.step); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkTask measures an explicit host task with an empty body. It allocates, because the
// context of a body cannot be reused.
func BenchmarkTask(b *testing.B) {
	b.ReportAllocs()
	rt, err := vkomp.Open(vkomp.Options{LookupEnv: environment("OMP_TARGET_OFFLOAD", "disabled")})
	if err != nil {
		b.Fatal(err)
	}
	defer rt.Close()
	x := []int{0}
	body := func(context.Context) error { return nil }
	ctx := context.Background()
	for i := 0; b.Loop(); i++ {
		if err := rt.Task(ctx, vkomp.Task{Body: body, Depend: []vkomp.Depend{vkomp.InOut(x)}}); err != nil {
			b.Fatal(err)
		}
		if i%window == window-1 {
			if err := rt.Taskwait(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
}
