package tasks

import (
	"slices"
	"unsafe"
)

// failedStorage records the storage of tasks that failed, or that were not run because a predecessor
// failed. Until a wait has reported the failure, tasks that depend on them through this storage
// are not run. There is one entry for each section and class of dependence, however many tasks
// used it. It is guarded by the scope's lock.
type failedStorage struct {
	entries map[failedKey]*span[failedSection]
	// byClass has the same entries, indexed by the bytes of their sections.
	byClass [classes]spans[failedSection]
}

// failedKey is a section and the class in which tasks depend on it.
type failedKey struct {
	section
	class class
}

// failedSection is the entry for one section and class.
type failedSection struct {
	// failures are the failures of tasks that used the section, the newest last.
	failures []failedUse
	// keep keeps the storage reachable, so that its address cannot be reused.
	keep unsafe.Pointer
	key  failedKey
}

// failedUse says that tasks which used a section have failed, were not run, or ran although a task on which they
// depend had failed, because of a failure.
type failedUse struct {
	*tally
	// first is the lowest number of these tasks. A child of an importing task depends only on tasks that were
	// generated before its parent: on none of these tasks, if first is not below the parent's number.
	first uint64
}

// everywhere is the storage of omp_all_memory.
var everywhere = section{size: ^uintptr(0)}

// extent returns the storage of the item.
func (a *access) extent() section {
	if a.kind.AllMemory() {
		return everywhere
	}
	return a.loc.section
}

// failItemsLocked records the failure for the storage of n's items, where later tasks find it.
func (n *Node) failItemsLocked(t *tally) {
	s := n.scope
	for i := range n.items {
		a := &n.items[i]
		if s.failedStorage == nil {
			s.failedStorage = &failedStorage{entries: make(map[failedKey]*span[failedSection])}
		}
		at := s.failedStorage.entry(failedKey{a.extent(), a.class}, a.ptr)
		if at.value.add(failedUse{t, n.seq}) {
			if t.places == nil {
				t.places = make(map[*span[failedSection]]*Scope)
			}
			t.places[at] = s
		}
	}
}

// entry returns the entry of a section and class, which it makes if there is none.
func (p *failedStorage) entry(k failedKey, storage unsafe.Pointer) *span[failedSection] {
	at := p.entries[k]
	if at == nil {
		at = &span[failedSection]{start: k.start, end: k.end(), value: failedSection{keep: storage, key: k}}
		p.entries[k] = at
		p.byClass[k.class].insert(at)
	}
	return at
}

// add makes u the newest failure, and reports whether it was not.
func (p *failedSection) add(u failedUse) bool {
	if p.newest() == u.tally {
		last := &p.failures[len(p.failures)-1]
		last.first = min(last.first, u.first)
		return false
	}
	if len(p.failures) == cap(p.failures) {
		p.tidy()
		// Leave room for as many more before the next clean-up.
		p.failures = slices.Grow(p.failures, len(p.failures)+1)
	}
	p.failures = append(p.failures, u)
	return true
}

// tidy removes failures that are over, and makes one of those that are the same.
func (p *failedSection) tidy() {
	at := make(map[*tally]int, len(p.failures))
	kept := p.failures[:0]
	for _, u := range p.failures {
		if k, ok := at[u.tally]; ok {
			kept[k].first = min(kept[k].first, u.first)
		} else if !u.over() {
			at[u.tally] = len(kept)
			kept = append(kept, u)
		}
	}
	clear(p.failures[len(kept):])
	p.failures = kept
}

// newest returns the newest failure that is not over, or nil. It removes later ones.
func (p *failedSection) newest() *tally {
	for last := len(p.failures) - 1; last >= 0; last-- {
		if u := p.failures[last]; !u.over() {
			return u.tally
		}
		p.failures[last] = failedUse{}
		p.failures = p.failures[:last]
	}
	return nil
}

// failDependentLocked makes n fail if a task generated before that number, on which it depends by an item of that
// section and class, has failed or was not run.
func (p *failedStorage) failDependentLocked(n *Node, at section, c class, before uint64) {
	if p == nil {
		return
	}
	for earlier := range p.byClass {
		if n.failsAnyhowLocked() {
			return
		}
		if !ordered[earlier][c] {
			continue
		}
		p.byClass[earlier].find(at.start, at.end(), func(o *span[failedSection]) bool {
			if o.value.newest() == nil {
				return false
			}
			for _, u := range slices.Backward(o.value.failures) {
				// Failures may be reported concurrently, so each is read once.
				if u.first < before && !u.over() {
					n.failByLocked(u.root, u.group)
				}
				if n.failsAnyhowLocked() {
					return true
				}
			}
			return false
		})
	}
}

// forgetStorageLocked removes the entries of the failure, which is over, unless they have other
// failures that are not. The scope's lock is held.
func (t *tally) forgetStorageLocked() {
	for at, s := range t.places {
		p, k := s.failedStorage, at.value.key
		if p == nil || p.entries[k] != at || at.value.newest() != nil {
			continue
		}
		delete(p.entries, k)
		p.byClass[k.class].remove(at)
		if len(p.entries) == 0 {
			s.failedStorage = nil
		}
	}
	t.places = nil
}
