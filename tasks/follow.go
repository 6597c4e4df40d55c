package tasks

// dependLocked makes the accesses of the task's depend items, one for each section, and collects
// the tasks of the scope on which n depends. An item does not find the task itself, even if other
// items have recorded it.
func (s *Scope) dependLocked(n *Node, items []Depend) {
	if len(items) > cap(n.items) {
		n.items = make([]access, 0, len(items))
	}
	n.items = n.items[:0]
	for k := range items {
		d := &items[k]
		c := d.Kind.class()
		if c == classMutex && n.traits.has(importing) {
			// Its children depend on earlier tasks with mutexinoutset items: none of these may
			// wait for it.
			c = classOut
		}
		var l *location
		switch {
		case d.Kind.AllMemory():
			l = &s.everything
			l.refs++
		case d.empty():
			continue
		default:
			at := d.section()
			if s.recent != nil {
				if l = s.recent[at.recent()]; l != nil && l.section == at {
					if l.refs == 0 {
						s.dead--
					}
					l.refs++
					break
				}
			}
			l = s.locateLocked(n, at)
		}
		if l.seen == n.seq {
			l.refs--
			s.againLocked(n, l, c)
			continue
		}
		l.seen = n.seq
		n.items = n.items[:len(n.items)+1]
		a := &n.items[len(n.items)-1]
		a.node, a.loc, a.class, a.kind, a.ptr = n, l, c, d.Kind, d.Ptr
		if s.simpleLocked(l) {
			// The same as followLocked and recordLocked in the simple case.
			set := l.cur
			if set != nil && !ordered[l.class][c] {
				set = l.prev
			}
			for ; set != nil; set = set.next {
				if set.node.visited != n.seq {
					s.meetLocked(set.node, n)
				}
			}
			if c == classOut || l.class != c {
				l.prev, l.cur, l.class = l.cur, nil, c
			}
			a.push(&l.cur)
		} else {
			s.followLocked(n, l, c)
			if l.tangled {
				s.useLocked(n, a)
			} else {
				s.recordLocked(a)
			}
		}
		if c == classMutex {
			n.toExclusiveLocked()
		}
	}
}

// toExclusiveLocked says that the task has a mutexinoutset item.
func (n *Node) toExclusiveLocked() {
	n.traits |= exclusive
	n.toSpecialLocked()
}

// simpleLocked reports whether the location's two sets are its whole history.
func (s *Scope) simpleLocked(l *location) bool {
	return !l.tangled && l.epoch == s.epoch && s.onlookers == 0 && s.failedStorage == nil && l != &s.everything
}

// againLocked handles a section that the task names again: with several dependence-types, it
// excludes everything that any of them excludes.
func (s *Scope) againLocked(n *Node, l *location, c class) {
	locks := false
	for i := range n.items {
		a := &n.items[i]
		if a.loc == l && a.class != c && a.class != classOut {
			a.remove()
			a.class, a.kind = classOut, DependInOut
			s.followLocked(n, l, classOut)
			s.recordLocked(a)
		}
		locks = locks || a.class == classMutex
	}
	n.traits &^= exclusive
	if locks {
		n.toExclusiveLocked()
	}
}

// followLocked collects the tasks of the scope on which n depends by one item.
func (s *Scope) followLocked(n *Node, l *location, c class) {
	if l == &s.everything {
		if allMemoryOrders {
			s.followOnLocked(n, l, classOut)
		}
		if !allMemoryFollows {
			return
		}
		for l := range s.namedSinceAllMemoryLocked {
			s.followOnLocked(n, l, classOut)
		}
		s.failedStorage.failDependentLocked(n, everywhere, classOut, n.seq)
		if s.tangle != nil {
			s.followAllLocked(n)
		}
		return
	}
	s.followOnLocked(n, l, c)
	s.failedStorage.failDependentLocked(n, l.section, c, n.seq)
}

// namedSinceAllMemoryLocked yields the locations that were named since the last task with omp_all_memory.
func (s *Scope) namedSinceAllMemoryLocked(yield func(*location) bool) {
	for l := s.locations.after; l != nil && l != &s.locations && l.epoch == s.epoch && yield(l); {
		l = l.after
	}
}

// followOnLocked collects the tasks on which n depends because it uses the location, or one that
// overlaps it, with the given class.
func (s *Scope) followOnLocked(n *Node, l *location, c class) {
	if l.epoch != s.epoch {
		return
	}
	set := l.cur
	if set != nil && !ordered[l.class][c] {
		set = l.prev
	}
	for ; set != nil; set = set.next {
		s.meetLocked(set.node, n)
	}
}

