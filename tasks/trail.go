package tasks

import "slices"

// trail leads a task to the children of complete exporting tasks that are among its direct or
// indirect predecessors: it depends on these children too if their items match (OpenMP 6.0
// §17.9.5). A task passes its trail on to its dependents when it is out of their way.
//
//	T (exporting) ──▶ Q ──▶ B        B gets T's trail from Q, and looks
//	  └─ A ·················▶ B      among the children of T for A
//
// Trails are shared: a task with one predecessor uses that task's trail. A trail is open as long
// as tasks may still depend on some child, and complete tasks stay in the histories of their
// storage as long as their trail is open. Trails are guarded by the family's lock.
type trail struct {
	// inner is the scope of the children of one exporting task, nil if the trail joins
	// others.
	inner *Scope
	// before are the trails of that task's predecessors, or the joined trails; after are the
	// trails that have this one in before.
	before, after []*trail
	// open counts what keeps the trail open: inner, while it lasts, and open trails in before.
	open int
	// refs counts the tasks that have the trail, and the trails that have it in before.
	refs int
	// lingering are the complete tasks that stay in histories because of the trail.
	lingering []*Node
	// seen is the number of the last task that searched here, mark the family's count of
	// searches when the trail was last found.
	seen, mark uint64
}

// newTrail returns a trail to the children in inner, if it is not nil, and to where the others
// lead.
func newTrail(inner *Scope, before ...*trail) *trail {
	t := &trail{inner: inner, before: slices.Clone(before), open: len(before)}
	if inner != nil {
		inner.trail = t
		t.open++
	}
	for _, b := range before {
		b.refs++
		if len(b.after) == cap(b.after) {
			b.after = slices.DeleteFunc(b.after, func(a *trail) bool { return a.refs == 0 })
		}
		b.after = append(b.after, t)
	}
	return t
}

// carried is what a task passes on to its dependents.
type carried struct {
	trails []*trail
	// stays is the index of a complete task in the lingering list of the first trail.
	stays int
	// mark is the number of the last sweep that found the task in a history.
	mark uint64
}

func (n *Node) markAsLocked(mark uint64) {
	if n.special != nil {
		n.special.mark = mark
	}
}

// keepTrailLocked adds a trail to what n passes on.
func (n *Node) keepTrailLocked(t *trail) {
	x := n.toSpecialLocked()
	if t.open > 0 && !slices.Contains(x.trails, t) {
		t.refs++
		x.trails = append(x.trails, t)
		n.notes |= trailed
		n.settleTrailsLocked()
	}
}

// settleTrailsLocked gives the children of an importing task the trails of its predecessors.
func (n *Node) settleTrailsLocked() {
	if n.traits.has(importing) {
		n.special.inner.imported = append(n.special.inner.imported[:0], n.special.trails...)
	}
}

// trailLocked returns the trail that n passes on, nil if there is none.
func (n *Node) trailLocked() *trail {
	if n.special == nil || len(n.special.trails) == 0 {
		return nil
	}
	if !n.phase.complete() {
		n.joinTrailsLocked()
	}
	if len(n.special.trails) == 0 || n.special.trails[0].open == 0 {
		return nil
	}
	return n.special.trails[0].shortcut()
}

// joinTrailsLocked joins n's trails to at most one.
func (n *Node) joinTrailsLocked() {
	open := n.special.trails[:0]
	for _, t := range n.special.trails {
		if t.open > 0 {
			short := t.shortcut()
			short.refs++
			open = append(open, short)
		}
		t.drop()
	}
	clear(n.special.trails[len(open):])
	n.special.trails = open
	if len(n.special.trails) > 1 {
		n.dropRedundantLocked()
		slices.Reverse(n.special.trails)
		n.dropRedundantLocked()
	}
	if len(n.special.trails) > 1 {
		n.setTrailLocked(newTrail(nil, n.special.trails...))
	}
}

// lasting reports whether the trail itself leads to children.
func (t *trail) lasting() bool { return t.inner != nil && t.inner.trail == t }

// shortcut returns the only open trail behind t, which is open, or t.
func (t *trail) shortcut() *trail {
	for !t.lasting() {
		var only *trail
		for _, b := range t.before {
			switch {
			case b.open == 0:
			case only != nil:
				return t
			default:
				only = b
			}
		}
		t = only
	}
	return t
}

// setTrailLocked makes t all that n passes on.
func (n *Node) setTrailLocked(t *trail) {
	x := n.toSpecialLocked()
	t.refs++
	n.dropTrailsLocked()
	x.trails = append(x.trails, t)
	n.notes |= trailed
}

func (n *Node) dropTrailsLocked() {
	if n.special == nil {
		return
	}
	for _, t := range n.special.trails {
		t.drop()
	}
	clear(n.special.trails)
	n.special.trails = n.special.trails[:0]
}

