package shaders_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// pictures holds an image and the results of the image kernels on it.
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
	// A sub-slice of what is mapped, as the tiles are.
	lead := append([]float32{-1}, weights...)
	weights = lead[1:]
	maps := []vkomp.Arg{
		vkomp.To(p.original), vkomp.To(lead), vkomp.From(p.grey), vkomp.From(p.mixed),
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

// imageCase is an image and a radius to blur it with.
type imageCase struct {
	whole  shaders.Tile
	radius int
}

func TestImageKernelsOnTheDeviceAgreeWithTheHost(t *testing.T) {
	for name, option := range map[string]func(*vkomp.Options){
		"default":             func(*vkomp.Options) {},
		"staging":             vktest.Staging,
		"no push descriptors": func(o *vkomp.Options) { o.NoPushDescriptors = true },
	} {
		t.Run(name+", rows of whole alignment units", func(t *testing.T) {
			drawnAlike(t, open(t, option), []imageCase{
				{shaders.Whole(64, 1), 2},
				{shaders.Whole(64, 41), 5},
				{shaders.Whole(128, 67), 4},
			})
		})
		t.Run(name+", rows of any width", func(t *testing.T) {
			drawnAlike(t, open(t, option, vktest.NoSynchronizationChecks), []imageCase{
				{shaders.Whole(1, 1), 3},
				{shaders.Whole(1, 13), 2},
				{shaders.Whole(13, 1), 2},
				{shaders.Whole(5, 4), 0},
				{shaders.Whole(7, 5), 9},
				{shaders.Whole(31, 37), 3},
				{shaders.Whole(33, 41), 5},
				{shaders.Whole(129, 67), 4},
			})
		})
	}
}

// drawnAlike compares images drawn tile by tile on the device with images drawn
// whole on the host.
func drawnAlike(t *testing.T, b *fixture, cases []imageCase) {
	t.Helper()
	k := b.imageKernels()
	random := rand.New(rand.NewPCG(3, 5))
	for _, c := range cases {
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
}

func TestLargestBlurOnTheDeviceAgreesWithTheHost(t *testing.T) {
	const radius = 1<<15 - 1
	if _, err := shaders.GaussianWeights(1, radius+1); !errors.Is(err, vkomp.ErrInvalidArgument) {
		t.Errorf("a larger radius: error %v", err)
	}
	weights, err := shaders.GaussianWeights(radius, radius)
	if err != nil {
		t.Fatal(err)
	}
	b := open(t)
	rows, columns := b.kernel(shaders.BlurRows), b.kernel(shaders.BlurColumns)
	blur := func(b *fixture) (across, down []shaders.Pixel) {
		across, down = make([]shaders.Pixel, 3), make([]shaders.Pixel, 3)
		target, err := shaders.BlurRowsTarget(rows, shaders.Whole(3, 1), weights, []uint32{0xff, 0, 0x10}, across)
		b.launch(t.Context(), target, err)
		target, err = shaders.BlurColumnsTarget(columns, shaders.Whole(1, 3), weights, []shaders.Pixel{{255}, {0}, {16}}, down)
		b.launch(t.Context(), target, err)
		return across, down
	}
	across, down := blur(b)
	wantAcross, wantDown := blur(b.onHost())
	near(t, "rows", flat(across), flat(wantAcross), 1e-6*255)
	near(t, "columns", flat(down), flat(wantDown), 1e-6*255)
}

// sameBytes allows colours to differ by one, since float values that differ by a
// millionth may round differently; alpha must be the same.
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

// A kernel writes its tile and nothing else, wherever the tile lies.
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
