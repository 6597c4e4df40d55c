package allocation

import (
	"fmt"
	"runtime"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/vk"
)

// imports is the host storage that is device memory at the moment.
type imports struct {
	// all is Options.ImportAll.
	all    bool
	blocks map[uint64]*importedBlock // by HeapBlock.ID
	heaps  []Imports                 // by Vulkan heap
}

// importedBlock is host storage that is device memory, and may not move until that ends.
type importedBlock struct {
	block vk.Block
	pin   runtime.Pinner
	// pinned is the pinned storage that the block is, with which it ends, otherwise nil. allocated
	// says that the driver has allocated it: then it is not imported.
	pinned    *Allocation
	allocated bool
}

// add notes a block.
func (i *imports) add(b *importedBlock, p *vk.Properties) {
	if i.blocks == nil {
		i.blocks = make(map[uint64]*importedBlock)
	}
	i.blocks[uint64(b.block.Buffer)] = b
	if !b.allocated {
		i.heaps[p.MemoryTypes[b.block.MemoryType].Heap].add(b.block.Size)
	}
}

// remove undoes add.
func (i *imports) remove(b *importedBlock, p *vk.Properties) {
	delete(i.blocks, uint64(b.block.Buffer))
	if !b.allocated {
		i.heaps[p.MemoryTypes[b.block.MemoryType].Heap].Remove(b.block.Size)
	}
}

// of returns a block by its HeapBlock.ID, nil if it is not host storage.
func (i *imports) of(id uint64) *importedBlock { return i.blocks[id] }

// importStorage imports the pages on which a section lies. A kernel that leaves its bounds can
// reach what else is on them, unless the device has robustBufferAccess2. Without that only a
// caller that insists gets pages which the section does not fill.
func (m *Memory) importStorage(section memory.Section, insist bool) (memory.Storage, error) {
	p := m.device.Properties()
	align := uintptr(p.Limits.MinImportedHostPointerAlignment)
	if align == 0 {
		return memory.Storage{}, fmt.Errorf("%w: device %q imports no host memory", vk.ErrUnsupported, p.Name)
	}
	before := section.Start() % align
	size := (before + uintptr(section.Size) + align - 1) &^ (align - 1)
	if !insist && !p.Features.RobustBufferAccess2 && size != uintptr(section.Size) {
		return memory.Storage{}, fmt.Errorf("%w: section %s does not fill its pages, and device %q has no robustBufferAccess2 to keep kernels out of the rest", vk.ErrUnsupported, section, p.Name)
	}
	b := new(importedBlock)
	b.pin.Pin(section.Ptr)
	var err error
	if b.block, err = m.device.ImportBlock(section.Start()-before, uint64(size)); err != nil {
		b.pin.Unpin()
		return memory.Storage{}, err
	}
	m.imports.add(b, p)
	return memory.Storage{
		Block:  memory.HeapBlock{ID: uint64(b.block.Buffer), Size: uint64(size), Address: b.block.Address},
		Offset: uint64(before), Size: section.Size, Own: section.Ptr,
	}, nil
}

// dropImport undoes importStorage. Pinned storage, of which the block has a part, stays. It reports
// false if the storage is no host storage.
func (m *Memory) dropImport(st memory.Storage) bool {
	b := m.imports.of(st.Block.ID)
	if b == nil {
		return false
	}
	if b.pinned == nil {
		m.endImport(b)
	}
	return true
}

// endImport gives up a block of host storage.
func (m *Memory) endImport(b *importedBlock) {
	p := m.device.Properties()
	m.imports.remove(b, p)
	m.device.DestroyBlock(b.block)
	if b.allocated {
		m.taken.remove(m.heapOf(&b.block), b.block.Size)
	}
	b.pin.Unpin()
}
