//go:build cgo

package vk

// #include "vko.h"
import "C"

import "fmt"

// A file here is an opaque file descriptor of POSIX's (VK_KHR_external_memory_fd,
// VK_KHR_external_semaphore_fd): it goes to another device with the same UUID and
// driver, of this process or another. A descriptor that an Export gives is the
// caller's, who closes it. One that an Import takes stays the caller's, whatever
// comes of it; to close it, or what it was exported from, ends nothing that was
// imported.

// CreateExportableBlock is CreateBlock for a block that ExportBlock can export. The
// error matches ErrUnsupported where Features.ExternalMemoryFd is not set.
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

// ImportBlockFd makes a block of the memory that another was exported from, which
// must have the same size and the same memory type, there by its index. What one
// device wrote the other sees only behind a semaphore that orders them.
func (d *Device) ImportBlockFd(fd int, size uint64, memoryType int) (Block, error) {
	const op = "Device.ImportBlockFd"
	if fd < 0 {
		return Block{}, invalid(op, "no descriptor: %d", fd)
	}
	return d.externalBlock(op, size, memoryType, C.vko_source{kind: C.VKO_SOURCE_FILE, fd: C.int32_t(fd)})
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

// ExportBlock gives a descriptor of a block of CreateExportableBlock.
func (d *Device) ExportBlock(b Block) (fd int, err error) {
	const op = "Device.ExportBlock"
	if err := d.enter(); err != nil {
		return -1, err
	}
	defer d.leave()
	d.mu.Lock()
	own := d.blocks[b.Buffer] == b && d.exportable[b.Memory]
	d.mu.Unlock()
	if !own {
		return -1, invalid(op, "memory %#x is no exportable block's", uint64(b.Memory))
	}
	var file C.int32_t
	r := C.vko_memory_export(d.c, C.vkoHandle(b.Memory), &file)
	if err := check("vkGetMemoryFdKHR", Result(r), "%d bytes", b.Size); err != nil {
		return -1, err
	}
	return int(file), nil
}

// CreateExportableSemaphore makes a semaphore that ExportSemaphore can export, a
// timeline from 0 on or an unsignalled binary one. It is like one of CreateTimeline;
// of a binary one submissions wait for any value and signal any. The error matches
// ErrUnsupported where Features.ExternalTimelineFd or ExternalBinaryFd is not set.
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

// ImportSemaphore makes a semaphore that shares its state with the one, of that
// type, that the descriptor was exported from. For the error see
// CreateExportableSemaphore.
func (d *Device) ImportSemaphore(t SemaphoreType, fd int) (Semaphore, error) {
	const op = "Device.ImportSemaphore"
	if fd < 0 {
		return 0, invalid(op, "no descriptor: %d", fd)
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

// ExportSemaphore gives a descriptor of a semaphore of CreateExportableSemaphore.
func (d *Device) ExportSemaphore(s Semaphore) (fd int, err error) {
	const op = "Device.ExportSemaphore"
	if err := d.enter(); err != nil {
		return -1, err
	}
	defer d.leave()
	d.mu.Lock()
	_, own := d.semaphores[s]
	own = own && d.exportable[s]
	d.mu.Unlock()
	if !own {
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
