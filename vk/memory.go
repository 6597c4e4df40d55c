//go:build cgo

package vk

// #include "vko.h"
import "C"

import (
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"
)

// CreateBlock allocates size bytes of memory with one buffer over them, for storage,
// transfers and, if the device supports them, device addresses. Host-visible memory stays
// mapped until DestroyBlock. The error matches ErrOutOfMemory if the driver is out of
// memory or no single block can be that large.
func (d *Device) CreateBlock(size uint64, memoryType int) (Block, error) {
	if err := d.enter(); err != nil {
		return Block{}, err
	}
	defer d.leave()
	return d.createBlock("Device.CreateBlock", size, memoryType, 0, C.vko_source{})
}

// createBlock creates a block from memory of the given source and handle type.
func (d *Device) createBlock(op string, size uint64, memoryType int, handleType uint32, source C.vko_source) (Block, error) {
	if err := d.checkBlock(op, size, memoryType); err != nil {
		return Block{}, err
	}
	buffer, required, bits, err := d.createBuffer(size, handleType)
	if err != nil {
		return Block{}, err
	}
	if bits>>memoryType&1 == 0 {
		d.destroyBuffer(buffer)
		return Block{}, invalid(op,
			"a buffer of %d bytes cannot live in memory type %d, of %#b", size, memoryType, bits)
	}
	// A multiple of the atom size, so that a range at the end can be flushed.
	atom := max(1, d.Properties().Limits.NonCoherentAtomSize)
	bytes := (max(size, required) + atom - 1) / atom * atom
	b, err := d.bindBlock(buffer, size, bytes, memoryType, source)
	if err != nil {
		d.destroyBuffer(buffer)
		return Block{}, err
	}
	return b, nil
}

// DestroyBlock frees a block of this device. The device must not be using it. Unknown
// blocks, blocks that were destroyed before, and blocks of AdoptBuffer are ignored.
func (d *Device) DestroyBlock(b Block) {
	// The application may have destroyed the buffer, and the handle may be reused.
	if b.Foreign || d.enter() != nil {
		return
	}
	defer d.leave()
	d.mu.Lock()
	own, ok := d.blocks[b.Buffer]
	delete(d.blocks, b.Buffer)
	delete(d.mapped, own.Memory)
	delete(d.exportable, own.Memory)
	d.mu.Unlock()
	if ok {
		d.destroyBlock(own)
	}
}

// BlockMemoryTypes returns the memory types that a block of that size can have: bit k
// stands for type k. The error matches ErrOutOfMemory if no single block can be that large.
func (d *Device) BlockMemoryTypes(size uint64) (bits uint32, err error) {
	return d.memoryTypes("Device.BlockMemoryTypes", size, 0)
}

// memoryTypes returns the memory types that a block of a handle type can have.
func (d *Device) memoryTypes(op string, size uint64, handleType uint32) (bits uint32, err error) {
	if err := d.enter(); err != nil {
		return 0, err
	}
	defer d.leave()
	if size == 0 {
		return 0, invalid(op, "no bytes")
	}
	if most := d.Properties().Limits.MaxMemoryAllocationSize; size > most {
		return 0, check("vkCreateBuffer", ErrorOutOfDeviceMemory, "%d bytes, where a buffer has at most %d", size, most)
	}
	buffer, _, bits, err := d.createBuffer(size, handleType)
	if err != nil {
		return 0, err
	}
	d.destroyBuffer(buffer)
	return bits, nil
}

// checkBlock returns an error for arguments that are invalid in Vulkan.
func (d *Device) checkBlock(op string, size uint64, memoryType int) error {
	p := d.Properties()
	if memoryType < 0 || memoryType >= len(p.MemoryTypes) {
		return invalid(op, "memory type %d of %d", memoryType, len(p.MemoryTypes))
	}
	if size == 0 {
		return invalid(op, "no bytes")
	}
	heap := p.MemoryHeaps[p.MemoryTypes[memoryType].Heap].Size
	if most := min(heap, p.Limits.MaxMemoryAllocationSize); size > most {
		return check("vkAllocateMemory", ErrorOutOfDeviceMemory,
			"%d bytes of memory type %d, whose largest allocation is %d", size, memoryType, most)
	}
	return nil
}

