package vkomp_test

import (
	"slices"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// BenchmarkUse measures a use construct that is merged, so that it has no task.
func BenchmarkUse(b *testing.B) {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer rt.Close()
	ctx := b.Context()
	var o interop.Object
	if err := rt.Interop(ctx, vkomp.Interop{Init: []vkomp.InteropInit{{Object: &o, Types: interop.TypeTargetSync}}}); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = rt.Interop(ctx, vkomp.Interop{Destroy: []*interop.Object{&o}}) }()
	b.ReportAllocs()
	for b.Loop() {
		if err := rt.Interop(ctx, vkomp.Interop{Use: []interop.Object{o}}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUseWhileBusy measures what a use construct with nowait and depend costs the host
// while the device is busy with the construct's predecessors: it must not wait for them. p50-µs
// and p99-µs are percentiles over all constructs. A software driver executes on the host's
// cores, so that its figures also depend on which threads the system lets run: LP_NUM_THREADS=1
// leaves lavapipe one. Through the layer the device takes 50 ms for a submission and needs no
// core for that.
func BenchmarkUseWhileBusy(b *testing.B) {
	b.Run("bare", func(b *testing.B) { useWhileBusy(b, 3, 1<<22) })
	b.Run("manyqueue", func(b *testing.B) {
		vktest.Layers(b, "manyqueue")
		b.Setenv("VKOMP_MANYQUEUE_DELAY_US", "50000")
		useWhileBusy(b, 1, 1<<10)
	})
}

func useWhileBusy(b *testing.B, kernels, elements int) {
	const constructs = 100
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer rt.Close()
	ctx := b.Context()
	k := newKernel(b, rt, shaders.Saxpy)
	x, y, z := constant(elements, 1), constant(elements, 0), constant(16, 0)
	var o interop.Object
	if err := rt.Interop(ctx, vkomp.Interop{Init: []vkomp.InteropInit{{Object: &o, Types: interop.TypeTargetSync}}}); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = rt.Interop(ctx, vkomp.Interop{Destroy: []*interop.Object{&o}}) }()
	if err := rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.To(y)}}); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Delete(x), vkomp.Delete(y)}})
	}()
	var took []time.Duration
	for b.Loop() {
		busy := saxpyOn(b, k, 1, x, y)
		busy.NoWait, busy.Depend = true, []vkomp.Depend{vkomp.InOut(y)}
		for range kernels {
			if err := rt.Target(ctx, busy); err != nil {
				b.Fatal(err)
			}
		}
		for i := range constructs {
			use := vkomp.Interop{Use: []interop.Object{o}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(y)}}
			if i%2 == 1 {
				use.Depend[0] = vkomp.InOut(z)
			}
			start := time.Now()
			if err := rt.Interop(ctx, use); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(start))
		}
		if err := rt.Taskwait(ctx); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(took)
	at := func(part float64) float64 {
		return float64(took[int(part*float64(len(took)-1))].Nanoseconds()) / 1e3
	}
	b.ReportMetric(at(0.5), "p50-µs")
	b.ReportMetric(at(0.99), "p99-µs")
}
