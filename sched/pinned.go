package sched

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/order"
)

// PinnedStorage is host storage that the device accesses itself.
type PinnedStorage = allocation.Allocation

// Pin is ReservePinned and ConfirmPinned.
func (s *Scheduler) Pin(section memory.Section) error {
	a, err := s.ReservePinned(section)
	if err == nil {
		s.ConfirmPinned(a)
	}
	return err
}

// ReservePinned has the device access a section of host storage itself until EndPinned: copies between it
// and the device's memory need no staging memory, and maps can share it. There are no such copies before
// ConfirmPinned, so that CancelPinned can undo the call whatever happens to the storage meanwhile. None of
// the storage may be pinned already. While device and host share some of it otherwise, the error matches
// ErrBusy. While it has only a part of a present block, the error matches memory.ErrPartialOverlap: updates
// and exits of the block would find only a part of their storage pinned, and could not copy.
func (s *Scheduler) ReservePinned(section memory.Section) (*PinnedStorage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusalLocked(); err != nil {
		return nil, err
	}
	for block := range s.presence.table.Touching(section) {
		switch {
		case block.Shared:
			// The uses of one memory would be recorded in two places.
			return nil, fmt.Errorf("%w: device and host share %s, which cannot be pinned as %s meanwhile", ErrBusy, block.Section, section)
		case block.Section.Start() < section.Start() || section.End() < block.Section.End():
			return nil, &memory.OverlapError{Section: section, With: block.Section, WithLabel: block.Label, Present: true}
		}
	}
	a, err := s.memory.ImportPinned(section)
	if err != nil {
		return nil, fmt.Errorf("import of %s: %w", section, err)
	}
	a.Reserved = true
	s.memory.AddPinned(a)
	return a, nil
}

// ConfirmPinned has tasks that are generated from now on find reserved storage pinned.
func (s *Scheduler) ConfirmPinned(a *PinnedStorage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.Reserved = false
}

// CancelPinned undoes ReservePinned. Maps that share the storage keep what they have of it.
func (s *Scheduler) CancelPinned(a *PinnedStorage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.memory.AllPinned(), a) { // the scheduler has not been closed
		s.memory.WithdrawPinned(a)
		s.memory.EndPinned(a)
	}
}

// AllocatePinned has the driver allocate size bytes of host storage, which is zero and is pinned until
// EndPinned frees it.
func (s *Scheduler) AllocatePinned(size uint64) (memory.Section, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusalLocked(); err != nil {
		return memory.Section{}, err
	}
	a, err := s.memory.AllocatePinned(size)
	if err != nil {
		return memory.Section{}, err
	}
	s.memory.AddPinned(a)
	return a.Section(), nil
}

// WithdrawPinned begins the end of pinned storage, which EndPinned completes and RestorePinned undoes:
// tasks that are generated meanwhile find it not pinned. The result is nil if the section is not
// pinned. While tasks use the storage, or some of it is mapped, the error matches ErrBusy. On a lost
// device no map counts, since nothing will be copied for it, and tasks only until all of them are over.
func (s *Scheduler) WithdrawPinned(section memory.Section) (*PinnedStorage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.memory.FindPinned(section)
	if err != nil || a == nil {
		return nil, err
	}
	switch block, n := s.touchedLocked(a.Section()), a.Keepers()-1; {
	case s.loss.atRest && s.life.live == 0:
	case block != nil && s.loss.err == nil:
		return nil, fmt.Errorf("%w: %s is mapped: %s", ErrBusy, a.Describe(), itemName(block.Label, block.Section.String()))
	case n > 0:
		return nil, fmt.Errorf("%w: %d tasks use %s", ErrBusy, n, a.Describe())
	}
	s.memory.WithdrawPinned(a)
	return a, nil
}

// RestorePinned undoes WithdrawPinned.
func (s *Scheduler) RestorePinned(a *PinnedStorage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.RestorePinned(a)
}

// EndPinned ends pinned storage that was withdrawn. Memory that the driver had allocated is freed.
func (s *Scheduler) EndPinned(a *PinnedStorage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.EndPinned(a)
}

