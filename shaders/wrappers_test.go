package shaders

import (
	"errors"
	"testing"

	"github.com/vkomp/vkomp"
)

func TestWrappersRefuseSlicesThatDoNotFit(t *testing.T) {
	var (
		k       vkomp.Kernel
		f, g    = make([]float32, 35), make([]float32, 35)
		u, v    = make([]uint32, 35), make([]uint32, 35)
		p, q    = make([]Pixel, 35), make([]Pixel, 35)
		weights = []float32{0.5, 0.25}
		tile    = Whole(5, 7)
		outside = Tile{Width: 5, Height: 7, Y0: 6, Y1: 8}
	)
	refuses := func(what string) func(vkomp.Target, error) {
		return func(target vkomp.Target, err error) {
			t.Helper()
			if !errors.Is(err, vkomp.ErrInvalidArgument) {
				t.Errorf("%s: error %v", what, err)
			}
			if target.Args != nil {
				t.Errorf("%s: a target comes with the error", what)
			}
		}
	}
	refuses("saxpy: lengths")(SaxpyTarget(k, 1, f[:3], g))
	refuses("saxpy: overlap")(SaxpyTarget(k, 1, f[1:], f[:34]))
	refuses("reduce: partials")(ReduceTarget(k, f, g))
	refuses("reduce: overlap")(ReduceTarget(k, f, f[3:4]))
	refuses("heat: tile")(HeatTarget(k, outside, 1, f[:10], g[:10]))
	refuses("heat: source")(HeatTarget(k, tile, 1, f[:34], g))
	refuses("heat: destination")(HeatTarget(k, tile, 1, f, g[:34]))
	refuses("heat: in place")(HeatTarget(k, tile, 1, f, f))
	refuses("grayscale: lengths")(GrayscaleTarget(k, u, v[:3]))
	refuses("grayscale: overlap")(GrayscaleTarget(k, u[1:], u[:34]))
	refuses("blur rows: tile")(BlurRowsTarget(k, outside, weights, u[:10], p[:10]))
	refuses("blur rows: source")(BlurRowsTarget(k, tile, weights, u[:34], p))
	refuses("blur rows: destination")(BlurRowsTarget(k, tile, weights, u, p[:34]))
	refuses("blur rows: no weights")(BlurRowsTarget(k, tile, nil, u, p))
	refuses("blur columns: tile")(BlurColumnsTarget(k, outside, weights, p[:10], q[:10]))
	refuses("blur columns: source")(BlurColumnsTarget(k, tile, weights, p[:34], q))
	refuses("blur columns: destination")(BlurColumnsTarget(k, tile, weights, p, q[:34]))
	refuses("blur columns: no weights")(BlurColumnsTarget(k, tile, nil, p, q))
	refuses("blur columns: too many weights")(BlurColumnsTarget(k, tile, make([]float32, maxRadius+2), p, q))
	refuses("blur columns: in place")(BlurColumnsTarget(k, tile, weights, p, p))
	refuses("sobel: tile")(SobelTarget(k, outside, p[:10], f[:10]))
	refuses("sobel: source")(SobelTarget(k, tile, p[:34], f))
	refuses("sobel: destination")(SobelTarget(k, tile, p, f[:34]))
	refuses("blend: blurred")(BlendTarget(k, Mix{}, u, p[:34], f, v))
	refuses("blend: edges")(BlendTarget(k, Mix{}, u, p, f[:34], v))
	refuses("blend: destination")(BlendTarget(k, Mix{}, u, p, f, v[:34]))
	refuses("blend: overlap")(BlendTarget(k, Mix{}, u[1:], p[1:], f[1:], u[:34]))
}

func TestPointwiseWrappersAcceptOneSliceForBoth(t *testing.T) {
	f, u := make([]float32, 4), make([]uint32, 4)
	for name, err := range map[string]error{
		"saxpy":     second(SaxpyTarget(vkomp.Kernel{}, 1, f, f)),
		"grayscale": second(GrayscaleTarget(vkomp.Kernel{}, u, u)),
		"blend":     second(BlendTarget(vkomp.Kernel{}, Mix{}, u, make([]Pixel, 4), f, u)),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second(_ vkomp.Target, err error) error { return err }
