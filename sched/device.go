package sched

import (
	"errors"
	"fmt"
	"time"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/trace"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// Device is the part of a device that a scheduler uses. Submit is not called concurrently for one
// queue.
type Device interface {
	order.Device
	trace.Device
	// QueueInfos describes the queues, by the index that the other methods take. The first queue
	// has compute capability, and queues without it come last.
	QueueInfos() []order.QueueInfo
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
	// MemoryBudget returns the budgets of the heaps for this process, if the device reports them.
	MemoryBudget() (heaps []vk.HeapBudget, ok bool)
	// CreatePipeline makes a compute pipeline.
	CreatePipeline(vk.PipelineOptions) (vk.Pipeline, error)
	// DestroyPipeline destroys a pipeline that no incomplete submission uses.
	DestroyPipeline(vk.Pipeline)
	// WaitIdle waits until all submitted work has ended. After a nil error all timelines have
	// reached the submitted values; otherwise the device is lost. It is called without
	// locks that a submission takes.
	WaitIdle() error
	// Trim frees what the device keeps for later submissions.
	Trim() error
	// Close destroys the device, on which nothing may run any more.
	Close() error
}

// FromVulkan returns d as a Device. Closing the one closes the other.
func FromVulkan(d *vk.Device) Device { return vulkanDevice{d} }

type vulkanDevice struct{ *vk.Device }

func (d vulkanDevice) QueueInfos() []order.QueueInfo {
	infos := make([]order.QueueInfo, len(d.Queues()))
	for i, q := range d.Queues() {
		infos[i] = order.QueueInfo{Family: int(q.Family()), Compute: q.Compute(), TimestampBits: q.TimestampBits()}
	}
	return infos
}

func (d vulkanDevice) Submit(queue int, s *vk.Stream, waits []timeline.Point, foreign order.Foreign, signal uint64) error {
	queues := d.Queues()
	if len(waits) == 0 {
		return queues[queue].Submit(s, foreign.Waits, foreign.Signals, signal)
	}
	var few [8]vk.SemaphoreValue
	semaphores := few[:0]
	for _, p := range waits {
		semaphores = append(semaphores, vk.SemaphoreValue{Semaphore: queues[p.Queue].Timeline(), Value: p.Value})
	}
	semaphores = append(semaphores, foreign.Waits...)
	return queues[queue].Submit(s, semaphores, foreign.Signals, signal)
}

func (d vulkanDevice) Completed(queue int) (uint64, error) {
	return d.Queues()[queue].Completed()
}

func (d vulkanDevice) Wait(queue int, value uint64, timeout time.Duration) (bool, error) {
	return d.Queues()[queue].Wait(value, timeout)
}

// memoryUse is what a block of device memory is for.
type memoryUse int

const (
	// useStorage: corresponding storage of mapped slices.
	useStorage memoryUse = iota
	// useStaging: buffers between the host and storage that it cannot see.
	useStaging
)

// chooseMemoryType returns the memory type to use among those in bits: for
// storage device-local, and host-visible too where that memory is no small
// window (so that maps are plain copies), unless hidden is set; for staging
// host-visible, cached if possible, since the host reads results from it.
func chooseMemoryType(p *vk.Properties, bits uint32, use memoryUse, hidden bool) (int, error) {
	const mapped = vk.MemoryHostVisible
	var largest uint64
	for _, h := range p.MemoryHeaps {
		if h.DeviceLocal {
			largest = max(largest, h.Size)
		}
	}
	score := func(t vk.MemoryType) int {
		if t.Flags&(vk.MemoryProtected|vk.MemoryLazy) != 0 {
			return -1
		}
		n := 0
		switch use {
		case useStorage:
			if t.Flags&vk.MemoryDeviceLocal != 0 {
				n += 4
			}
			// A discrete GPU without resizable BAR shows the host only a
			// window of its memory: too small to live in.
			window := p.Type == vk.DeviceDiscrete && p.MemoryHeaps[t.Heap].Size < largest/2
			switch {
			case t.Flags&mapped == mapped && hidden:
				// No use for the host's view: memory without one is as good.
			case t.Flags&mapped == mapped && !window:
				n += 2
				if t.Flags&vk.MemoryHostCoherent == 0 {
					n--
				}
			case t.Flags&mapped == mapped:
				n--
			}
		case useStaging:
			if t.Flags&mapped != mapped {
				return -1
			}
			n = 1
			if t.Flags&vk.MemoryHostCached != 0 {
				n += 4
			}
			if t.Flags&vk.MemoryDeviceLocal == 0 {
				n += 2
			}
			if t.Flags&vk.MemoryHostCoherent != 0 {
				n++
			}
		}
		return n
	}
	best, bestScore := -1, -1
	for i, t := range p.MemoryTypes {
		if bits&(1<<i) == 0 {
			continue
		}
		if n := score(t); n > bestScore {
			best, bestScore = i, n
		}
	}
	if best < 0 {
		what := "storage"
		if use == useStaging {
			what = "staging (host-visible)"
		}
		return 0, fmt.Errorf("%w: device %q has no memory type for %s among %#x", vk.ErrUnsupported, p.Name, what, bits)
	}
	return best, nil
}

// deviceHeap is one memory type of a device as a memory.Heap.
type deviceHeap struct {
	device     Device
	memoryType int
	// hidden keeps the host's view of the memory from the scheduler.
	hidden bool
	// coherent: what host and device write they see without being told.
	coherent bool
	// taken counts the blocks of all heaps of the device.
	taken *footprint

	mu     lockrank.RWMutex[lockrank.Heap]
	blocks map[uint64]vk.Block
}

func newDeviceHeap(d Device, use memoryUse, hidden, coherent bool, taken *footprint) (*deviceHeap, error) {
	bits, err := d.BlockMemoryTypes(1 << 20)
	if err != nil {
		return nil, err
	}
	t, err := chooseMemoryType(d.Properties(), bits, use, hidden)
	if err != nil {
		return nil, err
	}
	coherent = coherent && d.Properties().MemoryTypes[t].Flags&vk.MemoryHostCoherent != 0
	return &deviceHeap{device: d, memoryType: t, hidden: hidden, coherent: coherent, taken: taken, blocks: make(map[uint64]vk.Block)}, nil
}

// AllocateBlock implements memory.Heap. A block beyond the heap's budget is refused,
// where the device tells that.
func (h *deviceHeap) AllocateBlock(size uint64) (memory.HeapBlock, error) {
	room := h.room()
	if room.told && size > room.left() {
		return memory.HeapBlock{}, fmt.Errorf("%w: a block of %d bytes is beyond the budget: %v", vk.ErrOutOfDeviceMemory, size, room)
	}
	b, err := h.device.CreateBlock(size, h.memoryType)
	if errors.Is(err, memory.ErrOutOfMemory) {
		err = fmt.Errorf("%w: %v", err, room)
	}
	if err != nil {
		return memory.HeapBlock{}, err
	}
	h.taken.add(h.heap(), b.Size)
	h.mu.Lock()
	h.blocks[uint64(b.Buffer)] = b
	h.mu.Unlock()
	hb := memory.HeapBlock{ID: uint64(b.Buffer), Size: b.Size, Host: b.Host, Address: b.Address}
	if h.hidden {
		hb.Host = nil
	}
	return hb, nil
}

// FreeBlock implements memory.Heap.
func (h *deviceHeap) FreeBlock(hb memory.HeapBlock) {
	h.mu.Lock()
	b, ok := h.blocks[hb.ID]
	delete(h.blocks, hb.ID)
	h.mu.Unlock()
	if ok {
		h.device.DestroyBlock(b)
		h.taken.remove(h.heap(), b.Size)
	}
}

// memoryOf returns the memory of a block.
func (h *deviceHeap) memoryOf(id uint64) vk.Memory {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.blocks[id].Memory
}
