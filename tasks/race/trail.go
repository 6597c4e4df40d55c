package race

import (
	"cmp"
	"slices"
)

// trail leads to the children of the exporting tasks that a task follows, directly or
// through others: who follows that task can follow them too (OpenMP 6.0 §17.9.5).
//
//	E1 (exporting) ──▶ E2 (exporting) ──▶ T        the trail of T: children of E2
//	                                                                  │ before
//	                                                               children of E1
//
// Trails are shared and never changed: a task has the one of the task that it follows, an
// exporting task adds one link to it, and a task that follows several joins theirs. So a
// chain of exporting tasks has as many trails as tasks. Children that everybody on the way
// follows already are left out.
type trail struct {
	// children are the users of the storage of one exporting task's region, which has
	// ended; nil where the trail joins others.
	children *depends
	before   []*trail
	// number is in the order of making: a later trail is more likely to lead where an
	// earlier one does than the reverse.
	number uint64
	// refs counts the tasks, the views and the trails that have this one.
	refs int
	// seen is the number of the last visit that came here.
	seen uint64
	// lingering is what lingers has found for the merge of that number.
	merge     uint64
	lingering bool
}

// newTrail returns the trail to the children, if there are any, and to where others lead,
// whose references are its own from then on.
func (d *Detector) newTrail(children *depends, before ...*trail) *trail {
	d.trails++
	return &trail{children: children, before: before, number: d.trails, refs: 1}
}

// share returns the trail with one more reference.
func (r *trail) share() *trail {
	if r != nil {
		r.refs++
	}
	return r
}

// drop gives up one reference.
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

// each calls f for the trails before r but for the first, which it returns: that is the
// way along a chain, which may be long.
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

// visit calls f for the children of each exporting task that the trail leads to and that
// the visit of that number has not come to.
func (r *trail) visit(number uint64, f func(children *depends)) {
	for r != nil && r.seen != number {
		r.seen = number
		if r.children != nil {
			f(r.children)
		}
		r = r.each(func(b *trail) { b.visit(number, f) })
	}
}

// lingers reports whether the trail leads to something that the clock's merge lacks.
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
	// It is the same for all that the loop has come to, each before the next.
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

// search makes t, for which no task is ahead that has not ended, follow the children that
// its trails lead to, and what the trails of these lead to in turn, until one has not
// ended.
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

// joinTrails makes one trail of those of t, whose place the clock's merge is, without
// what everybody follows who follows t.
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

// order is the number of the trail, 0 for none.
func (r *trail) order() uint64 {
	if r == nil {
		return 0
	}
	return r.number
}

// ahead returns the trail, in whose place it comes, without the children at its beginning
// that the clock's merge has.
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

// export adds the children of t, which has ended, to its trail, unless everybody who
// follows the end of t follows them.
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
