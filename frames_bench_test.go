package vkomp_test

import (
	"context"
	"errors"
	"testing"

	"github.com/vkomp/vkomp"
)

// BenchmarkFrames measures a kernel and a deferred copy of what it has written to the host, and 16 more kernels on other
// storage.
func BenchmarkFrames(b *testing.B) {
	err := inDataRegion(b, vkomp.Options{}, func(ctx context.Context, rt *vkomp.Runtime, k vkomp.Kernel, x, y []float32) error {
		launch := func(s []float32) error {
			return rt.Target(ctx, vkomp.Target{
				Kernel: k, Range: vkomp.Range{X: len(s)}, NoWait: true,
				Args:   []vkomp.Arg{vkomp.To(x[:len(s)]), vkomp.ToFrom(s), vkomp.Value(uint32(len(s))), vkomp.Value(float32(1))},
				Depend: []vkomp.Depend{vkomp.InOut(s)},
			})
		}
		err := launch(y[:16])
		err = errors.Join(err, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(y[:16])}, NoWait: true, Depend: []vkomp.Depend{vkomp.In(y[:16])}}))
		for i := range 16 {
			err = errors.Join(err, launch(y[16+i:17+i]))
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}
