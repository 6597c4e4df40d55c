package shaders

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"

	"github.com/vkomp/vkomp"
)

//go:embed blur_rows.spv
var blurRowsSPIRV []byte

//go:embed blur_columns.spv
var blurColumnsSPIRV []byte

// Pixel is a pixel between kernels: red, green, blue and alpha, each 0 to 255
// as in RGBA8 but not rounded.
type Pixel [4]float32

// BlurRows is the first half of a separable blur: each pixel becomes the
// weighted sum of its neighbours in its row; columns beyond the image repeat
// its border. [BlurRowsTarget] launches it.
var BlurRows = vkomp.KernelSource{
	Name:  "blur_rows",
	SPIRV: blurRowsSPIRV,
	Host: func(c *vkomp.HostCall) error {
		weights := vkomp.HostSlice[float32](c, 0)
		source, destination := vkomp.HostSlice[uint32](c, 1), vkomp.HostSlice[Pixel](c, 2)
		width, rows := int(vkomp.HostValue[uint32](c, 0)), int(vkomp.HostValue[uint32](c, 1))
		if err := checkRadius(weights, vkomp.HostValue[uint32](c, 2)); err != nil {
			return err
		}
		return blurRows(window{width: width, rows: rows, sourceRows: rows}, weights, source, destination)
	},
}

// BlurColumns is the second half of a separable blur: each pixel becomes the
// weighted sum of its neighbours in its column; rows beyond the image repeat
// its border. [BlurColumnsTarget] launches it.
var BlurColumns = vkomp.KernelSource{
	Name:  "blur_columns",
	SPIRV: blurColumnsSPIRV,
	Host: func(c *vkomp.HostCall) error {
		weights := vkomp.HostSlice[float32](c, 0)
		source, destination := vkomp.HostSlice[Pixel](c, 1), vkomp.HostSlice[Pixel](c, 2)
		if err := checkRadius(weights, vkomp.HostValue[uint32](c, 4)); err != nil {
			return err
		}
		return blurColumns(hostWindow(c), weights, source, destination)
	},
}

// GaussianWeights returns the weights of a Gaussian blur: element d is the
// weight of a neighbour d pixels away, on either side. They fall off with
// standard deviation sigma, in pixels, end at radius, which is at most 32767, and
// sum to 1 over both sides. A radius of 3·sigma leaves out less than three
// thousandths of the bell.
func GaussianWeights(sigma float64, radius int) ([]float32, error) {
	if !(sigma > 0) || math.IsInf(sigma, 1) || radius < 0 || radius > maxRadius {
		return nil, fmt.Errorf("GaussianWeights: %w: sigma %v, radius %d: sigma must be positive and finite, radius 0 to %d", vkomp.ErrInvalidArgument, sigma, radius, maxRadius)
	}
	bell := make([]float64, radius+1)
	total := 0.0
	for d := radius; d > 0; d-- {
		bell[d] = math.Exp(-float64(d) * float64(d) / (2 * sigma * sigma))
		total += 2 * bell[d]
	}
	bell[0] = 1
	total++
	weights := make([]float32, radius+1)
	for d := range weights {
		weights[d] = float32(bell[d] / total)
	}
	return weights, nil
}

// maxRadius bounds a blur's radius. Mesa's software driver ends every loop of a
// shader after 65535 iterations, and a pixel has 2·radius + 1 weights.
const maxRadius = 1<<15 - 1

// BlurRowsTarget makes a region that blurs the rows of tile t along themselves.
// Element d of weights is the weight of the neighbours d away; source and
// destination are the rows of t.
func BlurRowsTarget(k vkomp.Kernel, t Tile, weights []float32, source []uint32, destination []Pixel) (vkomp.Target, error) {
	w, err := checkBlur(t, 0, weights, source, destination)
	if err != nil {
		return vkomp.Target{}, fmt.Errorf("BlurRowsTarget: %w", err)
	}
	return vkomp.Target{
		Kernel: k,
		Range:  t.launch(),
		Args: []vkomp.Arg{
			vkomp.To(weights), vkomp.To(source), vkomp.From(destination),
			vkomp.Value(uint32(w.width)), vkomp.Value(uint32(w.rows)),
			vkomp.Value(uint32(len(weights) - 1)),
		},
	}, nil
}

