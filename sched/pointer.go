package sched

import (
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/tasks"
)

// pointers is what pointers into the device's memory name.
type pointers struct {
	// slots are what pointers name, free those that name nothing.
	slots []slot
	free  []uint32
	// firstGeneration is that of new slots.
	firstGeneration uint32
	// Addresses from nextAddress on stand for memory whose address is not known.
	nextAddress uint64
	// allocated is what Allocate returned and Free has not got back.
	allocated memory.Tally
}

// Errors of device pointers.
var (
	// ErrInvalidPointer: a pointer that is nil where one is needed, that points
	// into memory which was freed, past its end, or not to the beginning of an
	// allocation where that is asked for.
	ErrInvalidPointer = errors.New("invalid device pointer")
	// ErrOverlap: the source of a copy shares bytes with its destination.
	ErrOverlap = errors.New("source and destination overlap")
	// ErrAssociated: host storage is associated with other device memory, or is
	// mapped and not associated where it has to be.
	ErrAssociated = errors.New("host storage has other corresponding storage")
)

// Pointer is an address in the memory of a device. It identifies the storage into which it
// points, so that a stale pointer differs from one to storage that has the same address later.
// The zero Pointer is nil.
type Pointer struct {
	// Address is the address on the device, in bytes.
	Address uint64
	// storage names a slot and its generation.
	storage uint64
}

// Add returns the pointer n bytes further on.
func (p Pointer) Add(n int64) Pointer {
	p.Address += uint64(n)
	return p
}

// IsNil reports whether p is the zero Pointer.
func (p Pointer) IsNil() bool { return p == Pointer{} }

// firstAddress is where the addresses begin that stand for memory of a device
// that tells none; they are not used twice.
const firstAddress = 1 << 44

// slot is what a pointer's storage names.
type slot struct {
	store      *store
	generation uint32
}

// pointerLocked returns the pointer to the first byte of m.
func (s *Scheduler) pointerLocked(m *store) Pointer {
	if m.slot == 0 {
		if n := len(s.pointers.free); n > 0 {
			m.slot = s.pointers.free[n-1]
			s.pointers.free = s.pointers.free[:n-1]
		} else {
			s.pointers.slots = append(s.pointers.slots, slot{generation: s.pointers.firstGeneration})
			m.slot = uint32(len(s.pointers.slots))
		}
		s.pointers.slots[m.slot-1].store = m
		if m.address = m.Address(); m.address == 0 {
			s.pointers.nextAddress = max(s.pointers.nextAddress, firstAddress)
			m.address = s.pointers.nextAddress
			s.pointers.nextAddress += (m.Size + 255) &^ 255
		}
	}
	return Pointer{Address: m.address, storage: uint64(s.pointers.slots[m.slot-1].generation)<<32 | uint64(m.slot)}
}

// forgetPointersLocked makes all pointers to m stale.
func (s *Scheduler) forgetPointersLocked(m *store) {
	if m.slot == 0 {
		return
	}
	at := &s.pointers.slots[m.slot-1]
	at.store = nil
	if at.generation++; at.generation != 0 {
		s.pointers.free = append(s.pointers.free, m.slot)
	}
	m.slot = 0
}

// findLocked returns the store that p points into, and where, in bytes. size bytes from
// there on have to lie in it.
func (s *Scheduler) findLocked(p Pointer, size uint64) (*store, uint64, error) {
	if p.IsNil() {
		return nil, 0, fmt.Errorf("%w: nil", ErrInvalidPointer)
	}
	index, generation := uint32(p.storage), uint32(p.storage>>32)
	if index == 0 || int(index) > len(s.pointers.slots) || s.pointers.slots[index-1].generation != generation || s.pointers.slots[index-1].store == nil {
		return nil, 0, fmt.Errorf("%w: what %#x pointed into was freed%s", ErrInvalidPointer, p.Address, s.whereaboutsLocked(p.Address))
	}
	m := s.pointers.slots[index-1].store
	offset := p.Address - m.address
	if offset > m.Size || size > m.Size-offset {
		return nil, 0, fmt.Errorf("%w: %d bytes at %#x are not all inside of %s%s", ErrInvalidPointer, size, p.Address, m.describe(), s.whereaboutsLocked(p.Address))
	}
	return m, offset, nil
}

