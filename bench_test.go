package vkomp_test

import (
	"context"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
)

// BenchmarkTargetChain is the cost of a deferred target task on mapped data:
// create, resolve, encode and run a one-workgroup kernel, each after the last.
func BenchmarkTargetChain(b *testing.B) {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer rt.Close()
	k, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		b.Fatal(err)
	}
	x, y := constant(64, 1), constant(64, 0)
	err = rt.TargetData(b.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y)}}, func(ctx context.Context) error {
		target := saxpyOn(b, k, 1, x, y)
		target.NoWait, target.Depend = true, []vkomp.Depend{vkomp.InOut(y)}
		b.ReportAllocs()
		for b.Loop() {
			if err := rt.Target(ctx, target); err != nil {
				return err
			}
		}
		return rt.Taskwait(ctx)
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(rt.Stats().Submissions)/float64(b.N), "submissions/op")
}

// BenchmarkTargetSynchronous is the latency of an included task on mapped data.
func BenchmarkTargetSynchronous(b *testing.B) {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer rt.Close()
	k, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		b.Fatal(err)
	}
	x, y := constant(64, 1), constant(64, 0)
	err = rt.TargetData(b.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y)}}, func(context.Context) error {
		target := saxpyOn(b, k, 1, x, y)
		b.ReportAllocs()
		for b.Loop() {
			// A context without an end, so that the construct waits itself.
			if err := rt.Target(context.Background(), target); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
