package races

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/tasks/race"
)

// storage is what the detector knows about a device's storage: what the program holds there beyond
// a construct, in the order in which it generates its constructs, and the storage to which it has
// pointers.
type storage struct {
	mu lockrank.Mutex[lockrank.RacesStorage]
	// table has the present storage. Its blocks have no device memory.
	table *memory.Table
	// uses and exits are working memory.
	uses  []memory.Use
	exits []memory.Exit
	// associated has the associations with memory of allocations.
	associated []association
	// pointees holds the storage that pointers point to, by a pointer with address 0 to the same
	// storage: a whole allocation, or mapped storage with its device address.
	pointees map[sched.Pointer]deviceStorage
}

// association is host storage that corresponds to memory of an allocation, from the address start.
type association struct {
	host       memory.Section
	start      uint64
	allocation race.Space
}

// deviceStorage is device memory to which the program has a pointer. It is mapped storage if host,
// the corresponding host address, is not nil.
type deviceStorage struct {
	Start, Size uint64
	host        unsafe.Pointer
	// self says that it is the host's own storage.
	self bool
	// allocation is the number of the allocation.
	allocation race.Space
}

// maxPointees is the largest number of pointees. When it is exceeded all are forgotten, and
// accesses by older pointers go unnoticed.
const maxPointees = 1 << 14

// storageOf returns what is known about a device's storage.
func (d *Detector) storageOf(device int) *storage {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.storage[device]
	if s == nil {
		s = &storage{table: memory.NewTable()}
		d.storage[device] = s
	}
	return s
}

// lookup returns the block that contains the section, or nil; s.mu is held.
func (s *storage) lookup(section memory.Section) *memory.Present {
	p, _, _ := s.table.Lookup(section)
	return p
}

// holds reports whether the program holds storage for the section, and whether it is the host's
// own storage.
func (s *storage) holds(section memory.Section) (held, self bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.lookup(section)
	return p != nil, p != nil && p.Shared
}

// toEnd returns the held storage from ptr to its end, and whether it is the host's own storage.
func (s *storage) toEnd(ptr unsafe.Pointer) (section memory.Section, self bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.lookup(memory.Section{Ptr: ptr})
	if p == nil {
		return memory.Section{}, false
	}
	return memory.Section{Ptr: ptr, Size: uint64(p.Section.End() - uintptr(ptr))}, p.Shared
}

// entered is the result of entering an item.
type entered struct {
	// created says that its construct has created the block, and first that the item is also
	// the first one of the construct in the block.
	created, first bool
	// self says that the block is the host's own storage.
	self bool
}

// enter enters the maps of a construct, and calls f for each item that is then present.
// A construct that fails at run time enters nothing.
func (s *storage) enter(maps []memory.Map, f func(*memory.Map, entered)) {
	if len(maps) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	noStorage := func(*memory.Map) (memory.Storage, error) { return memory.Storage{}, nil }
	if s.uses, err = s.table.Enter(maps, s.uses, noStorage, func(memory.Storage) {}); err != nil {
		return
	}
	for k := range s.uses {
		if u := &s.uses[k]; u.Created && maps[k].Share == memory.ShareMust {
			u.Present.Shared = true
		}
	}
	for k := range s.uses {
		u := &s.uses[k]
		if u.Present == nil {
			continue
		}
		before := slices.ContainsFunc(s.uses[:k], func(o memory.Use) bool { return o.Present == u.Present })
		f(&maps[k], entered{created: u.Created, first: u.Created && !before, self: u.Present.Shared})
	}
	clear(s.uses)
}

// exited is the result of exiting an item.
type exited struct {
	// gone says that the block is removed by the construct.
	gone bool
	// self says that the block is the host's own storage.
	self bool
}

// exit exits the maps of a construct, and calls f for each item that was present.
func (s *storage) exit(maps []memory.Map, f func(*memory.Map, exited)) {
	if len(maps) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exits = s.table.BeginExit(maps, s.exits)
	for _, e := range s.exits {
		f(&maps[e.Item], exited{gone: e.Present.Exiting(), self: e.Present.Shared})
	}
	s.table.EndExit(s.exits, nil)
	clear(s.exits)
}

// keep records storage that stays for ever.
func (s *storage) keep(section memory.Section) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		_, err := s.table.InsertInfinite(section, memory.Storage{})
		with := section
		var overlap *memory.OverlapError
		switch {
		case errors.As(err, &overlap):
			with = overlap.With
		case !errors.Is(err, memory.ErrAlreadyPresent):
			return
		}
		// The construct that was to map the overlapping block has failed: the device has kept
		// the section.
		if s.table.Remove(s.lookup(with)) != nil {
			return
		}
	}
}

// Declared implements observe.Listener.
func (d *Detector) Declared(devices []int, items []memory.Map) {
	for _, device := range devices {
		for k := range items {
			d.storageOf(device).keep(items[k].Section)
		}
	}
}

