package shaders_test

import (
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
)

// A range is rounded up to whole workgroups, so a kernel must stop at the
// counts that it is told. The slices here are longer than the counts: what a
// surplus invocation writes stays inside its binding and is seen.
func TestKernelsOnTheDeviceStopAtTheirCounts(t *testing.T) {
	const (
		size        = 64 // elements of each slice
		count       = 15 // of which the kernel is told these
		width, rows = 5, 3
		mark        = -1.0
		markBits    = 0xdeadbeef
	)
	var (
		b       = open(t)
		weights = []float32{0, 0.5}
		pixels  = make([]shaders.Pixel, size)
		words   = make([]uint32, size)
		ones    = make([]float32, size)

		floats  = make([]float32, size)
		colours = make([]shaders.Pixel, size)
		packed  = make([]uint32, size)
	)
	for i := range ones {
		ones[i] = 1
	}
	value := func(n uint32) vkomp.Arg { return vkomp.Value(n) }
	line, area := vkomp.Range{X: count}, vkomp.Range{X: width, Y: rows}
	for _, c := range []struct {
		source vkomp.KernelSource
		launch vkomp.Range
		args   []vkomp.Arg
		writes int
	}{
		{shaders.Saxpy, line, []vkomp.Arg{vkomp.To(ones), vkomp.ToFrom(floats), value(count), vkomp.Value[float32](2)}, count},
		// Two workgroups, the second with nothing to sum.
		{shaders.Reduce, vkomp.Range{X: 129}, []vkomp.Arg{vkomp.To(ones), vkomp.ToFrom(floats), value(count)}, 1},
		{shaders.Heat, area, []vkomp.Arg{vkomp.To(ones), vkomp.ToFrom(floats), value(width), value(rows), value(1), value(rows + 2), vkomp.Value[float32](0.2)}, count},
		{shaders.Grayscale, line, []vkomp.Arg{vkomp.To(words), vkomp.ToFrom(packed), value(count)}, count},
		{shaders.BlurRows, area, []vkomp.Arg{vkomp.To(weights), vkomp.To(words), vkomp.ToFrom(colours), value(width), value(rows), value(1)}, count},
		{shaders.BlurColumns, area, []vkomp.Arg{vkomp.To(weights), vkomp.To(pixels), vkomp.ToFrom(colours), value(width), value(rows), value(1), value(rows + 2), value(1)}, count},
		{shaders.Sobel, area, []vkomp.Arg{vkomp.To(pixels), vkomp.ToFrom(floats), value(width), value(rows), value(1), value(rows + 2)}, count},
		{shaders.Blend, line, []vkomp.Arg{vkomp.To(words), vkomp.To(pixels), vkomp.To(ones), vkomp.ToFrom(packed), value(count), vkomp.Value[float32](1), vkomp.Value[float32](1), vkomp.Value[float32](1)}, count},
	} {
		for i := range size {
			floats[i], colours[i], packed[i] = mark, shaders.Pixel{mark, mark, mark, mark}, markBits
		}
		b.launch(t.Context(), vkomp.Target{Kernel: b.kernel(c.source), Range: c.launch, Args: c.args}, nil)
		for i := range size {
			written := floats[i] != mark || colours[i] != shaders.Pixel{mark, mark, mark, mark} || packed[i] != markBits
			if written != (i < c.writes) {
				t.Errorf("%s: element %d written: %v", c.source.Name, i, written)
			}
		}
		if c.source.Name == shaders.Reduce.Name && floats[0] != count {
			t.Errorf("reduce: %v, want %d", floats[0], count)
		}
	}
}
