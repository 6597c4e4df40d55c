package vkomp

import (
	"fmt"
	"unsafe"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/memory"
)

// hostMemory is the memory allocated on the initial device: Go memory that is reachable
// while it is live or a task uses it. The zero hostMemory is empty.
type hostMemory struct {
	// mu is also held while an association is made, so that no memory is freed that gets one.
	mu lockrank.RWMutex[lockrank.HostMemory]
	// associated returns an ErrBusy if some of the storage is associated with memory of a device, other
	// than those in except.
	associated func(storage memory.Section, except []*device) error
	// live holds the allocations by number. Allocations that have the same address at
	// different times have different numbers.
	live map[uint64]memory.Section
	last uint64
	// allocated counts live; peak is the highest value of allocated.Bytes so far.
	allocated memory.Tally
	peak      uint64
	// leakSites is Options.LeakSites; sites then holds the sites of live.
	leakSites bool
	sites     map[uint64]*memory.Site
}

// hostBlock identifies an allocation of a hostMemory. It does not keep it reachable.
type hostBlock struct {
	number  uint64
	address uintptr
}

// hostAlignment is the alignment of a uint64.
const hostAlignment = 8

// alloc returns a new allocation of size bytes, at least one.
func (m *hostMemory) alloc(size uint64) (hostBlock, error) {
	if err := canReserve(size); err != nil {
		return hostBlock{}, fmt.Errorf("%w: %d bytes on the initial device: %w", ErrOutOfHostMemory, size, err)
	}
	words := make([]uint64, (size+hostAlignment-1)/hostAlignment)
	storage := memory.Section{Ptr: unsafe.Pointer(unsafe.SliceData(words)), Size: size}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.live == nil {
		m.live = make(map[uint64]memory.Section)
	}
	m.last++
	m.live[m.last] = storage
	m.allocated.Add(size)
	m.peak = max(m.peak, m.allocated.Bytes)
	if m.leakSites {
		if m.sites == nil {
			m.sites = make(map[uint64]*memory.Site)
		}
		m.sites[m.last] = memory.CallSite()
	}
	return hostBlock{number: m.last, address: storage.Start()}, nil
}

// find returns the storage of the allocation that p points into.
func (m *hostMemory) find(p *DevicePtr) (memory.Section, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.findLocked(p)
}

// findLocked is find for a caller that holds m.mu.
func (m *hostMemory) findLocked(p *DevicePtr) (memory.Section, error) {
	if storage, ok := m.live[p.block.number]; ok {
		return storage, nil
	}
	return memory.Section{}, m.staleLocked(p)
}

// associate calls associate while the memory that p points into cannot be freed, or returns an error if it
// has been freed.
func (m *hostMemory) associate(p *DevicePtr, associate func() error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if _, err := m.findLocked(p); err != nil {
		return fmt.Errorf("the host pointer: %w", err)
	}
	return associate()
}

// freeable returns the size of the allocation to whose beginning p points.
func (m *hostMemory) freeable(p *DevicePtr) (uint64, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	storage, err := m.toFreeLocked(p)
	return storage.Size, err
}

// toFreeLocked returns the storage of the allocation to whose beginning p points and with which nothing is
// associated. The caller holds m.mu.
func (m *hostMemory) toFreeLocked(p *DevicePtr) (memory.Section, error) {
	storage, ok := m.live[p.block.number]
	switch {
	case !ok:
		return storage, m.staleLocked(p)
	case p.at != 0:
		return storage, fmt.Errorf("%w: %v is %d bytes from the beginning of the allocation %v", ErrInvalidPointer, *p, p.at, storage)
	}
	return storage, m.associated(storage, nil)
}

// busy returns an ErrBusy if host storage in the memory is associated with memory of a device, other than
// those in except.
func (m *hostMemory) busy(except []*device) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, storage := range m.live {
		if err := m.associated(storage, except); err != nil {
			return err
		}
	}
	return nil
}

// free frees the allocation to whose beginning p points.
func (m *hostMemory) free(p *DevicePtr) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	storage, err := m.toFreeLocked(p)
	if err != nil {
		return err
	}
	delete(m.live, p.block.number)
	delete(m.sites, p.block.number)
	m.allocated.Remove(storage.Size)
	return nil
}

// close frees all memory, and returns ErrLeaked if any was not freed.
func (m *hostMemory) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var leaks memory.Leaks
	for number, storage := range m.live {
		leaks.Add("allocations", "", m.sites[number], storage.Size)
	}
	left := m.allocated
	m.live, m.sites, m.allocated = nil, nil, memory.Tally{}
	if left.Count == 0 {
		return nil
	}
	return fmt.Errorf("vkomp: initial device: close: %w: %d allocations not freed, %d bytes%s",
		ErrLeaked, left.Count, left.Bytes, leaks.Report())
}

// report adds the use of the memory to m.
func (h *hostMemory) report(m *DeviceMemory) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	m.Heaps = []HeapMemory{}
	m.Total = MemoryStats{LiveBytes: h.allocated.Bytes, PeakLiveBytes: h.peak, Allocations: h.allocated.Count}
	m.Allocated = MemoryCount(h.allocated)
}

// staleLocked returns the error for a pointer into an allocation that is not live. The caller holds
// m.mu.
func (m *hostMemory) staleLocked(p *DevicePtr) error {
	at := uintptr(p.Address())
	for _, storage := range m.live {
		if storage.Start() <= at && at < storage.End() {
			return fmt.Errorf("%w: %v points into memory that was freed; there the allocation %v lies now", ErrInvalidPointer, *p, storage)
		}
	}
	return fmt.Errorf("%w: %v points into memory that was freed", ErrInvalidPointer, *p)
}
