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
			if allocs := r.AllocsPerOp(); allocs != 0 {
				t.Errorf("%d allocations and %d bytes a construct, want none", allocs, r.AllocedBytesPerOp())
			}
		})
	}
}
