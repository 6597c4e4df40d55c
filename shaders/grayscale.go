package shaders

import (
	"cmp"
	_ "embed"
	"fmt"

	"github.com/vkomp/vkomp"
)

//go:embed grayscale.spv
var grayscaleSPIRV []byte

// Grayscale sets red, green and blue of RGBA8 pixels to their Rec. 709 luma,
// 0.2126 R + 0.7152 G + 0.0722 B of the encoded values, rounded to the nearest,
// halves up; alpha is kept. [GrayscaleTarget] launches it.
var Grayscale = vkomp.KernelSource{
	Name:  "grayscale",
	SPIRV: grayscaleSPIRV,
	Host: func(c *vkomp.HostCall) error {
		source, destination := vkomp.HostSlice[uint32](c, 0), vkomp.HostSlice[uint32](c, 1)
		if n := vkomp.HostValue[uint32](c, 0); int64(len(source)) != int64(n) {
			return fmt.Errorf("%w: the source has %d pixels, not %d", vkomp.ErrInvalidArgument, len(source), n)
		}
		return grayscale(source, destination)
	},
}

// GrayscaleTarget makes a region that turns the pixels of source, any run of an
// image's pixels, to grey ones in destination. Both have the same length and are
// either disjoint or the same slice.
func GrayscaleTarget(k vkomp.Kernel, source, destination []uint32) (vkomp.Target, error) {
	if err := cmp.Or(
		sameLength("source", len(source), "destination", len(destination)),
		disjointOrSame("source", source, "destination", destination),
	); err != nil {
		return vkomp.Target{}, fmt.Errorf("GrayscaleTarget: %w", err)
	}
	return vkomp.Target{
		Kernel: k,
		Range:  vkomp.Range{X: len(source)},
		Args:   []vkomp.Arg{vkomp.To(source), vkomp.From(destination), vkomp.Value(uint32(len(source)))},
	}, nil
}

func grayscale(source, destination []uint32) error {
	if err := sameLength("source", len(source), "destination", len(destination)); err != nil {
		return err
	}
	for i, p := range source {
		luma := (2126*(p&0xff) + 7152*(p>>8&0xff) + 722*(p>>16&0xff) + 5000) / 10000
		destination[i] = p&0xff000000 | luma*0x010101
	}
	return nil
}
