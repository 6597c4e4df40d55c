package shaders

import (
	_ "embed"
	"fmt"
	"math"

	"github.com/vkomp/vkomp"
)

//go:embed sobel.spv
var sobelSPIRV []byte

// Sobel is the gradient magnitude of pixels' Rec. 709 luma, by the operator
//
//	      −1 0 +1             −1 −2 −1
//	Gx =  −2 0 +2       Gy =   0  0  0       √(Gx² + Gy²)
//	      −1 0 +1             +1 +2 +1
//
// with the image's border repeated beyond it. A step from black to white along
// a straight edge gives 4·255. [SobelTarget] launches it.
var Sobel = vkomp.KernelSource{
	Name:  "sobel",
	SPIRV: sobelSPIRV,
	Host: func(c *vkomp.HostCall) error {
		source, destination := vkomp.HostSlice[Pixel](c, 0), vkomp.HostSlice[float32](c, 1)
		return sobel(hostWindow(c), source, destination)
	},
}

// SobelTarget makes a region that finds the edges in tile t: source is the rows
// of t.Grow(1), destination the rows of t.
func SobelTarget(k vkomp.Kernel, t Tile, source []Pixel, destination []float32) (vkomp.Target, error) {
	w, err := checkStencil(t, 1, source, destination)
	if err != nil {
		return vkomp.Target{}, fmt.Errorf("SobelTarget: %w", err)
	}
	return vkomp.Target{
		Kernel: k,
		Range:  t.launch(),
		Args: []vkomp.Arg{
			vkomp.To(source), vkomp.From(destination),
			vkomp.Value(uint32(w.width)), vkomp.Value(uint32(w.rows)), vkomp.Value(uint32(w.first)), vkomp.Value(uint32(w.sourceRows)),
		},
	}, nil
}

func sobel(w window, source []Pixel, destination []float32) error {
	if err := w.check(len(source), len(destination)); err != nil {
		return err
	}
	// luma returns the luma of the pixel at (x, y), or of the nearest pixel of the
	// border if that is outside.
	luma := func(x, y int) float32 {
		x, y = min(max(x, 0), w.width-1), min(max(y, 0), w.sourceRows-1)
		p := source[y*w.width+x]
		return (float32(0.2126*p[0]) + float32(0.7152*p[1])) + float32(0.0722*p[2])
	}
	for y := range w.rows {
		sy := w.first + y
		for x := range w.width {
			tl, t, tr := luma(x-1, sy-1), luma(x, sy-1), luma(x+1, sy-1)
			l, r := luma(x-1, sy), luma(x+1, sy)
			bl, b, br := luma(x-1, sy+1), luma(x, sy+1), luma(x+1, sy+1)
			// Conversions keep products from being fused with sums.
			gx := ((tr + float32(2*r)) + br) - ((tl + float32(2*l)) + bl)
			gy := ((bl + float32(2*b)) + br) - ((tl + float32(2*t)) + tr)
			squared := float32(gx*gx) + float32(gy*gy)
			destination[y*w.width+x] = float32(math.Sqrt(float64(squared)))
		}
	}
	return nil
}
