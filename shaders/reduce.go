package shaders

import (
	"cmp"
	_ "embed"
	"fmt"

	"github.com/vkomp/vkomp"
)

//go:embed reduce.spv
var reduceSPIRV []byte

// The number of lanes of a workgroup, and the number of elements that it sums to
// one partial. They are LANES and SPAN of the shader.
const (
	reduceLanes = 128
	reduceSpan  = 2048
)

// Reduce sums float32: each workgroup writes one partial sum. Applied repeatedly to
// its own partials until one is left, it sums a slice of any length, in an order
// that depends on the length alone. [ReduceTarget] launches it.
var Reduce = vkomp.KernelSource{
	Name:  "reduce",
	SPIRV: reduceSPIRV,
	Host: func(c *vkomp.HostCall) error {
		x, partials := vkomp.HostSlice[float32](c, 0), vkomp.HostSlice[float32](c, 1)
		if n := vkomp.HostValue[uint32](c, 0); int64(len(x)) != int64(n) {
			return fmt.Errorf("%w: x has %d elements, not %d", vkomp.ErrInvalidArgument, len(x), n)
		}
		return reduce(x, partials)
	},
}

// ReducePartials returns the number of partial sums for n elements: the length of
// the partials of [ReduceTarget]. It is 0 for no elements, and 1 when a single pass
// sums them all.
func ReducePartials(n int) int {
	if n <= 0 {
		return 0
	}
	return (n-1)/reduceSpan + 1
}

// ReduceTarget makes a region that sums each run of 2048 elements of x to one
// element of partials, which is [ReducePartials](len(x)) long and shares no
// storage with x.
func ReduceTarget(k vkomp.Kernel, x, partials []float32) (vkomp.Target, error) {
	if err := cmp.Or(checkPartials(len(x), len(partials)), addressable("x", len(x)), disjoint("x", x, "partials", partials)); err != nil {
		return vkomp.Target{}, fmt.Errorf("ReduceTarget: %w", err)
	}
	return vkomp.Target{
		Kernel: k,
		Range:  vkomp.Range{X: len(partials) * reduceLanes},
		Args:   []vkomp.Arg{vkomp.To(x), vkomp.From(partials), vkomp.Value(uint32(len(x)))},
	}, nil
}

func checkPartials(n, partials int) error {
	if want := ReducePartials(n); partials != want {
		return fmt.Errorf("%w: %d elements leave %d partial sums, not %d", vkomp.ErrInvalidArgument, n, want, partials)
	}
	return nil
}

func reduce(x, partials []float32) error {
	if err := checkPartials(len(x), len(partials)); err != nil {
		return err
	}
	for g := range partials {
		span := x[g*reduceSpan : min((g+1)*reduceSpan, len(x))]
		var lanes [reduceLanes]float32
		for i, v := range span {
			lanes[i%reduceLanes] += v
		}
		for stride := reduceLanes / 2; stride > 0; stride /= 2 {
			for lane := range stride {
				lanes[lane] += lanes[lane+stride]
			}
		}
		partials[g] = lanes[0]
	}
	return nil
}
