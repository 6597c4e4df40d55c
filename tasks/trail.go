package tasks

import "slices"

// trail leads a task to the children of the complete exporting tasks that are among
// its predecessors, directly or through others: it has to follow them too, where
// their items match (OpenMP 6.0 §17.9.5). A task hands its trail to those that follow
// it, when it is out of their way.
//
//	T (exporting) ──▶ Q ──▶ B        B gets T's trail from Q, and looks
//	  └─ A ·················▶ B      among the children of T for A
//
// Trails are shared: a task with one predecessor has that one's. A trail is open as
// long as some child may still have to be followed, and complete tasks stay in the
// histories of their storage as long as theirs is. All of it is guarded by the
// family's lock.
type trail struct {
	// inner is the scope of the children of one exporting task, nil where the trail
	// joins others.
	inner *Scope
	// before are the trails of what that task followed, or the joined ones; after leads
	// back to those of which this one is before.
	before, after []*trail
	// open counts what keeps the trail open: inner, while it lasts, and those before.
	open int
	// refs counts the tasks that have the trail, and the trails that it is before.
	refs int
	// lingering are the complete tasks that stay for the trail.
	lingering []*Node
	// seen is the seq of the last task that looked here, and mark the family's count
	// when the trail was last found.
	seen, mark uint64
}

// newTrail returns the trail to the children in inner, if it is not nil, and to
// where the others lead.
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

// carried is what a task hands to those that follow it.
type carried struct {
	trails []*trail
	// stays is the index of a complete task among those that linger for the first trail.
	stays int
	// mark is the number of the last sweep that found the task in a history.
	mark uint64
}

func (n *Node) markAsLocked(mark uint64) {
	if n.carried != nil {
		n.carried.mark = mark
	}
}

// keepTrailLocked adds to what n hands to those that follow it.
func (n *Node) keepTrailLocked(t *trail) {
	if n.carried == nil {
		n.carried = &carried{}
	}
	if t.open > 0 && !slices.Contains(n.carried.trails, t) {
		t.refs++
		n.carried.trails = append(n.carried.trails, t)
		n.notes |= trailed
		n.settleTrailsLocked()
	}
}

// settleTrailsLocked tells the children of an importing task what it has come to follow.
func (n *Node) settleTrailsLocked() {
	if n.traits.has(importing) {
		n.inner.imported = append(n.inner.imported[:0], n.carried.trails...)
	}
}

// trailLocked returns what n hands to those that follow it, nil if there is nothing.
func (n *Node) trailLocked() *trail {
	if n.carried == nil || len(n.carried.trails) == 0 {
		return nil
	}
	if !n.phase.complete() {
		n.joinTrailsLocked()
	}
	if len(n.carried.trails) == 0 || n.carried.trails[0].open == 0 {
		return nil
	}
	return n.carried.trails[0].shortcut()
}

// joinTrailsLocked leaves n at most one trail.
func (n *Node) joinTrailsLocked() {
	open := n.carried.trails[:0]
	for _, t := range n.carried.trails {
		if t.open > 0 {
			short := t.shortcut()
			short.refs++
			open = append(open, short)
		}
		t.drop()
	}
	clear(n.carried.trails[len(open):])
	n.carried.trails = open
	if len(n.carried.trails) > 1 {
		n.dropRedundantLocked()
		slices.Reverse(n.carried.trails)
		n.dropRedundantLocked()
	}
	if len(n.carried.trails) > 1 {
		n.setTrailLocked(newTrail(nil, n.carried.trails...))
	}
}

// lasting reports whether the trail leads to children of its own.
func (t *trail) lasting() bool { return t.inner != nil && t.inner.trail == t }

// shortcut returns the trail to which t, which is open, has come down.
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

// setTrailLocked makes t all that n hands on.
func (n *Node) setTrailLocked(t *trail) {
	if n.carried == nil {
		n.carried = &carried{}
	}
	t.refs++
	n.dropTrailsLocked()
	n.carried.trails = append(n.carried.trails, t)
	n.notes |= trailed
}

func (n *Node) dropTrailsLocked() {
	if n.carried == nil {
		return
	}
	for _, t := range n.carried.trails {
		t.drop()
	}
	clear(n.carried.trails)
	n.carried.trails = n.carried.trails[:0]
}

// dropRedundantLocked drops those of n's trails that lead to no more children than the ones before
// them in the list.
func (n *Node) dropRedundantLocked() {
	n.family.marks++
	n.carried.trails = slices.DeleteFunc(n.carried.trails, func(t *trail) bool {
		if t.leads(n.family.marks) {
			return false
		}
		t.drop()
		return true
	})
}

// leads reports whether the trail leads to children without that mark, and marks it.
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

// drop gives up one reference.
func (t *trail) drop() {
	t.refs--
	if t.refs > 0 {
		return
	}
	for _, b := range t.before {
		b.drop()
	}
}

// closeLocked says that one of the things that kept the trail open is gone. When it was
// the last, complete tasks need not stay for it.
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
		s.settledLocked()
	}
}

// settledLocked closes the trail to the children of a complete exporting task when none
// of them has to be followed any more.
func (s *Scope) settledLocked() {
	if t := s.trail; t != nil && !s.lastingLocked() {
		s.trail = nil
		t.closeLocked()
	}
}

// endTrailLocked returns what a task that is complete hands on: the children of an exporting
// one are part of it.
func (n *Node) endTrailLocked() *trail {
	if n.carried != nil && len(n.carried.trails) > 0 {
		n.joinTrailsLocked()
	}
	t := n.trailLocked()
	if n.traits.has(exporting) && n.inner.lastingLocked() {
		if t == nil {
			t = newTrail(n.inner)
		} else {
			t = newTrail(n.inner, t)
		}
		n.setTrailLocked(t)
		if n.notes.has(included) {
			n.scope.exported = append(n.scope.exported, n.inner)
		}
	}
	return t
}

// pickLocked takes the trail of a task that another follows and that is out of its way.
func (f *family) pickLocked(from *Node) {
	if t := from.trailLocked(); t != nil {
		f.trails = append(f.trails, t)
	}
}

// lingerLocked keeps a complete task in the histories of its storage, for what its trail
// leads to.
func (n *Node) lingerLocked(t *trail) {
	n.toLocked(phaseLingering)
	n.carried.stays = len(t.lingering)
	t.lingering = append(t.lingering, n)
	s := n.scope
	s.lingering++
	if s.lingering > 2*s.keptLingering+s.live+maxKept {
		s.sweepLocked()
	}
}

// sweepLocked lets go of the complete tasks that others have superseded: who would find
// one of them finds those, which have its trail.
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
		if n.phase != phaseLingering || n.carried.mark == f.marks || n.traits.has(exporting) && slices.Contains(s.exported, n.inner) {
			continue
		}
		t := n.carried.trails[0]
		last := len(t.lingering) - 1
		moved := t.lingering[last]
		t.lingering[n.carried.stays], moved.carried.stays = moved, n.carried.stays
		t.lingering[last] = nil
		t.lingering = t.lingering[:last]
		s.lingering--
		n.departLocked()
	}
	s.keptLingering = s.lingering
}

// markLocked marks the tasks in the segments' history, and those superseded if that is asked for.
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
