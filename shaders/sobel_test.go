package shaders

import (
	"errors"
	"math"
	"testing"

	"github.com/vkomp/vkomp"
)

func TestSobelByHand(t *testing.T) {
	// A grey of g has luma (0.2126 + 0.7152 + 0.0722)·g = g.
	grey := func(values ...float32) []Pixel {
		pixels := make([]Pixel, len(values))
		for i, v := range values {
			pixels[i] = Pixel{v, v, v, 255}
		}
		return pixels
	}
	for _, c := range []struct {
		name   string
		tile   Tile
		source []Pixel
		want   []float32
	}{
		{
			// In the middle column and, its right neighbour being itself, in
			// the last one Gx = (1+2+1)·255 = 1020 and Gy = 0.
			name: "upright edge", tile: Whole(3, 3),
			source: grey(0, 0, 255, 0, 0, 255, 0, 0, 255),
			want:   []float32{0, 1020, 1020, 0, 1020, 1020, 0, 1020, 1020},
		},
		{
			name: "level edge", tile: Whole(3, 3),
			source: grey(0, 0, 0, 0, 0, 0, 255, 255, 255),
			want:   []float32{0, 0, 0, 1020, 1020, 1020, 1020, 1020, 1020},
		},
		{
			// A dot: corners see it at br, bl, tr, tl, so |Gx| = |Gy| = 3 and
			// 3·√2 = 4.2426407; sides see it at weight 2; itself sees nothing.
			name: "dot", tile: Whole(3, 3),
			source: grey(0, 0, 0, 0, 3, 0, 0, 0, 0),
			want:   []float32{4.2426407, 6, 4.2426407, 6, 0, 6, 4.2426407, 6, 4.2426407},
		},
		{
			// Gx = (3+2·0+0)−(0+2·0+0) = 3, Gy = (0+2·4+0)−(0+2·0+3) = 5 for
			// the middle pixel: √34 = 5.8309519. It is the middle row alone
			// that the tile makes.
			name: "tile inside", tile: Tile{Width: 3, Height: 5, Y0: 2, Y1: 3},
			source: grey(0, 0, 3, 0, 9, 0, 0, 4, 0),
			want: []float32{
				// left: tl=l=bl are the first column's 0, 0, 0; tr, r, br are 0, 9, 4:
				// Gx = 0+18+4 = 22, Gy = (0+0+4)−(0+0+0) = 4, √500 = 22.36068
				22.36068,
				5.8309519,
				// right: tl, l, bl are 0, 9, 4; tr, r, br the last column's 3, 0, 0:
				// Gx = 3−22 = −19, Gy = (4+0+0)−(0+6+3) = −5, √386 = 19.646883
				19.646883,
			},
		},
		{
			// Black beside red 100, green 100, blue 100: Gx = 4·21.26, 4·71.52, 4·7.22.
			name: "luma of red", tile: Whole(2, 1), source: []Pixel{{}, {100, 0, 0, 0}}, want: []float32{85.04, 85.04},
		},
		{name: "luma of green", tile: Whole(2, 1), source: []Pixel{{}, {0, 100, 0, 0}}, want: []float32{286.08, 286.08}},
		{name: "luma of blue", tile: Whole(2, 1), source: []Pixel{{}, {0, 0, 100, 0}}, want: []float32{28.88, 28.88}},
		{name: "alpha is not seen", tile: Whole(2, 1), source: []Pixel{{}, {0, 0, 0, 100}}, want: []float32{0, 0}},
		{name: "one pixel", tile: Whole(1, 1), source: grey(200), want: []float32{0}},
		{name: "empty", tile: Whole(3, 0)},
	} {
		got := make([]float32, c.tile.elements())
		if err := sobel(c.tile.window(1), c.source, got); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if len(got) != len(c.want) {
			t.Fatalf("%s: %d edges, want %d", c.name, len(got), len(c.want))
		}
		for i := range got {
			// The luma's weights are not exact in binary: a few units of the
			// last place of 4·255.
			if math.Abs(float64(got[i]-c.want[i])) > 2e-4 {
				t.Errorf("%s: element %d is %v, want %v", c.name, i, got[i], c.want[i])
			}
		}
	}
}

func TestSobelRefusesASourceWithoutItsHalo(t *testing.T) {
	w := Tile{Width: 3, Height: 4, Y0: 1, Y1: 2}.window(1)
	if err := sobel(w, make([]Pixel, 3), make([]float32, 3)); !errors.Is(err, vkomp.ErrInvalidArgument) {
		t.Error(err)
	}
}
