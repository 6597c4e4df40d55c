package shaders

import (
	_ "embed"
	"fmt"

	"github.com/vkomp/vkomp"
)

//go:embed heat.spv
var heatSPIRV []byte

// Heat is one explicit step of the heat equation on a grid of float32: each
// cell moves towards its four neighbours,
//
//	next = here + alpha·(above + below + left + right − 4·here),
//
// and the grid's outermost cells stay as they are. It is stable for alpha up
// to ¼. [HeatTarget] launches it.
var Heat = vkomp.KernelSource{
	Name:  "heat",
	SPIRV: heatSPIRV,
	Host: func(c *vkomp.HostCall) error {
		source, destination := vkomp.HostSlice[float32](c, 0), vkomp.HostSlice[float32](c, 1)
		return heat(hostWindow(c), vkomp.HostValue[float32](c, 4), source, destination)
	},
}

// HeatTarget makes a region that steps the rows of tile t from source, the rows
// of t.Grow(1) of the old grid, to destination, the rows of t of the new one.
func HeatTarget(k vkomp.Kernel, t Tile, alpha float32, source, destination []float32) (vkomp.Target, error) {
	w, err := checkStencil(t, 1, source, destination)
	if err != nil {
		return vkomp.Target{}, fmt.Errorf("HeatTarget: %w", err)
	}
	return vkomp.Target{
		Kernel: k,
		Range:  t.launch(),
		Args: []vkomp.Arg{
			vkomp.To(source), vkomp.From(destination),
			vkomp.Value(uint32(w.width)), vkomp.Value(uint32(w.rows)), vkomp.Value(uint32(w.first)), vkomp.Value(uint32(w.sourceRows)),
			vkomp.Value(alpha),
		},
	}, nil
}

func heat(w window, alpha float32, source, destination []float32) error {
	if err := w.check(len(source), len(destination)); err != nil {
		return err
	}
	for y := range w.rows {
		sy := w.first + y
		for x := range w.width {
			at := sy*w.width + x
			next := source[at]
			if x > 0 && x+1 < w.width && sy > 0 && sy+1 < w.sourceRows {
				around := (source[at-w.width] + source[at+w.width]) + (source[at-1] + source[at+1])
				// Conversions keep products from being fused with sums.
				next += float32(alpha * (around - float32(4*source[at])))
			}
			destination[y*w.width+x] = next
		}
	}
	return nil
}
