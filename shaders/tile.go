package shaders

import (
	"cmp"
	"fmt"

	"github.com/vkomp/vkomp"
)

// Tile is the rows Y0 up to, not including, Y1 of an image or grid that is stored
// row by row.
type Tile struct {
	Width, Height int // of the whole image, in elements
	Y0, Y1        int // row numbers
}

// Whole returns the tile that is the whole of a width × height image.
func Whole(width, height int) Tile {
	return Tile{Width: width, Height: height, Y1: height}
}

// Grow returns the tile with radius more rows above and below, as far as the image
// has them. That is what a stencil of that radius reads to compute the tile. A tile
// of no rows stays as it is.
func (t Tile) Grow(radius int) Tile {
	if t.Y0 >= t.Y1 || radius <= 0 {
		return t
	}
	t.Y0 = max(t.Y0-radius, 0)
	t.Y1 += min(radius, t.Height-t.Y1)
	return t
}

// Rows returns the tile's rows of an image's elements. It is nil when the tile does
// not lie in the image or the image does not have the tile's size.
func Rows[T any](image []T, t Tile) []T {
	if t.check() != nil || len(image) != t.Width*t.Height {
		return nil
	}
	return image[t.Y0*t.Width : t.Y1*t.Width : t.Y1*t.Width]
}

// maxElements is the largest length of a slice. An index that is rounded up to a
// workgroup and shifted by an offset still fits in a shader's int.
const maxElements = 1<<31 - 1<<16

func (t Tile) check() error {
	switch {
	case t.Width < 0 || t.Height < 0 || t.Y0 < 0 || t.Y0 > t.Y1 || t.Y1 > t.Height:
		return fmt.Errorf("%w: rows %d to %d do not lie in an image of %d×%d", vkomp.ErrInvalidArgument, t.Y0, t.Y1, t.Width, t.Height)
	case t.Width > 0 && t.Height > maxElements/t.Width:
		return fmt.Errorf("%w: an image of %d×%d has more than %d pixels", vkomp.ErrInvalidArgument, t.Width, t.Height, maxElements)
	}
	return nil
}

func (t Tile) elements() int { return t.Width * (t.Y1 - t.Y0) }

// launch returns the range of a kernel with one invocation for each element.
func (t Tile) launch() vkomp.Range {
	if t.elements() == 0 {
		return vkomp.Range{}
	}
	return vkomp.Range{X: t.Width, Y: t.Y1 - t.Y0}
}

// window is what a stencil kernel is told about its tile: it computes rows of width
// elements from a source of sourceRows rows, in which the tile's first row has the
// number first. Rows outside the source are outside the image.
type window struct {
	width, rows, first, sourceRows int
}

// window returns the window of the tile in the source rows of a stencil with this
// radius.
func (t Tile) window(radius int) window {
	source := t.Grow(radius)
	return window{width: t.Width, rows: t.Y1 - t.Y0, first: t.Y0 - source.Y0, sourceRows: source.Y1 - source.Y0}
}

// check returns an error if the window reaches outside slices of the given lengths.
func (w window) check(source, destination int) error {
	switch {
	case w.width < 0 || w.rows < 0 || w.first < 0 || w.sourceRows < 0 || w.first > w.sourceRows-w.rows:
		return fmt.Errorf("%w: rows %d to %d do not lie in a source of %d rows of %d", vkomp.ErrInvalidArgument, w.first, w.first+w.rows, w.sourceRows, w.width)
	case w.width > maxElements || w.sourceRows > maxElements:
		return fmt.Errorf("%w: %d rows of %d elements are more than %d", vkomp.ErrInvalidArgument, w.sourceRows, w.width, maxElements)
	case int64(source) != int64(w.width)*int64(w.sourceRows):
		return fmt.Errorf("%w: the source has %d elements, not %d rows of %d", vkomp.ErrInvalidArgument, source, w.sourceRows, w.width)
	case int64(destination) != int64(w.width)*int64(w.rows):
		return fmt.Errorf("%w: the destination has %d elements, not %d rows of %d", vkomp.ErrInvalidArgument, destination, w.rows, w.width)
	}
	return nil
}

// checkStencil returns the window of a stencil with this radius on the tile, and an
// error if the slices do not have the lengths that it needs.
func checkStencil[S, D any](t Tile, radius int, source []S, destination []D) (window, error) {
	if err := t.check(); err != nil {
		return window{}, err
	}
	w := t.window(radius)
	return w, cmp.Or(w.check(len(source), len(destination)), disjoint("source", source, "destination", destination))
}

// hostWindow reads a window from a Host variant's first values.
func hostWindow(c *vkomp.HostCall) window {
	return window{
		width: int(vkomp.HostValue[uint32](c, 0)), rows: int(vkomp.HostValue[uint32](c, 1)),
		first: int(vkomp.HostValue[uint32](c, 2)), sourceRows: int(vkomp.HostValue[uint32](c, 3)),
	}
}
