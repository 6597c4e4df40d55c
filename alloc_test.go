//go:build !race

package vkomp_test

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// The garbage collector, which empties pools, does not run meanwhile. Under the race detector
// pools drop memory at random, so there is no such test.
func TestConstructsOnMappedDataAllocateNothing(t *testing.T) {
	vktest.Long(t)
	for _, on := range []struct {
		name string
		vkomp.Options
	}{
		// Where the device cannot be opened, the runtime of other options runs all on the initial
		// device, and the test would be about that.
		{"device", vkomp.Options{LookupEnv: environment("OMP_TARGET_OFFLOAD", "mandatory")}},
		{"initial device", vkomp.Options{LookupEnv: environment("OMP_TARGET_OFFLOAD", "disabled")}},
	} {
		for _, c := range constructs {
			t.Run(on.name+"/"+c.name, func(t *testing.T) {
				allocatesNothing(t, 2000, 0.1, func(b *testing.B) error { return inDataRegion(b, on.Options, c.step) })
			})
		}
	}
}

// Neither do updates that several goroutines bring through staging, in one piece or through a ring.
func TestStagedUpdatesAllocateNothing(t *testing.T) {
	vktest.Long(t)
	rt := vktest.Open(t, vktest.Staging, func(o *vkomp.Options) {
		o.Validation = false
		o.LookupEnv = func(name string) (string, bool) { return "3", name == "OMP_NUM_THREADS" }
	})
	ctx := t.Context()
	all := noise(5<<20, 1)
	must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(all)}}))
	for _, size := range []int{1 << 20, 5 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			to, from := []vkomp.Arg{vkomp.To(all[:size])}, []vkomp.Arg{vkomp.From(all[:size])}
			update := func(motions []vkomp.Arg) error {
				return rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: motions})
			}
			must(t, update(to))
			must(t, update(from))
			allocatesNothing(t, 200, 0.5, func(b *testing.B) error {
				b.ResetTimer()
				for range b.N {
					if err := errors.Join(update(to), update(from)); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Release(all)}}))
}

// Neither do storage blocks that come and go, whose records are used again.
func TestMapsOfAbsentStorageAllocateNothing(t *testing.T) {
	vktest.Long(t)
	for _, mode := range memoryModes {
		t.Run(mode.name, func(t *testing.T) {
			rt := vktest.Open(t, mode.option, func(o *vkomp.Options) { o.Validation = false })
			ctx := t.Context()
			x, y := noise(4096, 1), noise(64, 2)
			enter := vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.Alloc(y)}}
			exit := vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(x), vkomp.Release(y)}}
			allocatesNothing(t, 2000, 0.1, func(b *testing.B) error {
				b.ResetTimer()
				for range b.N {
					if err := errors.Join(rt.TargetEnterData(ctx, enter), rt.TargetExitData(ctx, exit)); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// allocatesNothing runs a benchmark for at least so many rounds, and fails if each of them allocates.
// Some allocations a round belong to nobody: where goroutines wait for each other, Go's runtime makes
// records of that, until it has enough for each processor.
func allocatesNothing(t *testing.T, rounds int, some float64, benchmark func(*testing.B) error) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	benchtime := flag.Lookup("test.benchtime")
	before := benchtime.Value.String()
	defer func() { must(t, benchtime.Value.Set(before)) }()
	runtime.GC()
	least := 1e9
	// Other goroutines may allocate now and then, more often on a busy machine, and more constructs
	// may be in flight than ever before. What a construct itself allocates, it allocates every time,
	// however many there are.
	for try := 0; try < 6 && least > some; try++ {
		must(t, benchtime.Value.Set(fmt.Sprintf("%dx", rounds<<try)))
		var err error
		r := testing.Benchmark(func(b *testing.B) {
			if err = benchmark(b); err != nil {
				b.FailNow()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		least = min(least, float64(r.MemAllocs)/float64(r.N))
	}
	if least > some {
		t.Errorf("%v allocations a construct, want none", least)
	}
}
