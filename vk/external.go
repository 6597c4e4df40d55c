//go:build cgo

package vk

// #include "vko.h"
import "C"

import (
	"fmt"
	"math"
)

// Files here are opaque POSIX file descriptors (VK_KHR_external_memory_fd,
// VK_KHR_external_semaphore_fd). They can be imported by a device with the same UUID
// and driver in this process or another. The caller owns a descriptor that an Export
// returns, and keeps the ownership of one that is passed to an Import, whether it
// succeeds or not. Closing the descriptor, or destroying the exported object, does not
// affect imported objects.

// ExportableMemoryTypes is BlockMemoryTypes for blocks of CreateExportableBlock and
// ImportBlockFd: drivers may have no descriptors for all memory types.
func (d *Device) ExportableMemoryTypes(size uint64) (bits uint32, err error) {
	const op = "Device.ExportableMemoryTypes"
	if !d.Properties().Features.ExternalMemoryFd {
		return 0, d.noFiles(op, "blocks", "VK_KHR_external_memory_fd")
	}
	return d.memoryTypes(op, size, C.VKO_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT)
}

// CreateExportableBlock is CreateBlock for a block that ExportBlock can export. The
// error matches ErrUnsupported unless Features.ExternalMemoryFd is set.
func (d *Device) CreateExportableBlock(size uint64, memoryType int) (Block, error) {
	b, err := d.externalBlock("Device.CreateExportableBlock", size, memoryType,
		C.vko_source{kind: C.VKO_SOURCE_EXPORTABLE})
	if err == nil {
		d.mu.Lock()
		d.exportable[b.Memory] = true
		d.mu.Unlock()
	}
	return b, err
}

// ImportBlockFd creates a block from the memory of an exported block of the same size and
// the same memory type. What one device wrote is visible to the other only after a
// semaphore that orders the two.
func (d *Device) ImportBlockFd(fd int, size uint64, memoryType int) (Block, error) {
	const op = "Device.ImportBlockFd"
	if err := importable(op, fd); err != nil {
		return Block{}, err
	}
	return d.externalBlock(op, size, memoryType, C.vko_source{kind: C.VKO_SOURCE_FILE, fd: C.int32_t(fd)})
}

// importable returns an error for a descriptor that cannot be a driver's. A driver may read from one, and would wait for
// what others write to a stream.
func importable(op string, fd int) error {
	switch {
	case fd < 0 || fd > math.MaxInt32:
		return invalid(op, "no descriptor: %d", fd)
	case C.vko_is_stream(C.int32_t(fd)) != 0:
		return invalid(op, "descriptor %d is a pipe, a socket or a terminal, and no Vulkan object", fd)
	}
	return nil
}

func (d *Device) externalBlock(op string, size uint64, memoryType int, source C.vko_source) (Block, error) {
	if err := d.enter(); err != nil {
		return Block{}, err
	}
	defer d.leave()
	if !d.Properties().Features.ExternalMemoryFd {
		return Block{}, d.noFiles(op, "blocks", "VK_KHR_external_memory_fd")
	}
	return d.createBlock(op, size, memoryType, C.VKO_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT, source)
}

// ExportBlock returns a descriptor of a block made by CreateExportableBlock.
func (d *Device) ExportBlock(b Block) (fd int, err error) {
	const op = "Device.ExportBlock"
	if err := d.enter(); err != nil {
		return -1, err
	}
	defer d.leave()
	// With the lock held nobody destroys the block meanwhile.
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.blocks[b.Buffer] != b || !d.exportable[b.Memory] {
		return -1, invalid(op, "memory %#x is no exportable block's", uint64(b.Memory))
	}
	var file C.int32_t
	r := C.vko_memory_export(d.c, C.vkoHandle(b.Memory), &file)
	if err := check("vkGetMemoryFdKHR", Result(r), "%d bytes", b.Size); err != nil {
		return -1, err
	}
	return int(file), nil
}

// CreateExportableSemaphore creates a semaphore that ExportSemaphore can export: a
// timeline at 0 or an unsignalled binary one. It is used like one of CreateTimeline;
// submissions ignore the value they give for a binary one. The error matches
// ErrUnsupported unless Features.ExternalTimelineFd or ExternalBinaryFd is set.
func (d *Device) CreateExportableSemaphore(t SemaphoreType) (Semaphore, error) {
	s, err := d.externalSemaphore("Device.CreateExportableSemaphore", t, "vkCreateSemaphore", func(s *C.vkoHandle) C.int32_t {
		return C.vko_semaphore_exportable(d.c, C.int32_t(t), s)
	})
	if err == nil {
		d.mu.Lock()
		d.exportable[s] = true
		d.mu.Unlock()
	}
	return s, err
}

// ImportSemaphore creates a semaphore that shares its state with the exported semaphore
// of the same type. For the error see CreateExportableSemaphore.
func (d *Device) ImportSemaphore(t SemaphoreType, fd int) (Semaphore, error) {
	const op = "Device.ImportSemaphore"
	if err := importable(op, fd); err != nil {
		return 0, err
	}
	return d.externalSemaphore(op, t, "vkImportSemaphoreFdKHR", func(s *C.vkoHandle) C.int32_t {
		return C.vko_semaphore_import(d.c, C.int32_t(t), C.int32_t(fd), s)
	})
}

func (d *Device) externalSemaphore(op string, t SemaphoreType, call string, create func(*C.vkoHandle) C.int32_t) (Semaphore, error) {
	if err := d.enter(); err != nil {
		return 0, err
	}
	defer d.leave()
	var can bool
	var kind string
	switch f := &d.Properties().Features; t {
	case TimelineSemaphore:
		can, kind = f.ExternalTimelineFd, "timelines"
	case BinarySemaphore:
		can, kind = f.ExternalBinaryFd, "binary semaphores"
	default:
		return 0, invalid(op, "semaphore type %d", t)
	}
	if !can {
		return 0, d.noFiles(op, kind, "VK_KHR_external_semaphore_fd")
	}
	var h C.vkoHandle
	if err := check(call, Result(create(&h)), "%s", kind); err != nil {
		return 0, err
	}
	d.keepSemaphore(Semaphore(h))
	return Semaphore(h), nil
}

// ExportSemaphore returns a descriptor of a semaphore made by CreateExportableSemaphore.
func (d *Device) ExportSemaphore(s Semaphore) (fd int, err error) {
	const op = "Device.ExportSemaphore"
	if err := d.enter(); err != nil {
		return -1, err
	}
	defer d.leave()
	// With the lock held nobody destroys the semaphore meanwhile.
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, own := d.semaphores[s]; !own || !d.exportable[s] {
		return -1, invalid(op, "semaphore %#x is not exportable", uint64(s))
	}
	var file C.int32_t
	if err := check("vkGetSemaphoreFdKHR", Result(C.vko_semaphore_export(d.c, C.vkoHandle(s), &file)), "semaphore %#x", uint64(s)); err != nil {
		return -1, err
	}
	return int(file), nil
}

func (d *Device) noFiles(op, kind, extension string) error {
	return fmt.Errorf("%w: %s: device %q has no %s for %s", ErrUnsupported, op, d.Properties().Name, extension, kind)
}
