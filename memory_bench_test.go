package vkomp_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
)

// BenchmarkMemcpy copies 64 MiB with the default device, and with Go's copy for comparison
// ("plain").
func BenchmarkMemcpy(b *testing.B) {
	const size = 64 << 20
	rt, d := openBench(b)
	ctx := context.Background()
	x, y := noise(size, 1), noise(size, 2)
	p, q := alloc(b, d, size), alloc(b, d, size)
	for _, c := range []struct {
		name string
		copy func() error
	}{
		{"plain", func() error { copy(y, x); return nil }},
		{"host to host", func() error { return rt.Memcpy(ctx, vkomp.HostPtr(y), vkomp.HostPtr(x), size) }},
		{"host to device", func() error { return rt.Memcpy(ctx, p, vkomp.HostPtr(x), size) }},
		{"device to host", func() error { return rt.Memcpy(ctx, vkomp.HostPtr(y), p, size) }},
		{"within the device", func() error { return rt.Memcpy(ctx, q, p, size) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			// The first copy also touches the pages for the first time.
			must(b, c.copy())
			for b.Loop() {
				if err := c.copy(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMemset fills 64 MiB.
func BenchmarkMemset(b *testing.B) {
	const size = 64 << 20
	rt, d := openBench(b)
	ctx := context.Background()
	p, host := alloc(b, d, size), vkomp.HostPtr(noise(size, 1))
	for _, c := range []struct {
		name string
		set  func() error
	}{
		{"device", func() error { return d.Memset(ctx, p, 1, size) }},
		{"off a word's beginning", func() error { return d.Memset(ctx, p.Add(1), 1, size-2) }},
		{"host", func() error { return rt.InitialDevice().Memset(ctx, host, 1, size) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			must(b, c.set())
			for b.Loop() {
				if err := c.set(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSmallRoutines measures routines whose fixed cost dominates.
func BenchmarkSmallRoutines(b *testing.B) {
	rt, d := openBench(b)
	ctx := context.Background()
	s := make([]byte, 64)
	p := alloc(b, d, 64)
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"memcpy to the device", func() error { return rt.Memcpy(ctx, p, vkomp.HostPtr(s), 64) }},
		{"memcpy from the device", func() error { return rt.Memcpy(ctx, vkomp.HostPtr(s), p, 64) }},
		{"memset", func() error { return d.Memset(ctx, p, 1, 64) }},
		{"alloc and free", func() error {
			p, err := d.Alloc(ctx, 1000)
			if err != nil {
				return err
			}
			return d.Free(ctx, p)
		}},
		{"associate and disassociate", func() error {
			if err := d.AssociatePtr(ctx, vkomp.HostPtr(s), p, 64, 0); err != nil {
				return err
			}
			return d.DisassociatePtr(ctx, vkomp.HostPtr(s))
		}},
		{"mapped ptr", func() error { d.MappedPtr(vkomp.HostPtr(s)); return nil }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// openBench opens a runtime without validation, which would be measured too.
func openBench(b *testing.B) (*vkomp.Runtime, vkomp.Device) {
	rt, err := vkomp.Open(vkomp.Options{})
	must(b, err)
	b.Cleanup(func() { must(b, rt.Close()) })
	return rt, rt.DefaultDevice(context.Background())
}

// BenchmarkMapHit measures a data construct whose storage is one of many present blocks.
func BenchmarkMapHit(b *testing.B) {
	for _, others := range []int{1, 10000, 100000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			rt, err := vkomp.Open(vkomp.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer rt.Close()
			ctx := context.Background()
			all := make([][]byte, others)
			var args []vkomp.Arg
			for i := range all {
				all[i] = make([]byte, 64)
				args = append(args, vkomp.Alloc(all[i]))
			}
			if err := rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: args}); err != nil {
				b.Fatal(err)
			}
			x := all[others/2]
			b.Run("enter and exit data", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.Alloc(x)}})
					rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Release(x)}})
				}
			})
			b.Run("target data", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.Alloc(x)}}, func(context.Context) error { return nil })
				}
			})
			rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: args})
			for i := range args {
				args[i] = vkomp.Delete(all[i])
			}
			rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: args})
		})
	}
}

// BenchmarkMappedTarget measures a target construct that maps its own slices, and so copies
// them to the device and back. Windows of 64 constructs are deferred.
func BenchmarkMappedTarget(b *testing.B) {
	for _, path := range []vkomp.MemoryPath{vkomp.MemoryAuto, vkomp.MemoryStaged} {
		for _, noWait := range []bool{false, true} {
			b.Run(fmt.Sprintf("%v/deferred=%v", path, noWait), func(b *testing.B) {
				rt, err := vkomp.Open(vkomp.Options{MemoryPath: path})
				must(b, err)
				b.Cleanup(func() { must(b, rt.Close()) })
				k, err := rt.NewKernel(shaders.Saxpy)
				must(b, err)
				ctx := context.Background()
				const window = 64
				var x, y [window][]float32
				for i := range x {
					x[i], y[i] = constant(64, 1), constant(64, 0)
				}
				step := func(i int) {
					x, y := x[i%window], y[i%window]
					must(b, rt.Target(ctx, vkomp.Target{
						Kernel: k, Range: vkomp.Range{X: len(y)}, NoWait: noWait,
						Args: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y), vkomp.Value(uint32(len(y))), vkomp.Value(float32(1))},
					}))
					if i%window == window-1 {
						must(b, rt.Taskwait(ctx))
					}
				}
				for i := range 4 * window {
					step(i)
				}
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					step(i)
				}
				must(b, rt.Taskwait(ctx))
			})
		}
	}
}

// BenchmarkManyItems maps slices of 16 bytes with one construct, updates the host's with another, and takes them back with a
// third. The time of an item does not depend on their number.
func BenchmarkManyItems(b *testing.B) {
	for _, n := range []int{1_000, 32_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rt, d := openBench(b)
			ctx := context.Background()
			enter, exit := make([]vkomp.Arg, n), make([]vkomp.Arg, n)
			for i := range n {
				x := make([]float32, 4)
				enter[i], exit[i] = vkomp.To(x), vkomp.From(x)
			}
			for b.Loop() {
				must(b, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: d, Maps: enter}))
				must(b, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Device: d, Motions: exit}))
				must(b, rt.TargetExitData(ctx, vkomp.TargetExitData{Device: d, Maps: exit}))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/item")
		})
	}
}
