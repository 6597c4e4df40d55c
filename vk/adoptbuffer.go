//go:build cgo

package vk

// #include "vko.h"
import "C"

import (
	"slices"

	vulkan "github.com/vulkan-go/vulkan"
)

// AdoptBuffer returns a Block for a buffer that somebody else created on this
// VkDevice. It can be used like any other block, except that its Host is nil, whoever
// has mapped the memory, its MemoryType is -1, because it is not known, and its Address is
// set only if Usage has BufferDeviceAddress and the device supports addresses.
// Ownership does not change: DestroyBlock and Close leave the buffer and its memory
// alone, and Live does not count them. Both must live as long as the Block is used.
//
// Only queues of the families that share the buffer may use it, since ownership is
// never transferred. The error matches ErrUnsupported if no compute queue is of such a
// family or if the buffer lacks a usage. It matches ErrInvalid for a description that
// contradicts the device.
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
	if err := f.check(slices.Compact(families), len(d.Properties().QueueFamilies)); err != nil {
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
