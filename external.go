package vkomp

import (
	"context"
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/vk"
)

// AllocExternal is [Device.Alloc] for memory that other VkDevices of the same driver and the
// same GPU can share, in this process or another: see [Device.ExportMemory]. It is
// ErrUnsupported if the device does not support VK_KHR_external_memory_fd.
func (d Device) AllocExternal(ctx context.Context, size int) (DevicePtr, error) {
	p, err := d.external(ctx, size, func(v *vk.Device, memoryType int) (vk.Block, error) {
		return v.CreateExportableBlock(uint64(size), memoryType)
	})
	if err != nil {
		return DevicePtr{}, fmt.Errorf("vkomp: alloc external: %w", err)
	}
	return p, nil
}

// ExportMemory returns a file descriptor of memory from [Device.AllocExternal], which the
// caller has to close. ImportMemory accepts it on another device of the same driver and the same
// GPU, and so does Vulkan (VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT, memory type
// [Device.ExternalMemoryType]). It is ErrInvalidArgument for memory that was imported.
func (d Device) ExportMemory(ctx context.Context, p DevicePtr) (fd int, err error) {
	fd, err = d.exportMemory(ctx, &p)
	if err != nil {
		return -1, fmt.Errorf("vkomp: export memory: %w", err)
	}
	return fd, nil
}

func (d Device) exportMemory(ctx context.Context, p *DevicePtr) (fd int, err error) {
	defer d.use().end()
	s, v, err := d.vulkanOf(ctx)
	if err != nil {
		return -1, err
	}
	if p.d != d.d {
		return -1, d.wrongDevice(p)
	}
	fd = -1
	err = s.Taken(p.p, func(b vk.Block) (err error) {
		fd, err = v.ExportBlock(b)
		return vulkanError(err)
	})
	return fd, err
}

// ImportMemory returns a pointer to the memory of a file descriptor from ExportMemory on
// another device; size must be the size with which it was allocated. The caller still owns
// fd. [Device.Free] frees the pointer and does not affect the exported memory.
//
// The devices must be of the same driver and the same GPU. A descriptor does not show where it comes
// from: a driver may take one of another driver, and find other bytes.
//
// Writes of one device are visible to the other only after a semaphore or a wait of the
// host that orders the two. vkomp does not transfer the memory to VK_QUEUE_FAMILY_EXTERNAL and
// back (Vulkan 1.3 §7.7.4), since it is not told when the other side begins: the memory is in
// buffers, of which no driver is known to need it.
func (d Device) ImportMemory(ctx context.Context, fd, size int) (DevicePtr, error) {
	p, err := d.external(ctx, size, func(v *vk.Device, memoryType int) (vk.Block, error) {
		return v.ImportBlockFd(fd, uint64(size), memoryType)
	})
	if err != nil {
		return DevicePtr{}, fmt.Errorf("vkomp: import memory of descriptor %d: %w", fd, err)
	}
	return p, nil
}

// ExternalMemoryType returns the index of the Vulkan memory type that AllocExternal and
// ImportMemory use. It is ErrUnsupported if the device does not support
// VK_KHR_external_memory_fd.
func (d Device) ExternalMemoryType(ctx context.Context) (int, error) {
	defer d.use().end()
	s, v, err := d.vulkanOf(ctx)
	if err != nil {
		return 0, fmt.Errorf("vkomp: external memory type: %w", err)
	}
	t, err := externalType(v, s)
	if err != nil {
		return 0, fmt.Errorf("vkomp: external memory type: %w", err)
	}
	return t, nil
}

// externalType returns the memory type of memory with a descriptor: the best for storage among
// those that a descriptor can have.
func externalType(v *vk.Device, s *sched.Scheduler) (int, error) {
	bits, err := v.ExportableMemoryTypes(1 << 20)
	if err != nil {
		return 0, vulkanError(err)
	}
	return s.StorageType(bits)
}

// external returns a pointer to a block that create makes of a memory type.
func (d Device) external(ctx context.Context, size int, create func(v *vk.Device, memoryType int) (vk.Block, error)) (DevicePtr, error) {
	defer d.use().end()
	s, v, err := d.vulkanOf(ctx)
	if err != nil {
		return DevicePtr{}, err
	}
	if size <= 0 {
		return DevicePtr{}, fmt.Errorf("%w: %d bytes", ErrInvalidArgument, size)
	}
	take := func() (DevicePtr, error) {
		p, err := s.Take(func() (vk.Block, error) {
			memoryType, err := externalType(v, s)
			if err != nil {
				return vk.Block{}, err
			}
			b, err := create(v, memoryType)
			return b, vulkanError(err)
		})
		if err != nil {
			return DevicePtr{}, err
		}
		return DevicePtr{d: d.d, p: p}, nil
	}
	if events := d.d.rt.events.Load(); events != nil {
		return d.allocateObserved(ctx, events, uint64(size), take)
	}
	return take()
}

// vulkanError returns an error of package vk as one that matches an error of this package too.
func vulkanError(err error) error {
	switch {
	case errors.Is(err, vk.ErrInvalid):
		return fmt.Errorf("%w: %w", ErrInvalidArgument, err)
	case errors.Is(err, vk.ErrClosed):
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return err
}

// vulkanOf returns the scheduler and the vk.Device of a Vulkan device, which it opens if
// need be.
func (d Device) vulkanOf(ctx context.Context) (*sched.Scheduler, *vk.Device, error) {
	if _, err := d.construct(ctx); err != nil {
		return nil, nil, err
	}
	return d.vulkan()
}

// vulkan is vulkanOf for a caller that has checked that the runtime is usable.
func (d Device) vulkan() (*sched.Scheduler, *vk.Device, error) {
	if d.IsInitial() {
		return nil, nil, fmt.Errorf("%w: the initial device has no Vulkan", ErrInvalidDevice)
	}
	s, err := d.d.open()
	if err != nil {
		return nil, nil, err
	}
	d.d.mu.Lock()
	defer d.d.mu.Unlock()
	if d.d.vulkan == nil {
		return nil, nil, ErrClosed
	}
	return s, d.d.vulkan, nil
}
