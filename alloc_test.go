//go:build !race

package vkomp_test

import (
	"flag"
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
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	benchtime := flag.Lookup("test.benchtime")
	before := benchtime.Value.String()
	if err := benchtime.Value.Set("2000x"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := benchtime.Value.Set(before); err != nil {
			t.Error(err)
		}
	}()
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
				runtime.GC()
				least := 1e9
				// Other goroutines may allocate now and then, more often on a busy machine. What a
				// construct itself allocates, it allocates every time.
				for try := 0; try < 6 && least > 0.1; try++ {
					var err error
					r := testing.Benchmark(func(b *testing.B) {
						if err = inDataRegion(b, on.Options, c.step); err != nil {
							b.FailNow()
						}
					})
					if err != nil {
						t.Fatal(err)
					}
					least = min(least, float64(r.MemAllocs)/float64(r.N))
				}
				if least > 0.1 {
					t.Errorf("%v allocations a construct, want none", least)
				}
			})
		}
	}
}
