package main

import (
	"embed"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/cmd/vkomp-demo/rawvulkan"
	"github.com/vkomp/vkomp/shaders"
)

//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o kernels/bench/empty.spv kernels/bench/empty.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o kernels/bench/inc.spv kernels/bench/inc.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o kernels/bench/add.spv kernels/bench/add.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o kernels/bench/stencil.spv kernels/bench/stencil.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o kernels/bench/stencilstep.spv kernels/bench/stencilstep.comp

//go:embed kernels/bench/*.spv
var benchModules embed.FS

// benchKernel is a kernel of both sides, of one module.
type benchKernel struct {
	source vkomp.KernelSource
	vkomp  vkomp.Kernel
	raw    rawvulkan.Kernel
}

type benchKernels struct{ empty, inc, add, stencil, stencilStep, saxpy benchKernel }

func (b *bench) makeKernels() error {
	for _, k := range []struct {
		kernel        *benchKernel
		name          string
		buffers, push int
	}{
		{&b.kernels.empty, "empty", 0, 0},
		{&b.kernels.inc, "inc", 1, 1},
		{&b.kernels.add, "add", 2, 1},
		{&b.kernels.stencil, "stencil", 4, 0},
		{&b.kernels.stencilStep, "stencilstep", 2, 0},
		// Behind its arguments it is pushed what vkomp adds for slices at odd addresses.
		{&b.kernels.saxpy, shaders.Saxpy.Name, 2, 4},
	} {
		module := shaders.Saxpy.SPIRV
		if k.name != shaders.Saxpy.Name {
			var err error
			if module, err = benchModules.ReadFile("kernels/bench/" + k.name + ".spv"); err != nil {
				return err
			}
		}
		var err error
		k.kernel.source = vkomp.KernelSource{Name: k.name, SPIRV: module}
		if k.kernel.vkomp, err = b.rt.NewKernel(k.kernel.source); err != nil {
			return err
		}
		if k.kernel.raw, err = b.raw.NewKernel(k.name, module, k.buffers, k.push); err != nil {
			return err
		}
	}
	return nil
}

// launch is plain Vulkan's launch of one workgroup of a kernel.
func (k benchKernel) launch(push []uint32, buffers ...rawvulkan.Range) rawvulkan.Launch {
	return rawvulkan.Launch{Kernel: k.raw, Groups: 1, Buffers: buffers, Push: push}
}

// withBarrier puts a barrier behind a launch.
func withBarrier(l rawvulkan.Launch) rawvulkan.Launch {
	l.Barrier = true
	return l
}

// rawWords makes a buffer of so many words, which are 0.
func (b *bench) rawWords(words int) (rawvulkan.Buffer, error) { return b.raw.NewBuffer(4 * words) }
