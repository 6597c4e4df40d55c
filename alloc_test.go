//go:build !race

package vkomp_test

import "testing"

// Not under the race detector, which makes pools drop memory at random.
func TestConstructsOnMappedDataAllocateNothing(t *testing.T) {
	for _, c := range constructs {
		t.Run(c.name, func(t *testing.T) {
			r := testing.Benchmark(func(b *testing.B) { inDataRegion(b, c.step) })
			if r.N == 0 {
				t.Fatal("the benchmark failed")
			}
			// Pools are emptied by the garbage collector now and then.
			if allocs := float64(r.MemAllocs) / float64(r.N); allocs > 0.1 {
				t.Errorf("%v allocations and %d bytes a construct, want none", allocs, r.AllocedBytesPerOp())
			}
		})
	}
}
