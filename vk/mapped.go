//go:build cgo

package vk

// #cgo noescape vko_memory_make_visible
// #cgo nocallback vko_memory_make_visible
// #include "vko.h"
import "C"

import (
	"math"
	"unsafe"
)

// Flush makes what the host wrote to the ranges visible to what is submitted
// after it (vkFlushMappedMemoryRanges). Memory with MemoryHostCoherent does not
// need it, and bears it.
//
// A range is widened to whole units of Limits.NonCoherentAtomSize bytes: the host
// and the device must not write to one unit at a time. It must lie in a block that
// the host sees, else the error matches ErrInvalid and nothing was done. Ranges
// without bytes do nothing.
func (d *Device) Flush(ranges []MemoryRange) error {
	return d.makeVisible("vkFlushMappedMemoryRanges", "Device.Flush", ranges, true)
}

// Invalidate makes what the device wrote to the ranges, and a barrier to StageHost
// made available, visible to the host (vkInvalidateMappedMemoryRanges). What the
// host wrote there and did not flush is lost. For the ranges the rules of Flush
// hold.
func (d *Device) Invalidate(ranges []MemoryRange) error {
	return d.makeVisible("vkInvalidateMappedMemoryRanges", "Device.Invalidate", ranges, false)
}

func (d *Device) makeVisible(call, op string, ranges []MemoryRange, toDevice bool) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	if err := d.checkRanges(op, ranges); err != nil || len(ranges) == 0 {
		return err
	}
	r := C.vko_memory_make_visible(d.c, number(toDevice), (*C.uint64_t)(unsafe.Pointer(&ranges[0])),
		C.uint32_t(len(ranges)), C.uint64_t(max(1, d.Properties().Limits.NonCoherentAtomSize)))
	if r >= 0 {
		return nil // before the detail's arguments are allocated
	}
	first := ranges[0]
	return check(call, Result(r), "%d ranges, the first of %d bytes at byte %d of memory %#x",
		len(ranges), first.Size, first.Offset, uint64(first.Memory))
}

func (d *Device) checkRanges(op string, ranges []MemoryRange) error {
	if len(ranges) > math.MaxInt32 {
		return invalid(op, "%d ranges", len(ranges))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for k, r := range ranges {
		bytes, ok := d.mapped[r.Memory]
		if !ok {
			return invalid(op, "range %d: memory %#x is not mapped", k, uint64(r.Memory))
		}
		if r.Offset > bytes || r.Size > bytes-r.Offset {
			return invalid(op, "range %d: %d bytes at byte %d of memory %#x, which has %d",
				k, r.Size, r.Offset, uint64(r.Memory), bytes)
		}
	}
	return nil
}
