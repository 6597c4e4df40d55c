package sched

import (
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/vk"
)

// MemoryReport describes the use of a device's memory at one moment. All sizes are in bytes.
type MemoryReport struct {
	// Heaps are the device's memory heaps, by their index in Vulkan.
	Heaps []allocation.HeapReport
	// Total is the sum over the heaps.
	Total memory.AllocatorStats

	// Mapped are the blocks of host storage that have corresponding storage with a reference
	// count, with the bytes of that storage.
	Mapped memory.Tally
	// Associated are the blocks whose corresponding storage is part of an allocation.
	Associated memory.Tally
	// Declared are the blocks of declare target variables.
	Declared memory.Tally
	// Allocated is the memory that the program has allocated and not freed.
	Allocated memory.Tally
	// Pinned is the host storage that is pinned.
	Pinned memory.Tally
}

// ReportHeaps returns a report of a device that is not in use.
func ReportHeaps(p *vk.Properties) MemoryReport {
	return MemoryReport{Heaps: allocation.ReportHeaps(p)}
}

// Memory returns what the device's memory is used for. It can be called at any time. It takes time
// linear in the number of blocks, both of host storage that is present and of device memory.
func (s *Scheduler) Memory() MemoryReport {
	var r MemoryReport
	budgets, _ := s.device.MemoryBudget() // nil if the device does not report them
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Heaps, r.Total = s.memory.Report(budgets)
	for p := range s.presence.table.All() {
		tally := &r.Mapped
		if _, infinite := p.Count(); infinite {
			tally = &r.Declared
			if stateOf(p).associated {
				tally = &r.Associated
			}
		}
		tally.Add(p.Storage.Size)
	}
	r.Allocated = s.pointers.allocated
	for _, a := range s.memory.AllPinned() {
		r.Pinned.Add(a.Size)
	}
	return r
}
