package shaders_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// fixture is a runtime and where its regions run.
type fixture struct {
	testing.TB
	rt     *vkomp.Runtime
	device vkomp.Device
}

// open opens a runtime with a real device.
func open(t testing.TB, opts ...func(*vkomp.Options)) *fixture {
	t.Helper()
	rt := vktest.Open(t, opts...)
	device := rt.DefaultDevice()
	if device.IsInitial() {
		t.Fatal("the default device is the initial device")
	}
	return &fixture{TB: t, rt: rt, device: device}
}

// onHost is the same fixture with the regions on the initial device.
func (b *fixture) onHost() *fixture {
	host := *b
	host.device = b.rt.InitialDevice()
	return &host
}

func (b *fixture) kernel(source vkomp.KernelSource) vkomp.Kernel {
	b.Helper()
	k, err := b.rt.NewKernel(source)
	if err != nil {
		b.Fatal(err)
	}
	return k
}

// launch runs a region to its end.
func (b *fixture) launch(ctx context.Context, target vkomp.Target, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	target.Device = b.device
	if err := b.rt.Target(ctx, target); err != nil {
		b.Fatal(err)
	}
}

// deferred makes a region a deferred task with dependences.
func (b *fixture) deferred(ctx context.Context, depend []vkomp.Depend) func(vkomp.Target, error) {
	return func(target vkomp.Target, err error) {
		b.Helper()
		target.NoWait, target.Depend = true, depend
		b.launch(ctx, target, err)
	}
}

// region runs body inside a data region and waits for its tasks.
func (b *fixture) region(maps []vkomp.Arg, body func(ctx context.Context)) {
	b.Helper()
	err := b.rt.TargetData(context.Background(), vkomp.TargetData{Device: b.device, Maps: maps}, func(ctx context.Context) error {
		body(ctx)
		return b.rt.Taskwait(ctx)
	})
	if err != nil {
		b.Fatal(err)
	}
}

// near compares within tolerance, in the elements' own unit.
func near(t testing.TB, what string, got, want []float32, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= tolerance) {
			t.Fatalf("%s: element %d of %d is %v, want %v ± %g", what, i, len(got), got[i], want[i], tolerance)
		}
	}
}

func flat(pixels []shaders.Pixel) []float32 {
	values := make([]float32, 0, 4*len(pixels))
	for _, p := range pixels {
		values = append(values, p[:]...)
	}
	return values
}

var lengths = []int{1, 2, 127, 128, 129, 2047, 2048, 2049, 100_003}

func TestSaxpyOnTheDeviceIsExactOnSmallIntegers(t *testing.T) {
	b := open(t)
	k := b.kernel(shaders.Saxpy)
	random := rand.New(rand.NewPCG(3, 1))
	for _, n := range lengths {
		x, y := make([]float32, n+11), make([]float32, n+13)
		for i := range x {
			x[i] = float32(random.IntN(1000))
		}
		want := make([]float32, len(y))
		from, to := random.IntN(11), random.IntN(13)
		for i := range y {
			y[i] = float32(random.IntN(1000))
			want[i] = y[i]
			if i >= to && i < to+n {
				want[i] += 3 * x[from+i-to]
			}
		}
		b.region([]vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y)}, func(ctx context.Context) {
			target, err := shaders.SaxpyTarget(k, 3, x[from:from+n], y[to:to+n])
			b.launch(ctx, target, err)
		})
		near(t, "y", y, want, 0)
	}
}

func TestSaxpyOnTheDeviceRoundsTheProduct(t *testing.T) {
	b := open(t)
	k := b.kernel(shaders.Saxpy)
	// As in the Host variant's test: fused, the result would be 2⁻²⁴.
	const a = 1 + 1.0/(1<<12)
	x, y := []float32{a}, []float32{-(1 + 1.0/(1<<11))}
	target, err := shaders.SaxpyTarget(k, a, x, y)
	b.launch(t.Context(), target, err)
	near(t, "y", y, []float32{0}, 0)
}

