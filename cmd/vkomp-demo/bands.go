package main

import (
	"sort"

	"github.com/vkomp/vkomp/shaders"
)

// bands divides the rows of a width × height image into count bands from top to bottom, whose
// heights differ by at most one row. No band is empty, so there may be fewer. An image without
// pixels has none.
func bands(width, height, count int) []shaders.Tile {
	if width == 0 || height == 0 {
		return nil
	}
	count = min(max(count, 1), height)
	cut := make([]shaders.Tile, count)
	for i := range cut {
		cut[i] = shaders.Tile{Width: width, Height: height, Y0: i * height / count, Y1: (i + 1) * height / count}
	}
	return cut
}

// touching returns the bands that share a row with tile. A task that reads tile has to be ordered
// with the tasks that write these.
func touching(cut []shaders.Tile, tile shaders.Tile) []shaders.Tile {
	first := sort.Search(len(cut), func(i int) bool { return cut[i].Y1 > tile.Y0 })
	last := sort.Search(len(cut), func(i int) bool { return cut[i].Y0 >= tile.Y1 })
	return cut[first:last]
}
