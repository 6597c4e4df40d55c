package vkomp

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
)

// pinnedStorage is host storage that is pinned for some devices.
type pinnedStorage struct {
	rt *Runtime
	// section keeps the storage reachable.
	section memory.Section
	// devices are those for which it is pinned, by number, and none of them the initial device.
	devices []*device
	// allocated says that AllocPinned has allocated the storage, and driver that the driver of its
	// only device has.
	allocated, driver bool
	// site is where the program has asked for it, with Options.LeakSites.
	site *memory.Site
	// state only increases, but for a Free that fails.
	state atomic.Int32
	// users are the tasks on the host that use the storage, if it is the driver's: Go knows nothing of
	// that memory. pinnedStorages.users is held while users are added.
	users atomic.Int32
}

// The states of pinned storage.
const (
	// pinnedMaking: it is not pinned on all of its devices yet.
	pinnedMaking int32 = iota
	pinnedLive
	// pinnedFreeing: a Free is under way, which may fail.
	pinnedFreeing
	pinnedFreed
)

// pinnedStorages is the storage that is pinned at the moment.
type pinnedStorages struct {
	// users is also held while storage of a driver is freed, so that it gets no users meanwhile.
	users lockrank.Mutex[lockrank.PinnedUsers]
	mu    lockrank.Mutex[lockrank.Leaf]
	// all are disjoint, and sorted by address.
	all []*pinnedStorage
	// drivers is how many of them are the drivers'.
	drivers atomic.Int32
	// leakSites is Options.LeakSites.
	leakSites bool
}

// addDevice adds a device for which storage is to be pinned. The initial device needs nothing.
func (p *pinnedStorage) addDevice(d *device) {
	if d.physical != nil && !slices.Contains(p.devices, d) {
		p.devices = append(p.devices, d)
	}
}

// among returns the declared items, of those that are sorted by address, that have some of the storage.
func (p *pinnedStorage) among(declared []memory.Map) []memory.Map {
	_, found := overlapping(declared, itemSection, p.section)
	return found
}

func itemSection(m *memory.Map) memory.Section { return m.Section }

// overlapping returns the index of the first element that ends after a section begins, and the elements that have bytes of the
// section. The sections of the elements are disjoint and sorted by address.
func overlapping[E any](list []E, of func(*E) memory.Section, section memory.Section) (first int, found []E) {
	first = sort.Search(len(list), func(i int) bool { return of(&list[i]).End() > section.Start() })
	n := first
	for n < len(list) && overlap(of(&list[n]), section) {
		n++
	}
	return first, list[first:n]
}

// overlapping returns where storage with a section belongs, and the storage that has bytes of it.
func (m *pinnedStorages) overlapping(section memory.Section) (at int, found []*pinnedStorage) {
	return overlapping(m.all, func(p **pinnedStorage) memory.Section { return (*p).section }, section)
}

// String names the storage in errors.
func (p *pinnedStorage) String() string {
	return fmt.Sprintf("pinned storage %s of %d bytes", p.section, p.section.Size)
}

// add adds storage. Storage of which some is pinned already is ErrBusy.
func (m *pinnedStorages) add(p *pinnedStorage) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, others := m.overlapping(p.section)
	if len(others) > 0 {
		return fmt.Errorf("%w: %s overlaps %v", ErrBusy, p.section, others[0])
	}
	m.all = slices.Insert(m.all, at, p)
	if p.driver {
		m.drivers.Add(1)
	}
	return nil
}

// declarable returns an error for an item that cannot be declared. Storage that the driver of a device has
// allocated is ErrUnsupported, since a declaration outlives the device. An item of which only a part is pinned
// for a device is ErrPartialOverlap.
func (m *pinnedStorages) declarable(item *memory.Map) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, found := m.overlapping(item.Section)
	for _, p := range found {
		switch {
		case len(p.devices) == 0:
		case p.driver:
			return fmt.Errorf("%w: %s is in %v, which is memory of the driver of device %d", ErrUnsupported, item.Label, p, p.devices[0].number)
		case item.Start() < p.section.Start() || p.section.End() < item.End():
			return fmt.Errorf("%w: of %s %s only a part is in %v", ErrPartialOverlap, item.Label, item.Section, p)
		}
	}
	return nil
}

// pinnedUsers is storage of which a task on the host is a user.
type pinnedUsers []*pinnedStorage

// use adds a section to what a task on the host uses, if it is memory of a driver.
func (m *pinnedStorages) use(users pinnedUsers, section memory.Section) pinnedUsers {
	if m.drivers.Load() == 0 {
		return users
	}
	m.users.Lock()
	defer m.users.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	_, found := m.overlapping(section)
	for _, p := range found {
		if p.driver {
			p.users.Add(1)
			users = append(users, p)
		}
	}
	return users
}

// Ended says that the task does not use the storage any more.
func (u pinnedUsers) Ended() {
	for _, p := range u {
		p.users.Add(-1)
	}
}