func TestSaxpyOnTheDeviceAddsASliceToItself(t *testing.T) {
	b := open(t)
	k := b.kernel(shaders.Saxpy)
	y := []float32{1, 2, 3}
	target, err := shaders.SaxpyTarget(k, 2, y, y)
	b.launch(t.Context(), target, err)
	near(t, "y", y, []float32{3, 6, 9}, 0)
}

// sum reduces x[from:] to one value, as a chain of deferred regions.
func (b *fixture) sum(k vkomp.Kernel, x []float32, from int) float32 {
	b.Helper()
	maps := []vkomp.Arg{vkomp.To(x)}
	passes := [][]float32{x[from:]}
	for n := len(x) - from; n > 1; {
		n = shaders.ReducePartials(n)
		partials := make([]float32, n)
		passes = append(passes, partials)
		maps = append(maps, vkomp.From(partials))
	}
	b.region(maps, func(ctx context.Context) {
		for i, partials := range passes[1:] {
			b.deferred(ctx, []vkomp.Depend{vkomp.In(passes[i]), vkomp.Out(partials)})(
				shaders.ReduceTarget(k, passes[i], partials))
		}
	})
	return passes[len(passes)-1][0]
}

func TestReduceOnTheDeviceSumsSmallIntegersExactly(t *testing.T) {
	b := open(t)
	k := b.kernel(shaders.Reduce)
	random := rand.New(rand.NewPCG(3, 2))
	for _, n := range lengths {
		from := random.IntN(11)
		x := make([]float32, from+n)
		want := 0
		for i := range x {
			v := random.IntN(64)
			x[i] = float32(v)
			if i >= from {
				want += v
			}
		}
		if got := b.sum(k, x, from); got != float32(want) {
			t.Errorf("%d elements from %d: %v, want %d", n, from, got, want)
		}
	}
}

func TestReduceOnTheDeviceAgreesWithTheHost(t *testing.T) {
	b := open(t)
	k := b.kernel(shaders.Reduce)
	random := rand.New(rand.NewPCG(3, 3))
	for _, n := range lengths {
		from := random.IntN(11)
		x := make([]float32, from+n)
		magnitude := 0.0
		for i := range x {
			x[i] = 2*random.Float32() - 1
			magnitude += math.Abs(float64(x[i]))
		}
		near(t, "sum", []float32{b.sum(k, x, from)}, []float32{b.onHost().sum(k, x, from)}, 1e-6*magnitude)
	}
}

// cut splits an image into tiles of random numbers of rows.
func cut(random *rand.Rand, whole shaders.Tile) []shaders.Tile {
	var tiles []shaders.Tile
	for t := whole; t.Y0 < whole.Height; t.Y0 = t.Y1 {
		t.Y1 = t.Y0 + 1 + random.IntN(whole.Height-t.Y0)
		tiles = append(tiles, t)
	}
	return tiles
}

// reaching appends a dependence for each tile of the image that t touches.
func reaching[T any](depend []vkomp.Depend, tiles []shaders.Tile, t shaders.Tile, image []T, kind func([]T) vkomp.Depend) []vkomp.Depend {
	for _, u := range tiles {
		if u.Y0 < t.Y1 && t.Y0 < u.Y1 {
			depend = append(depend, kind(shaders.Rows(image, u)))
		}
	}
	return depend
}

// heat steps a grid, tile by tile, to and fro between two grids.
func (b *fixture) heat(k vkomp.Kernel, whole shaders.Tile, tiles []shaders.Tile, grid []float32, steps int) []float32 {
	b.Helper()
	now, next := append([]float32(nil), grid...), make([]float32, len(grid))
	b.region([]vkomp.Arg{vkomp.ToFrom(now), vkomp.ToFrom(next)}, func(ctx context.Context) {
		for range steps {
			for _, t := range tiles {
				depend := reaching(nil, tiles, t.Grow(1), now, vkomp.In)
				depend = append(depend, vkomp.Out(shaders.Rows(next, t)))
				b.deferred(ctx, depend)(shaders.HeatTarget(k, t, 0.2, shaders.Rows(now, t.Grow(1)), shaders.Rows(next, t)))
			}
			now, next = next, now
		}
	})
	return now
}

