package memory

import (
	"unsafe"

	"github.com/vkomp/vkomp/timeline"
)

// Heap provides device memory from the driver: one block is one VkDeviceMemory
// with one VkBuffer bound to it. It must not call the allocator back.
type Heap interface {
	// AllocateBlock returns a block of at least size bytes. Its error wraps
	// ErrOutOfMemory when the driver is out of memory.
	AllocateBlock(size uint64) (HeapBlock, error)

	// FreeBlock gives back a block that AllocateBlock returned.
	FreeBlock(HeapBlock)
}

// HeapBlock is one block of a Heap.
type HeapBlock struct {
	ID      uint64         // the heap's own identifier of the block, not interpreted here
	Size    uint64         // bytes
	Host    unsafe.Pointer // host address of the mapped block, nil if the host cannot access it
	Address uint64         // device address of the first byte, 0 when unknown
}

// Storage is memory on the device: Size bytes at Offset of a heap's block. It
// is a plain value, dead once it has been freed.
type Storage struct {
	Block  HeapBlock // the heap's block
	Offset uint64    // bytes, a multiple of the allocator's alignment
	Size   uint64    // bytes, as asked

	// Own is the host storage itself where host and device share it (unified
	// memory or an import), else nil.
	Own unsafe.Pointer

	owner      *Allocator
	chunk      *chunk
	generation uint64
}

// LastUse returns the frontier of the memory's previous users: whoever uses the
// storage is ordered after it. It belongs to the allocator and holds until the
// storage is freed; Clone it to change it or to keep it for longer.
func (s *Storage) LastUse() timeline.Frontier {
	if s.chunk == nil {
		return timeline.Frontier{}
	}
	return s.chunk.lastUse
}

// Host returns the host address of the storage, nil if the host cannot access it.
func (s Storage) Host() unsafe.Pointer {
	if s.Own != nil {
		return s.Own
	}
	if s.Block.Host == nil {
		return nil
	}
	return unsafe.Add(s.Block.Host, s.Offset)
}

// Address returns the device address of the storage, 0 when unknown.
func (s Storage) Address() uint64 {
	if s.Block.Address == 0 {
		return 0
	}
	return s.Block.Address + s.Offset
}
