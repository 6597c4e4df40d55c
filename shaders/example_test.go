package shaders_test

import (
	"context"
	"fmt"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
)

// onInitialDevice opens a runtime without non-host devices, as
// OMP_TARGET_OFFLOAD=disabled does, so that the examples need no driver.
func onInitialDevice() (*vkomp.Runtime, error) {
	return vkomp.Open(vkomp.Options{LookupEnv: func(name string) (string, bool) {
		return "disabled", name == "OMP_TARGET_OFFLOAD"
	}})
}

// run makes a kernel on the initial device and launches the region made with it.
func run(source vkomp.KernelSource, region func(vkomp.Kernel) (vkomp.Target, error)) error {
	rt, err := onInitialDevice()
	if err != nil {
		return err
	}
	defer rt.Close()
	k, err := rt.NewKernel(source)
	if err != nil {
		return err
	}
	target, err := region(k)
	if err != nil {
		return err
	}
	return rt.Target(context.Background(), target)
}

func ExampleSaxpyTarget() {
	rt, err := onInitialDevice()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close()
	k, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		fmt.Println(err)
		return
	}
	x, y := []float32{1, 2, 3}, []float32{10, 20, 30}
	target, err := shaders.SaxpyTarget(k, 2, x, y)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := rt.Target(context.Background(), target); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(y)
	// Output: [12 24 36]
}

func ExampleReduceTarget() {
	rt, err := onInitialDevice()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close()
	k, err := rt.NewKernel(shaders.Reduce)
	if err != nil {
		fmt.Println(err)
		return
	}
	x := make([]float32, 5000)
	for i := range x {
		x[i] = 2
	}
	for len(x) > 1 {
		partials := make([]float32, shaders.ReducePartials(len(x)))
		target, err := shaders.ReduceTarget(k, x, partials)
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := rt.Target(context.Background(), target); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(partials)
		x = partials
	}
	// Output:
	// [4096 4096 1808]
	// [10000]
}

func ExampleHeatTarget() {
	grid := shaders.Whole(4, 3)
	now := []float32{
		0, 0, 0, 0,
		0, 8, 0, 4,
		0, 0, 0, 0,
	}
	next := make([]float32, len(now))
	err := run(shaders.Heat, func(k vkomp.Kernel) (vkomp.Target, error) {
		return shaders.HeatTarget(k, grid, 0.25, now, next)
	})
	fmt.Println(next, err)
	// Output: [0 0 0 0 0 0 3 4 0 0 0 0] <nil>
}

func ExampleGrayscaleTarget() {
	colours := []uint32{0xff0000ff, 0xff00ff00, 0xffff0000} // red, green, blue
	grey := make([]uint32, len(colours))
	err := run(shaders.Grayscale, func(k vkomp.Kernel) (vkomp.Target, error) {
		return shaders.GrayscaleTarget(k, colours, grey)
	})
	fmt.Printf("%#x %v\n", grey, err)
	// Output: [0xff363636 0xffb6b6b6 0xff121212] <nil>
}

func ExampleBlurRowsTarget() {
	image := shaders.Whole(4, 1)
	source := []uint32{0, 0, 64, 0} // a red dot
	blurred := make([]shaders.Pixel, len(source))
	err := run(shaders.BlurRows, func(k vkomp.Kernel) (vkomp.Target, error) {
		return shaders.BlurRowsTarget(k, image, []float32{0.5, 0.25}, source, blurred)
	})
	fmt.Println(blurred, err)
	// Output: [[0 0 0 0] [16 0 0 0] [32 0 0 0] [16 0 0 0]] <nil>
}

// The lower half of an image: its source is one row more.
func ExampleBlurColumnsTarget() {
	tile := shaders.Tile{Width: 1, Height: 4, Y0: 2, Y1: 4}
	source := []shaders.Pixel{{0}, {64}, {0}, {8}}
	weights := []float32{0.5, 0.25}
	blurred := make([]shaders.Pixel, len(source))
	err := run(shaders.BlurColumns, func(k vkomp.Kernel) (vkomp.Target, error) {
		halo := tile.Grow(len(weights) - 1)
		return shaders.BlurColumnsTarget(k, tile, weights, shaders.Rows(source, halo), shaders.Rows(blurred, tile))
	})
	fmt.Println(blurred, err)
	// Output: [[0 0 0 0] [0 0 0 0] [18 0 0 0] [6 0 0 0]] <nil>
}

func ExampleSobelTarget() {
	image := shaders.Whole(4, 1)
	source := []shaders.Pixel{{}, {}, {255, 255, 255, 255}, {255, 255, 255, 255}}
	edges := make([]float32, len(source))
	err := run(shaders.Sobel, func(k vkomp.Kernel) (vkomp.Target, error) {
		return shaders.SobelTarget(k, image, source, edges)
	})
	fmt.Printf("%.0f %v\n", edges, err)
	// Output: [0 1020 1020 0] <nil>
}

// Half the image, half its blurred version, and dark edges.
func ExampleBlendTarget() {
	original := []uint32{0xff404040, 0xff808080}
	blurred := []shaders.Pixel{{0x50, 0x50, 0x50, 0xff}, {0x70, 0x70, 0x70, 0xff}}
	edges := []float32{8, 1000}
	mixed := make([]uint32, len(original))
	err := run(shaders.Blend, func(k vkomp.Kernel) (vkomp.Target, error) {
		return shaders.BlendTarget(k, shaders.Mix{Original: 0.5, Blurred: 0.5, Edges: -1}, original, blurred, edges, mixed)
	})
	fmt.Printf("%#x %v\n", mixed, err)
	// Output: [0xff404040 0xff000000] <nil>
}

func ExampleGaussianWeights() {
	weights, err := shaders.GaussianWeights(1, 3)
	fmt.Printf("%.4f %v\n", weights, err)
	// Output: [0.3991 0.2420 0.0540 0.0044] <nil>
}

func ExampleTile_Grow() {
	tile := shaders.Tile{Width: 640, Height: 480, Y0: 400, Y1: 480}
	halo := tile.Grow(3)
	fmt.Println(halo.Y0, halo.Y1)
	// Output: 397 480
}

func ExampleRows() {
	image := []int{0, 1, 2, 3, 4, 5}
	fmt.Println(shaders.Rows(image, shaders.Tile{Width: 2, Height: 3, Y0: 1, Y1: 3}))
	// Output: [2 3 4 5]
}

func ExampleReducePartials() {
	fmt.Println(shaders.ReducePartials(1_000_000), shaders.ReducePartials(489))
	// Output: 489 1
}

func ExampleWhole() {
	fmt.Printf("%+v\n", shaders.Whole(640, 480))
	// Output: {Width:640 Height:480 Y0:0 Y1:480}
}