func TestHeatOnTheDeviceAgreesWithTheHost(t *testing.T) {
	b := open(t)
	k := b.kernel(shaders.Heat)
	random := rand.New(rand.NewPCG(3, 4))
	for _, whole := range []shaders.Tile{
		shaders.Whole(1, 1), shaders.Whole(1, 9), shaders.Whole(9, 1), shaders.Whole(3, 3),
		shaders.Whole(31, 17), shaders.Whole(33, 29), shaders.Whole(257, 63),
	} {
		grid := make([]float32, whole.Width*whole.Height)
		for i := range grid {
			grid[i] = random.Float32()
		}
		got := b.heat(k, whole, cut(random, whole), grid, 7)
		want := b.onHost().heat(k, whole, []shaders.Tile{whole}, grid, 7)
		near(t, "grid", got, want, 1e-6)
	}
}

// pictures are an image and all that the image kernels make of it.
type pictures struct {
	original, grey, mixed []uint32
	rows, blurred         []shaders.Pixel
	edges                 []float32
}

type imageKernels struct {
	grayscale, blurRows, blurColumns, sobel, blend vkomp.Kernel
}

func (b *fixture) imageKernels() imageKernels {
	b.Helper()
	return imageKernels{
		grayscale:   b.kernel(shaders.Grayscale),
		blurRows:    b.kernel(shaders.BlurRows),
		blurColumns: b.kernel(shaders.BlurColumns),
		sobel:       b.kernel(shaders.Sobel),
		blend:       b.kernel(shaders.Blend),
	}
}

// draw runs every image kernel, tile by tile, as deferred regions.
func (b *fixture) draw(k imageKernels, tiles []shaders.Tile, weights []float32, original []uint32) *pictures {
	b.Helper()
	n := len(original)
	p := &pictures{
		original: original, grey: make([]uint32, n), mixed: make([]uint32, n),
		rows: make([]shaders.Pixel, n), blurred: make([]shaders.Pixel, n), edges: make([]float32, n),
	}
	radius := len(weights) - 1
	maps := []vkomp.Arg{
		vkomp.To(p.original), vkomp.To(weights), vkomp.From(p.grey), vkomp.From(p.mixed),
		vkomp.From(p.rows), vkomp.From(p.blurred), vkomp.From(p.edges),
	}
	mix := shaders.Mix{Original: 0.5, Blurred: 0.5, Edges: -0.25}
	b.region(maps, func(ctx context.Context) {
		for _, t := range tiles {
			original, grey, rows := shaders.Rows(p.original, t), shaders.Rows(p.grey, t), shaders.Rows(p.rows, t)
			b.deferred(ctx, []vkomp.Depend{vkomp.In(original), vkomp.Out(grey)})(
				shaders.GrayscaleTarget(k.grayscale, original, grey))
			b.deferred(ctx, []vkomp.Depend{vkomp.In(original), vkomp.Out(rows)})(
				shaders.BlurRowsTarget(k.blurRows, t, weights, original, rows))
		}
		for _, t := range tiles {
			blurred := shaders.Rows(p.blurred, t)
			depend := reaching([]vkomp.Depend{vkomp.Out(blurred)}, tiles, t.Grow(radius), p.rows, vkomp.In)
			b.deferred(ctx, depend)(
				shaders.BlurColumnsTarget(k.blurColumns, t, weights, shaders.Rows(p.rows, t.Grow(radius)), blurred))
		}
		for _, t := range tiles {
			edges := shaders.Rows(p.edges, t)
			depend := reaching([]vkomp.Depend{vkomp.Out(edges)}, tiles, t.Grow(1), p.blurred, vkomp.In)
			b.deferred(ctx, depend)(
				shaders.SobelTarget(k.sobel, t, shaders.Rows(p.blurred, t.Grow(1)), edges))
		}
		for _, t := range tiles {
			original, mixed := shaders.Rows(p.original, t), shaders.Rows(p.mixed, t)
			blurred, edges := shaders.Rows(p.blurred, t), shaders.Rows(p.edges, t)
			b.deferred(ctx, []vkomp.Depend{vkomp.In(original), vkomp.In(blurred), vkomp.In(edges), vkomp.Out(mixed)})(
				shaders.BlendTarget(k.blend, mix, original, blurred, edges, mixed))
		}
	})
	return p
}

