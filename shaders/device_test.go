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

// fixture is a runtime and the device on which its regions run.
type fixture struct {
	testing.TB
	rt     *vkomp.Runtime
	device vkomp.Device
}

// open opens a runtime with a real device.
func open(t testing.TB, opts ...func(*vkomp.Options)) *fixture {
	t.Helper()
	rt := vktest.Open(t, opts...)
	device := rt.DefaultDevice(context.Background())
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

// launch runs a region and waits for it.
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

// deferred launches a region as a deferred task with dependences.
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

// near compares with a tolerance, in the unit of the elements.
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

// sum reduces x[from:] to one value, as a chain of deferred regions whose
// partials lie side by side in one slice.
func (b *fixture) sum(k vkomp.Kernel, x []float32, from int) float32 {
	b.Helper()
	passes := [][]float32{x[from:]}
	scratch := make([]float32, len(x))
	next := 1
	for n := len(x) - from; n > 1; {
		n = shaders.ReducePartials(n)
		passes = append(passes, scratch[next:next+n])
		next += n
	}
	b.region([]vkomp.Arg{vkomp.To(x), vkomp.ToFrom(scratch)}, func(ctx context.Context) {
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

// reaching appends a dependence for each tile of the image that overlaps t.
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
