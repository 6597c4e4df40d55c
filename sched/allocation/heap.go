package allocation

import (
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/vk"
)

// use is what blocks of device memory are for.
type use int

const (
	// forStorage: corresponding storage, and what memory routines allocate.
	forStorage use = iota
	// forStaging: memory between the host and storage.
	forStaging
)

// chooseMemoryType returns the memory type to use among those in bits. Storage is device-local,
// and visible to the host as well if that memory is no small window, so that the host can copy
// without staging, unless hidden is set. Staging is visible to the host and, if possible, cached,
// because the host reads results from it.
func chooseMemoryType(p *vk.Properties, bits uint32, use use, hidden bool) (int, error) {
	var largest uint64
	for _, h := range p.MemoryHeaps {
		if h.DeviceLocal {
			largest = max(largest, h.Size)
		}
	}
	score := func(t vk.MemoryType) int {
		switch {
		case t.Flags&(vk.MemoryProtected|vk.MemoryLazy) != 0:
			return -1
		case use == forStaging:
			return stagingScore(t.Flags)
		}
		// A discrete GPU without resizable BAR shows the host only a window of its memory, which
		// is too small to hold what programs map.
		window := p.Type == vk.DeviceDiscrete && p.MemoryHeaps[t.Heap].Size < largest/2
		return storageScore(t.Flags, window, hidden)
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
		if use == forStaging {
			what = "staging (host-visible)"
		}
		return 0, fmt.Errorf("%w: device %q has no memory type for %s among %#x", vk.ErrUnsupported, p.Name, what, bits)
	}
	return best, nil
}

// storageScore rates a memory type for storage: the highest is best. window says that the host
// sees only a small part of the device's memory through this type.
func storageScore(flags vk.MemoryFlags, window, hidden bool) (score int) {
	if flags&vk.MemoryDeviceLocal != 0 {
		score += 4
	}
	visible := flags&vk.MemoryHostVisible != 0
	switch {
	case !visible || hidden:
		// If the host's view is not used, memory without one is as good.
	case window:
		score--
	case flags&vk.MemoryHostCoherent != 0:
		score += 2
	default:
		score++
	}
	return score
}

// stagingScore rates a memory type for staging: the highest is best, and -1 is unfit.
func stagingScore(flags vk.MemoryFlags) (score int) {
	if flags&vk.MemoryHostVisible == 0 {
		return -1
	}
	score = 1
	if flags&vk.MemoryHostCached != 0 {
		score += 4
	}
	if flags&vk.MemoryDeviceLocal == 0 {
		score += 2
	}
	if flags&vk.MemoryHostCoherent != 0 {
		score++
	}
	return score
}

// heap is one memory type of a device as a memory.Heap.
type heap struct {
	device     Device
	memoryType int
	// hidden keeps the host's view of the memory from the allocator.
	hidden bool
	// coherent says that host and device see each other's writes without flush and invalidation.
	coherent bool
	// taken counts the blocks of all heaps of the device.
	taken *footprint

	mu     lockrank.RWMutex[lockrank.Heap]
	blocks map[uint64]vk.Block
}

func newHeap(d Device, use use, hidden, coherent bool, taken *footprint) (*heap, error) {
	bits, err := d.BlockMemoryTypes(1 << 20)
	if err != nil {
		return nil, err
	}
	t, err := chooseMemoryType(d.Properties(), bits, use, hidden)
	if err != nil {
		return nil, err
	}
	coherent = coherent && d.Properties().MemoryTypes[t].Flags&vk.MemoryHostCoherent != 0
	return &heap{device: d, memoryType: t, hidden: hidden, coherent: coherent, taken: taken, blocks: make(map[uint64]vk.Block)}, nil
}

// index returns which of the device's heaps h is part of.
func (h *heap) index() int { return h.device.Properties().MemoryTypes[h.memoryType].Heap }

// AllocateBlock implements memory.Heap. A block beyond the heap's budget is refused, if the
// device reports the budget.
func (h *heap) AllocateBlock(size uint64) (memory.HeapBlock, error) {
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
	h.taken.add(h.index(), b.Size)
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
func (h *heap) FreeBlock(hb memory.HeapBlock) {
	h.mu.Lock()
	b, ok := h.blocks[hb.ID]
	delete(h.blocks, hb.ID)
	h.mu.Unlock()
	if ok {
		h.device.DestroyBlock(b)
		h.taken.remove(h.index(), b.Size)
	}
}

// memoryOf returns the VkDeviceMemory of a block.
func (h *heap) memoryOf(id uint64) vk.Memory {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.blocks[id].Memory
}

// room is what a heap of a device has for the process.
type room struct {
	name string // of the device
	heap int
	size uint64
	// told says that the device reports the budget.
	told   bool
	budget vk.HeapBudget
	// taken is what vkomp has of the heap, in bytes.
	taken uint64
}

// room asks the device what h's heap has left.
func (h *heap) room() room {
	p, index := h.device.Properties(), h.index()
	r := room{name: p.Name, heap: index, size: p.MemoryHeaps[index].Size}
	budgets, told := h.device.MemoryBudget()
	if told && index < len(budgets) {
		r.told, r.budget = true, budgets[index]
	}
	h.taken.mu.Lock()
	defer h.taken.mu.Unlock()
	r.taken = h.taken.heaps[index].bytes
	return r
}

// left returns how many bytes of the budget are left.
func (r *room) left() uint64 {
	if r.budget.Usage >= r.budget.Budget {
		return 0
	}
	return r.budget.Budget - r.budget.Usage
}

// String gives the figures, for errors.
func (r room) String() string {
	budget := "budget unknown"
	if r.told {
		budget = fmt.Sprintf("%d bytes of a budget of %d in use by the process", r.budget.Usage, r.budget.Budget)
	}
	return fmt.Sprintf("heap %d of device %q has %d bytes, %d of them in blocks of vkomp, %s", r.heap, r.name, r.size, r.taken, budget)
}
