package shaders

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vkomp/vkomp"
)

func TestBlurRowsByHand(t *testing.T) {
	for _, c := range []struct {
		name    string
		tile    Tile
		weights []float32
		source  []uint32
		want    []Pixel
	}{
		{
			// Red 0, 100, 200, with the border repeated:
			// ¼·0 + ½·0 + ¼·100 = 25, ¼·0 + ½·100 + ¼·200 = 100, ¼·100 + ½·200 + ¼·200 = 175.
			name: "border", tile: Whole(3, 1), weights: []float32{0.5, 0.25},
			source: []uint32{0, 100, 200},
			want:   []Pixel{{25, 0, 0, 0}, {100, 0, 0, 0}, {175, 0, 0, 0}},
		},
		{
			// Red 16, 32 under a radius wider than the image:
			// ¼·16 + ⅛·16 + ¼·16 + ⅛·32 + ¼·32 = 4+2+4+4+8 = 22,
			// ¼·16 + ⅛·16 + ¼·32 + ⅛·32 + ¼·32 = 4+2+8+4+8 = 26.
			name: "radius beyond the image", tile: Whole(2, 1), weights: []float32{0.25, 0.125, 0.25},
			source: []uint32{16, 32},
			want:   []Pixel{{22, 0, 0, 0}, {26, 0, 0, 0}},
		},
		{
			// Rows do not mix; each byte goes to its channel.
			name: "rows apart", tile: Whole(1, 2), weights: []float32{0.5, 0.25},
			source: []uint32{0x04030201, 0xffc08040},
			want:   []Pixel{{1, 2, 3, 4}, {64, 128, 192, 255}},
		},
		{name: "no radius", tile: Whole(2, 1), weights: []float32{1}, source: []uint32{7, 9 << 8}, want: []Pixel{{7, 0, 0, 0}, {0, 9, 0, 0}}},
		{name: "empty", tile: Whole(0, 3), weights: []float32{1}, want: []Pixel{}},
	} {
		got := make([]Pixel, c.tile.elements())
		if err := blurRows(c.tile.window(0), c.weights, c.source, got); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

func TestBlurColumnsByHand(t *testing.T) {
	// One column of an image of five rows: 0, 8, 16, 40, 80 in red, its
	// negative in alpha.
	column := []Pixel{{0, 0, 0, 0}, {8, 0, 0, -8}, {16, 0, 0, -16}, {40, 0, 0, -40}, {80, 0, 0, -80}}
	quarter := []float32{0.5, 0.25}
	for _, c := range []struct {
		name    string
		tile    Tile
		weights []float32
		want    []Pixel
	}{
		// ¼·0 + ½·0 + ¼·8 = 2, ¼·0 + ½·8 + ¼·16 = 8, ¼·8 + ½·16 + ¼·40 = 20,
		// ¼·16 + ½·40 + ¼·80 = 44, ¼·40 + ½·80 + ¼·80 = 70
		{"whole", Tile{1, 5, 0, 5}, quarter, []Pixel{{2, 0, 0, -2}, {8, 0, 0, -8}, {20, 0, 0, -20}, {44, 0, 0, -44}, {70, 0, 0, -70}}},
		{"first row", Tile{1, 5, 0, 1}, quarter, []Pixel{{2, 0, 0, -2}}},
		{"inner rows", Tile{1, 5, 2, 4}, quarter, []Pixel{{20, 0, 0, -20}, {44, 0, 0, -44}}},
		{"last row", Tile{1, 5, 4, 5}, quarter, []Pixel{{70, 0, 0, -70}}},
		// Row 1 with radius 2: the row above the image is row 0 again.
		// ½·0 + 0·0 + 0·8 + 0·16 + ½·40 = 20
		{"clamped above", Tile{1, 5, 1, 2}, []float32{0, 0, 0.5}, []Pixel{{20, 0, 0, -20}}},
	} {
		got := make([]Pixel, c.tile.elements())
		source := Rows(column, c.tile.Grow(len(c.weights)-1))
		if err := blurColumns(c.tile.window(len(c.weights)-1), c.weights, source, got); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

func TestBlurColumnsDoNotMix(t *testing.T) {
	// Two columns, 0 over 4 and 8 over 16: ¾·0 + ¼·4 = 1, ¼·0 + ¾·4 = 3,
	// ¾·8 + ¼·16 = 10, ¼·8 + ¾·16 = 14.
	source := []Pixel{{0}, {8}, {4}, {16}}
	got := make([]Pixel, 4)
	if err := blurColumns(Whole(2, 2).window(1), []float32{0.5, 0.25}, source, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Pixel{{1}, {10}, {3}, {14}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestGaussianWeightsByHand(t *testing.T) {
	for _, c := range []struct {
		sigma  float64
		radius int
		want   []float32
	}{
		{1, 0, []float32{1}},
		// e^−½ = 0.6065307; 1/(1 + 2·0.6065307) = 0.4518628, 0.6065307·0.4518628 = 0.2740686
		{1, 1, []float32{0.4518628, 0.2740686}},
		// So wide that all five weigh the same.
		{1e9, 2, []float32{0.2, 0.2, 0.2}},
		// So narrow that a neighbour weighs nothing.
		{1e-3, 1, []float32{1, 0}},
	} {
		got, err := GaussianWeights(c.sigma, c.radius)
		if err != nil || len(got) != len(c.want) {
			t.Fatalf("sigma %v, radius %d: %v, error %v", c.sigma, c.radius, got, err)
		}
		for d := range got {
			if math.Abs(float64(got[d]-c.want[d])) > 1e-7 {
				t.Errorf("sigma %v, radius %d: weight %d is %v, want %v", c.sigma, c.radius, d, got[d], c.want[d])
			}
		}
	}
	for _, sigma := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := GaussianWeights(sigma, 1); !errors.Is(err, vkomp.ErrInvalidArgument) {
			t.Errorf("sigma %v: %v", sigma, err)
		}
	}
	for _, radius := range []int{-1, maxRadius + 1} {
		if _, err := GaussianWeights(1, radius); !errors.Is(err, vkomp.ErrInvalidArgument) {
			t.Errorf("radius %d: %v", radius, err)
		}
	}
}

func TestBlurRefusesSlicesOfOtherSizes(t *testing.T) {
	w := Whole(2, 2).window(1)
	weights := []float32{0.5, 0.25}
	for name, err := range map[string]error{
		"rows: source":         blurRows(w, weights, make([]uint32, 3), make([]Pixel, 4)),
		"rows: destination":    blurRows(w, weights, make([]uint32, 4), make([]Pixel, 5)),
		"rows: no weights":     blurRows(w, nil, make([]uint32, 4), make([]Pixel, 4)),
		"columns: source":      blurColumns(w, weights, make([]Pixel, 3), make([]Pixel, 4)),
		"columns: destination": blurColumns(w, weights, make([]Pixel, 4), make([]Pixel, 5)),
		"columns: no weights":  blurColumns(w, nil, make([]Pixel, 4), make([]Pixel, 4)),
		"radius":               checkRadius(weights, 2),
		"largest radius":       checkRadius(weights, math.MaxUint32),
	} {
		if !errors.Is(err, vkomp.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