func randomImage(random *rand.Rand, whole shaders.Tile) []uint32 {
	image := make([]uint32, whole.Width*whole.Height)
	for i := range image {
		image[i] = random.Uint32()
	}
	return image
}

func TestImageKernelsOnTheDeviceAgreeWithTheHost(t *testing.T) {
	for name, option := range map[string]func(*vkomp.Options){
		"default":             func(*vkomp.Options) {},
		"staging":             vktest.Staging,
		"no push descriptors": func(o *vkomp.Options) { o.NoPushDescriptors = true },
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, option)
			k := b.imageKernels()
			random := rand.New(rand.NewPCG(3, 5))
			for _, c := range []struct {
				whole  shaders.Tile
				radius int
			}{
				{shaders.Whole(1, 1), 3},
				{shaders.Whole(1, 13), 2},
				{shaders.Whole(13, 1), 2},
				{shaders.Whole(5, 4), 0},
				{shaders.Whole(7, 5), 9},
				{shaders.Whole(31, 37), 3},
				{shaders.Whole(33, 41), 5},
				{shaders.Whole(129, 67), 4},
			} {
				weights, err := shaders.GaussianWeights(0.5+float64(c.radius)/3, c.radius)
				if err != nil {
					t.Fatal(err)
				}
				original := randomImage(random, c.whole)
				tiles := cut(random, c.whole)
				got := b.draw(k, tiles, weights, original)
				want := b.onHost().draw(k, []shaders.Tile{c.whole}, weights, original)

				for i := range want.grey {
					if got.grey[i] != want.grey[i] {
						t.Fatalf("%v: grey pixel %d is %#08x, want %#08x", c, i, got.grey[i], want.grey[i])
					}
				}
				// A millionth of the largest value that each can have.
				near(t, "rows", flat(got.rows), flat(want.rows), 1e-6*255)
				near(t, "blurred", flat(got.blurred), flat(want.blurred), 1e-6*255)
				near(t, "edges", got.edges, want.edges, 1e-6*255*4*math.Sqrt2)
				for i := range want.mixed {
					sameBytes(t, i, got.mixed[i], want.mixed[i])
				}
			}
		})
	}
}

// sameBytes lets colours differ by one, since values that differ by a
// millionth may lie on either side of a half; alpha is kept.
func sameBytes(t testing.TB, i int, got, want uint32) {
	t.Helper()
	for shift := 0; shift < 32; shift += 8 {
		g, w := int(got>>shift&0xff), int(want>>shift&0xff)
		if d := g - w; d < -1 || d > 1 || d != 0 && shift == 24 {
			t.Fatalf("pixel %d is %#08x, want %#08x", i, got, want)
		}
	}
}

func TestBlendOnTheDeviceRoundsHalvesToEvenAndClamps(t *testing.T) {
	b := open(t)
	k := b.kernel(shaders.Blend)
	// Every quarter from −2 to 257.75 as an edge over black.
	const n = 4 * 260
	original, blurred := make([]uint32, n), make([]shaders.Pixel, n)
	edges, mixed := make([]float32, n), make([]uint32, n)
	for i := range edges {
		edges[i] = float32(i)/4 - 2
		original[i] = uint32(i) << 24
	}
	target, err := shaders.BlendTarget(k, shaders.Mix{Original: 1, Blurred: 1, Edges: 1}, original, blurred, edges, mixed)
	b.launch(t.Context(), target, err)
	for i, got := range mixed {
		v := uint32(min(max(math.RoundToEven(float64(i)/4-2), 0), 255))
		if want := uint32(i)<<24 | v*0x010101; got != want {
			t.Fatalf("%v over %#08x becomes %#08x, want %#08x", edges[i], original[i], got, want)
		}
	}
}

