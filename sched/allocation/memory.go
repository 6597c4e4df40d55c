package allocation

import (
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// Device is the part of a device that has to do with its memory.
type Device interface {
	// Properties returns the properties of the device. The caller must not change them.
	Properties() *vk.Properties
	// BlockMemoryTypes returns the memory types, as bits, in which a block can be allocated.
	BlockMemoryTypes(size uint64) (uint32, error)
	// CreateBlock allocates a block of device memory.
	CreateBlock(size uint64, memoryType int) (vk.Block, error)
	// DestroyBlock frees a block that was created or imported.
	DestroyBlock(vk.Block)
	// ImportBlock makes a block of the program's own host memory, which is coherent.
	ImportBlock(host uintptr, size uint64) (vk.Block, error)
	// Flush makes host writes to memory that is not coherent visible to the device.
	Flush([]vk.MemoryRange) error
	// Invalidate makes device writes to memory that is not coherent visible to the host.
	Invalidate([]vk.MemoryRange) error
	// MemoryBudget returns the budgets of the heaps for this process, or nil and false if the device does not
	// report them.
	MemoryBudget() (heaps []vk.HeapBudget, ok bool)
}

// Options say how the memory of a device is used.
type Options struct {
	// Hidden ignores that the host can see the memory of storage.
	Hidden bool
	// Incoherent treats all memory as memory that is not coherent.
	Incoherent bool
	// OwnBuffers gives each allocation a VkBuffer of its own, with memory of its own, if the
	// device does not have robustBufferAccess2: such a device keeps kernels inside of the
	// VkBuffer, but not inside of a binding.
	OwnBuffers bool
	// ImportAll imports host storage that may be shared even if kernels could reach what lies
	// beside it.
	ImportAll bool
	// KeepStaging is how many bytes of staging memory are kept until Trim, used or not: a driver
	// takes long to allocate memory that the device reaches over the bus (22 ms for 64 MiB on an
	// NVIDIA H100).
	KeepStaging uint64
	// Ended is called for each block whose corresponding storage was Mapped memory, when that has been
	// given back: no task refers to the block any more.
	Ended func(*memory.Present)
}

// Memory is the memory of a device.
type Memory struct {
	device  Device
	queues  *order.Queues
	profile Profile
	// Storage has corresponding storage and what programs allocate, Staging the memory through
	// which bytes are copied between the device and the host.
	Storage, Staging *memory.Allocator
	// storage and staging are the heaps that the allocators use.
	storage, staging *heap
	taken            footprint
	imports          imports
	pinned           pinned
	// exports are the allocations that foreign work can write.
	exports map[*Allocation]struct{}
	// ended is Options.Ended.
	ended func(*memory.Present)
	// spare has allocations that New uses again.
	spare spares
}

// Open prepares the memory of a device, of which the queues order the uses.
func (m *Memory) Open(d Device, queues *order.Queues, o Options) error {
	p := d.Properties()
	m.device, m.queues, m.ended = d, queues, o.Ended
	m.taken.heaps = make([]taken, len(p.MemoryHeaps))
	m.imports.heaps, m.imports.all = make([]Imports, len(p.MemoryHeaps)), o.ImportAll
	bits, err := d.BlockMemoryTypes(1 << 20)
	if err != nil {
		return err
	}
	if m.profile, err = NewProfile(p, bits, o.Hidden); err != nil {
		return err
	}
	if m.storage, m.Storage, err = m.openAllocator(o, forStorage, &m.Staging); err != nil {
		return err
	}
	m.staging, m.Staging, err = m.openAllocator(o, forStaging, &m.Storage)
	return err
}

// Profile returns how the memory is used.
func (m *Memory) Profile() *Profile { return &m.profile }

// openAllocator makes an allocator and its heap. Before it finds no memory it takes back what the
// other allocator can spare.
func (m *Memory) openAllocator(o Options, use use, other **memory.Allocator) (*heap, *memory.Allocator, error) {
	p := m.device.Properties()
	l := &p.Limits
	// Storage lies at multiples of what bindings require, up to 256 bytes, so no binding of a
	// whole allocation needs an offset member.
	align := max(l.MinStorageBufferOffsetAlignment, l.NonCoherentAtomSize, 64)
	smallest, largest, keep := uint64(memory.DefaultMinBlock), uint64(memory.DefaultMaxBlock), o.KeepStaging
	if use == forStorage {
		keep = 0
	}
	if use == forStorage && o.OwnBuffers && !p.Features.RobustBufferAccess2 {
		smallest, largest = align, align // so that no block has two allocations
	}
	h := newHeap(m.device, m.profile.Staging, false, !o.Incoherent, &m.taken)
	if use == forStorage {
		h = newHeap(m.device, m.profile.Storage, o.Hidden, !o.Incoherent, &m.taken)
	}
	a, err := memory.NewAllocator(h, memory.AllocatorOptions{
		MinBlock:      smallest,
		MaxBlock:      largest,
		Alignment:     align,
		MaxAllocation: l.MaxMemoryAllocationSize,
		MaxBlocks:     int(l.MaxMemoryAllocationCount) / 2,
		Keep:          keep,
		Completed:     m.completed,
		Reclaim:       func() bool { return (*other).Trim() > 0 },
	})
	return h, a, err
}

// completed reports whether the device has done everything up to a frontier.
func (m *Memory) completed(f timeline.Frontier) bool {
	for i := range f.Len() {
		if !m.queues.Over(f.At(i)) {
			return false
		}
	}
	return true
}

// Trim gives back the blocks without a live allocation.
func (m *Memory) Trim() {
	m.Storage.Trim()
	m.Staging.Trim()
}

// Close gives back all blocks. The error lists what was still allocated.
func (m *Memory) Close() error { return errors.Join(m.Storage.Close(), m.Staging.Close()) }

// StorageType returns the memory type, among those in bits, for storage that the host does not
// map. It is the same whatever the options are. The error matches vk.ErrUnsupported if none of
// them will do.
func (m *Memory) StorageType(bits uint32) (int, error) {
	return chooseMemoryType(m.device.Properties(), bits, forStorage, true)
}

// For returns storage for an item of a map that creates a block: the host's own if the item may
// or must share it, otherwise device memory. Host storage that is not pinned is imported.
func (m *Memory) For(item *memory.Map) (memory.Storage, error) {
	if item.Share != memory.ShareNever {
		st, err := m.share(item)
		if err == nil {
			return st, nil
		}
		if item.Share == memory.ShareMust {
			if errors.Is(err, memory.ErrOutOfMemory) {
				return memory.Storage{}, err
			}
			return memory.Storage{}, fmt.Errorf("%w: %w; pinned storage could be shared", memory.ErrNotShared, err)
		}
	}
	return m.Storage.Allocate(item.StorageSize())
}

// share returns the host's own storage for an item.
func (m *Memory) share(item *memory.Map) (memory.Storage, error) {
	a, err := m.FindPinned(item.Section)
	switch {
	case err != nil:
		return memory.Storage{}, err
	case a != nil:
		return a.storageIn(item.Section), nil
	}
	return m.importStorage(item.Section, item.Share == memory.ShareMust || m.imports.all)
}

// Free frees storage that For returned, or that Storage allocated, and that no command has used.
func (m *Memory) Free(st memory.Storage) {
	if !m.dropImport(st) {
		m.Storage.Free(&st, timeline.Frontier{})
	}
}

// FreeStaging frees staging memory, which the device last used at the points of a set.
func (m *Memory) FreeStaging(st memory.Storage, last *order.SyncSet) {
	freeAfter(m.Staging, &st, last)
}

// freeAfter frees memory that the device last used at the points of a set. The frontier stays on
// the stack, because the allocator does not keep it.
func freeAfter(a *memory.Allocator, st *memory.Storage, last *order.SyncSet) {
	if last.Len() == 0 {
		a.Free(st, timeline.Frontier{})
		return
	}
	var few [8]timeline.Point
	points := few[:0]
	for i := range last.Len() {
		p := last.At(i)
		points = append(points, timeline.Point{Queue: timeline.Queue(p.Queue), Value: p.Value})
	}
	a.Free(st, timeline.FrontierOf(points))
}

// StorageRange returns bytes of storage as a range of VkDeviceMemory. It reports false if the
// memory is coherent, so that it needs neither flush nor invalidation. It needs no lock.
func (m *Memory) StorageRange(st *memory.Storage, at, size uint64) (vk.MemoryRange, bool) {
	return m.rangeIn(m.storage, st, at, size)
}

// StagingRange is StorageRange for staging memory.
func (m *Memory) StagingRange(st *memory.Storage, at, size uint64) (vk.MemoryRange, bool) {
	return m.rangeIn(m.staging, st, at, size)
}

func (m *Memory) rangeIn(h *heap, st *memory.Storage, at, size uint64) (vk.MemoryRange, bool) {
	if h.coherent || st.Own != nil {
		return vk.MemoryRange{}, false
	}
	return vk.MemoryRange{Memory: h.memoryOf(st.Block.ID), Offset: st.Offset + at, Size: size}, true
}

// FlushUnit returns the size and alignment of the units in which storage is flushed, in bytes; 0
// if it is coherent. It needs no lock.
func (m *Memory) FlushUnit() uint64 {
	if m.storage.coherent {
		return 0
	}
	return max(m.device.Properties().Limits.NonCoherentAtomSize, 1)
}

// Flush makes what the host wrote visible to the device. It needs no lock.
func (m *Memory) Flush(ranges []vk.MemoryRange) error { return m.device.Flush(ranges) }

// Invalidate makes what the device wrote visible to the host. It needs no lock.
func (m *Memory) Invalidate(ranges []vk.MemoryRange) error { return m.device.Invalidate(ranges) }
