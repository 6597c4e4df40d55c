//go:build cgo

package vk

// #include "vko.h"
import "C"

import "fmt"

// ImportBlock makes a block of size bytes of the host's own memory: the device
// reads and writes them where they are (VK_EXT_external_memory_host). It is like a
// block of CreateBlock, with its usage and its address; Block.Host is nil. host
// and size must be multiples of Limits.MinImportedHostPointerAlignment.
//
// Between the call and DestroyBlock the memory must stay valid and where it is,
// memory of the Go heap through runtime.Pinner, and must be neither read nor
// written where the device may write, nor written where it may read. DestroyBlock
// leaves the memory and what is in it alone. host is no unsafe.Pointer, because the
// page that the program's storage begins in may begin with somebody else's.
//
// The error matches ErrUnsupported where the device cannot import host memory at
// all, or not this memory, or as memory without MemoryHostCoherent alone.
func (d *Device) ImportBlock(host uintptr, size uint64) (Block, error) {
	if err := d.enter(); err != nil {
		return Block{}, err
	}
	defer d.leave()
	p := d.Properties()
	if !p.Features.ExternalMemoryHost {
		return Block{}, fmt.Errorf("%w: Device.ImportBlock: device %q imports no host memory", ErrUnsupported, p.Name)
	}
	if err := checkImport(&p.Limits, host, size); err != nil {
		return Block{}, err
	}
	var types C.uint32_t
	r := C.vko_host_memory_types(d.c, C.uintptr_t(host), &types)
	if err := check("vkGetMemoryHostPointerPropertiesEXT", Result(r), "%d bytes at %#x", size, host); err != nil {
		return Block{}, err
	}
	buffer, required, bits, err := d.createBuffer(size, C.VKO_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT)
	if err != nil {
		return Block{}, err
	}
	memoryType := importType(p.MemoryTypes, bits&uint32(types))
	if memoryType < 0 || required > size {
		d.destroyBuffer(buffer)
		return Block{}, fmt.Errorf("%w: Device.ImportBlock: %d bytes at %#x have memory types %#b; their buffer takes %d bytes of %#b",
			ErrUnsupported, size, host, uint32(types), required, bits)
	}
	b, err := d.bindBlock(buffer, size, size, memoryType,
		C.vko_source{kind: C.VKO_SOURCE_HOST, host: C.uintptr_t(host)})
	if err != nil {
		d.destroyBuffer(buffer)
		return Block{}, err
	}
	return b, nil
}
