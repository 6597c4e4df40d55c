//go:build !race

package vkomp_test

import (
	"flag"
	"runtime"
	"runtime/debug"
	"testing"

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
	for _, c := range constructs {
		t.Run(c.name, func(t *testing.T) {
			runtime.GC()
			least := 1e9
			// Other goroutines may allocate now and then, more often on a busy machine. What a
			// construct itself allocates, it allocates every time.
			for try := 0; try < 6 && least > 0.1; try++ {
				r := testing.Benchmark(func(b *testing.B) { inDataRegion(b, c.step) })
				if r.N == 0 {
					t.Fatal("the benchmark failed")
				}
				least = min(least, float64(r.MemAllocs)/float64(r.N))
			}
			if least > 0.1 {
				t.Errorf("%v allocations a construct, want none", least)
			}
		})
	}
}
