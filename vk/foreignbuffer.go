package vk

import (
	"fmt"
	"slices"
	"strings"
)

// BufferUsage is VkBufferUsageFlags.
type BufferUsage uint32

// Buffer usages, with Vulkan's values.
const (
	BufferTransferSrc   BufferUsage = 0x00000001 // VK_BUFFER_USAGE_TRANSFER_SRC_BIT
	BufferTransferDst   BufferUsage = 0x00000002 // VK_BUFFER_USAGE_TRANSFER_DST_BIT
	BufferStorage       BufferUsage = 0x00000020 // VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
	BufferDeviceAddress BufferUsage = 0x00020000 // VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT
)

// ForeignBuffer describes a VkBuffer that somebody else created on the device and bound
// to memory. Vulkan has no query for it, so its creator has to say how.
type ForeignBuffer struct {
	Buffer Buffer // the VkBuffer
	Memory Memory // the memory that the buffer is bound to
	Size   uint64 // bytes, at most VkBufferCreateInfo.size

	// Usage is VkBufferCreateInfo.usage. BufferStorage, BufferTransferSrc and
	// BufferTransferDst are required. With BufferDeviceAddress the memory must have been
	// allocated with VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT.
	Usage BufferUsage

	// Exclusive says that sharingMode is VK_SHARING_MODE_EXCLUSIVE. Family is then the
	// queue family that owns the buffer or will first use it.
	Exclusive bool
	Family    uint32
	// Families are the queue families that share the buffer if it is not exclusive.
	Families []uint32
}

// check returns an error if no queue of these families can use the buffer as a block. all is the number of families that
// the device has.
func (b *ForeignBuffer) check(families []uint32, all int) error {
	const op = "Device.AdoptBuffer"
	shared, mode := b.Families, "shared among families"
	if b.Exclusive {
		shared, mode = []uint32{b.Family}, "exclusive to family"
	}
	switch {
	case b.Buffer == 0:
		return invalid(op, "no Buffer")
	case b.Memory == 0:
		return invalid(op, "no Memory")
	case b.Size == 0:
		return invalid(op, "no bytes")
	case !b.Exclusive && len(b.Families) == 0:
		return invalid(op, "neither Exclusive nor Families that the buffer is shared among")
	case b.Exclusive && len(b.Families) > 0:
		return invalid(op, "Exclusive, and shared among Families")
	}
	if err := knownFamilies(op, shared, all); err != nil {
		return err
	}
	var lacks []string
	for _, u := range []struct {
		bit  BufferUsage
		name string
	}{{BufferTransferSrc, "VK_BUFFER_USAGE_TRANSFER_SRC_BIT"}, {BufferTransferDst, "VK_BUFFER_USAGE_TRANSFER_DST_BIT"},
		{BufferStorage, "VK_BUFFER_USAGE_STORAGE_BUFFER_BIT"}} {
		if b.Usage&u.bit == 0 {
			lacks = append(lacks, u.name)
		}
	}
	if len(lacks) > 0 {
		return fmt.Errorf("%w: %s: buffer %#x was made without %s", ErrUnsupported, op, uint64(b.Buffer), strings.Join(lacks, ", "))
	}
	if !slices.ContainsFunc(families, func(f uint32) bool { return slices.Contains(shared, f) }) {
		return fmt.Errorf("%w: %s: buffer %#x is %s %v, and the queues that compute are of families %v",
			ErrUnsupported, op, uint64(b.Buffer), mode, shared, families)
	}
	return nil
}
