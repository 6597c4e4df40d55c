package shaders

import (
	"errors"
	"math"
	"testing"

	"github.com/vkomp/vkomp"
)

func TestBlendByHand(t *testing.T) {
	const original = 0x4d1e140a // red 10, green 20, blue 30, alpha 77
	blurred := Pixel{100, 200, 50, 255}
	for _, c := range []struct {
		name string
		mix  Mix
		edge float32
		want uint32
	}{
		{"original", Mix{Original: 1}, 9, original},
		// 100 = 0x64, 200 = 0xc8, 50 = 0x32
		{"blurred", Mix{Blurred: 1}, 9, 0x4d32c864},
		{"edges", Mix{Edges: 1}, 9, 0x4d090909},
		// ½·10 + ¼·100 + 2·4 = 38 = 0x26, ½·20 + ¼·200 + 8 = 68 = 0x44,
		// ½·30 + ¼·50 + 8 = 35.5 → 36 = 0x24, the even one
		{"all", Mix{0.5, 0.25, 2}, 4, 0x4d244426},
		// 36.5 → 36 = 0x24 too; 39 = 0x27, 69 = 0x45
		{"half to even", Mix{0.5, 0.25, 2}, 4.5, 0x4d244527},
		// 0.49999997 + ½ would be 1 in float32; it is nearer to 0.
		{"just below half", Mix{Edges: 1}, 0.49999997, 0x4d000000},
		{"just above half", Mix{Edges: 1}, 0.50000006, 0x4d010101},
		// 10 − 15 < 0, 20 − 15 = 5, 30 − 15 = 15
		{"dark edges", Mix{Original: 1, Edges: -1}, 15, 0x4d0f0500},
		// 255.4 → 255, above it the clamp: 10 + 245.4, 20 + 245.4, 30 + 245.4
		{"too bright", Mix{Original: 1, Edges: 1}, 245.4, 0x4dffffff},
		{"infinite", Mix{Original: 1, Edges: 1}, float32(math.Inf(1)), 0x4dffffff},
		{"minus infinite", Mix{Original: 1, Edges: -1}, float32(math.Inf(1)), 0x4d000000},
	} {
		got := []uint32{0}
		if err := blend(c.mix, []uint32{original}, []Pixel{blurred}, []float32{c.edge}, got); err != nil {
			t.Fatal(err)
		}
		if got[0] != c.want {
			t.Errorf("%s: %#08x, want %#08x", c.name, got[0], c.want)
		}
	}
}

func TestBlendRefusesDifferentLengths(t *testing.T) {
	one := func(n int) error {
		lengths := [4]int{3, 3, 3, 3}
		lengths[n] = 2
		return blend(Mix{}, make([]uint32, lengths[0]), make([]Pixel, lengths[1]), make([]float32, lengths[2]), make([]uint32, lengths[3]))
	}
	for n := range 4 {
		if err := one(n); !errors.Is(err, vkomp.ErrInvalidArgument) {
			t.Errorf("argument %d shorter: %v", n, err)
		}
	}
}