// describe names the store in errors.
func (m *store) describe() string {
	what := "mapped storage"
	switch {
	case m.allocation:
		what = "allocation"
	case m.registered:
		what = "registered buffer"
	}
	return fmt.Sprintf("%s [%#x,%#x) of %d bytes", what, m.address, m.address+m.Size, m.Size)
}

// whereaboutsLocked says what lives at an address, for errors.
func (s *Scheduler) whereaboutsLocked(address uint64) string {
	for i := range s.pointers.slots {
		if m := s.pointers.slots[i].store; m != nil && address-m.address < m.Size {
			return fmt.Sprintf("; %d bytes into %s now", address-m.address, m.describe())
		}
	}
	return ""
}

// Allocate returns a pointer to size bytes of device memory, contents undefined.
// Its error matches memory.ErrOutOfMemory when there is none.
func (s *Scheduler) Allocate(size uint64) (Pointer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusalLocked(); err != nil {
		return Pointer{}, err
	}
	st, err := s.memory.storage.Allocate(size)
	if err != nil {
		return Pointer{}, err
	}
	m, _ := s.spareStores.Get().(*store)
	if m == nil {
		m = new(store)
	}
	m.open(s, st)
	m.allocation = true
	if s.leakSites {
		m.site = memory.CallSite()
	}
	s.pointers.allocated.Add(m.Size)
	return s.pointerLocked(m), nil
}

// Free takes back what Allocate returned. Tasks that were generated with a pointer
// to it keep the memory until they are complete; it is used again only after them.
// The nil pointer is ignored.
func (s *Scheduler) Free(p Pointer) error {
	if p.IsNil() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.toFreeLocked(p)
	if err != nil {
		return err
	}
	s.forgetPointersLocked(m)
	s.pointers.allocated.Remove(m.Size)
	m.unpin()
	return nil
}

// Freeable returns how many bytes Free(p) would take back, or its error.
func (s *Scheduler) Freeable(p Pointer) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.toFreeLocked(p)
	if err != nil {
		return 0, err
	}
	return m.Size, nil
}

func (s *Scheduler) toFreeLocked(p Pointer) (*store, error) {
	return s.toGiveUpLocked(p, "allocated", func(m *store) bool { return m.allocation })
}

// toGiveUpLocked returns the store that p points to the beginning of, which was made in that
// way and is not associated with host storage.
func (s *Scheduler) toGiveUpLocked(p Pointer, made string, was func(*store) bool) (*store, error) {
	m, offset, err := s.findLocked(p, 0)
	switch {
	case err != nil:
		return nil, err
	case !was(m):
		return nil, fmt.Errorf("%w: %#x is in %s, which was not %s", ErrInvalidPointer, p.Address, m.describe(), made)
	case offset != 0:
		return nil, fmt.Errorf("%w: %#x is %d bytes into %s, not its beginning", ErrInvalidPointer, p.Address, offset, m.describe())
	case m.associations > 0:
		return nil, fmt.Errorf("%w: %s is associated with host storage (%d times)", ErrBusy, m.describe(), m.associations)
	}
	return m, nil
}

// Associate makes the bytes at offset from p the corresponding storage of the host
// section, with an infinite count. The same again does nothing. Host storage that
// is present otherwise is ErrAssociated, or memory.ErrPartialOverlap when a part
// of it is.
func (s *Scheduler) Associate(host memory.Section, p Pointer, offset uint64, label string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusalLocked(); err != nil {
		return err
	}
	m, at, err := s.findLocked(p, 0)
	switch {
	case err != nil:
		return err
	case !m.allocation && !m.registered:
		return fmt.Errorf("%w: %#x is in %s, which was neither allocated nor registered", ErrInvalidPointer, p.Address, m.describe())
	case host.Size > m.Size-at || offset > m.Size-at-host.Size:
		return fmt.Errorf("%w: %d bytes at offset %d from %#x run past the end of %s", ErrInvalidPointer, host.Size, offset, p.Address, m.describe())
	}
	at += offset
	st := m.Storage
	st.Offset, st.Size = st.Offset+at, host.Size
	block, err := s.presence.table.InsertInfinite(host, st)
	if err != nil {
		return s.associatedLocked(host, m, at, err)
	}
	block.Label = label
	block.State = s.associatedStateLocked(m)
	m.associations++
	m.addBlockLocked(block)
	m.pin()
	return nil
}