func TestPointwiseKernelsOnTheDeviceWorkInPlace(t *testing.T) {
	b := open(t)
	grayscale, blend := b.kernel(shaders.Grayscale), b.kernel(shaders.Blend)
	pixels := []uint32{0x80ff0000, 0x8000ff00, 0x800000ff}
	target, err := shaders.GrayscaleTarget(grayscale, pixels, pixels)
	b.launch(t.Context(), target, err)
	if pixels[0] != 0x80121212 || pixels[1] != 0x80b6b6b6 || pixels[2] != 0x80363636 {
		t.Errorf("grey: %#08x", pixels)
	}
	target, err = shaders.BlendTarget(blend, shaders.Mix{Original: 1, Edges: 1}, pixels, make([]shaders.Pixel, 3), []float32{1, 2, 3}, pixels)
	b.launch(t.Context(), target, err)
	if pixels[0] != 0x80131313 || pixels[1] != 0x80b8b8b8 || pixels[2] != 0x80393939 {
		t.Errorf("mixed: %#08x", pixels)
	}
}

// A kernel writes its tile and nothing beside it, wherever the tile lies.
func TestKernelsOnTheDeviceKeepToTheirTile(t *testing.T) {
	b := open(t)
	k := b.imageKernels()
	heat := b.kernel(shaders.Heat)
	whole := shaders.Whole(35, 23)
	n := whole.Width * whole.Height
	random := rand.New(rand.NewPCG(3, 6))
	weights := []float32{0.5, 0.25}
	const mark, markBits = -1.0, 0xdeadbeef
	for range 10 {
		tile := whole
		tile.Y0 = random.IntN(whole.Height)
		tile.Y1 = tile.Y0 + 1 + random.IntN(whole.Height-tile.Y0)
		original := randomImage(random, whole)
		grey, rows, blurred, edges, next := make([]uint32, n), make([]shaders.Pixel, n), make([]shaders.Pixel, n), make([]float32, n), make([]float32, n)
		for i := range n {
			grey[i], edges[i], next[i] = markBits, mark, mark
			rows[i] = shaders.Pixel{mark, mark, mark, mark}
			blurred[i] = rows[i]
		}
		// The stencils read their own originals, so that no kernel waits.
		pixels, grid := make([]shaders.Pixel, n), make([]float32, n)
		maps := []vkomp.Arg{
			vkomp.To(original), vkomp.To(weights), vkomp.To(pixels), vkomp.To(grid),
			vkomp.ToFrom(grey), vkomp.ToFrom(rows), vkomp.ToFrom(blurred), vkomp.ToFrom(edges), vkomp.ToFrom(next),
		}
		b.region(maps, func(ctx context.Context) {
			run := b.deferred(ctx, nil)
			run(shaders.GrayscaleTarget(k.grayscale, shaders.Rows(original, tile), shaders.Rows(grey, tile)))
			run(shaders.BlurRowsTarget(k.blurRows, tile, weights, shaders.Rows(original, tile), shaders.Rows(rows, tile)))
			run(shaders.BlurColumnsTarget(k.blurColumns, tile, weights, shaders.Rows(pixels, tile.Grow(1)), shaders.Rows(blurred, tile)))
			run(shaders.SobelTarget(k.sobel, tile, shaders.Rows(pixels, tile.Grow(1)), shaders.Rows(edges, tile)))
			run(shaders.HeatTarget(heat, tile, 0.2, shaders.Rows(grid, tile.Grow(1)), shaders.Rows(next, tile)))
		})
		for i := range n {
			inside := i >= tile.Y0*whole.Width && i < tile.Y1*whole.Width
			for name, written := range map[string]bool{
				"grey":    grey[i] != markBits,
				"rows":    rows[i] != shaders.Pixel{mark, mark, mark, mark},
				"blurred": blurred[i] != shaders.Pixel{mark, mark, mark, mark},
				"edges":   edges[i] != mark,
				"heat":    next[i] != mark,
			} {
				if written != inside {
					t.Fatalf("%s: rows %d to %d: element %d written: %v", name, tile.Y0, tile.Y1, i, written)
				}
			}
		}
	}
}
