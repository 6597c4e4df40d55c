package shaders

import (
	"cmp"
	_ "embed"
	"fmt"

	"github.com/vkomp/vkomp"
)

//go:embed saxpy.spv
var saxpySPIRV []byte

// Saxpy is y = a·x + y on float32. [SaxpyTarget] launches it.
var Saxpy = vkomp.KernelSource{
	Name:  "saxpy",
	SPIRV: saxpySPIRV,
	Host: func(c *vkomp.HostCall) error {
		x, y := vkomp.HostSlice[float32](c, 0), vkomp.HostSlice[float32](c, 1)
		n, a := vkomp.HostValue[uint32](c, 0), vkomp.HostValue[float32](c, 1)
		if int64(len(x)) != int64(n) {
			return fmt.Errorf("%w: x has %d elements, not %d", vkomp.ErrInvalidArgument, len(x), n)
		}
		return saxpy(a, x, y)
	},
}

// SaxpyTarget makes a region that adds a·x to y. x and y are of one length and
// either disjoint or the same slice.
func SaxpyTarget(k vkomp.Kernel, a float32, x, y []float32) (vkomp.Target, error) {
	if err := cmp.Or(sameLength("x", len(x), "y", len(y)), disjointOrSame("x", x, "y", y)); err != nil {
		return vkomp.Target{}, fmt.Errorf("SaxpyTarget: %w", err)
	}
	return vkomp.Target{
		Kernel: k,
		Range:  vkomp.Range{X: len(y)},
		Args: []vkomp.Arg{
			vkomp.To(x), vkomp.ToFrom(y),
			vkomp.Value(uint32(len(y))), vkomp.Value(a),
		},
	}, nil
}

func saxpy(a float32, x, y []float32) error {
	if err := sameLength("x", len(x), "y", len(y)); err != nil {
		return err
	}
	for i, v := range x {
		// A conversion keeps the product from being fused with the sum.
		y[i] = float32(a*v) + y[i]
	}
	return nil
}
