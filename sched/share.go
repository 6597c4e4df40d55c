package sched

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/vk"
)

// Sharing says when a target construct uses the host's own storage in place, where
// the device can import it.
type Sharing int

const (
	// ShareLarge: where a copy would cost more, and the memory is one.
	ShareLarge Sharing = iota
	// ShareNothing: only where the program insists.
	ShareNothing
	// ShareAll: wherever it is possible.
	ShareAll
)

// shareFrom is from how many bytes on importing costs less than copying: two calls
// of the driver, 20 to 30 µs, against 50 µs a MiB.
const shareFrom = 1 << 20

// imports are the host's storage that is device memory at the moment.
type imports struct {
	mode Sharing
	// unified: device and host have one memory.
	unified bool
	live    atomic.Int32
	mu      lockrank.Mutex[lockrank.Imports]
	blocks  map[uint64]*imported // by HeapBlock.ID
	heaps   []Imports            // by Vulkan heap
}

type imported struct {
	block vk.Block
	pin   runtime.Pinner
}

// share decides which items of a target construct may have the host's own storage
// as corresponding storage. Since the host sees at once what the device writes
// there, and the other way round, these are items that the construct alone maps,
// whose results go home anyway or which the kernel cannot write.
func (s *Scheduler) share(t *target) {
	if t.Kernel == nil || !t.Structured || s.memory.imports.mode == ShareNothing {
		return
	}
	for i := range t.Enter {
		m := &t.Enter[i]
		if m.Share != memory.ShareNever || m.Presence != memory.MayBeAbsent || m.DeviceSize != 0 {
			continue
		}
		if s.memory.imports.mode == ShareLarge && (m.Size < shareFrom || !s.memory.imports.unified) {
			continue
		}
		if s.canShare(t, i) {
			m.Share = memory.ShareMay
		}
	}
}

// canShare reports whether the kernel can use the host's storage of an item in
// place, and must not be kept from writing to it.
func (s *Scheduler) canShare(t *target, item int) bool {
	m := &t.Enter[item]
	l := &s.props.Limits
	// Kernels that pack bytes into words may write the whole last one.
	if l.MinImportedHostPointerAlignment == 0 || m.Start()%4 != 0 || m.Size%4 != 0 {
		return false
	}
	residual := uint64(m.Start()) % max(l.MinStorageBufferOffsetAlignment, 4)
	bound, readOnly := false, true
	for k := range t.Kernel.Bindings() {
		if !t.Kernel.Bindings()[k].Used || t.bufferItem(k) != item {
			continue
		}
		b := &t.Kernel.Bindings()[k]
		if !b.Takes(residual) {
			return false
		}
		bound, readOnly = true, readOnly && b.ReadOnly
	}
	return m.Type.From() || m.Type == memory.MapTo && bound && readOnly && !t.reachedOtherwise(item)
}

// reachedOtherwise reports whether the kernel may write to an item through another
// one, or through an address.
func (t *target) reachedOtherwise(item int) bool {
	m := &t.Enter[item]
	for i := range t.Enter {
		o := &t.Enter[i]
		if i == item || o.Start() >= m.End() || m.Start() >= max(o.End(), o.Start()+1) {
			continue
		}
		readOnly := false
		for k := range t.Kernel.Bindings() {
			if b := &t.Kernel.Bindings()[k]; b.Used && t.bufferItem(k) == i {
				if !b.ReadOnly {
					return true
				}
				readOnly = true
			}
		}
		if !readOnly && t.dispatch.explicit {
			return true
		}
	}
	return false
}

// bufferItem returns the item of Enter that the k-th binding is bound to, or -1.
func (t *target) bufferItem(k int) int {
	if t.dispatch.explicit {
		return t.Buffers[k].Map
	}
	return k
}

// allocateFor returns storage for a new block: the host's own, if the item may or
// has to share it, else device memory.
func (s *Scheduler) allocateFor(m *memory.Map) (memory.Storage, error) {
	if m.Share != memory.ShareNever {
		st, err := s.importStorage(m.Section, m.Share == memory.ShareMust || s.memory.imports.mode == ShareAll)
		if err == nil {
			return st, nil
		}
		if m.Share == memory.ShareMust {
			if errors.Is(err, memory.ErrOutOfMemory) {
				return memory.Storage{}, err
			}
			return memory.Storage{}, fmt.Errorf("%w: %w", memory.ErrNotShared, err)
		}
	}
	return s.memory.storage.Allocate(m.StorageSize())
}

// importStorage makes the section device memory: the pages that it lies on. What else
// is on them a kernel that leaves its bounds can reach, unless the device has
// robustBufferAccess2; where it has not, only who insists gets them.
func (s *Scheduler) importStorage(section memory.Section, insist bool) (memory.Storage, error) {
	p := s.props
	align := uintptr(p.Limits.MinImportedHostPointerAlignment)
	if align == 0 {
		return memory.Storage{}, fmt.Errorf("%w: device %q imports no host memory", vk.ErrUnsupported, p.Name)
	}
	before := section.Start() % align
	size := (before + uintptr(section.Size) + align - 1) &^ (align - 1)
	if !insist && !p.Features.RobustBufferAccess2 && size != uintptr(section.Size) {
		return memory.Storage{}, fmt.Errorf("%w: section %s does not fill its pages, and device %q has no robustBufferAccess2 to keep kernels out of the rest", vk.ErrUnsupported, section, p.Name)
	}
	i := new(imported)
	i.pin.Pin(section.Ptr)
	var err error
	if i.block, err = s.device.ImportBlock(section.Start()-before, uint64(size)); err != nil {
		i.pin.Unpin()
		return memory.Storage{}, err
	}
	id := uint64(i.block.Buffer)
	s.memory.imports.mu.Lock()
	defer s.memory.imports.mu.Unlock()
	if s.memory.imports.blocks == nil {
		s.memory.imports.blocks = make(map[uint64]*imported)
	}
	s.memory.imports.blocks[id] = i
	s.memory.imports.live.Add(1)
	s.memory.imports.heaps[p.MemoryTypes[i.block.MemoryType].Heap].add(i.block.Size)
	return memory.Storage{
		Block:  memory.HeapBlock{ID: id, Size: uint64(size), Address: i.block.Address},
		Offset: uint64(before), Size: section.Size, Own: section.Ptr,
	}, nil
}

// isImported reports whether the block of memory is the host's own.
func (m *deviceMemory) isImported(block uint64) bool {
	if m.imports.live.Load() == 0 {
		return false
	}
	m.imports.mu.Lock()
	defer m.imports.mu.Unlock()
	return m.imports.blocks[block] != nil
}

// dropImport is the opposite of importStorage. It reports whether the storage was
// imported.
func (s *Scheduler) dropImport(st memory.Storage) bool {
	if s.memory.imports.live.Load() == 0 {
		return false
	}
	s.memory.imports.mu.Lock()
	i := s.memory.imports.blocks[st.Block.ID]
	if i != nil {
		delete(s.memory.imports.blocks, st.Block.ID)
		s.memory.imports.heaps[s.props.MemoryTypes[i.block.MemoryType].Heap].Remove(i.block.Size)
	}
	s.memory.imports.mu.Unlock()
	if i == nil {
		return false
	}
	s.memory.imports.live.Add(-1)
	s.device.DestroyBlock(i.block)
	i.pin.Unpin()
	return true
}
