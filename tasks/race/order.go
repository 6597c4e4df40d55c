package race

import (
	"cmp"
	"slices"
)

// settle starts a task whose predecessors are complete. Of those that were never run
// the detector has not heard that.
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

// force ends a task that is complete, one that was not run too.
func (d *Detector) force(t *Task) {
	d.settle(t)
	if !t.ended {
		d.close(t)
	}
}

// close ends a task that nothing is ahead of.
func (d *Detector) close(t *Task) {
	if !t.started {
		d.start(t)
	}
	if !t.ended {
		d.ended(t, true)
	}
	d.run()
}

// ended says that the body of a task that has started is done.
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

// start settles the place of a task whose predecessors have ended, checks its accesses,
// and ends it if it has no body.
func (d *Detector) start(t *Task) {
	c := &d.clock
	// Whom t goes on from follows most, likely all.
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

// reached is what somebody follows who follows the task, besides where that is: of
// one that has not ended what it has come to.
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

// continues returns the chain that t gets a place on, and whether it is one that t
// follows the last task of.
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
	// Of what the parent has waited for, most are the last of their chains. Each task
	// looks at others, so that there are as many chains as the graph is wide.
	if n := len(t.created.entries); n > 0 {
		for k := range min(n, 16) {
			e := t.created.entries[(int(t.number%uint64(n))*16+k)%n]
			if c.last(e.chain) {
				return e.chain, true
			}
		}
	}
	return c.unused(), false
}

// end lets go on what waits for a task: its end is settled.
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

// run starts what became ready.
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

// forget drops the ends that the merge has, which a wait has to follow no more.
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
