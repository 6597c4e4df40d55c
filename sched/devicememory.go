package sched

import (
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

// deviceMemory is the memory that the scheduler has of its device. Allocators, heaps and
// imports have locks of their own.
type deviceMemory struct {
	device Device
	// storage is what corresponding storage and allocations come from, staging what copies
	// between device and host go through.
	storage, staging         *memory.Allocator
	storageHeap, stagingHeap *deviceHeap
	taken                    footprint
	imports                  imports
	// chunk is Options.Chunk.
	chunk uint64
	// allocate and free are storage's for the presence table.
	allocate func(*memory.Map) (memory.Storage, error)
	free     func(memory.Storage)
}

// Sizes of blocks of VkDeviceMemory, in bytes: they grow from the first to the second.
const (
	minBlockBytes = 4 << 20
	maxBlockBytes = 256 << 20
)

// openMemory makes the allocators.
func (s *Scheduler) openMemory(o Options) error {
	m, p := &s.memory, s.props
	m.device = s.device
	m.taken.heaps = make([]taken, len(p.MemoryHeaps))
	var err error
	if m.storageHeap, m.storage, err = s.openAllocator(o, useStorage, o.HideHostVisible, &m.staging); err != nil {
		return err
	}
	if m.stagingHeap, m.staging, err = s.openAllocator(o, useStaging, false, &m.storage); err != nil {
		return err
	}
	if m.chunk = o.Chunk; m.chunk == 0 {
		m.chunk = chunkBytes
	}
	m.imports.heaps = make([]Imports, len(p.MemoryHeaps))
	m.imports.mode = o.Sharing
	m.imports.unified = p.Type != vk.DeviceDiscrete && !o.HideHostVisible &&
		p.MemoryTypes[m.storageHeap.memoryType].Flags&vk.MemoryHostVisible != 0
	m.allocate = s.allocateFor
	m.free = func(st memory.Storage) { s.giveBack(st, &order.SyncSet{}) }
	return nil
}

// openAllocator makes an allocator, which takes from the other what that has to spare
// before it finds no memory.
func (s *Scheduler) openAllocator(o Options, use memoryUse, hidden bool, other **memory.Allocator) (*deviceHeap, *memory.Allocator, error) {
	l := &s.props.Limits
	// Storage lies at multiples of what bindings ask for, up to 256 bytes: no
	// block needs an offset member, only sub-slices of one.
	align := max(l.MinStorageBufferOffsetAlignment, l.NonCoherentAtomSize, 64)
	smallest, largest := uint64(minBlockBytes), uint64(maxBlockBytes)
	if use == useStorage && o.OwnBuffers && !s.props.Features.RobustBufferAccess2 {
		smallest, largest = align, align // so that nothing shares a block
	}
	heap, err := newDeviceHeap(s.device, use, hidden, !o.Incoherent, &s.memory.taken)
	if err != nil {
		return nil, nil, err
	}
	a, err := memory.NewAllocator(heap, memory.AllocatorOptions{
		MinBlock:      smallest,
		MaxBlock:      largest,
		Alignment:     align,
		MaxAllocation: l.MaxMemoryAllocationSize,
		MaxBlocks:     int(l.MaxMemoryAllocationCount) / 2,
		Completed:     s.reached,
		Reclaim:       func() bool { return (*other).Trim() > 0 },
	})
	return heap, a, err
}
