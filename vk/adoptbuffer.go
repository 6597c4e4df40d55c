//go:build cgo

package vk

// #include "vko.h"
import "C"

import (
	"slices"

	vulkan "github.com/vulkan-go/vulkan"
)

// AdoptBuffer makes a Block of a buffer of this VkDevice's that somebody else made.
// It can be used as any other: its Host is nil, whoever has the memory mapped, its
// MemoryType is not known and -1, and its Address is set where Usage has
// BufferDeviceAddress and the device has addresses. Nothing is taken over:
// DestroyBlock and Close leave the buffer and its memory alone, and Live does not
// count them. Both must live as long as the Block is used.
//
// Only queues of families that the buffer is for may use it: none hands its ownership to
// another. The error matches ErrUnsupported where no queue that computes is of such a
// family, or the buffer lacks a usage. It matches ErrInvalid for a description that cannot be
// true.
func (d *Device) AdoptBuffer(f ForeignBuffer) (Block, error) {
	if err := d.enter(); err != nil {
		return Block{}, err
	}
	defer d.leave()
	var families []uint32
	for _, q := range d.queues {
		if q.compute {
			families = append(families, q.family)
		}
	}
	if err := f.check(slices.Compact(families)); err != nil {
		return Block{}, err
	}
	if bytes, _ := d.bufferNeeds(handle[vulkan.Buffer](uint64(f.Buffer))); f.Size > bytes {
		return Block{}, invalid("Device.AdoptBuffer", "%d bytes of buffer %#x, which has no more than %d",
			f.Size, uint64(f.Buffer), bytes)
	}
	b := Block{Memory: f.Memory, Buffer: f.Buffer, Size: f.Size, MemoryType: -1, Foreign: true}
	if f.Usage&BufferDeviceAddress != 0 && d.Properties().Features.BufferDeviceAddress {
		b.Address = uint64(C.vko_buffer_address(d.c, C.vkoHandle(f.Buffer)))
	}
	return b, nil
}
