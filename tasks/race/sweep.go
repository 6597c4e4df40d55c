package race

import "slices"

const (
	// fewRemembered is a number of accesses so small that every wait may sweep them.
	fewRemembered = 1 << 10
	// manyRemembered is the number of remembered accesses above which a region that waits for a
	// running body is taken to have reached the point of that body. Races with tasks that another
	// goroutine creates in that region during the wait may then be missed.
	manyRemembered = 1 << 14
)

// sweep drops the accesses that all later ones follow. It is called after a wait of a region, and
// does nothing if few accesses have been added since the last sweep.
func (d *Detector) sweep() {
	// When no other task is active, a wait usually allows all accesses to be dropped.
	alone := len(d.active) == 1 && !d.keptAlone
	if d.remembered == 0 || d.kept > fewRemembered && d.remembered < 2*d.kept && !alone {
		return
	}
	d.prune(false)
	if d.remembered > manyRemembered {
		d.prune(true)
	}
	d.kept = d.remembered
	d.keptAlone = len(d.active) == 1 && d.kept > fewRemembered
}

// prune drops the accesses that are in every clock that a later access can have.
func (d *Detector) prune(blocked bool) {
	var bounds []*set
	add := func(s *set) {
		if s != nil && !slices.Contains(bounds, s) {
			bounds = append(bounds, s)
		}
	}
	for _, t := range d.active {
		switch {
		case !t.started:
			add(t.created)
		case blocked && t.blocked > 0 && t.awaitsBody():
		case t.position == t.first:
			// The set is almost the same as position, and shared by many tasks.
			add(t.after)
		default:
			add(t.position)
		}
	}
	d.sweeps++
	for k, bound := range bounds {
		d.clock.reset()
		d.clock.add(bound)
		if k+1 == len(bounds) {
			break // the last bound is checked below
		}
		d.eachUse(func(o use) {
			if !d.clock.follows(o.task.at) {
				o.task.kept = d.sweeps
			}
		})
	}
	gone := func(o use) bool { return o.task.kept != d.sweeps && d.clock.follows(o.task.at) }
	for space, h := range d.history {
		h.by.filter(func(at *segment[uses]) bool {
			u := &at.value
			u.writes, u.reads = d.without(u.writes, gone), d.without(u.reads, gone)
			return len(u.writes)+len(u.reads) > 0
		}, func(a, b uses) bool { return false })
		if h.by.len() == 0 {
			delete(d.history, space)
		}
	}
}

// awaitsBody reports whether a child has started whose body has not returned.
func (t *Task) awaitsBody() bool {
	return slices.ContainsFunc(t.children.open, func(c *Task) bool { return c.body && c.started && !c.returned })
}

func (d *Detector) eachUse(f func(use)) {
	for _, h := range d.history {
		h.by.each(func(at *segment[uses]) {
			for _, o := range at.value.writes {
				f(o)
			}
			for _, o := range at.value.reads {
				f(o)
			}
		})
	}
}

// pruneNames drops the users of the region's storage that every later sibling follows, if
// enough were added since the last time. The clock's merge is what these siblings follow.
func (t *Task) pruneNames(spare int) {
	n := &t.depends
	if n.named > 2*n.kept+spare {
		n.prune(&t.detector.clock)
		n.kept = n.named
	}
}
