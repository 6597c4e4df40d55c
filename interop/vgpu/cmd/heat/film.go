package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"image"
	"time"
	"unsafe"

	"github.com/goki/vgpu/vgpu"
	"github.com/goki/vulkan"
	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	adapter "github.com/vkomp/vkomp/interop/vgpu"
	"github.com/vkomp/vkomp/shaders"
)

//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o frame_vert.spv frame.vert
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o frame_frag.spv frame.frag

//go:embed frame_vert.spv
var vertexShader []byte

//go:embed frame_frag.spv
var fragmentShader []byte

// heatAlpha is the share of its heat that a cell gives to each neighbour in a step.
const heatAlpha = 0.24

// film is a simulation of heat that spreads over a plate, with a cell for each pixel and a
// number of steps between two frames.
type film struct {
	width, height int
	frames, steps int

	// For tests. unordered leaves out the constructs that order simulation and drawing; begin
	// is called with the plate before the loop, and end after it.
	unordered bool
	begin     func(ctx context.Context, plate []float32) error
	end       func()
}

// stats describes what happened in the loop.
type stats struct {
	// copies is the number of copies by the runtime.
	copies uint64
	// handing is the time in which the host submitted everything, and finishing the time that
	// the device needed after that.
	handing, finishing time.Duration
}

// plate returns the temperatures at the start, from 0 to 1: the upper edge and a disc are hot.
func (f *film) plate() []float32 {
	cells := make([]float32, f.width*f.height)
	radius := min(f.width, f.height) / 4
	for y := range f.height {
		for x := range f.width {
			dx, dy := x-f.width/2, y-f.height/2
			if y == 0 || dx*dx+dy*dy < radius*radius {
				cells[y*f.width+x] = 1
			}
		}
	}
	return cells
}

// grids are the plate and the memory for its next step, which change places after each step.
// Each has the index of the descriptor set that binds it.
type grids struct {
	now, next       []float32
	nowSet, nextSet int
}

func (g *grids) swap() { g.now, g.next, g.nowSet, g.nextSet = g.next, g.now, g.nextSet, g.nowSet }

// shoot simulates on the device and draws there. It returns the frames, 4 bytes a pixel, one
// frame after the other. The host generates all work before it waits for any of it.
func (f *film) shoot(ctx context.Context, rt *vkomp.Runtime) (frames []byte, s stats, err error) {
	kernel, err := rt.NewKernel(shaders.Heat)
	if err != nil {
		return nil, s, err
	}
	g := &grids{now: f.plate(), next: make([]float32, f.width*f.height), nextSet: 1}
	frames = make([]byte, f.frames*f.frameSize())

	// #pragma omp target data map(to: now) map(alloc: next) map(from: frames)
	region := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(g.now), vkomp.Alloc(g.next), vkomp.From(frames)}}
	err = rt.TargetData(ctx, region, func(ctx context.Context) error {
		s, err = f.inside(ctx, rt, kernel, g, frames)
		return err
	})
	return frames, s, err
}

// inside is the body of the data region.
func (f *film) inside(ctx context.Context, rt *vkomp.Runtime, kernel vkomp.Kernel, g *grids, frames []byte) (s stats, err error) {
	// #pragma omp interop init(target, targetsync: object)
	var object interop.Object
	init := vkomp.InteropInit{Object: &object, Types: interop.TypeTarget | interop.TypeTargetSync}
	if err := rt.Interop(ctx, vkomp.Interop{Init: []vkomp.InteropInit{init}}); err != nil {
		return s, err
	}
	defer func() {
		err = errors.Join(err, rt.Interop(context.WithoutCancel(ctx), vkomp.Interop{Destroy: []*interop.Object{&object}}))
	}()
	if object == interop.None {
		return s, errors.New("the device is none of Vulkan's: see the log")
	}

	device, err := adapter.Open(object)
	if err != nil {
		return s, err
	}
	// The device must be closed before the object is destroyed.
	defer func() { err = errors.Join(err, device.Close()) }()
	p, err := f.projector(rt, device, object, g, frames)
	if err != nil {
		return s, err
	}
	if f.begin != nil {
		if err := f.begin(ctx, g.now); err != nil {
			return s, err
		}
	}
	before, begin := rt.Stats(), time.Now()
	err = f.loop(ctx, rt, kernel, g, frames, object, p)
	s.handing = time.Since(begin)
	if f.end != nil {
		f.end()
	}
	// Even after an error, tasks must have ended before what they use goes away.
	err = errors.Join(err, rt.Taskwait(context.WithoutCancel(ctx)))
	s.finishing = time.Since(begin) - s.handing
	s.copies = rt.Stats().Copies - before.Copies
	return s, err
}

// loop generates all work.
func (f *film) loop(ctx context.Context, rt *vkomp.Runtime, kernel vkomp.Kernel, g *grids, frames []byte, object interop.Object, p *projector) error {
	whole := shaders.Whole(f.width, f.height)
	for i := range f.frames {
		for range f.steps {
			// #pragma omp target nowait depend(in: now) depend(out: next)
			step, err := shaders.HeatTarget(kernel, whole, heatAlpha, g.now, g.next)
			if err != nil {
				return err
			}
			step.Depend, step.NoWait = []vkomp.Depend{vkomp.In(g.now), vkomp.Out(g.next)}, true
			if err := rt.Target(ctx, step); err != nil {
				return err
			}
			g.swap()
		}
		// vgpu draws behind the steps, and later tasks that write the same cells come after it:
		//
		//	#pragma omp interop use(object) nowait depend(in: now) depend(out: frame)
		//	... vgpu ...
		//	#pragma omp interop use(object) nowait depend(in: now) depend(out: frame)
		frame := frames[i*f.frameSize():][:f.frameSize()]
		use := vkomp.Interop{
			Use: []interop.Object{object}, NoWait: true, Depend: []vkomp.Depend{vkomp.In(g.now), vkomp.Out(frame)},
		}
		if !f.unordered {
			if err := rt.Interop(ctx, use); err != nil {
				return err
			}
		}
		if err := p.show(ctx, i, g.nowSet); err != nil {
			return err
		}
		if i < f.frames-1 && f.unordered {
			continue
		}
		if err := rt.Interop(ctx, use); err != nil {
			return err
		}
	}
	return nil
}

