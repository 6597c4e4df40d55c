package tasks

import "unsafe"

// location is the history of one section of storage on which later tasks of a scope can depend. A
// tangled location has its history elsewhere: see tangle. It is guarded by the scope's lock.
//
// The history is two sets of accesses, each of one class:
//
//	prev ◀── every member of cur follows every member of prev ──▶ cur
//
// A task of another class than cur's, and any task that writes alone (classOut), follows all of
// cur and begins a new set. A task of cur's class joins cur and follows prev. Sets older than
// prev are implied, because a member of cur is complete only when its predecessors are. So if cur
// is empty, prev is too, but for joins, which may stand in the place of a large prev: see JoinSets.
type location struct {
	section
	// next links locations that share a granule of the index, and spare ones.
	next *location

	cur, prev *access
	// class is the class of cur's members.
	class class
	// tangled says that other locations share a byte with this one, or did, so that its history
	// is in segments (see tangle).
	tangled bool
	// refs counts the accesses of tasks that are not complete, including those that a later
	// set has superseded. A location without any is dead.
	refs int32
	// seen is the number of the last task that named the location.
	seen uint64
	// epoch is the scope's epoch when cur was begun: a task with omp_all_memory supersedes
	// older accesses.
	epoch uint64
	// older are accesses that were superseded while the scope has onlookers, which may still
	// depend on them, in the order in which their tasks were generated; newestOlder is the last.
	older, newestOlder *access
	// holder is the last task that has taken the storage exclusively (mutexinoutset);
	// blocked are the tasks that wait for it here.
	holder  *Node
	blocked nodeQueue
	// common is storage that all blocked tasks wait for.
	common section
	// gave is the last former holder, if the graph is kept.
	gave *Node

	// after and before link the locations of the scope. Those of its epoch come first.
	after, before *location
}

// access is one depend item of a task that is not complete.
type access struct {
	node *Node
	loc  *location
	// next and prev link the members of a set; memberships are those in generations, if the
	// location is tangled.
	next, prev  *access
	memberships *span[member]
	class       class
	// retired says that it is in the tangle's retired generation.
	retired bool
	// kind and ptr are those of the program's item; ptr keeps the storage reachable.
	kind DependKind
	ptr  unsafe.Pointer
}

// maxDead is the number of dead locations that a scope keeps. It keeps up to twice as many, or as
// many as are in use, before it forgets some, so that storage which short tasks use one after the
// other costs one look-up each time. Up to maxDead stay when the scope has no tasks. Dead locations
// hold an address as a number and nothing else.
const maxDead = 256

// locateLocked returns the scope's location of a section that n names, with an additional reference.
func (s *Scope) locateLocked(n *Node, at section) *location {
	l := s.index.find(at)
	switch {
	case l == nil:
		if l = s.newLocationLocked(n, at); l.tangled {
			l.refs++
			return l
		}
	case l.refs == 0:
		s.dead--
	}
	l.refs++
	if s.recent != nil {
		s.recent[at.recent()] = l
	} else if s.located++; s.located == recents {
		s.recent = new([recents]*location)
	}
	return l
}

// recent returns where Scope.recent has the location of that section.
func (s *section) recent() uint64 { return uint64(s.start) * golden >> (64 - recentBits) }

// newLocationLocked returns a location of a section that n names and that is not in the index. If it is
// tangled, the section has been laid out.
func (s *Scope) newLocationLocked(n *Node, at section) *location {
	tangled := false
	s.scratch = s.index.appendOverlapping(s.scratch[:0], at)
	for i, o := range s.scratch {
		s.scratch[i] = nil
		switch {
		case o.refs == 0:
			// It no longer orders anything.
			s.evictLocked(o)
			s.dead--
		case overlapsMatch:
			s.entangleLocked(o)
			tangled = true
		}
	}
	if s.tangle != nil && s.tangle.lay(at) {
		tangled = true
		if l := s.tangle.named(n, at); l != nil {
			return l
		}
	}
	l := s.spareLocations
	if l != nil {
		s.spareLocations, l.next = l.next, nil
		s.spares--
	} else {
		l = &location{}
	}
	l.section, l.epoch, l.tangled = at, s.epoch, tangled
	l.link(&s.locations)
	if !tangled {
		s.index.insert(l)
	}
	return l
}

// overlapsMatch is false only in the test that shows that it matters.
var overlapsMatch = true

// diedLocked records that the location, whose sets are empty, has lost its last reference.
func (s *Scope) diedLocked(l *location) {
	if l.tangled {
		s.evictLocked(l)
		return
	}
	s.dead++
	// Not before as many have died as the search may visit.
	if s.dead > 2*maxDead && 2*s.dead > s.index.len() {
		s.buryLocked(s.dead / 2)
	}
}

// buryLocked forgets dead locations, the oldest first, until that many are left.
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

// evictLocked forgets a location without references, and keeps its memory for another.
func (s *Scope) evictLocked(l *location) {
	l.unlink()
	if !l.tangled {
		s.unindexLocked(l)
	}
	*l = location{}
	if s.spares < maxSpare {
		l.next, s.spareLocations = s.spareLocations, l
		s.spares++
	}
}

// unindexLocked removes a location from the index.
func (s *Scope) unindexLocked(l *location) {
	s.index.remove(l)
	if s.recent != nil && s.recent[l.recent()] == l {
		s.recent[l.recent()] = nil
	}
}

// link inserts l at the front of the list with that head.
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

// supersedeLocked forgets the location's history, because a task that follows all of it is found
// in other ways.
func (s *Scope) supersedeLocked(l *location) {
	if s.onlookers > 0 {
		s.retireLocked(l, l.prev)
		s.retireLocked(l, l.cur)
	}
	l.cur, l.prev = nil, nil
}

// retireLocked moves a set of the location to the older accesses, for the scope's onlookers.
func (s *Scope) retireLocked(l *location, set *access) {
	// The newest access of a set comes first.
	oldest := set
	for oldest != nil && oldest.next != nil {
		oldest = oldest.next
	}
	for a := oldest; a != nil; {
		newer := a.prev
		a.next, a.prev = nil, nil
		if a.node.seq < s.overlooked {
			a.prev = l.newestOlder
			if a.prev != nil {
				a.prev.next = a
			} else {
				l.older = a
			}
			l.newestOlder = a
		}
		a = newer
	}
}

func (a *access) push(set **access) {
	a.next = *set
	if a.next != nil {
		a.next.prev = a
	}
	*set = a
}

// remove removes a from its location.
func (a *access) remove() {
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
	if l.newestOlder == a {
		l.newestOlder = a.prev
	}
	a.next, a.prev = nil, nil
}
