package vkomp

import (
	"slices"
	"sort"
	"sync"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/tasks/race"
)

// raceStorage is what the detector knows of a device's storage: what the program holds
// there by constructs that last, in the order in which it generates them, and what it
// has pointers to.
type raceStorage struct {
	mu sync.Mutex
	// blocks are mapped storage, ordered by address and disjoint.
	blocks []*heldBlock
	// pointees are what pointers point to, by a pointer of address 0 to the same storage.
	pointees map[sched.Pointer]*pointee
}

// heldBlock is storage that is mapped at once.
type heldBlock struct {
	section memory.Section
	// count is how many constructs hold it, -1 for ever.
	count int
	self  bool
}

// pointee is storage that the program has a pointer to: of memory from Alloc all of it,
// and what of it is associated; of mapped storage an address and what that corresponds to.
type pointee struct {
	deviceStorage
	associated []deviceStorage
}

// deviceStorage is memory of a device, which corresponds to host storage if host is not
// nil.
type deviceStorage struct {
	Start, Size uint64
	host        unsafe.Pointer
	// allocation numbers memory from Alloc.
	allocation race.Space
}

// maxPointees bounds the storage that is known by pointers: beyond, it is found out anew,
// and accesses by older pointers go unnoticed.
const maxPointees = 1 << 14

// whole returns what is the same for all pointers to one storage.
func whole(p sched.Pointer) sched.Pointer { return p.Add(-int64(p.Address)) }

// storageOf returns what is known of a device's storage.
func (r *raceDetector) storageOf(d *device) *raceStorage {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.storage[d]
	if s == nil {
		s = &raceStorage{}
		r.storage[d] = s
	}
	return s
}

// forget forgets what is known of a device's storage, of which nothing is left; it gets
// what is declared anew.
func (r *raceDetector) forget(d *device, declared []memory.Map) {
	if r == nil {
		return
	}
	r.mu.Lock()
	delete(r.storage, d)
	r.mu.Unlock()
	r.declared([]*device{d}, declared)
}

// find returns the index of the first block that ends behind an address.
func (s *raceStorage) find(address uint64) int {
	return sort.Search(len(s.blocks), func(i int) bool {
		b := &s.blocks[i].section
		return uint64(b.Start())+b.Size > address
	})
}

// block returns the block that the section is in, nil if there is none.
func (s *raceStorage) block(section memory.Section) *heldBlock {
	return s.blockAt(uint64(section.Start()), section.Size)
}

func (s *raceStorage) blockAt(at, size uint64) *heldBlock {
	i := s.find(at)
	if i == len(s.blocks) {
		return nil
	}
	b := s.blocks[i]
	if from := uint64(b.section.Start()); from > at || at+size > from+b.section.Size {
		return nil
	}
	return b
}

// holds reports whether the program holds storage for the section, and whether that is
// the host's own.
func (s *raceStorage) holds(section memory.Section) (held, self bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.block(section)
	return b != nil, b != nil && b.self
}

// toEnd returns the held storage from p on.
func (s *raceStorage) toEnd(p unsafe.Pointer) (memory.Section, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.block(memory.Section{Ptr: p, Size: 1})
	if b == nil {
		return memory.Section{}, false
	}
	at := uint64(uintptr(p)) - uint64(b.section.Start())
	return memory.Section{Ptr: p, Size: b.section.Size - at}, true
}

// hold counts one holder more for the block of an item, which a construct does once.
// It returns nil for an item that holds nothing.
func (s *raceStorage) hold(m *memory.Map, counted map[*heldBlock]bool) *heldBlock {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.block(m.Section)
	switch {
	case b == nil && (m.Presence != memory.MayBeAbsent || m.Size == 0):
		return nil
	case b == nil:
		i := s.find(uint64(m.Start()))
		if i < len(s.blocks) && uint64(s.blocks[i].section.Start()) < uint64(m.Start())+m.Size {
			return nil // in part: that fails when it runs
		}
		b = &heldBlock{section: m.Section, self: m.Share == memory.ShareMust}
		s.blocks = slices.Insert(s.blocks, i, b)
	}
	if !counted[b] && b.count >= 0 {
		b.count++
	}
	counted[b] = true
	return b
}

