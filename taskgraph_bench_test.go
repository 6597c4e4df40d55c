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
