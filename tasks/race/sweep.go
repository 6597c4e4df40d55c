package race

import "slices"

const (
	// fewRemembered is a number of accesses that every wait may look through.
	fewRemembered = 1 << 10
	// manyRemembered is the number from which on a region that waits for a task's body
	// counts as at the body's place: what another goroutine makes there meanwhile may go
	// unreported.
	manyRemembered = 1 << 14
)

// sweep drops the accesses that everything later follows. It is called where a
// region has waited, and does nothing unless it pays.
func (d *Detector) sweep() {
	// With nothing else under way a wait mostly leaves nothing to remember.
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
			// Much the same as position, and the same for many.
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
			break // this one is looked at when dropping
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

// awaitsBody reports whether a child's body runs, or is about to.
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

// pruneNames drops the users of the region's storage that every later sibling follows,
// which the clock's merge has, when enough came to it.
func (t *Task) pruneNames(spare int) {
	n := &t.depends
	if n.named > 2*n.kept+spare {
		n.prune(&t.detector.clock)
		n.kept = n.named
	}
}
