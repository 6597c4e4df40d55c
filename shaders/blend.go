package shaders

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"

	"github.com/vkomp/vkomp"
)

//go:embed blend.spv
var blendSPIRV []byte

// Blend mixes an image, its blurred version and its edges to RGBA8: red, green
// and blue are
//
//	mix.Original·original + mix.Blurred·blurred + mix.Edges·edges,
//
// rounded once, to the nearest, halves to even, and clamped to 0 … 255; alpha
// is the original's. [BlendTarget] launches it.
var Blend = vkomp.KernelSource{
	Name:  "blend",
	SPIRV: blendSPIRV,
	Host: func(c *vkomp.HostCall) error {
		original, blurred := vkomp.HostSlice[uint32](c, 0), vkomp.HostSlice[Pixel](c, 1)
		edges, destination := vkomp.HostSlice[float32](c, 2), vkomp.HostSlice[uint32](c, 3)
		n := vkomp.HostValue[uint32](c, 0)
		if int64(len(original)) != int64(n) {
			return fmt.Errorf("%w: the original has %d pixels, not %d", vkomp.ErrInvalidArgument, len(original), n)
		}
		mix := Mix{
			Original: vkomp.HostValue[float32](c, 1),
			Blurred:  vkomp.HostValue[float32](c, 2),
			Edges:    vkomp.HostValue[float32](c, 3),
		}
		return blend(mix, original, blurred, edges, destination)
	},
}

// Mix holds the weights of the images in a [Blend]. Weights may be negative:
// {Original: 1, Edges: -1} draws edges dark.
type Mix struct {
	Original, Blurred, Edges float32 // the weight of each image
}

// BlendTarget makes a region that mixes original, any run of an image's pixels,
// with the pixels of blurred and edges into destination. All have the same length;
// destination may be original itself and must not share storage with the others.
func BlendTarget(k vkomp.Kernel, mix Mix, original []uint32, blurred []Pixel, edges []float32, destination []uint32) (vkomp.Target, error) {
	if err := cmp.Or(
		checkBlend(len(original), len(blurred), len(edges), len(destination)),
		disjointOrSame("original", original, "destination", destination),
		disjoint("blurred", blurred, "destination", destination),
		disjoint("edges", edges, "destination", destination),
	); err != nil {
		return vkomp.Target{}, fmt.Errorf("BlendTarget: %w", err)
	}
	return vkomp.Target{
		Kernel: k,
		Range:  vkomp.Range{X: len(original)},
		Args: []vkomp.Arg{
			vkomp.To(original), vkomp.To(blurred), vkomp.To(edges), vkomp.From(destination),
			vkomp.Value(uint32(len(original))),
			vkomp.Value(mix.Original), vkomp.Value(mix.Blurred), vkomp.Value(mix.Edges),
		},
	}, nil
}

func checkBlend(original, blurred, edges, destination int) error {
	return cmp.Or(
		sameLength("blurred", blurred, "original", original),
		sameLength("edges", edges, "original", original),
		sameLength("destination", destination, "original", original),
	)
}

func blend(mix Mix, original []uint32, blurred []Pixel, edges []float32, destination []uint32) error {
	if err := checkBlend(len(original), len(blurred), len(edges), len(destination)); err != nil {
		return err
	}
	for i, p := range original {
		color := channels(p)
		edge := float32(mix.Edges * edges[i])
		mixed := p & 0xff000000
		for j := range 3 {
			// Conversions keep products from being fused with sums.
			v := (float32(mix.Original*color[j]) + float32(mix.Blurred*blurred[i][j])) + edge
			mixed |= toByte(v) << (8 * j)
		}
		destination[i] = mixed
	}
	return nil
}

// toByte rounds to the nearest, halves to even, and clamps; NaN counts as 0.
func toByte(v float32) uint32 {
	switch r := math.RoundToEven(float64(v)); {
	case r >= 255:
		return 255
	case r > 0:
		return uint32(r)
	}
	return 0
}
