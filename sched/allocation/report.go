package allocation

import (
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/vk"
)

// HeapReport describes the use of one memory heap.
type HeapReport struct {
	// Size is that of the heap (VkMemoryHeap).
	Size uint64
	// DeviceLocal says that the heap is on the device (VK_MEMORY_HEAP_DEVICE_LOCAL_BIT).
	DeviceLocal bool
	// BudgetKnown says that the device reports Budget and Usage (VK_EXT_memory_budget).
	BudgetKnown bool
	// Budget is the size that the process may use of the heap.
	Budget uint64
	// Usage is the size that the process uses.
	Usage uint64

	// Total is the sum of Storage, Staging, Pinned and External. Its PeakBlockBytes is exact; its PeakLiveBytes
	// is an upper bound if more than one was used.
	Total memory.AllocatorStats
	// Storage is the heap's memory for mapped slices and allocations.
	Storage memory.AllocatorStats
	// Staging is the heap's memory for the buffers through which data is copied between these and
	// the host.
	Staging memory.AllocatorStats
	// Pinned is the memory that the driver has allocated for pinned storage.
	Pinned memory.Tally
	// External is the memory of blocks that belong to no allocator (see Memory.Take).
	External memory.Tally
	// Imported is host storage that the device uses in place. It is in no total, since it takes no
	// memory from the heap.
	Imported Imports
}

// Imports describes host storage that is imported as device memory: what is imported now, in
// whole pages.
type Imports struct {
	memory.Tally
	// PeakBytes is the largest value of Bytes so far.
	PeakBytes uint64
	// Imports counts the imports so far.
	Imports uint64
}

// add counts one more import.
func (i *Imports) add(bytes uint64) {
	i.Add(bytes)
	i.Imports++
	i.PeakBytes = max(i.PeakBytes, i.Bytes)
}

// ReportHeaps returns the report of a device that is not in use.
func ReportHeaps(p *vk.Properties) []HeapReport {
	heaps := make([]HeapReport, len(p.MemoryHeaps))
	for k, h := range p.MemoryHeaps {
		heaps[k] = HeapReport{Size: h.Size, DeviceLocal: h.DeviceLocal}
	}
	return heaps
}

// Report describes the device's memory heaps, by their index in Vulkan, and their sum. budgets are those
// of Device.MemoryBudget, or nil. It takes time linear in the blocks of device memory.
func (m *Memory) Report(budgets []vk.HeapBudget) (heaps []HeapReport, total memory.AllocatorStats) {
	heaps = ReportHeaps(m.device.Properties())
	for k := range min(len(budgets), len(heaps)) {
		h := &heaps[k]
		h.BudgetKnown, h.Budget, h.Usage = true, budgets[k].Budget, budgets[k].Usage
	}
	heaps[m.storage.index()].Storage = m.Storage.Stats()
	heaps[m.staging.index()].Staging = m.Staging.Stats()
	for k, i := range m.imports.heaps {
		heaps[k].Imported = i
	}
	for _, b := range m.imports.blocks {
		if b.allocated {
			heaps[m.heapOf(&b.block)].Pinned.Add(b.block.Size)
		}
	}
	for k := range heaps {
		h := &heaps[k]
		h.External = m.taken.heaps[k].external
		h.Total = m.taken.heaps[k].peakOf(h.Storage.Plus(h.Staging).Plus(ofBlocks(h.Pinned)).Plus(ofBlocks(h.External)))
		total = total.Plus(h.Total)
	}
	return heaps, m.taken.all.peakOf(total)
}

// ofBlocks returns the figures of blocks each of which is one allocation.
func ofBlocks(t memory.Tally) memory.AllocatorStats {
	return memory.AllocatorStats{Blocks: t.Count, Allocations: t.Count, BlockBytes: t.Bytes, LiveBytes: t.Bytes, PeakLiveBytes: t.Bytes}
}

// footprint is what the blocks of a device's memory take of each of its heaps, and of all.
type footprint struct {
	heaps []taken
	all   taken
}

// taken is a number of bytes, and the highest so far.
type taken struct {
	bytes, peak uint64
	// external are the blocks among them that belong to no allocator.
	external memory.Tally
}

func (t *taken) add(bytes uint64) {
	t.bytes += bytes
	t.peak = max(t.peak, t.bytes)
}

func (f *footprint) add(heap int, bytes uint64) {
	f.heaps[heap].add(bytes)
	f.all.add(bytes)
}

// addExternal is add for a block that belongs to no allocator, and removeExternal the opposite.
func (f *footprint) addExternal(heap int, bytes uint64) {
	f.add(heap, bytes)
	f.heaps[heap].external.Add(bytes)
}

func (f *footprint) removeExternal(heap int, bytes uint64) {
	f.remove(heap, bytes)
	f.heaps[heap].external.Remove(bytes)
}

func (f *footprint) remove(heap int, bytes uint64) {
	f.heaps[heap].bytes -= bytes
	f.all.bytes -= bytes
}

// peakOf returns the sum of the figures of several allocators with the peak that their blocks had
// together, which bounds the peak of what was in use.
func (t *taken) peakOf(sum memory.AllocatorStats) memory.AllocatorStats {
	sum.PeakBlockBytes = max(t.peak, sum.BlockBytes)
	sum.PeakLiveBytes = max(min(sum.PeakLiveBytes, sum.PeakBlockBytes), sum.LiveBytes)
	return sum
}
