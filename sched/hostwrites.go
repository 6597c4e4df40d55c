package sched

import (
	"slices"

	"github.com/vkomp/vkomp/memory"
)

// hostWrite is host storage that a task in flight writes when it ends.
type hostWrite struct {
	start, end uintptr
	// writer is the list of the tasks that wait for the end of the writing one.
	writer *parkedTasks
}

// hostWrites is the host storage that tasks in flight write when they end, sorted by address.
// Sections may overlap: the order of writes that no dependence orders is left to the program.
type hostWrites struct {
	byStart []hostWrite
	// longest is the size of the largest write since the list was last empty. A write that begins
	// further below a section cannot reach it.
	longest uintptr
}

// from returns the index of the first write that begins at an address or above it.
func (h *hostWrites) from(address uintptr) int {
	i, _ := slices.BinarySearchFunc(h.byStart, address, func(w hostWrite, address uintptr) int {
		if w.start < address {
			return -1
		}
		return 1
	})
	return i
}

// add notes that a task will write the section.
func (h *hostWrites) add(writer *parkedTasks, section memory.Section) {
	w := hostWrite{start: section.Start(), end: section.End(), writer: writer}
	h.byStart = slices.Insert(h.byStart, h.from(w.start), w)
	h.longest = max(h.longest, w.end-w.start)
}

// remove undoes one call of add with the same arguments.
func (h *hostWrites) remove(writer *parkedTasks, section memory.Section) {
	for i := h.from(section.Start()); i < len(h.byStart); i++ {
		if w := &h.byStart[i]; w.writer == writer && w.start == section.Start() && w.end == section.End() {
			h.byStart = slices.Delete(h.byStart, i, i+1)
			break
		}
	}
	if len(h.byStart) == 0 {
		h.longest = 0
	}
}

// touching returns the list to join in order to wait for a task that will write bytes of the
// section, or nil if there is no such task.
func (h *hostWrites) touching(section memory.Section) *parkedTasks {
	if len(h.byStart) == 0 || section.Size == 0 {
		return nil
	}
	for i := h.from(section.Start() - min(section.Start(), h.longest)); i < len(h.byStart) && h.byStart[i].start < section.End(); i++ {
		if h.byStart[i].end > section.Start() {
			return h.byStart[i].writer
		}
	}
	return nil
}