// associatedLocked returns nil if the section is associated with the bytes at an offset of
// the store already, else what is wrong about associating it; err is why the
// presence table does not take it.
func (s *Scheduler) associatedLocked(host memory.Section, m *store, at uint64, err error) error {
	old, _, overlap := s.presence.table.Lookup(host)
	switch {
	case overlap != nil:
		return overlap
	case old != nil && old.Section == host && stateOf(old).associated && stateOf(old).store == m && old.Storage.Offset == m.Offset+at:
		return nil
	case old != nil && stateOf(old).associated:
		return fmt.Errorf("%w: %s is associated with %s", ErrAssociated, old.Section, stateOf(old).store.describe())
	case old != nil:
		return fmt.Errorf("%w: %s is mapped", ErrAssociated, old.Section)
	}
	return err
}

// associatedStateLocked returns the state of a new block that is associated with m.
func (s *Scheduler) associatedStateLocked(m *store) *blockState {
	n := len(s.presence.spareBlocks)
	if n == 0 {
		return &blockState{store: m, associated: true, dirty: true}
	}
	state := s.presence.spareBlocks[n-1]
	s.presence.spareBlocks[n-1], s.presence.spareBlocks = nil, s.presence.spareBlocks[:n-1]
	state.store, state.dirty = m, true
	return state
}

// Disassociate ends an association of the section's first byte, whatever the
// count. The contents of the device memory stay. Storage that is not present is
// memory.ErrNotPresent, other storage ErrAssociated.
func (s *Scheduler) Disassociate(host memory.Section) error {
	w, err := s.disassociate(host)
	if w != nil {
		w.Finish()
	}
	return err
}

// disassociate is Disassociate without the work that comes of it, nil for none.
func (s *Scheduler) disassociate(host memory.Section) (*tasks.Work, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	host.Size = 0
	block, offset, err := s.presence.table.Lookup(host)
	switch {
	case err != nil:
		return nil, err
	case block == nil:
		return nil, fmt.Errorf("%w: nothing is associated with host address %#x", memory.ErrNotPresent, host.Start())
	case !stateOf(block).associated:
		return nil, fmt.Errorf("%w: %s is mapped and not associated", ErrAssociated, block.Section)
	case offset != 0:
		return nil, fmt.Errorf("%w: host address %#x is %d bytes into the associated %s, not its beginning", memory.ErrNotPresent, host.Start(), offset, block.Section)
	}
	if err := s.presence.table.Remove(block); err != nil {
		return nil, err
	}
	state := stateOf(block)
	state.associations--
	var w *tasks.Work
	if len(state.parked) > 0 {
		w = tasks.NewWork()
	}
	s.goneLocked(block, w)
	return w, nil
}

// MappedPointer returns the pointer to the storage that corresponds to the
// section, and whether there is any. A device that is lost has none.
func (s *Scheduler) MappedPointer(host memory.Section) (Pointer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	block, offset, err := s.presence.table.Lookup(host)
	if err != nil || block == nil || s.loss.err != nil {
		return Pointer{}, false
	}
	return s.pointerIntoLocked(block, offset), true
}

// pointerIntoLocked returns the pointer to a byte of the block's storage.
func (s *Scheduler) pointerIntoLocked(block *memory.Present, offset uint64) Pointer {
	m := stateOf(block).store
	return s.pointerLocked(m).Add(int64(block.Storage.Offset - m.Offset + offset))
}

// Present reports whether the section's first byte has corresponding storage. On a
// device that is lost nothing has.
func (s *Scheduler) Present(host memory.Section) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	host.Size = 0
	block, _, err := s.presence.table.Lookup(host)
	return err == nil && block != nil && s.loss.err == nil
}

// Accessible reports whether size bytes at p are memory of the device, which is not lost.
func (s *Scheduler) Accessible(p Pointer, size uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _, err := s.findLocked(p, size)
	return err == nil && s.loss.err == nil
}
