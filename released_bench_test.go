package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/vkomp/vkomp"
)

// BenchmarkReleased measures kernels that become ready together, when the host task ends that all of them follow. The
// figures are for a host task and its kernels.
func BenchmarkReleased(b *testing.B) {
	for _, kernels := range []int{1, 16, 128, 512} {
		b.Run(fmt.Sprint(kernels), func(b *testing.B) {
			err := inDataRegion(b, vkomp.Options{}, func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x, y []float32) error {
				created := make(chan struct{})
				body := func(context.Context) error { <-created; return nil }
				err := rt.Task(ctx, vkomp.Task{Body: body, Depend: []vkomp.Depend{vkomp.Out(x)}})
				for i := range kernels {
					part := y[i%len(y) : i%len(y)+1]
					err = errors.Join(err, rt.Target(ctx, vkomp.Target{
						Kernel: k, Range: vkomp.Range{X: 1}, NoWait: true,
						Args:   []vkomp.Arg{vkomp.To(x[:1]), vkomp.ToFrom(part), vkomp.Value(uint32(1)), vkomp.Value(float32(1))},
						Depend: []vkomp.Depend{vkomp.In(x), vkomp.Out(part)},
					}))
				}
				close(created)
				return errors.Join(err, rt.Taskwait(ctx))
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
