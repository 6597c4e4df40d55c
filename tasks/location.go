package tasks

import "unsafe"

// location is the history of one section of storage that later tasks of a scope
// can depend on. A tangled one has its history elsewhere: see tangle. Everything of it
// is guarded by the scope's lock.
//
// The history is two sets of accesses, each of one class:
//
//	prev ◀── every member of cur follows every member of prev ──▶ cur
//
// A task of another class than cur's, and any that writes alone (classOut),
// follows all of cur and begins a new set; one of cur's own class joins cur and
// follows prev. What is older than prev is implied: a member of cur is complete
// only when those that it follows are. So when cur is empty, so is prev.
type location struct {
	section
	// chain links locations that share a unit of the index.
	next *location

	cur, prev *access
	// class is that of cur's members.
	class class
	// tangled: other locations share a byte with this one. Its history is in segments
	// (see tangle).
	tangled bool
	// refs counts the accesses of tasks that are not complete, those that a later
	// set has superseded included. A location with none is dead.
	refs int32
	// seen is the seq of the last task that named the location.
	seen uint64
	// epoch is the scope's when cur was begun: what is older is superseded by a
	// task with omp_all_memory.
	epoch uint64
	// older are accesses that were superseded while the scope has onlookers, which
	// may still have to follow them.
	older *access
	// holder is the last task that took the storage for itself (mutexinoutset);
	// blocked are those that wait for it here.
	holder  *Node
	blocked nodeQueue
	// common is storage that all of these wait for.
	common section
	// gave is who held it last, where the graph is kept.
	gave *Node

	// after and before link the locations of the scope.
	after, before *location
}

// access is one depend item of a task that is not complete.
type access struct {
	node *Node
	loc  *location
	// next and prev link the members of a set; memberships are those in generations, of
	// an access whose location is tangled.
	next, prev  *access
	memberships *span[member]
	class       class
	// retired: it is among the tangle's retired accesses.
	retired bool
	// kind and ptr are as the program gave them; ptr keeps the storage reachable.
	kind DependKind
	ptr  unsafe.Pointer
}

// maxDead is the number of dead locations that a scope keeps; twice as many, or as
// many as are in use, before it forgets some: storage that is used over and over
// by one short task after the other then costs a look-up each time. They hold an
// address as a number and nothing else.
const maxDead = 256

// locateLocked returns the scope's location of that section, or a tangled one for one item,
// with one more reference.
func (s *Scope) locateLocked(at section) *location {
	l := s.index.find(at)
	switch {
	case l == nil:
		l = s.newLocationLocked(at)
		l.link(&s.locations)
		if l.tangled {
			l.refs++
			return l
		}
	case l.refs == 0:
		s.dead--
	}
	l.refs++
	if s.recent != nil {
		s.recent[at.start>>3%recents] = l
	} else if s.located++; s.located == recents {
		s.recent = new([recents]*location)
	}
	return l
}

func (s *Scope) newLocationLocked(at section) *location {
	l := s.spareLocations
	if l != nil {
		s.spareLocations, l.next = l.next, nil
		s.spares--
	} else {
		l = &location{}
	}
	l.section, l.epoch = at, s.epoch
	s.scratch = s.index.appendOverlapping(s.scratch[:0], at)
	for i, o := range s.scratch {
		s.scratch[i] = nil
		switch {
		case o.refs == 0:
			// It orders nothing any more.
			s.evictLocked(o)
			s.dead--
		case overlapsMatch:
			s.entangleLocked(o)
			l.tangled = true
		}
	}
	if s.tangle != nil && s.tangle.lay(at) {
		l.tangled = true
	}
	if !l.tangled {
		s.index.insert(l)
	}
	return l
}

// overlapsMatch is false only in the test that shows that it matters.
var overlapsMatch = true

// diedLocked takes note that the location, whose sets are empty, has lost its last
// reference.
func (s *Scope) diedLocked(l *location) {
	if l.tangled {
		s.evictLocked(l)
		return
	}
	s.dead++
	// Not before as many have died as the search may come across.
	if s.dead > 2*maxDead && 2*s.dead > s.index.len() {
		s.buryLocked(s.dead / 2)
	}
}

// buryLocked forgets the dead locations, the oldest first, down to that many.
func (s *Scope) buryLocked(most int) {
	for l := s.locations.before; s.dead > most; {
		next := l.before
		if l.refs == 0 {
			s.evictLocked(l)
			s.dead--
		}
		l = next
	}
}

// evictLocked forgets a location without references.
func (s *Scope) evictLocked(l *location) {
	l.unlink()
	s.spareLocked(l)
}

// spareLocked takes an unlinked location without references out of the index.
func (s *Scope) spareLocked(l *location) {
	if !l.tangled {
		s.unindexLocked(l)
	}
	*l = location{}
	if s.spares < maxSpare {
		l.next, s.spareLocations = s.spareLocations, l
		s.spares++
	}
}

// unindexLocked takes a location out of the index.
func (s *Scope) unindexLocked(l *location) {
	s.index.remove(l)
	if s.recent != nil && s.recent[l.start>>3%recents] == l {
		s.recent[l.start>>3%recents] = nil
	}
}

// link puts l at the front of the list that head closes.
func (l *location) link(head *location) {
	if head.after == nil {
		head.after, head.before = head, head
	}
	l.after, l.before = head.after, head
	head.after.before, head.after = l, l
}

func (l *location) unlink() {
	l.before.after, l.after.before = l.after, l.before
	l.after, l.before = nil, nil
}

// joinLocked makes a the newest access of its location.
func (a *access) joinLocked(s *Scope) {
	l := a.loc
	if l.epoch != s.epoch {
		s.supersedeLocked(l)
		l.epoch = s.epoch
	}
	if l.cur == nil || a.class == classOut || l.class != a.class {
		if s.onlookers > 0 {
			s.retireLocked(l, l.prev)
		}
		l.prev, l.cur, l.class = l.cur, nil, a.class
	}
	a.push(&l.cur)
}

// supersedeLocked forgets the location's history: a task that follows all of it will
// be found in other ways.
func (s *Scope) supersedeLocked(l *location) {
	if s.onlookers > 0 {
		s.retireLocked(l, l.prev)
		s.retireLocked(l, l.cur)
	}
	l.cur, l.prev = nil, nil
}

// retireLocked moves a set of the location to the older accesses, if others may look at it.
func (s *Scope) retireLocked(l *location, set *access) {
	for set != nil {
		a := set
		set = a.next
		a.next, a.prev = nil, nil
		if a.node.seq < s.overlooked {
			a.push(&l.older)
		}
	}
}

func (a *access) push(set **access) {
	a.next = *set
	if a.next != nil {
		a.next.prev = a
	}
	*set = a
}

// leave takes a out of its location.
func (a *access) leave() {
	l := a.loc
	if l.tangled {
		a.leaveGenerations(a.node.scope.tangle)
	}
	switch {
	case a.prev != nil:
		a.prev.next = a.next
	case l.cur == a:
		l.cur = a.next
	case l.prev == a:
		l.prev = a.next
	case l.older == a:
		l.older = a.next
	}
	if a.next != nil {
		a.next.prev = a.prev
	}
	a.next, a.prev = nil, nil
}
