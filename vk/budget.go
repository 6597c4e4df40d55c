//go:build cgo

package vk

// #include "vko.h"
import "C"

import "unsafe"

// MemoryBudget returns the budget and usage of each heap of Properties.MemoryHeaps for
// this process (VK_EXT_memory_budget). ok is false if the device does not have the
// extension or is closed.
func (d *Device) MemoryBudget() (heaps []HeapBudget, ok bool) {
	p := d.Properties()
	if !p.Features.MemoryBudget || d.enter() != nil {
		return nil, false
	}
	defer d.leave()
	var budget, usage [C.VKO_MAX_MEMORY_HEAPS]uint64
	C.vko_memory_budget(d.instance.c, C.uintptr_t(d.physical.handle),
		(*C.uint64_t)(unsafe.Pointer(&budget)), (*C.uint64_t)(unsafe.Pointer(&usage)))
	return heapBudgets(p.MemoryHeaps, budget[:], usage[:]), true
}
