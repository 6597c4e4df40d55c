package tasks

// Transparency says what a task's children may have to do with the task's
// siblings (OpenMP 6.0, transparent clause). The values are those of
// omp_impex_t.
type Transparency uint8

const (
	// NotImpex: dependences hold between the children of one region only.
	NotImpex Transparency = 0
	// Import: whatever the task could follow, its children can, each by its own depend
	// items.
	Import Transparency = 1
	// Export: what follows the task by dependence, directly or through other tasks, can
	// follow its children too, by its own depend items; what comes after an included one
	// can in any case.
	Export Transparency = 2
	// ImpEx is both.
	ImpEx Transparency = 3
)

// NewInner returns the scope for the children of a transparent task of s, to be
// given to Add with the task.
func (s *Scope) NewInner() *Scope {
	inner := s.graph.NewScope()
	inner.family = s.family
	return inner
}

// lastingLocked reports whether some child of s may still have to be followed.
func (s *Scope) lastingLocked() bool { return s.live > 0 || s.lingering > 0 }

// lookLocked counts n, or takes it back, as an importing task: its children must find what
// precedes it though others have superseded that.
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

// followTrailsLocked makes n follow the children of exporting tasks that the tasks which it
// has met have left, and so on with those.
func (s *Scope) followTrailsLocked(n *Node) {
	f := s.family
	for last := len(f.trails) - 1; last >= 0; last = len(f.trails) - 1 {
		t := f.trails[last]
		f.trails[last] = nil
		f.trails = f.trails[:last]
		n.keepTrailLocked(t)
		s.followTrailLocked(n, t)
	}
}

// followTrailLocked collects the tasks at the end of a trail that n follows.
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

// receiveLocked makes n, which waits, follow the children of exporting tasks that one of its
// predecessors has left.
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

// followInLocked collects the tasks of another scope, made before that seq, which
// n follows by its items.
func (s *Scope) followInLocked(n *Node, other *Scope, before uint64) {
	for i := range n.items {
		a := &n.items[i]
		other.poison.infect(n, a.extent(), a.class)
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

// followSetsLocked collects whoever n follows in the whole history of a location of
// another scope. Exclusion between scopes is kept by an order.
func (s *Scope) followSetsLocked(n *Node, l *location, c class, before uint64) {
	for _, set := range [...]*access{l.cur, l.prev, l.older} {
		for a := set; a != nil; a = a.next {
			if a.node.seq < before && afar(a.class, c) {
				s.meetLocked(a.node, n)
			}
		}
	}
}

// afar is ordered for tasks of two scopes.
func afar(earlier, later class) bool {
	return ordered[earlier][later] || earlier == classMutex && later == classMutex
}

// followSegmentsLocked is followSetsLocked for the storage of another scope that sections share
// in part.
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
