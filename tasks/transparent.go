package tasks

// Transparency says what a task's children may have to do with the task's
// siblings (OpenMP 6.0, transparent clause). The values are those of
// omp_impex_t.
type Transparency uint8

const (
	// NotImpex: dependences hold between the children of one region only.
	NotImpex Transparency = 0
	// Import: the task's children follow siblings that precede the task.
	Import Transparency = 1
	// Export: what follows the task by dependence follows its children too; what
	// comes after an included one does in any case.
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

// lasting reports whether some child of s may still have to be followed.
func (s *Scope) lasting() bool { return s.live > 0 || s.lingering > 0 }

// look counts n, or takes it back, as one that needs whole histories: what follows
// an exporting task must find it though others have superseded it, and so must
// the children of an importing task what precedes that.
func (n *Node) look(by int) {
	s := n.scope
	if n.exports {
		s.exporters += by
	}
	s.onlookers += by
	if n.imports {
		for s = s.outer; s != nil; s = s.outer {
			s.onlookers += by
		}
	}
}

// followExported makes n, which waits, follow what inner, the scope of a
// complete exporting task, has left.
func (s *Scope) followExported(n *Node, inner *Scope) {
	s.followIn(n, inner, ^uint64(0))
	s.followChildren(n)
	s.edges(n)
}

// followChildren makes n follow what the complete exporting tasks that it would
// follow have left, and what those have.
func (s *Scope) followChildren(n *Node) {
	f := s.family
	for i := 0; i < len(f.exported); i++ {
		s.followIn(n, f.exported[i], ^uint64(0))
		f.exported[i] = nil
	}
	f.exported = f.exported[:0]
}

// followIn collects the tasks of another scope, made before that seq, which
// n follows by its items.
func (s *Scope) followIn(n *Node, other *Scope, before uint64) {
	for i := range n.items {
		a := &n.items[i]
		if a.kind.AllMemory() {
			for l := other.locations.after; l != nil && l != &other.locations; l = l.after {
				s.followSets(n, l, classOut, before)
			}
			continue
		}
		for _, l := range other.index.appendOverlapping(nil, a.loc.section) {
			s.followSets(n, l, a.class, before)
		}
	}
	if len(n.items) > 0 && allMemoryOrders {
		s.followSets(n, &other.everything, classOut, before)
	}
	for _, inner := range other.exported {
		s.followIn(n, inner, before)
	}
}

// followSets collects whoever n follows in the whole history of a location of
// another scope. Exclusion between scopes is kept by an order.
func (s *Scope) followSets(n *Node, l *location, c class, before uint64) {
	n.infect(l, c)
	for _, set := range [...]*access{l.cur, l.prev, l.older} {
		for a := set; a != nil; a = a.next {
			if a.node.seq < before && (ordered[a.class][c] || a.class == classMutex && c == classMutex) {
				s.meet(a.node, n)
			}
		}
	}
}
