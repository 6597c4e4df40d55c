package shaders

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vkomp/vkomp"
)

func TestGrowStopsAtTheImage(t *testing.T) {
	image := func(y0, y1 int) Tile { return Tile{Width: 3, Height: 10, Y0: y0, Y1: y1} }
	for _, c := range []struct {
		tile   Tile
		radius int
		want   Tile
	}{
		{image(4, 6), 0, image(4, 6)},
		{image(4, 6), 2, image(2, 8)},
		{image(1, 6), 2, image(0, 8)},
		{image(4, 9), 2, image(2, 10)},
		{image(4, 6), math.MaxInt, image(0, 10)},
		{image(5, 5), 3, image(5, 5)},
		{image(4, 6), -1, image(4, 6)},
	} {
		if got := c.tile.Grow(c.radius); got != c.want {
			t.Errorf("%v.Grow(%d) = %v, want %v", c.tile, c.radius, got, c.want)
		}
	}
}

func TestRowsAreTheTilesAndNoMore(t *testing.T) {
	image := []int{0, 1, 10, 11, 20, 21}
	got := Rows(image, Tile{Width: 2, Height: 3, Y0: 1, Y1: 2})
	if diff := cmp.Diff([]int{10, 11}, got); diff != "" || cap(got) != 2 {
		t.Errorf("row 1: %v of capacity %d\n%s", got, cap(got), diff)
	}
	for _, tile := range []Tile{
		{Width: 2, Height: 4, Y0: 0, Y1: 1},
		{Width: 2, Height: 3, Y0: 2, Y1: 1},
		{Width: 2, Height: 3, Y0: 2, Y1: 4},
		{Width: 2, Height: 3, Y0: -1, Y1: 1},
		{Width: -2, Height: -3},
	} {
		if got := Rows(image, tile); got != nil {
			t.Errorf("Rows of %v = %v, want nil", tile, got)
		}
	}
}

func TestTileRefusesImagesTooLargeForAnIndex(t *testing.T) {
	for _, tile := range []Tile{Whole(1<<16, 1<<16), Whole(1, math.MaxInt), Whole(math.MaxInt, 2)} {
		if err := tile.check(); !errors.Is(err, vkomp.ErrInvalidArgument) {
			t.Errorf("%v: %v", tile, err)
		}
	}
	if err := Whole(1<<15, 1<<15).check(); err != nil {
		t.Error(err)
	}
}

func TestEmptyTileLaunchesNothing(t *testing.T) {
	for _, tile := range []Tile{Whole(0, 5), Whole(5, 0), {Width: 5, Height: 5, Y0: 2, Y1: 2}} {
		if got := tile.launch(); got != (vkomp.Range{}) {
			t.Errorf("%v: %+v", tile, got)
		}
	}
}

func TestWindowRefusesToReachBeyondItsSlices(t *testing.T) {
	whole := window{width: 4, rows: 2, first: 1, sourceRows: 4}
	if err := whole.check(16, 8); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		w                   window
		source, destination int
	}{
		{whole, 15, 8},
		{whole, 16, 9},
		{window{width: 4, rows: 2, first: 3, sourceRows: 4}, 16, 8},
		{window{width: 4, rows: 5, first: 0, sourceRows: 4}, 16, 20},
		{window{width: math.MaxUint32, rows: 1, sourceRows: math.MaxUint32}, 1, 1},
		{window{width: -1, rows: -1, sourceRows: -1}, 1, 1},
	} {
		if err := c.w.check(c.source, c.destination); !errors.Is(err, vkomp.ErrInvalidArgument) {
			t.Errorf("%+v of %d and %d elements: %v", c.w, c.source, c.destination, err)
		}
	}
}

func TestOverlapIsSeenAtTheElement(t *testing.T) {
	s := make([]float32, 8)
	for _, c := range []struct {
		a, b           []float32
		disjoint, same bool
	}{
		{s[:4], s[4:], true, true},
		{s[:5], s[4:], false, false},
		{s[2:6], s[2:6], false, true},
		{s[2:6], s[2:5], false, false},
		{s, s[3:3], true, true},
		{nil, nil, true, true},
	} {
		if err := disjoint("a", c.a, "b", c.b); (err == nil) != c.disjoint {
			t.Errorf("disjoint %d and %d: %v", len(c.a), len(c.b), err)
		}
		if err := disjointOrSame("a", c.a, "b", c.b); (err == nil) != c.same {
			t.Errorf("disjointOrSame %d and %d: %v", len(c.a), len(c.b), err)
		}
	}
}
