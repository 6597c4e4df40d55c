package vgpu

import (
	"fmt"
	"image"

	"github.com/goki/vgpu/vgpu"
	"github.com/goki/vulkan"
	"github.com/vkomp/vkomp/interop"
)

// NewGraphicsSystem returns a system of vgpu's, to be configured and used inside [Device.Do].
// The Device destroys it when it is closed; the program may do so before, with System's Destroy
// inside Do, when its commands have run. NewGraphicsSystem returns ErrObject if the family of
// the object's queue does not support graphics.
func (d *Device) NewGraphicsSystem(name string) (*vgpu.System, error) {
	return d.newSystem(name, false)
}

// NewComputeSystem is NewGraphicsSystem for a system that computes. vgpu's own constructor
// would make a device.
func (d *Device) NewComputeSystem(name string) (*vgpu.System, error) {
	return d.newSystem(name, true)
}

func (d *Device) newSystem(name string, compute bool) (*vgpu.System, error) {
	s := &vgpu.System{}
	err := d.do(func() error {
		if err := d.mustDraw(); err != nil && !compute {
			return err
		}
		err := guard(func() error {
			err := s.InitGraphics(d.GPU, name, &d.Device)
			if compute {
				s.Compute = true
				s.NewFence("ComputeWait")
			}
			return err
		})
		if err != nil {
			// vgpu has made pools and a fence so far. System's Destroy expects more than these.
			s.CmdPool.Destroy(d.Device.Device)
			s.Mem.CmdPool.Destroy(d.Device.Device)
			return err
		}
		d.systems = append(d.systems, s)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("vgpu: system %q: %w", name, err)
	}
	return s, nil
}

// NewRenderFrame returns count framebuffers that belong to no window, of that size in pixels,
// with 8 bits a channel, linear, and 4 samples a pixel: with one sample vgpu would leave an
// image in a layout for windows. A system renders to them after System.ConfigRenderNonSurface
// with the frame's Format, and RenderFrame.SetRender with the system's Render; the images are
// in VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL afterwards. The Device destroys them as it does
// systems.
func (d *Device) NewRenderFrame(size image.Point, count int) (*vgpu.RenderFrame, error) {
	f := &vgpu.RenderFrame{}
	err := d.do(func() error {
		if size.X < 1 || size.Y < 1 || count < 1 {
			return fmt.Errorf("size %v, %d framebuffers: want 1 at least", size, count)
		}
		if err := d.mustDraw(); err != nil {
			return err
		}
		f.Defaults()
		f.Format.SetSize(size.X, size.Y)
		f.NFrames = count
		f.GPU, f.Device = d.GPU, d.Device
		err := guard(func() error {
			// This does what RenderFrame's Config does, but keeps each framebuffer before it is
			// made, so that one that fails half way is destroyed.
			device := f.Device.Device
			f.ImageAcquired, f.RenderDone, f.RenderFence = vgpu.NewSemaphore(device), vgpu.NewSemaphore(device), vgpu.NewFence(device)
			for range count {
				b := &vgpu.Framebuffer{}
				f.Frames = append(f.Frames, b)
				b.ConfigRenderImage(f.GPU, device, f.Format)
			}
			return nil
		})
		if err != nil {
			f.Destroy()
			return err
		}
		d.frames = append(d.frames, f)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("vgpu: render frame: %w", err)
	}
	return f, nil
}

// Bind makes a storage variable of a configured system stand for memory of vkomp's from now on:
// descriptor set index descriptors, of Vars.NDescs, binds b to it. The memory that vgpu has for
// the variable is not used; one element of it is enough. b has to begin at a multiple of the device's
// minStorageBufferOffsetAlignment, 256 bytes at most. No command that uses the descriptors
// may be recorded or pending, and the memory has to stay until those that do have run.
func (d *Device) Bind(s *vgpu.System, descriptors, set int, variable string, b interop.Buffer) error {
	err := d.do(func() error {
		vars := s.Vars()
		v, err := vars.VarByNameTry(set, variable)
		switch {
		case err != nil:
			return err
		case v.Role != vgpu.Storage:
			return fmt.Errorf("it is a %v: want Storage", v.Role)
		case len(vars.VkDescSets) == 0:
			return fmt.Errorf("the system is not configured")
		case descriptors < 0 || descriptors >= len(vars.VkDescSets):
			return fmt.Errorf("descriptor set index %d: there are %d", descriptors, len(vars.VkDescSets))
		case b.Buffer == 0 || b.Size == 0:
			return fmt.Errorf("buffer %#x, %d bytes: there is nothing to bind", uint64(b.Buffer), b.Size)
		}
		limits := &d.GPU.GPUProps.Limits
		if align := uint64(limits.MinStorageBufferOffsetAlignment); b.Offset%align != 0 {
			return fmt.Errorf("it begins %d bytes into its buffer, which is no multiple of %d (minStorageBufferOffsetAlignment)", b.Offset, align)
		}
		if b.Size > uint64(limits.MaxStorageBufferRange) {
			return fmt.Errorf("%d bytes: the device binds at most %d (maxStorageBufferRange)", b.Size, limits.MaxStorageBufferRange)
		}
		kind := v.Role.VkDescriptor()
		if vars.StaticVars {
			kind = v.Role.VkDescriptorStatic()
		} else {
			vars.DynOffs[descriptors][v.DynOffIdx] = 0
		}
		vulkan.UpdateDescriptorSets(d.Device.Device, 1, []vulkan.WriteDescriptorSet{{
			SType:           vulkan.StructureTypeWriteDescriptorSet,
			DstSet:          vars.VkDescSets[descriptors][set],
			DstBinding:      uint32(v.BindLoc),
			DescriptorCount: 1,
			DescriptorType:  kind,
			PBufferInfo: []vulkan.DescriptorBufferInfo{{
				Buffer: handle[vulkan.Buffer](uint64(b.Buffer)), Offset: vulkan.DeviceSize(b.Offset), Range: vulkan.DeviceSize(b.Size),
			}},
		}}, 0, nil)
		return nil
	})
	if err != nil {
		return fmt.Errorf("vgpu: bind variable %q of set %d: %w", variable, set, err)
	}
	return nil
}