func (f *film) frameSize() int { return 4 * f.width * f.height }

// projector draws plates with vgpu.
type projector struct {
	device   *adapter.Device
	system   *vgpu.System
	pipeline *vgpu.Pipeline
	width    *vgpu.Var
	screen   *vgpu.RenderFrame
	film     *film
	frames   interop.Buffer
}

// projector returns what draws the grids: into a framebuffer without a window, from which the
// picture is copied to the frames. All the memory is the runtime's.
func (f *film) projector(rt *vkomp.Runtime, d *adapter.Device, object interop.Object, g *grids, frames []byte) (*projector, error) {
	p := &projector{device: d, film: f}
	var err error
	if p.frames, err = rt.InteropBuffer(object, vkomp.HostPtr(frames), 0); err != nil {
		return nil, err
	}
	if p.screen, err = d.NewRenderFrame(image.Pt(f.width, f.height), 1); err != nil {
		return nil, err
	}
	if p.system, err = d.NewGraphicsSystem("heat"); err != nil {
		return nil, err
	}
	err = d.Do(func() error {
		s := p.system
		p.pipeline = s.NewPipeline("plate")
		s.ConfigRenderNonSurface(&p.screen.Format, vgpu.UndefType)
		p.screen.SetRender(&s.Render)
		s.SetRasterization(vulkan.PolygonModeFill, vulkan.CullModeNone, vulkan.FrontFaceCounterClockwise, 1)
		s.SetColorBlend(false)
		p.pipeline.AddShaderCode("vertex", vgpu.VertexShader, vertexShader)
		p.pipeline.AddShaderCode("fragment", vgpu.FragmentShader, fragmentShader)
		p.width = s.Vars().AddPushSet().Add("width", vgpu.Uint32, 1, vgpu.Push, vgpu.FragmentShader)
		set := s.Vars().AddSet()
		set.Add("plate", vgpu.Float32, 1, vgpu.Storage, vgpu.FragmentShader)
		// There is a descriptor set for each of the two grids.
		s.Vars().NDescs = 2
		set.ConfigVals(1)
		s.Config()
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, grid := range [][]float32{g.now, g.next} {
		b, err := rt.InteropBuffer(object, vkomp.HostPtr(grid), 0)
		if err != nil {
			return nil, err
		}
		if err := d.Bind(p.system, i, 0, "plate", b); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// show draws the grid that the descriptor set binds, and has the picture copied to frame i. It
// returns when the commands are submitted, and does not wait for them.
func (p *projector) show(ctx context.Context, i, descriptors int) error {
	var commands vulkan.CommandBuffer
	err := p.device.Do(func() error {
		commands = p.system.NewCmdBuff(fmt.Sprint("frame ", i))
		screen := p.screen.Frames[0]
		p.system.ResetBeginRenderPass(commands, screen, descriptors)
		p.pipeline.BindPipeline(commands)
		width := uint32(p.film.width)
		p.pipeline.Push(commands, p.width, unsafe.Pointer(&width))
		p.pipeline.Draw(commands, 3, 1, 0, 0)
		p.system.EndRenderPass(commands)
		p.develop(commands, screen, i)
		vgpu.CmdEnd(commands)
		return nil
	})
	if err != nil {
		return err
	}
	return p.device.Submit(ctx, commands)
}

// develop records a copy of the framebuffer to frame i.
func (p *projector) develop(commands vulkan.CommandBuffer, screen *vgpu.Framebuffer, i int) {
	vulkan.CmdPipelineBarrier(commands, vulkan.PipelineStageFlags(vulkan.PipelineStageAllCommandsBit),
		vulkan.PipelineStageFlags(vulkan.PipelineStageTransferBit), 0, 1, []vulkan.MemoryBarrier{{
			SType:         vulkan.StructureTypeMemoryBarrier,
			SrcAccessMask: vulkan.AccessFlags(vulkan.AccessColorAttachmentWriteBit),
			DstAccessMask: vulkan.AccessFlags(vulkan.AccessTransferReadBit),
		}}, 0, nil, 0, nil)
	// A render pass of vgpu leaves a framebuffer without a window in the layout for copies from
	// it.
	vulkan.CmdCopyImageToBuffer(commands, screen.Image.Image, vulkan.ImageLayoutTransferSrcOptimal,
		*(*vulkan.Buffer)(unsafe.Pointer(&p.frames.Buffer)), 1, []vulkan.BufferImageCopy{{
			BufferOffset:     vulkan.DeviceSize(p.frames.Offset) + vulkan.DeviceSize(i*p.film.frameSize()),
			ImageSubresource: vulkan.ImageSubresourceLayers{AspectMask: vulkan.ImageAspectFlags(vulkan.ImageAspectColorBit), LayerCount: 1},
			ImageExtent:      vulkan.Extent3D{Width: uint32(p.film.width), Height: uint32(p.film.height), Depth: 1},
		}})
}
