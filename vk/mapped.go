//go:build cgo

package vk

// #include "vko.h"
import "C"

import (
	"math"
	"unsafe"
)

// Flush makes host writes to the ranges visible to later submissions
// (vkFlushMappedMemoryRanges). It has no effect on memory with MemoryHostCoherent,
// which does not need it.
//
// Ranges are widened to multiples of Limits.NonCoherentAtomSize bytes; host and device
// must not write to the same such unit at the same time. Each range must lie in a mapped
// block, else the error matches ErrInvalid and nothing is done. Empty ranges are ignored.
func (d *Device) Flush(ranges []MemoryRange) error {
	return d.makeVisible("vkFlushMappedMemoryRanges", "Device.Flush", ranges, true)
}

// Invalidate makes device writes to the ranges visible to the host
// (vkInvalidateMappedMemoryRanges). A barrier to StageHost must have made them
// available. Host writes to the ranges that were not flushed are lost. The rules for
// ranges are those of Flush.
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
		return nil // return before the arguments of detail are allocated
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