// createBuffer creates the buffer of a block, for memory of the given external handle type
// or 0, and returns how many bytes it needs and which memory types it can have.
func (d *Device) createBuffer(size uint64, handleType uint32) (b vulkan.Buffer, bytes uint64, types uint32, err error) {
	var h C.vkoHandle
	r := C.vko_block_buffer(d.c, C.uint64_t(size), number(d.Properties().Features.BufferDeviceAddress),
		C.uint32_t(handleType), &h)
	if err := check("vkCreateBuffer", Result(r), "%d bytes", size); err != nil {
		return b, 0, 0, err
	}
	d.count("VkBuffer", 1)
	b = handle[vulkan.Buffer](uint64(h))
	bytes, types = d.bufferNeeds(b)
	return b, bytes, types, nil
}

// bufferNeeds returns the size in bytes and the memory types that a buffer requires.
func (d *Device) bufferNeeds(b vulkan.Buffer) (bytes uint64, types uint32) {
	var need vulkan.MemoryRequirements
	vulkan.GetBufferMemoryRequirements(d.handle, b, &need)
	defer need.Free()
	need.Deref()
	return uint64(need.Size), need.MemoryTypeBits
}

func (d *Device) destroyBuffer(b vulkan.Buffer) {
	vulkan.DestroyBuffer(d.handle, b, nil)
	d.count("VkBuffer", -1)
}

// bindBlock allocates memory from the source, binds the buffer to it and maps it. The
// device then owns the block. After an error the buffer is left as it was.
func (d *Device) bindBlock(buffer vulkan.Buffer, size, bytes uint64, memoryType int, source C.vko_source) (Block, error) {
	addressable := d.Properties().Features.BufferDeviceAddress
	var memory C.vkoHandle
	r := C.vko_memory_allocate(d.c, C.uint64_t(bytes), C.uint32_t(memoryType), number(addressable),
		source, &memory)
	if err := check("vkAllocateMemory", Result(r), "%d bytes of memory type %d", bytes, memoryType); err != nil {
		return Block{}, err
	}
	d.count("VkDeviceMemory", 1)
	b := Block{Memory: Memory(memory), Buffer: Buffer(name(buffer)), Size: size, MemoryType: memoryType}
	bound := handle[vulkan.DeviceMemory](uint64(memory))
	err := check("vkBindBufferMemory", Result(vulkan.BindBufferMemory(d.handle, buffer, bound, 0)),
		"%d bytes of memory type %d", bytes, memoryType)
	// The host accesses imported memory directly. A mapping of it would be a pointer
	// into the Go heap that the Go runtime does not know.
	visible := source.kind != C.VKO_SOURCE_HOST && d.Properties().MemoryTypes[memoryType].Flags&MemoryHostVisible != 0
	if err == nil && visible {
		var mapping unsafe.Pointer
		r := vulkan.MapMemory(d.handle, bound, 0, vulkan.DeviceSize(vulkan.WholeSize), 0, &mapping)
		err = check("vkMapMemory", Result(r), "%d bytes of memory type %d", bytes, memoryType)
		b.Host = mapping
	}
	if err != nil {
		d.freeMemory(b.Memory)
		return Block{}, err
	}
	if addressable {
		b.Address = uint64(C.vko_buffer_address(d.c, C.vkoHandle(b.Buffer)))
	}
	d.mu.Lock()
	d.blocks[b.Buffer] = b
	if visible {
		d.mapped[b.Memory] = bytes
	}
	d.mu.Unlock()
	return b, nil
}

// destroyBlock undoes bindBlock; freeing memory unmaps it.
func (d *Device) destroyBlock(b Block) {
	d.destroyBuffer(handle[vulkan.Buffer](uint64(b.Buffer)))
	d.freeMemory(b.Memory)
}

func (d *Device) freeMemory(m Memory) {
	vulkan.FreeMemory(d.handle, handle[vulkan.DeviceMemory](uint64(m)), nil)
	d.count("VkDeviceMemory", -1)
}

func number(b bool) C.uint32_t {
	if b {
		return 1
	}
	return 0
}
