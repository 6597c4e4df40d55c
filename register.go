package vkomp

import (
	"context"
	"fmt"

	"github.com/vkomp/vkomp/vk"
)

// ForeignBuffer describes a VkBuffer that the program has created on a device's VkDevice and
// bound to memory, for [Device.Register]. Vulkan has no query for how a buffer was created.
type ForeignBuffer struct {
	// Buffer is the VkBuffer, Memory the VkDeviceMemory that it is bound to.
	Buffer, Memory uint64
	// Size is at most VkBufferCreateInfo.size, in bytes.
	Size uint64

	// Usage is VkBufferCreateInfo.usage: VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, TRANSFER_SRC_BIT
	// and TRANSFER_DST_BIT are required. With SHADER_DEVICE_ADDRESS_BIT the memory must have
	// been allocated with VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT.
	Usage uint32

	// Exclusive says that sharingMode is VK_SHARING_MODE_EXCLUSIVE. Family is then the queue
	// family that owns the buffer or will first use it.
	Exclusive bool
	Family    uint32
	// Families are the queue families that share the buffer if it is not exclusive.
	Families []uint32
}

// Register returns a pointer to the whole of a VkBuffer that the program has created on the
// device's VkDevice, for [Device.AssociatePtr], IsDevicePtr and copies. The buffer is used in
// place, on queues of its families; it is ErrUnsupported if there are none. A description that
// contradicts the device, as by a family that it does not have, is ErrInvalidArgument. Foreign
// work on it is ordered with tasks by interop constructs.
//
// The program still owns the buffer and its memory, which must exist until
// [Device.Unregister]. A buffer that is already registered is ErrBusy.
func (d Device) Register(ctx context.Context, b ForeignBuffer) (DevicePtr, error) {
	p, err := d.register(ctx, b)
	if err != nil {
		return DevicePtr{}, fmt.Errorf("vkomp: register: %w", err)
	}
	return p, nil
}

func (d Device) register(ctx context.Context, b ForeignBuffer) (DevicePtr, error) {
	defer d.use().end()
	s, v, err := d.vulkanOf(ctx)
	if err != nil {
		return DevicePtr{}, err
	}
	block, err := v.AdoptBuffer(vk.ForeignBuffer{
		Buffer: vk.Buffer(b.Buffer), Memory: vk.Memory(b.Memory), Size: b.Size, Usage: vk.BufferUsage(b.Usage),
		Exclusive: b.Exclusive, Family: b.Family, Families: b.Families,
	})
	if err != nil {
		return DevicePtr{}, vulkanError(err)
	}
	families := uint64(0)
	if b.Exclusive {
		families = 1 << b.Family
	}
	for _, f := range b.Families {
		families |= 1 << f
	}
	p, err := s.Register(block, families)
	if err != nil {
		return DevicePtr{}, err
	}
	if events := d.d.rt.events.Load(); events != nil {
		events.Allocated(d.d.number, p, block.Size)
	}
	return DevicePtr{d: d.d, p: p}, nil
}

// Unregister undoes Register: later uses of p are ErrInvalidPointer. It is ErrBusy while
// tasks use the buffer or host storage is associated with it. That ctx has ended does not matter.
func (d Device) Unregister(ctx context.Context, p DevicePtr) error {
	if err := d.unregister(ctx, &p); err != nil {
		return fmt.Errorf("vkomp: unregister: %w", err)
	}
	return nil
}

func (d Device) unregister(ctx context.Context, p *DevicePtr) error {
	defer d.use().end()
	if _, err := d.usable(ctx); err != nil {
		return err
	}
	s, _, err := d.vulkan()
	if err != nil {
		return err
	}
	if p.d != d.d {
		return d.wrongDevice(p)
	}
	return s.Unregister(p.p)
}