// dropRedundantLocked drops those of n's trails that lead to no children beyond those of the
// trails before them in the list.
func (n *Node) dropRedundantLocked() {
	f := n.scope.family
	f.marks++
	n.special.trails = slices.DeleteFunc(n.special.trails, func(t *trail) bool {
		if t.leads(f.marks) {
			return false
		}
		t.drop()
		return true
	})
}

// leads reports whether the trail leads to children without that mark, and marks them.
func (t *trail) leads(mark uint64) bool {
	if t.open == 0 || t.mark == mark {
		return false
	}
	t.mark = mark
	leads := t.lasting()
	for _, b := range t.before {
		leads = b.leads(mark) || leads
	}
	return leads
}

// drop drops one reference.
func (t *trail) drop() {
	t.refs--
	if t.refs > 0 {
		return
	}
	for _, b := range t.before {
		b.drop()
	}
}

// closeLocked removes one of the things that keep the trail open. When it was the last, complete
// tasks no longer linger for the trail.
func (t *trail) closeLocked() {
	t.open--
	if t.open > 0 {
		return
	}
	for _, a := range t.after {
		a.closeLocked()
	}
	lingering := t.lingering
	t.after, t.lingering = nil, nil
	for _, n := range lingering {
		s := n.scope
		s.lingering--
		n.departLocked()
		s.closeTrailLocked()
	}
}

// closeTrailLocked closes the trail to the children of a complete exporting task when no task can
// depend on them any more.
func (s *Scope) closeTrailLocked() {
	if t := s.trail; t != nil && !s.lastingLocked() {
		s.trail = nil
		t.closeLocked()
	}
}

// endTrailLocked returns the trail that a complete task passes on, which for an exporting task
// includes its children.
func (n *Node) endTrailLocked() *trail {
	if n.special != nil && len(n.special.trails) > 0 {
		n.joinTrailsLocked()
	}
	t := n.trailLocked()
	if n.traits.has(exporting) && n.special.inner.lastingLocked() {
		if t == nil {
			t = newTrail(n.special.inner)
		} else {
			t = newTrail(n.special.inner, t)
		}
		n.setTrailLocked(t)
		if n.notes.has(included) {
			n.scope.exported = append(n.scope.exported, n.special.inner)
		}
	}
	return t
}

// pickLocked takes the trail of a predecessor that is out of the way.
func (f *family) pickLocked(from *Node) {
	if t := from.trailLocked(); t != nil {
		f.trails = append(f.trails, t)
	}
}

// lingerLocked keeps a complete task in the histories of its storage because of its trail.
func (n *Node) lingerLocked(t *trail) {
	n.toLocked(phaseLingering)
	n.special.stays = len(t.lingering)
	t.lingering = append(t.lingering, n)
	s := n.scope
	s.lingering++
	if s.lingering > 2*s.keptLingering+s.live+maxKept {
		s.sweepLocked()
	}
}

// sweepLocked releases complete tasks that others have superseded: a task that would find them
// finds the others, which have their trails.
func (s *Scope) sweepLocked() {
	f := s.family
	f.marks++
	stays := func(sets ...*access) {
		for _, a := range sets {
			for ; a != nil; a = a.next {
				a.node.markAsLocked(f.marks)
			}
		}
	}
	for l := s.locations.after; l != nil && l != &s.locations; l = l.after {
		if l.epoch == s.epoch {
			stays(l.cur, l.prev)
		}
		if s.onlookers > 0 {
			stays(l.older)
		}
	}
	stays(s.everything.cur, s.everything.prev, s.everything.older)
	if s.tangle != nil {
		s.tangle.markLocked(f.marks, s.onlookers > 0)
	}
	for i := len(s.children) - 1; i >= 0; i-- {
		n := s.children[i]
		if n.phase != phaseLingering || n.special.mark == f.marks || n.traits.has(exporting) && slices.Contains(s.exported, n.special.inner) {
			continue
		}
		t := n.special.trails[0]
		last := len(t.lingering) - 1
		moved := t.lingering[last]
		t.lingering[n.special.stays], moved.special.stays = moved, n.special.stays
		t.lingering[last] = nil
		t.lingering = t.lingering[:last]
		s.lingering--
		n.departLocked()
	}
	s.keptLingering = s.lingering
}

// markLocked marks the tasks in the segments' history and, if superseded is set, superseded ones.
func (t *tangle) markLocked(mark uint64, superseded bool) {
	stays := func(g *generation, start, end uintptr) {
		if g == nil {
			return
		}
		for _, m := range g.members.appendOverlapping(nil, start, end) {
			m.value.access.node.markAsLocked(mark)
		}
	}
	for _, o := range t.segments.appendAll(nil) {
		stays(o.value.cur, o.start, o.end)
		stays(o.value.prev, o.start, o.end)
	}
	if superseded {
		stays(t.retired, 0, ^uintptr(0))
	}
}