// followFurtherLocked collects the tasks on which n depends by omp_all_memory, and those of other
// scopes that transparent tasks make visible.
func (s *Scope) followFurtherLocked(n *Node) {
	if len(n.items) == 0 {
		return
	}
	if allMemoryOrders && s.everything.cur != nil {
		s.followOnLocked(n, &s.everything, classOut)
	}
	for inner := s; inner.outer != nil; inner = inner.outer {
		s.followInLocked(n, inner.outer, inner.before)
		for _, t := range inner.imported {
			s.followTrailLocked(n, t)
		}
	}
	if len(s.exported) > 0 {
		kept := s.exported[:0]
		for _, inner := range s.exported {
			if inner.lastingLocked() {
				kept = append(kept, inner)
				s.followInLocked(n, inner, ^uint64(0))
			}
		}
		clear(s.exported[len(kept):])
		s.exported = kept
	}
	s.followTrailsLocked(n)
}

// furtherLocked reports whether followFurtherLocked may find any.
func (s *Scope) furtherLocked() bool {
	return s.everything.cur != nil || s.connectedLocked()
}

// connectedLocked reports whether transparent tasks connect the scope with others, in which tasks of one depend on those
// of another.
func (s *Scope) connectedLocked() bool {
	return s.outer != nil || len(s.exported) > 0 || len(s.family.trails) > 0
}

// allMemoryOrders and allMemoryFollows are false only in the test that shows that they matter:
// then later tasks do not depend on one with omp_all_memory, or it does not depend on earlier
// ones.
var allMemoryOrders, allMemoryFollows = true, true

// meetLocked collects from as a predecessor of n.
func (s *Scope) meetLocked(from, n *Node) {
	if from.visited == n.seq || from == n {
		return
	}
	from.visited = n.seq
	if from.phase.complete() {
		s.family.pickLocked(from)
		if s.graph.keep {
			s.graph.keepEdge(from, n, false)
			s.family.edges++
		}
		return
	}
	s.family.found = append(s.family.found, from)
}

// recordLocked makes a the newest access of its location.
func (s *Scope) recordLocked(a *access) {
	l := a.loc
	if l.epoch != s.epoch {
		s.supersedeLocked(l)
		l.epoch = s.epoch
		l.unlink()
		l.link(&s.locations)
	}
	if l.cur == nil || a.class == classOut || l.class != a.class {
		if s.onlookers > 0 {
			s.retireLocked(l, l.prev)
		}
		l.prev, l.cur, l.class = l.cur, nil, a.class
	}
	a.push(&l.cur)
	if l == &s.everything {
		// Later tasks depend on this one, and so on everything before it.
		s.epoch++
		s.everything.epoch = s.epoch
		if s.tangle != nil {
			s.supersedeSegmentsLocked()
		}
	}
}

// commonDomainLocked returns the common domain of all predecessors found if it is that of a
// device, else Host.
func (s *Scope) commonDomainLocked() Domain {
	d := Host
	for i, from := range s.family.found {
		if i > 0 && from.domain != d {
			return Host
		}
		d = from.domain
	}
	return d
}

// edgesLocked makes n a successor of the tasks found.
func (s *Scope) edgesLocked(n *Node) {
	for _, from := range s.family.found {
		if n.traits.has(witnessed) && from.traits.has(witnessed) && !from.phase.complete() {
			n.special.witness.Follows(from.special.witness)
		}
		if n.domain == Host && !s.graph.keep {
			n.waiting++
			from.successors = append(from.successors, edge{to: n})
			continue
		}
		s.edgeLocked(from, n)
	}
	s.family.edges += uint64(len(s.family.found))
	if cap(s.family.found) > maxSpare {
		s.family.found = nil
	}
	s.family.found = s.family.found[:0]
	if len(s.family.trails) > 0 {
		s.followTrailsLocked(n)
		s.edgesLocked(n)
	}
}

// keptAfterLocked reports whether the device orders n after from. The event of a detachable task
// and the children of an exporting task are visible only to the host.
func (n *Node) keptAfterLocked(from *Node) bool {
	return from.domain == n.domain && n.domain != Host && !from.traits.has(detached|exporting) && !n.traits.has(hostOrdered)
}

func (s *Scope) edgeLocked(from, to *Node) {
	if s.graph.keep {
		s.graph.keepEdge(from, to, false)
	}
	onDevice := to.keptAfterLocked(from)
	if onDevice {
		to.predecessors = append(to.predecessors, from)
		from.refs++
		to.left++
	}
	released := onDevice && from.phase.onDevice()
	if released {
		s.family.pickLocked(from)
	} else {
		to.waiting++
	}
	e := edge{to: to, onDevice: onDevice, released: released}
	e.passFailingLocked(from)
	from.successors = append(from.successors, e)
}
