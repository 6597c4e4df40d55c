package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vkomp/vkomp/shaders"
)

// rows returns the bands as pairs of their first row and the row after the last.
func rows(cut []shaders.Tile) [][2]int {
	var pairs [][2]int
	for _, tile := range cut {
		pairs = append(pairs, [2]int{tile.Y0, tile.Y1})
	}
	return pairs
}

func TestBandsCoverTheImageOnce(t *testing.T) {
	for _, c := range []struct {
		name                 string
		width, height, count int
		want                 [][2]int
	}{
		{"even", 5, 6, 3, [][2]int{{0, 2}, {2, 4}, {4, 6}}},
		{"uneven", 5, 7, 3, [][2]int{{0, 2}, {2, 4}, {4, 7}}},
		{"more bands than rows", 5, 2, 9, [][2]int{{0, 1}, {1, 2}}},
		{"one pixel", 1, 1, 32, [][2]int{{0, 1}}},
		{"no count", 5, 6, 0, [][2]int{{0, 6}}},
		{"no rows", 5, 0, 3, nil},
		{"no columns", 0, 5, 3, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			cut := bands(c.width, c.height, c.count)
			if diff := cmp.Diff(c.want, rows(cut)); diff != "" {
				t.Errorf("bands (-want +got):\n%s", diff)
			}
			for _, tile := range cut {
				if tile.Width != c.width || tile.Height != c.height {
					t.Errorf("band of a %d×%d image says %d×%d", c.width, c.height, tile.Width, tile.Height)
				}
			}
		})
	}
}

func TestTouchingFindsEveryBandUnderAHalo(t *testing.T) {
	cut := bands(4, 12, 6) // two rows each
	for _, c := range []struct {
		name   string
		band   int
		radius int
		want   [][2]int
	}{
		{"itself", 2, 0, [][2]int{{4, 6}}},
		{"neighbours", 2, 1, [][2]int{{2, 4}, {4, 6}, {6, 8}}},
		{"a halo of just one band", 2, 2, [][2]int{{2, 4}, {4, 6}, {6, 8}}},
		{"a halo higher than a band", 2, 3, [][2]int{{0, 2}, {2, 4}, {4, 6}, {6, 8}, {8, 10}}},
		{"top", 0, 1, [][2]int{{0, 2}, {2, 4}}},
		{"bottom", 5, 1, [][2]int{{8, 10}, {10, 12}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, rows(touching(cut, cut[c.band].Grow(c.radius)))); diff != "" {
				t.Errorf("touching (-want +got):\n%s", diff)
			}
		})
	}
}
