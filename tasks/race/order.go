package race

import (
	"cmp"
	"slices"
)

// settle starts a task whose predecessors are complete. It ends those that never ran, of which
// the detector was not told.
func (d *Detector) settle(t *Task) {
	for !t.started && t.waiting > 0 {
		unended := []*Task{t}
		found := map[*Task]bool{t: true}
		for i := 0; i < len(unended); i++ {
			for _, p := range unended[i].ahead {
				if !p.ended && !found[p] {
					found[p] = true
					unended = append(unended, p)
				}
			}
		}
		slices.SortFunc(unended, func(a, b *Task) int { return cmp.Compare(a.number, b.number) })
		more := false
		for _, p := range unended {
			if p != t && p.waiting == 0 && !p.ended {
				d.close(p)
				more = true
			}
		}
		if !more {
			break
		}
	}
	if !t.started {
		d.start(t)
		d.run()
	}
}

// force ends a task that is complete, even one that never ran.
func (d *Detector) force(t *Task) {
	d.settle(t)
	if !t.ended {
		d.close(t)
	}
}

// close ends a task that has no unfinished predecessors.
func (d *Detector) close(t *Task) {
	if !t.started {
		d.start(t)
	}
	if !t.ended {
		d.ended(t, true)
	}
	d.run()
}

// ended records that the body of a task that has started has returned.
func (d *Detector) ended(t *Task, failed bool) {
	if t.returned || t.ended {
		if failed && !t.ended {
			d.end(t)
		}
		return
	}
	t.returned, t.running = true, false
	if !t.event || t.fulfilled || failed {
		d.end(t)
	}
	d.deactivate(t)
}

// start fixes the place of a task whose predecessors have ended, checks its accesses,
// and ends it if it has no body.
func (d *Detector) start(t *Task) {
	c := &d.clock
	// The latest predecessor follows the most, and often all others.
	var latest *Task
	for _, p := range t.ahead {
		if latest == nil || p.number > latest.number {
			latest = p
		}
	}
	c.reset()
	base := t.created
	if latest != nil {
		c.add(latest.reached())
		c.addEntry(latest.at)
		base = latest.reached()
	}
	more := c.add(t.created) && latest != nil
	for _, p := range t.ahead {
		if p != latest {
			more = c.add(p.reached()) || more
			more = c.addEntry(p.at) || more
		}
	}
	on, continued := d.continues(t, latest)
	if latest != nil && (more || !continued || on != latest.at.chain) {
		base = c.build()
	}
	t.started = true
	t.joinTrails()
	if t.view != nil {
		t.view.imported = t.trail.share()
	}
	t.at = c.next(on)
	t.after = base
	c.remember(on)
	c.addEntry(t.at)
	d.check(t)
	t.ahead, t.created = nil, nil
	t.drop()
	if !t.body {
		t.returned = true
		d.end(t)
		d.deactivate(t)
		return
	}
	t.position = c.build()
	t.first = t.position
}

// reached returns what follows from the task besides its own position. For a task that has not
// ended that is its current point.
func (t *Task) reached() *set {
	switch {
	case t.ended:
		return t.after
	case t.started && t.body:
		return t.position
	case t.started:
		return t.after
	}
	return t.created
}

// continues returns the chain on which t is placed, and whether t follows the last task of that
// chain.
func (d *Detector) continues(t *Task, latest *Task) (on uint32, continued bool) {
	c := &d.clock
	if latest != nil && latest.at.position != 0 && c.last(latest.at.chain) {
		return latest.at.chain, true
	}
	for _, p := range t.ahead {
		if p.at.position != 0 && c.last(p.at.chain) {
			return p.at.chain, true
		}
	}
	// Most tasks for which the parent has waited are the last of their chains, and so are those before a task with
	// omp_all_memory. Each task tries different ones, so that there are only as many chains as the graph is wide.
	if n := len(c.touched); n > 0 {
		for k := range min(n, 16) {
			i := c.touched[(int(t.number%uint64(n))*16+k)%n]
			if c.last(i) {
				return i, true
			}
		}
	}
	return c.unused(), false
}

// end records the end of a task and releases the tasks that wait for it.
func (d *Detector) end(t *Task) {
	c := &d.clock
	whole := t.foreign
	if t.body {
		t.after = t.position
		whole = whole || t.position != t.first
	}
	if t.told != nil {
		c.reset()
		c.add(t.after)
		c.add(t.told)
		t.after, whole = c.build(), true
	}
	t.ended, t.told, t.position, t.first = true, nil, nil, nil
	p := t.parent
	p.children.remove(t, func(t *Task) *int { return &t.open })
	p.children.end(t, whole)
	if t.group != nil {
		t.group.members.remove(t, func(t *Task) *int { return &t.inGroup })
	}
	for g := t.group; g != nil; g = g.parent {
		g.members.end(t, whole)
	}
	t.view.release()
	t.view = nil
	if t.exports {
		t.export()
	}
	for _, b := range t.behind {
		if b.started {
			continue
		}
		b.carry(t)
		b.waiting--
		b.search()
		if b.waiting == 0 {
			d.ready = append(d.ready, b)
		}
	}
	t.behind = nil
	if t.holds == 0 && !t.included {
		t.release()
	} else {
		t.depends.release()
	}
}

// run starts the ready tasks.
func (d *Detector) run() {
	for len(d.ready) > 0 {
		t := d.ready[len(d.ready)-1]
		d.ready = d.ready[:len(d.ready)-1]
		if !t.started && t.waiting == 0 {
			d.start(t)
		}
	}
}

func (c *children) remove(t *Task, index func(*Task) *int) {
	at := index(t)
	last := len(c.open) - 1
	moved := c.open[last]
	c.open[*at] = moved
	*index(moved) = *at
	c.open[last] = nil
	c.open = c.open[:last]
	*at = -1
}

// forget drops the ends that are in the merge, which a wait no longer needs.
func (c *children) forget(merged *clock) {
	for chain, position := range c.ended {
		if merged.follows(entry{chain, position}) {
			delete(c.ended, chain)
		}
	}
}

func (d *Detector) activate(t *Task) {
	t.active = len(d.active)
	d.active = append(d.active, t)
}

func (d *Detector) deactivate(t *Task) {
	last := len(d.active) - 1
	moved := d.active[last]
	d.active[t.active], moved.active = moved, t.active
	d.active[last] = nil
	d.active = d.active[:last]
	t.active = -1
}
