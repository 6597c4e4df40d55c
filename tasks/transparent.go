package tasks

// Transparency says whether a task's children and its siblings can depend on each other (OpenMP
// 6.0, transparent clause). The values are those of omp_impex_t.
type Transparency uint8

const (
	// NotImpex: dependences exist only between the children of one region.
	NotImpex Transparency = 0
	// Import: the task's children can depend, through their own depend items, on all tasks
	// on which the task can depend.
	Import Transparency = 1
	// Export: tasks that depend on the task, directly or through others, can also depend on
	// its children through their own depend items. After an included task all later siblings
	// can.
	Export Transparency = 2
	// ImpEx is Import and Export.
	ImpEx Transparency = 3
)

// NewInner returns the scope for the children of a transparent task of s, which Add gets with the
// task.
func (s *Scope) NewInner() *Scope {
	inner := s.graph.NewScope()
	inner.family = s.family
	return inner
}

// lastingLocked reports whether tasks may still depend on a child of s.
func (s *Scope) lastingLocked() bool { return s.live > 0 || s.lingering > 0 }

// lookLocked adds by to the number of onlookers for n, an importing task: its children must find
// predecessors of n even if others have superseded these.
func (n *Node) lookLocked(by int) {
	before := n.seq
	for s := n.scope; s != nil; s, before = s.outer, s.before {
		s.onlookers += by
		s.overlooked = max(s.overlooked, before)
		if s.onlookers == 0 {
			s.overlooked = 0
		}
	}
}

// followTrailsLocked makes n depend on the children of exporting tasks at the end of its
// predecessors' trails, and continues with the trails of these. A join of a set passes the trails on
// alone: the set's tasks follow these children, and pass on what happens to them.
func (s *Scope) followTrailsLocked(n *Node) {
	f := s.family
	for last := len(f.trails) - 1; last >= 0; last = len(f.trails) - 1 {
		t := f.trails[last]
		f.trails[last] = nil
		f.trails = f.trails[:last]
		n.keepTrailLocked(t)
		if !n.notes.has(joining) {
			s.followTrailLocked(n, t)
		}
	}
}

// followTrailLocked collects the tasks at the end of a trail on which n depends.
func (s *Scope) followTrailLocked(n *Node, t *trail) {
	if t.open == 0 || t.seen == n.seq {
		return
	}
	t.seen = n.seq
	if t.inner != nil {
		s.followInLocked(n, t.inner, ^uint64(0))
	}
	for _, b := range t.before {
		s.followTrailLocked(n, b)
	}
}

// receiveLocked makes n, which waits, depend on the children of exporting tasks at the end of a
// predecessor's trail.
func (n *Node) receiveLocked(t *trail) {
	if n.phase > phaseWaiting {
		n.keepTrailLocked(t)
		return
	}
	s := n.scope
	s.family.trails = append(s.family.trails, t)
	s.followTrailsLocked(n)
	s.edgesLocked(n)
}

// followInLocked collects the tasks of another scope, generated before that number, on which n
// depends by its items.
func (s *Scope) followInLocked(n *Node, other *Scope, before uint64) {
	for i := range n.items {
		a := &n.items[i]
		other.failedStorage.failDependentLocked(n, a.extent(), a.class, before)
		if a.kind.AllMemory() {
			for l := other.locations.after; l != nil && l != &other.locations; l = l.after {
				s.followSetsLocked(n, l, classOut, before)
			}
			if other.tangle != nil {
				s.followSegmentsLocked(n, other.tangle, everywhere, classOut, before)
			}
			continue
		}
		for _, l := range other.index.appendOverlapping(nil, a.loc.section) {
			s.followSetsLocked(n, l, a.class, before)
		}
		if other.tangle != nil {
			s.followSegmentsLocked(n, other.tangle, a.loc.section, a.class, before)
		}
	}
	if len(n.items) > 0 && allMemoryOrders {
		s.followSetsLocked(n, &other.everything, classOut, before)
	}
	for _, inner := range other.exported {
		s.followInLocked(n, inner, before)
	}
}

// followSetsLocked collects the tasks on which n depends in the history of a location of another
// scope, as far as they were generated before that number: those in the newest set that has any,
// which follow all such tasks in older sets.
// Exclusion between scopes is enforced as an order.
func (s *Scope) followSetsLocked(n *Node, l *location, c class, before uint64) {
	for _, set := range [...]*access{l.cur, l.prev} {
		met := false
		for a := set; a != nil && afar(a.class, c); a = a.next {
			if a.node.seq < before {
				s.meetLocked(a.node, n)
				met = true
			}
		}
		if met {
			return
		}
	}
	var met *access
	for a := l.newestOlderBefore(before); a != nil; a = a.prev {
		if met != nil && (met.class != a.class || met.class == classOut) {
			return
		}
		if afar(a.class, c) {
			s.meetLocked(a.node, n)
			met = a
		}
	}
}

// newestOlderBefore returns the newest of the older accesses of tasks generated before that number, or nil. It looks
// from both ends, because most often it is near one of them.
func (l *location) newestOlderBefore(before uint64) *access {
	for oldest, newest := l.older, l.newestOlder; newest != nil; oldest, newest = oldest.next, newest.prev {
		switch {
		case newest.node.seq < before:
			return newest
		case oldest.node.seq >= before:
			return oldest.prev
		}
	}
	return nil
}

// afar is ordered for tasks of different scopes.
func afar(earlier, later class) bool {
	return ordered[earlier][later] || earlier == classMutex && later == classMutex
}

// followSegmentsLocked is followSetsLocked for storage of another scope whose sections overlap in
// part.
func (s *Scope) followSegmentsLocked(n *Node, t *tangle, at section, c class, before uint64) {
	follow := func(g *generation, start, end uintptr) {
		if g == nil || !afar(g.class, c) {
			return
		}
		for _, m := range g.members.appendOverlapping(nil, max(start, at.start), min(end, at.end())) {
			if from := m.value.access.node; from.seq < before {
				s.meetLocked(from, n)
			}
		}
	}
	for _, o := range t.segments.appendOverlapping(nil, at.start, at.end()) {
		follow(o.value.cur, o.start, o.end)
		follow(o.value.prev, o.start, o.end)
	}
	if t.retired == nil {
		return
	}
	for _, m := range t.retired.members.appendOverlapping(nil, at.start, at.end()) {
		if a := m.value.access; a.node.seq < before && afar(a.class, c) {
			s.meetLocked(a.node, n)
		}
	}
}
