package shaders

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vkomp/vkomp"
)

func TestHeatByHand(t *testing.T) {
	for _, c := range []struct {
		name         string
		tile         Tile
		alpha        float32
		source, want []float32
	}{
		{
			// 1 + ¼·((2+8) + (4+6) − 4·1) = 5; the rest is border.
			name: "3×3", tile: Whole(3, 3), alpha: 0.25,
			source: []float32{
				1, 2, 3,
				4, 1, 6,
				7, 8, 10,
			},
			want: []float32{
				1, 2, 3,
				4, 5, 6,
				7, 8, 10,
			},
		},
		{
			// Row 1 of four rows, so row 0 and row 2 are its halo:
			// 8 + ½·((0+4) + (0+16) − 32) = 2, 16 + ½·((0+8) + (8+2) − 64) = −7.
			name: "tile inside", tile: Tile{Width: 4, Height: 4, Y0: 1, Y1: 2}, alpha: 0.5,
			source: []float32{
				0, 0, 0, 0,
				0, 8, 16, 2,
				9, 4, 8, 9,
			},
			want: []float32{0, 2, -7, 2},
		},
		{
			// The last two of four rows: the first of them is inner,
			// 4 + ½·((8+2) + (0+0) − 16) = 1, the second is border.
			name: "tile at the end", tile: Tile{Width: 3, Height: 4, Y0: 2, Y1: 4}, alpha: 0.5,
			source: []float32{
				1, 8, 1,
				0, 4, 0,
				3, 2, 3,
			},
			want: []float32{
				0, 1, 0,
				3, 2, 3,
			},
		},
		{name: "two rows are border", tile: Whole(3, 2), alpha: 1, source: []float32{1, 2, 3, 4, 5, 6}, want: []float32{1, 2, 3, 4, 5, 6}},
		{name: "two columns are border", tile: Whole(2, 3), alpha: 1, source: []float32{1, 2, 3, 4, 5, 6}, want: []float32{1, 2, 3, 4, 5, 6}},
		{name: "one cell", tile: Whole(1, 1), alpha: 1, source: []float32{3}, want: []float32{3}},
		{name: "empty", tile: Whole(0, 0), alpha: 1, want: []float32{}},
	} {
		got := make([]float32, c.tile.elements())
		if err := heat(c.tile.window(1), c.alpha, c.source, got); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

func TestHeatRefusesASourceWithoutItsHalo(t *testing.T) {
	w := Tile{Width: 3, Height: 4, Y0: 1, Y1: 2}.window(1)
	if err := heat(w, 1, make([]float32, 3), make([]float32, 3)); !errors.Is(err, vkomp.ErrInvalidArgument) {
		t.Error(err)
	}
}
