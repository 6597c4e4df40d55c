package allocation

import (
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/vk"
)

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

	// mu guards blocks, which goroutines that copy look up without the lock that guards the memory.
	mu     lockrank.RWMutex[lockrank.Leaf]
	blocks map[uint64]vk.Block
}

func newHeap(d Device, memoryType int, hidden, coherent bool, taken *footprint) *heap {
	coherent = coherent && d.Properties().MemoryTypes[memoryType].Flags&vk.MemoryHostCoherent != 0
	return &heap{device: d, memoryType: memoryType, hidden: hidden, coherent: coherent, taken: taken, blocks: make(map[uint64]vk.Block)}
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
