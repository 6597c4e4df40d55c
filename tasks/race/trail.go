package race

import (
	"cmp"
	"slices"
)

// trail leads to the children of the exporting tasks that a task follows, directly or through
// others. A task that follows that task can depend on these children too (OpenMP 6.0 §17.9.5).
//
//	E1 (exporting) ──▶ E2 (exporting) ──▶ T        the trail of T: children of E2
//	                                                                  │ before
//	                                                               children of E1
//
// Trails are shared and immutable. A task has the trail of the task that it follows, an exporting
// task adds one link to it, and a task that follows several tasks joins their trails, so a chain
// of exporting tasks has only as many trails as tasks. Children that all later tasks follow
// anyway are left out.
type trail struct {
	// children are the users of the storage of one exporting task's region, which has
	// ended; nil if the trail only joins others.
	children *depends
	before   []*trail
	// number counts trails in the order of creation. Later trails tend to lead to what
	// earlier ones lead to, rather than the reverse.
	number uint64
	// refs counts the references by tasks, views and other trails.
	refs int
	// seen is the number of the last search that visited the trail.
	seen uint64
	// lingering is the result of lingers for the clock's merge of number merge.
	merge     uint64
	lingering bool
}

// newTrail returns a trail to the children, if there are any, and to the given trails, whose
// references it takes over.
func (d *Detector) newTrail(children *depends, before ...*trail) *trail {
	d.trails++
	return &trail{children: children, before: before, number: d.trails, refs: 1}
}

// share adds a reference and returns the trail.
func (r *trail) share() *trail {
	if r != nil {
		r.refs++
	}
	return r
}

// drop removes a reference.
func (r *trail) drop() {
	for r != nil {
		r.refs--
		if r.refs > 0 {
			return
		}
		if r.children != nil {
			r.children.release()
		}
		r = r.each((*trail).drop)
	}
}

// each calls f for all trails that r joins except for the first, which it returns. The caller
// loops over the first ones, because a chain of trails may be too long for recursion.
func (r *trail) each(f func(*trail)) (first *trail) {
	for k, b := range r.before {
		if k == 0 {
			first = b
			continue
		}
		f(b)
	}
	return first
}

// visit calls f for the children of each exporting task to which the trail leads, except for those
// that the search with this number has visited.
func (r *trail) visit(number uint64, f func(children *depends)) {
	for r != nil && r.seen != number {
		r.seen = number
		if r.children != nil {
			f(r.children)
		}
		r = r.each(func(b *trail) { b.visit(number, f) })
	}
}

// lingers reports whether the trail leads to a task that the clock's merge lacks.
func (r *trail) lingers(c *clock) bool {
	lingering := false
	end := r
	for end != nil && !lingering {
		if end.merge == c.merge {
			lingering = end.lingering
			break
		}
		lingering = end.children != nil && end.children.lingers(c)
		end = end.each(func(b *trail) { lingering = lingering || b.lingers(c) })
	}
	// All trails that the loop has visited have the same result, since each leads to the next.
	for o := r; o != end; o = o.each(func(*trail) {}) {
		o.merge, o.lingering = c.merge, lingering
	}
	return lingering
}

// carry gives t, which follows p and has not started, the trail of p, which has ended.
func (t *Task) carry(p *Task) {
	if n := len(t.trails); p.trail != nil && (n == 0 || t.trails[n-1] != p.trail) {
		t.trails = append(t.trails, p.trail.share())
	}
}

// search makes t, all of whose known predecessors have ended, follow the children to which its
// trails lead, and those to which the trails of these lead in turn, until one has not ended.
func (t *Task) search() {
	d := t.detector
	for t.waiting == 0 && t.searched < len(t.trails) {
		d.visits++
		for t.searched < len(t.trails) {
			r := t.trails[t.searched]
			t.searched++
			r.visit(d.visits, func(children *depends) { children.find(t) })
		}
	}
}

// joinTrails joins the trails of t, without the children that all tasks follow that follow t. The
// clock's merge is the place of t.
func (t *Task) joinTrails() {
	d := t.detector
	for k, r := range t.trails {
		t.trails[k] = r.ahead(&d.clock)
	}
	slices.SortFunc(t.trails, func(a, b *trail) int { return cmp.Compare(b.order(), a.order()) })
	d.visits++
	t.trails = slices.DeleteFunc(t.trails, func(r *trail) bool {
		leads := false
		r.visit(d.visits, func(*depends) { leads = true })
		if !leads {
			r.drop()
		}
		return !leads
	})
	switch len(t.trails) {
	case 0:
	case 1:
		t.trail = t.trails[0]
	default:
		t.trail = d.newTrail(nil, t.trails...)
	}
	t.trails = nil
}

// order returns the number of the trail, 0 for nil.
func (r *trail) order() uint64 {
	if r == nil {
		return 0
	}
	return r.number
}

// ahead returns the trail without the children at its beginning that the clock's merge has. It
// takes over the reference to r.
func (r *trail) ahead(c *clock) *trail {
	for r.lingers(c) && r.children != nil && !r.children.lingers(c) {
		next := r.before[0].share()
		r.drop()
		r = next
	}
	if !r.lingers(c) {
		r.drop()
		return nil
	}
	return r
}

// export adds the children of t, which has ended, to its trail, unless all tasks that follow
// the end of t follow them anyway.
func (t *Task) export() {
	d := t.detector
	d.clock.reset()
	t.merge(&d.clock)
	if !t.depends.lingers(&d.clock) {
		return
	}
	children := t.depends
	children.by.trim()
	t.depends, t.exported = depends{}, &children
	if t.trail == nil {
		t.trail = d.newTrail(t.exported)
	} else {
		t.trail = d.newTrail(t.exported, t.trail)
	}
}