// letGo counts one holder less for the block of an item, and reports whether the block
// goes with it.
func (s *raceStorage) letGo(m *memory.Map, counted map[*heldBlock]bool) (gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.block(m.Section)
	if b == nil || b.count < 0 {
		return false
	}
	if m.Type == memory.MapDelete || m.Delete {
		b.count = 0
	} else if !counted[b] {
		b.count--
	}
	counted[b] = true
	if b.count > 0 {
		return false
	}
	i := slices.Index(s.blocks, b)
	s.blocks = slices.Delete(s.blocks, i, i+1)
	return true
}

// keeps notes storage that is mapped for ever.
func (r *raceDetector) keeps(d *device, section memory.Section) {
	if r == nil {
		return
	}
	s := r.storageOf(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	// What was to be there was not: the construct that was to map it has failed.
	start, end := uint64(section.Start()), uint64(section.Start())+section.Size
	i := s.find(start)
	j := i
	for j < len(s.blocks) && uint64(s.blocks[j].section.Start()) < end {
		j++
	}
	s.blocks = slices.Replace(s.blocks, i, j, &heldBlock{section: section, count: -1})
}

// declared notes storage that every device has.
func (r *raceDetector) declared(devices []*device, items []memory.Map) {
	if r == nil {
		return
	}
	for _, d := range devices {
		for k := range items {
			r.keeps(d, items[k].Section)
		}
	}
}

// associates notes that memory of the device, from Alloc, corresponds to a host section.
func (r *raceDetector) associates(d *device, p sched.Pointer, section memory.Section) {
	if r == nil {
		return
	}
	r.keeps(d, section)
	s := r.storageOf(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.pointees[whole(p)]; at != nil {
		at.associated = append(at.associated, deviceStorage{Start: p.Address, Size: section.Size, host: section.Ptr})
	}
}

// drops notes that an association has ended.
func (r *raceDetector) drops(d *device, section memory.Section) {
	if r == nil {
		return
	}
	s := r.storageOf(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocks = slices.DeleteFunc(s.blocks, func(b *heldBlock) bool { return b.section.Ptr == section.Ptr })
	for _, at := range s.pointees {
		at.associated = slices.DeleteFunc(at.associated, func(a deviceStorage) bool { return a.host == section.Ptr })
	}
}

// allocated notes memory that the program has got from Alloc.
func (r *raceDetector) allocated(d *device, p sched.Pointer, size uint64) {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.allocations++
	at := &pointee{deviceStorage: deviceStorage{Start: p.Address, Size: size, allocation: r.allocations}}
	r.mu.Unlock()
	r.storageOf(d).note(p, at)
}

// points notes that the program has a pointer to storage that corresponds to a host
// address.
func (r *raceDetector) points(d *device, p sched.Pointer, host unsafe.Pointer) {
	if r != nil {
		r.storageOf(d).note(p, &pointee{deviceStorage: deviceStorage{Start: p.Address, host: host}})
	}
}

// note adds what p points to, unless that is known.
func (s *raceStorage) note(p sched.Pointer, at *pointee) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.pointees[whole(p)]; known != nil {
		return
	}
	if s.pointees == nil || len(s.pointees) >= maxPointees {
		s.pointees = make(map[sched.Pointer]*pointee)
	}
	s.pointees[whole(p)] = at
}

// at returns what p points to: size bytes, or all to the end of the storage, at an
// address of the host where it corresponds to host storage. What it does not know has no
// size.
func (s *raceStorage) at(p sched.Pointer, size uint64, toEnd bool) deviceStorage {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.pointees[whole(p)]
	if known == nil {
		return deviceStorage{}
	}
	in := known.deviceStorage
	for _, a := range known.associated {
		if p.Address-a.Start < a.Size {
			in = a
		}
	}
	at := deviceStorage{Start: p.Address, Size: size, allocation: in.allocation}
	if in.host == nil {
		left := in.Start + in.Size - p.Address
		if toEnd || size > left {
			at.Size = left
		}
		return at
	}
	at.host = in.host
	at.Start = uint64(uintptr(in.host)) + p.Address - in.Start
	if toEnd {
		at.Size = 0
		if b := s.blockAt(at.Start, 1); b != nil {
			at.Size = uint64(b.section.Start()) + b.section.Size - at.Start
		}
	}
	return at
}
