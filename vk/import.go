//go:build cgo

package vk

// #include "vko.h"
import "C"

import "fmt"

// ImportBlock creates a block from size bytes of host memory, which the device then
// accesses in place (VK_EXT_external_memory_host). It has the usage and the address of a
// block of CreateBlock; Block.Host is nil. host and size must be multiples of
// Limits.MinImportedHostPointerAlignment.
//
// Until DestroyBlock the memory must stay valid and must not move; memory of the Go heap
// must be pinned with runtime.Pinner. The host must not access it where the device may
// write, and must not write it where the device may read. DestroyBlock leaves the memory
// and its contents alone. host is not an unsafe.Pointer, because a page that begins
// before the program's storage may belong to something else.
//
// The error matches ErrUnsupported if the device cannot import host memory, cannot
// import this memory, or can only import it as memory without MemoryHostCoherent.
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