// Discarded implements observe.Listener.
func (d *Detector) Discarded(device int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.storage, device)
}

// Storage implements observe.Listener.
func (d *Detector) Storage(e *observe.Storage, do func() error) error {
	if err := do(); err != nil {
		return err
	}
	switch e.Op.Type {
	case ompt.TargetDataAlloc:
		if !e.Pointer.IsNil() {
			d.Allocated(e.Device, e.Pointer, e.Op.Bytes)
		}
	case ompt.TargetDataAssociate:
		d.associated(e.Device, e.Pointer, e.Host)
	case ompt.TargetDataDisassociate:
		d.disassociated(e.Device, e.Host)
	}
	return nil
}

// associated records that device memory corresponds to a host section.
func (d *Detector) associated(device int, p sched.Pointer, section memory.Section) {
	s := d.storageOf(device)
	s.keep(section)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(section) // it may be the same association again
	if of := s.pointees[whole(p)]; of.allocation != 0 {
		s.associated = append(s.associated, association{section, p.Address, of.allocation})
	}
}

// disassociated records that an association has ended.
func (d *Detector) disassociated(device int, section memory.Section) {
	s := d.storageOf(device)
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.lookup(memory.Section{Ptr: section.Ptr}); p != nil && p.Section.Ptr == section.Ptr {
		_ = s.table.Remove(p)
	}
	s.forget(section)
}

// forget removes the association of the host storage where a section begins; s.mu is held.
func (s *storage) forget(section memory.Section) {
	s.associated = slices.DeleteFunc(s.associated, func(a association) bool { return a.host.Ptr == section.Ptr })
}

// associatedWith returns the association of which size bytes of host storage, from the address
// start, are a part.
func (s *storage) associatedWith(start, size uint64) (association, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.associated {
		if at := start - uint64(a.host.Start()); at < a.host.Size && size <= a.host.Size-at {
			return a, true
		}
	}
	return association{}, false
}

// Allocated implements observe.Listener.
func (d *Detector) Allocated(device int, p sched.Pointer, size uint64) {
	d.mu.Lock()
	d.allocations++
	at := deviceStorage{Start: p.Address, Size: size, allocation: d.allocations}
	d.mu.Unlock()
	d.storageOf(device).note(p, at)
}

// Pointed implements observe.Listener.
func (d *Detector) Pointed(device int, p sched.Pointer, host unsafe.Pointer) {
	d.storageOf(device).note(p, deviceStorage{Start: p.Address, host: host})
}

// whole returns the same pointer for all pointers to one storage.
func whole(p sched.Pointer) sched.Pointer { return p.Add(-int64(p.Address)) }

// note records the storage to which p points, unless it is known.
func (s *storage) note(p sched.Pointer, at deviceStorage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.pointees[whole(p)]; known {
		return
	}
	if s.pointees == nil || len(s.pointees) >= maxPointees {
		s.pointees = make(map[sched.Pointer]deviceStorage)
	}
	s.pointees[whole(p)] = at
}

// at returns the storage to which p points, size bytes or all up to its end, in pieces: what is
// associated with host storage, and what lies between. The address of a piece is the host's if it
// corresponds to host storage. For unknown storage there are none.
func (s *storage) at(p sched.Pointer, size uint64, toEnd bool) (pieces []deviceStorage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.pointees[whole(p)]
	switch {
	case !ok:
		return nil
	case known.host != nil:
		return s.mappedAt(known, p, size, toEnd)
	}
	left := known.Start + known.Size - p.Address
	if !toEnd {
		left = min(left, size)
	}
	for at, end := p.Address, p.Address+left; at < end; {
		piece, n := deviceStorage{Start: at, allocation: known.allocation}, end-at
		for _, a := range s.associated {
			switch {
			case a.allocation != known.allocation:
			case at-a.start < a.host.Size:
				piece.Start, piece.host = uint64(a.host.Start())+at-a.start, a.host.Ptr
				n = min(n, a.start+a.host.Size-at)
			case a.start > at:
				n = min(n, a.start-at)
			}
		}
		piece.Size = n
		pieces = append(pieces, piece)
		at += n
	}
	return pieces
}

// mappedAt is at for a pointer to mapped storage; s.mu is held.
func (s *storage) mappedAt(in deviceStorage, p sched.Pointer, size uint64, toEnd bool) []deviceStorage {
	start := uint64(uintptr(in.host)) + p.Address - in.Start
	b := s.lookup(memory.Section{Ptr: in.host})
	if toEnd {
		size = 0
		if b != nil && start-uint64(b.Section.Start()) < b.Section.Size {
			size = uint64(b.Section.End()) - start
		}
	}
	if size == 0 {
		return nil
	}
	return []deviceStorage{{Start: start, Size: size, host: in.host, self: b != nil && b.Shared}}
}
