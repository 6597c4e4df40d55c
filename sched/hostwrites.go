package sched

import (
	"cmp"
	"slices"

	"github.com/vkomp/vkomp/memory"
)

// hostWrite is host storage that a task in flight writes, when it ends or by then.
type hostWrite struct {
	start, end uintptr
	// device says that commands of the task write the storage, which is pinned, and not the host: what else the device does with
	// it is ordered with these commands.
	device bool
	// writer is the list of the tasks that wait for the end of the writing one.
	writer *parkedTasks
}

// hostWrites is the host storage that tasks in flight write, sorted by address.
// Sections may overlap: the order of writes that no dependence orders is left to the program.
type hostWrites struct {
	byStart []hostWrite
	// longest is the size of the largest write since the list was last empty. A write that begins
	// further below a section cannot reach it.
	longest uintptr
	// collected are the sections that the next call of add or remove is about.
	collected []hostWrite
}

// compare orders writes by address, and those that begin at the same by their ends, the host's before the device's.
func (w hostWrite) compare(o hostWrite) int {
	order := cmp.Or(cmp.Compare(w.start, o.start), cmp.Compare(w.end, o.end))
	switch {
	case order != 0 || w.device == o.device:
		return order
	case w.device:
		return 1
	}
	return -1
}

// indexOf returns the index of the first of sorted writes that does not come before w.
func indexOf(writes []hostWrite, w hostWrite) int {
	i, _ := slices.BinarySearchFunc(writes, w, hostWrite.compare)
	return i
}

// collect notes a section for the next call of add or remove.
func (h *hostWrites) collect(section memory.Section, device bool) {
	h.collected = append(h.collected, hostWrite{start: section.Start(), end: section.End(), device: device})
}

// take returns the sections that have been collected, sorted, as writes of a task, and forgets them.
func (h *hostWrites) take(writer *parkedTasks) []hostWrite {
	writes := h.collected
	h.collected = h.collected[:0]
	for i := range writes {
		writes[i].writer = writer
	}
	slices.SortFunc(writes, hostWrite.compare)
	return writes
}

// add notes that a task will write the sections that have been collected. It moves each write at most once.
func (h *hostWrites) add(writer *parkedTasks) {
	writes := h.take(writer)
	end := len(h.byStart)
	h.byStart = slices.Grow(h.byStart, len(writes))[:end+len(writes)]
	for k, w := range slices.Backward(writes) {
		i := indexOf(h.byStart[:end], w)
		copy(h.byStart[i+k+1:], h.byStart[i:end])
		h.byStart[i+k] = w
		h.longest = max(h.longest, w.end-w.start)
		end = i
	}
	clear(writes)
}

// remove undoes add for the sections that have been collected. It moves each write at most once.
func (h *hostWrites) remove(writer *parkedTasks) {
	if len(h.collected) == 0 {
		return
	}
	writes := h.take(writer)
	kept, next := 0, 0 // the writes before kept stay, and those between kept and next are gone
	for _, w := range writes {
		i := next + indexOf(h.byStart[next:], w)
		for i < len(h.byStart) && h.byStart[i] != w && h.byStart[i].compare(w) == 0 {
			i++
		}
		if i < len(h.byStart) && h.byStart[i] == w {
			kept += copy(h.byStart[kept:], h.byStart[next:i])
			next = i + 1
		}
	}
	kept += copy(h.byStart[kept:], h.byStart[next:])
	clear(h.byStart[kept:])
	h.byStart = h.byStart[:kept]
	if kept == 0 {
		h.longest = 0
	}
	clear(writes)
}

// touching returns the list to join in order to wait for a task that will write bytes of the
// section, or nil if there is no such task.
func (h *hostWrites) touching(section memory.Section) *parkedTasks { return h.find(section, true) }

// byHost is touching for tasks of which the host writes the bytes.
func (h *hostWrites) byHost(section memory.Section) *parkedTasks { return h.find(section, false) }

func (h *hostWrites) find(section memory.Section, device bool) *parkedTasks {
	if len(h.byStart) == 0 || section.Size == 0 {
		return nil
	}
	for i := indexOf(h.byStart, hostWrite{start: section.Start() - min(section.Start(), h.longest)}); i < len(h.byStart) && h.byStart[i].start < section.End(); i++ {
		if w := &h.byStart[i]; w.end > section.Start() && (device || !w.device) {
			return w.writer
		}
	}
	return nil
}
