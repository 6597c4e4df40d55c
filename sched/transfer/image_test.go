package transfer

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Pointers are found by their offsets, in whatever order a program has attached them, and the last one at a place counts.
func TestPointersAreSortedByTheirOffsets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var p Pointers
		want := map[uint64]uint64{}
		for range random.IntN(200) {
			a := Attached{Offset: 8 * random.Uint64N(100), Address: random.Uint64()}
			p.Point(a)
			want[a.Offset] = a.Address
		}
		if !slices.IsSortedFunc(p, func(a, b Attached) int { return int(a.Offset) - int(b.Offset) }) {
			t.Fatalf("the pointers %v are not sorted", p)
		}
		if len(p) != len(want) {
			t.Fatalf("%d pointers at %d places", len(p), len(want))
		}
		for _, a := range p {
			if want[a.Offset] != a.Address {
				t.Fatalf("the pointer at %d is %#x, not %#x", a.Offset, a.Address, want[a.Offset])
			}
		}
	}
}
