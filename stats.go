package vkomp

import "github.com/vkomp/vkomp/memory"

// Stats are statistics of a runtime since Open.
type Stats struct {
	// Tasks and Edges count the nodes of the task graph and the dependences between them.
	// Dependences on tasks that were already complete count only with Options.KeepGraph. Where the
	// runtime has put a join between two sets of tasks (see [Runtime.Graph]), the dependences of the
	// join and on the join count, and the join does not. A TargetData counts as two tasks on
	// a Vulkan device, its beginning and its end, and as none on the initial one; with NoWait its body
	// is another one.
	Tasks, Edges uint64
	// Submissions counts queue submissions, Barriers the barriers in them.
	Submissions, Barriers uint64
	// Dispatches counts launches of kernels, in as many dispatches or fewer: one dispatch can do several
	// that nothing orders. Copies counts copy commands.
	Dispatches, Copies uint64
	// SemaphoreWaits counts waits of one queue for another in submissions, HostWaits waits
	// of the host for a queue.
	SemaphoreWaits, HostWaits uint64
	// Pipelines counts the pipelines that kernels were compiled to, PipelinesFound those of them
	// that the driver says it had compiled before and found in the pipeline cache
	// (VK_EXT_pipeline_creation_feedback). Of a device that does not tell, none counts as found.
	Pipelines, PipelinesFound uint64
	// Queues are the statistics of all queues of devices in use, by device.
	Queues []QueueStats
	// HostRegions counts target regions that ran on the initial device.
	HostRegions uint64
	// BytesToDevice and BytesFromDevice count the bytes that were copied from the host to devices and
	// back: those of mapped slices and those of memory routines. A copy between devices counts in both.
	BytesToDevice, BytesFromDevice uint64
	// Storage is the memory of mapped slices and allocations, Staging that of buffers for
	// copies between device and host, of all devices in use. With several devices the peaks
	// are upper bounds. MemoryReport has more detail.
	Storage, Staging MemoryStats
}

// QueueStats are statistics of one queue of a device.
type QueueStats struct {
	// Device is the device's number, Index the queue's index on the device.
	Device, Index int
	// Family is the index of the queue's family in Vulkan.
	Family int
	// Transfer says that the queue makes copies and runs no kernels.
	Transfer bool
	// Submissions, Dispatches, Copies, Barriers and SemaphoreWaits are as in Stats.
	Submissions, Dispatches, Copies, Barriers, SemaphoreWaits uint64
}

// MemoryStats are statistics of device memory at one moment. Memory is taken from Vulkan in
// blocks (VkDeviceMemory), which are divided into allocations: for mapped slices, for memory
// that the program allocates, and for staging.
type MemoryStats struct {
	// Blocks is the number of blocks, BlockBytes their size in bytes, PeakBlockBytes the
	// highest BlockBytes so far.
	Blocks     int    `json:"blocks"`
	BlockBytes uint64 `json:"block_bytes"`
	// LiveBytes is the size of allocations, rounded up to their alignment, PeakLiveBytes
	// the highest LiveBytes so far.
	LiveBytes      uint64 `json:"live_bytes"`
	PeakLiveBytes  uint64 `json:"peak_live_bytes"`
	PeakBlockBytes uint64 `json:"peak_block_bytes"`
	// Allocations is the current number of allocations.
	Allocations int `json:"allocations"`

	// FreeBytes is the free memory in shared blocks, LargestFree the size of its largest
	// contiguous chunk.
	FreeBytes   uint64 `json:"free_bytes"`
	LargestFree uint64 `json:"largest_free"`
	// Fragmentation is the share of FreeBytes outside of the largest chunk, from 0 to 1; it
	// is 0 if nothing is free.
	Fragmentation float64 `json:"fragmentation"`

	// TrimmedBlocks and TrimmedBytes count empty blocks given back to Vulkan so far.
	TrimmedBlocks uint64 `json:"trimmed_blocks"`
	TrimmedBytes  uint64 `json:"trimmed_bytes"`
}

// Stats returns the statistics so far.
func (rt *Runtime) Stats() Stats {
	counts := rt.graph.Counts()
	stats := Stats{Tasks: counts.Tasks, Edges: counts.Edges, HostRegions: rt.host.Regions()}
	var storage, staging memory.AllocatorStats
	for _, d := range rt.devices {
		s := d.stats()
		stats.Submissions += s.Submissions
		stats.Barriers += s.Barriers
		stats.Dispatches += s.Dispatches
		stats.Copies += s.Copies
		stats.SemaphoreWaits += s.SemaphoreWaits
		stats.HostWaits += s.HostWaits
		stats.Pipelines += s.Kernels.Pipelines
		stats.PipelinesFound += s.Kernels.Found
		stats.BytesToDevice += s.BytesToDevice
		stats.BytesFromDevice += s.BytesFromDevice
		storage, staging = storage.Plus(s.Storage), staging.Plus(s.Staging)
		for i, q := range s.Queues {
			stats.Queues = append(stats.Queues, QueueStats{
				Device: d.number, Index: i, Family: q.Family, Transfer: q.Transfer,
				Submissions: q.Submissions, Dispatches: q.Dispatches, Copies: q.Copies, Barriers: q.Barriers, SemaphoreWaits: q.SemaphoreWaits,
			})
		}
	}
	stats.Storage, stats.Staging = MemoryStats(storage), MemoryStats(staging)
	return stats
}