// retire says that storage is freed, unless it is declared: then the error matches ErrBusy.
func (m *pinnedStorages) retire(p *pinnedStorage) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if declared := p.among(p.rt.declared); len(declared) > 0 {
		return fmt.Errorf("%w: %s is declared: %s", ErrBusy, declared[0].Section, declared[0].Label)
	}
	p.state.Store(pinnedFreed)
	return nil
}

func (m *pinnedStorages) remove(p *pinnedStorage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, found := m.overlapping(p.section)
	if len(found) == 0 || found[0] != p {
		return // the runtime has been closed
	}
	m.all = slices.Delete(m.all, at, at+1)
	if p.driver {
		m.drivers.Add(-1)
	}
}

// of returns the storage that is pinned for a device.
func (m *pinnedStorages) of(d *device) (all []*pinnedStorage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.all {
		if p.state.Load() != pinnedMaking && slices.Contains(p.devices, d) {
			all = append(all, p)
		}
	}
	return all
}

// close forgets all storage, and returns ErrLeaked if some of it was allocated and not freed. What was
// only pinned ends with the runtime, as does what could not be freed because some of it is declared.
func (m *pinnedStorages) close(declared []memory.Map) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var leaks memory.Leaks
	var left memory.Tally
	for _, p := range m.all {
		p.state.Store(pinnedFreed)
		if p.allocated && len(p.among(declared)) == 0 {
			left.Add(p.section.Size)
			leaks.Add("pinned allocations", "", p.site, p.section.Size)
		}
	}
	m.all = nil
	if left.Count == 0 {
		return nil
	}
	return fmt.Errorf("vkomp: close: %w: %d pinned allocations not freed, %d bytes%s",
		ErrLeaked, left.Count, left.Bytes, leaks.Report())
}

// pinnedOn is storage whose pin on a device, which has a scheduler, is about to begin or to end.
type pinnedOn struct {
	s       *sched.Scheduler
	storage *sched.PinnedStorage
}

// free ends the pin on all devices, or on none of them if one is busy.
func (p *pinnedStorage) free(ctx context.Context) error {
	rt := p.rt
	if err := rt.usable(ctx); err != nil {
		return err
	}
	defer rt.using.leave(rt.using.enter())
	if !p.state.CompareAndSwap(pinnedLive, pinnedFreeing) {
		if p.state.Load() == pinnedFreed {
			return fmt.Errorf("%w: %v was freed", ErrInvalidPointer, p)
		}
		return fmt.Errorf("%w: %v is being freed", ErrBusy, p)
	}
	err := p.end()
	if err != nil {
		p.state.Store(pinnedLive)
	}
	return err
}

// end is free for storage that nothing else frees. After an error nothing has changed.
func (p *pinnedStorage) end() error {
	if p.driver {
		p.rt.pinned.users.Lock()
		defer p.rt.pinned.users.Unlock()
		if n := p.users.Load(); n > 0 {
			return fmt.Errorf("%w: %d tasks on the host use %v", ErrBusy, n, p)
		}
		// Other devices copy it as any other storage.
		for _, d := range p.rt.devices {
			if s := d.opened(); s != nil && !slices.Contains(p.devices, d) {
				if err := s.Mapped(p.section); err != nil {
					return fmt.Errorf("device %d: %w", d.number, err)
				}
			}
		}
	}
	var ending []pinnedOn
	var err error
	for _, d := range p.devices {
		s := d.opened()
		if s == nil {
			// A hard pause has ended it there. Until it is removed, no opening of the device may
			// pin it again.
			d.life.Lock()
			defer d.life.Unlock()
			if s = d.opened(); s == nil {
				continue
			}
		}
		var a *sched.PinnedStorage
		if a, err = s.WithdrawPinned(p.section); err != nil {
			err = fmt.Errorf("device %d: %w", d.number, err)
			break
		}
		if a != nil {
			ending = append(ending, pinnedOn{s, a})
		}
	}
	if err == nil {
		err = p.rt.pinned.retire(p)
	}
	if err != nil {
		for _, w := range ending {
			w.s.RestorePinned(w.storage)
		}
		return err
	}
	for _, w := range ending {
		w.s.EndPinned(w.storage)
	}
	p.rt.pinned.remove(p)
	return nil
}

// repin pins on a device that was opened what is pinned for it: all, if a hard pause has closed the
// device before. Storage that the device does not import any more is copied as any other.
func (d *device) repin(s *sched.Scheduler) {
	for _, p := range d.rt.pinned.of(d) {
		if err := s.Pin(p.section); err != nil {
			d.rt.log.Warn("storage is not pinned any more", "device", d.number, "storage", p.String(), "reason", err)
		}
	}
}

// driverPinned returns ErrBusy if host storage is memory of the device's driver, which the program may
// be using.
func (d *device) driverPinned() error {
	for _, p := range d.rt.pinned.of(d) {
		if p.driver {
			return fmt.Errorf("%w: %v is memory of the driver of device %d: free it first", ErrBusy, p, d.number)
		}
	}
	return nil
}
