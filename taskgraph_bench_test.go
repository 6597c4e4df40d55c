package vkomp_test

import (
	"context"
	"errors"
	"testing"

	"github.com/vkomp/vkomp"
)

// BenchmarkTaskgraph measures constructs on mapped data, in regions of 512, whose block is executed
// anew at each encounter, or which are replayed. The figures are for one construct.
func BenchmarkTaskgraph(b *testing.B) {
	for _, c := range constructs {
		switch c.name {
		case "synchronous", "synchronous update", "taskwait depend":
			continue // these are not replayable
		}
		for name, again := range map[string]vkomp.Cond{"anew": vkomp.If(false), "replay": vkomp.If(true)} {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				var records vkomp.TaskgraphRecords
				constructs := 0
				err := inDataRegion(b, vkomp.Options{}, func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x, y []float32) error {
					if constructs++; constructs%window != 1 {
						return nil
					}
					g := vkomp.Taskgraph{Records: &records, NoGroup: true, If: again}
					return rt.Taskgraph(ctx, g, func(ctx context.Context) error {
						for range window {
							if err := c.step(ctx, rt, k, x, y); err != nil {
								return err
							}
						}
						return nil
					})
				})
				if err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// BenchmarkReplayedArguments measures a kernel of replayed chains of 512, whose arguments are mapped slices, device memory, slices
// that no clause names, or a value and a slice that are parameters of the taskgraph.
func BenchmarkReplayedArguments(b *testing.B) {
	var p vkomp.DevicePtr
	var factor vkomp.ParamVar[float32]
	var out vkomp.ParamSlice[float32]
	for _, c := range []struct {
		name   string
		args   func(ctx context.Context, x, y []float32) []vkomp.Arg // beside the number of elements
		params func(encounter int, y []float32) []vkomp.Param
	}{
		{"slices", func(_ context.Context, x, y []float32) []vkomp.Arg {
			return []vkomp.Arg{vkomp.To(x[:64]), vkomp.ToFrom(y[:64]), vkomp.Value(float32(1))}
		}, nil},
		{"is_device_ptr", func(context.Context, []float32, []float32) []vkomp.Arg {
			return []vkomp.Arg{vkomp.IsDevicePtr(p), vkomp.IsDevicePtr(p.Add(256)), vkomp.Value(float32(1))}
		}, nil},
		{"implicit", func(_ context.Context, x, y []float32) []vkomp.Arg {
			return []vkomp.Arg{vkomp.Implicit(x), vkomp.Implicit(y), vkomp.Value(float32(1))}
		}, nil},
		{"another_value", func(ctx context.Context, x, y []float32) []vkomp.Arg {
			return []vkomp.Arg{vkomp.To(x[:64]), vkomp.ToFrom(y[:64]), factor.Arg(ctx)}
		}, func(encounter int, _ []float32) []vkomp.Param { return []vkomp.Param{factor.Bind(float32(encounter))} }},
		{"two_slices_in_turn", func(ctx context.Context, x, _ []float32) []vkomp.Arg {
			return []vkomp.Arg{vkomp.To(x[:64]), vkomp.ToFrom(out.Get(ctx)), vkomp.Value(float32(1))}
		}, func(encounter int, y []float32) []vkomp.Param {
			at := encounter % 2 * 64
			return []vkomp.Param{out.Bind(y[at : at+64])}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			slices := func(rt *vkomp.Runtime) (x, y []float32, err error) {
				ctx := context.Background()
				p, err = rt.DefaultDevice(ctx).Alloc(ctx, 512)
				return constant(128, 1), constant(128, 0), err
			}
			var records vkomp.TaskgraphRecords
			steps := 0
			err := inDataRegionOf(b, vkomp.Options{}, slices, func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x, y []float32) error {
				if steps++; steps%window != 1 {
					return nil
				}
				g := vkomp.Taskgraph{Records: &records, NoGroup: true}
				if c.params != nil {
					g.Params = c.params(steps/window, y)
				}
				return rt.Taskgraph(ctx, g, func(ctx context.Context) error {
					args := c.args(ctx, x, y)
					for range window {
						t := saxpyTask(k, 64, args[0], args[1], vkomp.InOut(x))
						t.Args[3] = args[2]
						if err := rt.Target(ctx, t); err != nil {
							return err
						}
					}
					return nil
				})
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkTaskgraphOfTasks is BenchmarkTaskgraph for explicit tasks with empty bodies.
func BenchmarkTaskgraphOfTasks(b *testing.B) {
	for name, again := range map[string]vkomp.Cond{"anew": vkomp.If(false), "replay": vkomp.If(true)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			rt, err := vkomp.Open(vkomp.Options{LookupEnv: environment("OMP_TARGET_OFFLOAD", "disabled")})
			if err != nil {
				b.Fatal(err)
			}
			defer rt.Close()
			x, records, ctx := []int{0}, new(vkomp.TaskgraphRecords), context.Background()
			g := vkomp.Taskgraph{Records: records, NoGroup: true, If: again}
			for i := 0; b.Loop(); i++ {
				if i%window != 0 {
					continue
				}
				err := rt.Taskgraph(ctx, g, func(ctx context.Context) error {
					for range window {
						if err := rt.Task(ctx, vkomp.Task{Body: nothing, Depend: []vkomp.Depend{vkomp.InOut(x)}}); err != nil {
							return err
						}
					}
					return nil
				})
				if err = errors.Join(err, rt.Taskwait(ctx)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