// keepPinnedLocked keeps the pinned storage in which the host storage of the task's items lies, until
// the task is complete. The error matches memory.ErrPartialOverlap for an item of which only a part
// is pinned.
func (s *Scheduler) keepPinnedLocked(t *target) error {
	if !s.memory.HasPinned() {
		return nil
	}
	hosts := &t.entry.hosts
	for _, maps := range [...][]memory.Map{t.Enter, t.Exit} {
		if err := s.keepPinnedOfLocked(hosts, maps); err != nil {
			return err
		}
	}
	for i := range t.transfers.All {
		x := &t.transfers.All[i]
		if !x.Kind.FromHost() && !x.Kind.ToHost() {
			continue
		}
		if err := s.keepPinnedAtLocked(hosts, x.HostSpan(), x.Label); err != nil {
			return err
		}
	}
	return nil
}

// keepPinnedOfLocked adds the pinned storage in which the host storage of list items lies to that which a task keeps.
func (s *Scheduler) keepPinnedOfLocked(hosts *[]*PinnedStorage, maps []memory.Map) error {
	for i := range maps {
		m := &maps[i]
		if !m.Type.To() && !m.Type.From() && m.Share == memory.ShareNever {
			continue // the host's bytes are not used
		}
		if err := s.keepPinnedAtLocked(hosts, m.Section, m.Label); err != nil {
			return err
		}
	}
	return nil
}

// unpinHostsLocked gives up pinned storage that a task has kept.
func unpinHostsLocked(hosts *[]*PinnedStorage) {
	for _, a := range *hosts {
		a.Unpin()
	}
	empty(hosts)
}

// checkPinnedLocked returns an error that matches memory.ErrPartialOverlap if the task's entry maps storage
// of which a part is pinned: it may have been pinned after the task was generated. A structured task copies
// back what it maps, since it found nothing pinned. Other storage would stay, and the construct that ends it
// could not copy.
func (s *Scheduler) checkPinnedLocked(t *target) error {
	if t.Structured || !s.memory.HasPinned() {
		return nil
	}
	for i := range t.Enter {
		m := &t.Enter[i]
		if _, err := s.memory.FindPinned(m.Section); err != nil {
			return fmt.Errorf("%s: %w", m.Label, err)
		}
	}
	return nil
}

// keepPinnedAtLocked adds the pinned storage in which a section lies to that which a task keeps, sorted by address. Each
// counts once, since errors say how many tasks use it.
func (s *Scheduler) keepPinnedAtLocked(hosts *[]*PinnedStorage, section memory.Section, label string) error {
	a, err := s.memory.FindPinned(section)
	if err != nil {
		return fmt.Errorf("%s: %w", label, err)
	}
	if a == nil || a.Reserved {
		return nil
	}
	i, found := slices.BinarySearchFunc(*hosts, a, func(a, b *PinnedStorage) int {
		return cmp.Compare(a.Section().Start(), b.Section().Start())
	})
	if !found {
		a.Pin()
		*hosts = slices.Insert(*hosts, i, a)
	}
	return nil
}

// pinned returns the pinned storage in which a section lies, nil if there is none that the task
// keeps.
func (e *entry) pinned(section memory.Section) *PinnedStorage {
	i := sort.Search(len(e.hosts), func(i int) bool { return e.hosts[i].Section().End() >= section.End() })
	if i < len(e.hosts) && e.hosts[i].Section().Start() <= section.Start() {
		return e.hosts[i]
	}
	return nil
}

// followPinnedLocked makes the task come after the copies in flight between the device and pinned
// storage that it maps or unmaps. The entry and the exit of a block are one step for the program: once
// it knows that the task is complete, it may write storage from which another task's entry copies.
func (s *Scheduler) followPinnedLocked(t *target) {
	if !s.memory.HasPinned() {
		return
	}
	s.order.placing.Set(order.SyncPoint{})
	s.followPinnedOfLocked(t.Enter)
	s.followPinnedOfLocked(t.Exit)
	t.order.After.AddAll(&s.order.placing.SyncSet)
}

// followPinnedOfLocked adds to s.order.placing the copies in flight between the device and the pinned
// storage of list items.
func (s *Scheduler) followPinnedOfLocked(maps []memory.Map) {
	if !s.memory.HasPinned() {
		return
	}
	for i := range maps {
		if a, _ := s.memory.FindPinned(maps[i].Section); a != nil {
			a.Follow(&s.order.placing, a.Part(maps[i].Section))
		}
	}
}

// copiesLateLocked reports whether the copy to the host at the exit of an item, if it is due, is
// planned when that is known.
func (s *Scheduler) copiesLateLocked(t *target, m *memory.Map) bool {
	return m.DeviceSize == 0 && m.Size >= s.transfers.Late && t.entry.pinned(m.Section) != nil
}