// BlurColumnsTarget makes a region that blurs tile t along its columns. Element
// d of weights is the weight of the neighbours d away; source is the rows of
// t.Grow(len(weights)-1), destination the rows of t.
func BlurColumnsTarget(k vkomp.Kernel, t Tile, weights []float32, source, destination []Pixel) (vkomp.Target, error) {
	w, err := checkBlur(t, len(weights)-1, weights, source, destination)
	if err != nil {
		return vkomp.Target{}, fmt.Errorf("BlurColumnsTarget: %w", err)
	}
	return vkomp.Target{
		Kernel: k,
		Range:  t.launch(),
		Args: []vkomp.Arg{
			vkomp.To(weights), vkomp.To(source), vkomp.From(destination),
			vkomp.Value(uint32(w.width)), vkomp.Value(uint32(w.rows)), vkomp.Value(uint32(w.first)), vkomp.Value(uint32(w.sourceRows)),
			vkomp.Value(uint32(len(weights) - 1)),
		},
	}, nil
}

func checkBlur[S any](t Tile, radius int, weights []float32, source []S, destination []Pixel) (window, error) {
	if err := cmp.Or(checkWeights(weights), disjoint("weights", weights, "destination", destination)); err != nil {
		return window{}, err
	}
	return checkStencil(t, radius, source, destination)
}

func checkWeights(weights []float32) error {
	if len(weights) == 0 || len(weights)-1 > maxRadius {
		return fmt.Errorf("%w: a blur has 1 to %d weights, not %d", vkomp.ErrInvalidArgument, maxRadius+1, len(weights))
	}
	return nil
}

func checkRadius(weights []float32, radius uint32) error {
	if err := checkWeights(weights); err != nil {
		return err
	}
	if int64(len(weights)) != int64(radius)+1 {
		return fmt.Errorf("%w: a blur of radius %d has %d weights, not %d", vkomp.ErrInvalidArgument, radius, int64(radius)+1, len(weights))
	}
	return nil
}

func blurRows(w window, weights []float32, source []uint32, destination []Pixel) error {
	if err := cmp.Or(checkWeights(weights), w.check(len(source), len(destination))); err != nil {
		return err
	}
	radius := len(weights) - 1
	for y := range w.rows {
		row := source[y*w.width : (y+1)*w.width]
		for x := range w.width {
			var sum Pixel
			for d := -radius; d <= radius; d++ {
				sum.add(weights[max(d, -d)], channels(row[min(max(x+d, 0), w.width-1)]))
			}
			destination[y*w.width+x] = sum
		}
	}
	return nil
}

func blurColumns(w window, weights []float32, source, destination []Pixel) error {
	if err := cmp.Or(checkWeights(weights), w.check(len(source), len(destination))); err != nil {
		return err
	}
	radius := len(weights) - 1
	for y := range w.rows {
		for x := range w.width {
			var sum Pixel
			for d := -radius; d <= radius; d++ {
				sy := min(max(w.first+y+d, 0), w.sourceRows-1)
				sum.add(weights[max(d, -d)], source[sy*w.width+x])
			}
			destination[y*w.width+x] = sum
		}
	}
	return nil
}

// add adds weight·q; conversions keep products from being fused with sums.
func (p *Pixel) add(weight float32, q Pixel) {
	for i := range p {
		p[i] += float32(weight * q[i])
	}
}

func channels(p uint32) Pixel {
	return Pixel{float32(p & 0xff), float32(p >> 8 & 0xff), float32(p >> 16 & 0xff), float32(p >> 24)}
}
