package sched

import (
	"slices"

	"github.com/vkomp/vkomp/memory"
)

// hostWrite is host storage that a task in flight writes when it finishes.
type hostWrite struct {
	start, end uintptr
	by         *target
}

// hostWrites are those of all tasks in flight, by address. They may overlap: what
// nothing orders is the program's affair.
type hostWrites struct {
	byStart []hostWrite
	// longest is the size of the largest since there were none: no write that
	// begins further below a section reaches it.
	longest uintptr
}

// from returns the place of the first write that begins at an address or above it.
func (h *hostWrites) from(address uintptr) int {
	i, _ := slices.BinarySearchFunc(h.byStart, address, func(w hostWrite, address uintptr) int {
		if w.start < address {
			return -1
		}
		return 1
	})
	return i
}

func (h *hostWrites) add(t *target, section memory.Section) {
	w := hostWrite{start: section.Start(), end: section.End(), by: t}
	h.byStart = slices.Insert(h.byStart, h.from(w.start), w)
	h.longest = max(h.longest, w.end-w.start)
}

// remove takes back one that add was called with.
func (h *hostWrites) remove(t *target, section memory.Section) {
	for i := h.from(section.Start()); i < len(h.byStart); i++ {
		if w := &h.byStart[i]; w.by == t && w.start == section.Start() && w.end == section.End() {
			h.byStart = slices.Delete(h.byStart, i, i+1)
			break
		}
	}
	if len(h.byStart) == 0 {
		h.longest = 0
	}
}

// touching returns who is to write bytes of the section, or nil.
func (h *hostWrites) touching(section memory.Section) *target {
	if len(h.byStart) == 0 || section.Size == 0 {
		return nil
	}
	for i := h.from(section.Start() - min(section.Start(), h.longest)); i < len(h.byStart) && h.byStart[i].start < section.End(); i++ {
		if h.byStart[i].end > section.Start() {
			return h.byStart[i].by
		}
	}
	return nil
}
