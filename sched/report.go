package sched

import (
	"fmt"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/vk"
)

// MemoryReport describes the use of a device's memory at one moment. All sizes are in bytes.
type MemoryReport struct {
	// Heaps are the device's memory heaps, by their index in Vulkan.
	Heaps []HeapReport `json:"heaps"`
	// Total is the sum over the heaps.
	Total memory.AllocatorStats `json:"total"`

	// Mapped are the blocks of host storage that have corresponding storage with a reference
	// count, with the bytes of that storage.
	Mapped memory.Tally `json:"mapped"`
	// Associated are the blocks whose corresponding storage is part of an allocation.
	Associated memory.Tally `json:"associated"`
	// Declared are the blocks of declare target variables.
	Declared memory.Tally `json:"declared"`
	// Allocated is the memory that the program has allocated and not freed.
	Allocated memory.Tally `json:"allocated"`
}

// HeapReport describes the use of one memory heap.
type HeapReport struct {
	// Size is that of the heap (VkMemoryHeap).
	Size uint64 `json:"size"`
	// DeviceLocal says that the heap is on the device (VK_MEMORY_HEAP_DEVICE_LOCAL_BIT).
	DeviceLocal bool `json:"device_local"`
	// BudgetKnown says that the device reports Budget and Usage (VK_EXT_memory_budget).
	BudgetKnown bool `json:"budget_known"`
	// Budget is the size that the process may use of the heap.
	Budget uint64 `json:"budget"`
	// Usage is the size that the process uses.
	Usage uint64 `json:"usage"`

	// Total is the sum of Storage and Staging. Its PeakBlockBytes is exact; its PeakLiveBytes is
	// an upper bound if both were used.
	Total memory.AllocatorStats `json:"total"`
	// Storage is the heap's memory for mapped slices and allocations.
	Storage memory.AllocatorStats `json:"storage"`
	// Staging is the heap's memory for the buffers through which data is copied between these and
	// the host.
	Staging memory.AllocatorStats `json:"staging"`
	// Imported is host storage that the device uses in place. It is in no total, since it takes no
	// memory from the heap.
	Imported Imports `json:"imported"`
}

// Imports describes host storage that is imported as device memory: what is imported now, in
// whole pages.
type Imports struct {
	memory.Tally
	// PeakBytes is the largest value of Bytes so far.
	PeakBytes uint64 `json:"peak_bytes"`
	// Imports counts the imports so far.
	Imports uint64 `json:"imports"`
}

// add counts one more import.
func (i *Imports) add(bytes uint64) {
	i.Add(bytes)
	i.Imports++
	i.PeakBytes = max(i.PeakBytes, i.Bytes)
}

// ReportHeaps returns a report of a device that is not in use.
func ReportHeaps(p *vk.Properties) MemoryReport {
	r := MemoryReport{Heaps: make([]HeapReport, len(p.MemoryHeaps))}
	for k, h := range p.MemoryHeaps {
		r.Heaps[k] = HeapReport{Size: h.Size, DeviceLocal: h.DeviceLocal}
	}
	return r
}

// Memory returns what the device's memory is used for. It can be called at any time. While tasks are
// in flight, the figures of storage, staging and mapped blocks are not of one moment but of moments
// close to each other. It takes time linear in the number of blocks, both of host storage that is
// present and of device memory.
func (s *Scheduler) Memory() MemoryReport {
	r := ReportHeaps(s.props)
	if budgets, told := s.device.MemoryBudget(); told {
		for k := range min(len(budgets), len(r.Heaps)) {
			h := &r.Heaps[k]
			h.BudgetKnown, h.Budget, h.Usage = true, budgets[k].Budget, budgets[k].Usage
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
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
	r.Heaps[s.memory.storageHeap.heap()].Storage = s.memory.storage.Stats()
	r.Heaps[s.memory.stagingHeap.heap()].Staging = s.memory.staging.Stats()
	s.memory.imports.mu.Lock()
	for k, i := range s.memory.imports.heaps {
		r.Heaps[k].Imported = i
	}
	s.memory.imports.mu.Unlock()
	s.memory.taken.mu.Lock()
	defer s.memory.taken.mu.Unlock()
	for k := range r.Heaps {
		h := &r.Heaps[k]
		h.Total = s.memory.taken.heaps[k].peakOf(h.Storage.Plus(h.Staging))
		r.Total = r.Total.Plus(h.Total)
	}
	r.Total = s.memory.taken.all.peakOf(r.Total)
	return r
}

// footprint counts the bytes that blocks of device memory take of each heap of a device, and of all
// together.
type footprint struct {
	mu    lockrank.Mutex[lockrank.Leaf]
	heaps []taken
	all   taken
}

// taken is a number of bytes, with its highest value so far.
type taken struct{ bytes, peak uint64 }

func (t *taken) add(bytes uint64) {
	t.bytes += bytes
	t.peak = max(t.peak, t.bytes)
}

func (f *footprint) add(heap int, bytes uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heaps[heap].add(bytes)
	f.all.add(bytes)
}

func (f *footprint) remove(heap int, bytes uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heaps[heap].bytes -= bytes
	f.all.bytes -= bytes
}

// peakOf returns the sum of the figures of several allocators with the peak that their blocks had
// together. It is also a bound of the peak of the live bytes, since these lie in the blocks.
func (t *taken) peakOf(sum memory.AllocatorStats) memory.AllocatorStats {
	sum.PeakBlockBytes = max(t.peak, sum.BlockBytes)
	sum.PeakLiveBytes = max(min(sum.PeakLiveBytes, sum.PeakBlockBytes), sum.LiveBytes)
	return sum
}

// room is the memory that a heap of a device has left for the process.
type room struct {
	name string // of the device
	heap int
	size uint64
	// told says that the device has reported budget.
	told   bool
	budget vk.HeapBudget
	// taken is the number of bytes in vkomp's blocks.
	taken uint64
}

// heap returns the index of the device's heap to which the memory type belongs.
func (h *deviceHeap) heap() int { return h.device.Properties().MemoryTypes[h.memoryType].Heap }

// room asks the device for the budget of the heap.
func (h *deviceHeap) room() room {
	p, heap := h.device.Properties(), h.heap()
	r := room{name: p.Name, heap: heap, size: p.MemoryHeaps[heap].Size}
	budgets, told := h.device.MemoryBudget()
	if told && heap < len(budgets) {
		r.told, r.budget = true, budgets[heap]
	}
	h.taken.mu.Lock()
	defer h.taken.mu.Unlock()
	r.taken = h.taken.heaps[heap].bytes
	return r
}

// left returns the number of bytes of the budget that are not in use.
func (r *room) left() uint64 {
	if r.budget.Usage >= r.budget.Budget {
		return 0
	}
	return r.budget.Budget - r.budget.Usage
}

// String describes the heap for errors.
func (r room) String() string {
	budget := "budget unknown"
	if r.told {
		budget = fmt.Sprintf("%d bytes of a budget of %d in use by the process", r.budget.Usage, r.budget.Budget)
	}
	return fmt.Sprintf("heap %d of device %q has %d bytes, %d of them in blocks of vkomp, %s", r.heap, r.name, r.size, r.taken, budget)
}
