package race

import (
	"slices"
	"unsafe"

	"github.com/vkomp/vkomp/tasks"
)

// class is the effect of a dependence-type on order.
type class uint8

const (
	reads class = iota
	writes
	excludes
	joins
	classes
)

// classOf returns the class of a valid kind.
func classOf(k tasks.DependKind) class {
	switch k {
	case tasks.DependIn:
		return reads
	case tasks.DependMutexInOutSet:
		return excludes
	case tasks.DependInOutSet:
		return joins
	}
	return writes
}

// orders[a][b] reports whether a task whose item has class b depends on an earlier sibling whose
// item of the same byte has class a (OpenMP 5.2 §15.9.5).
var orders = [classes][classes]bool{
	reads:    {reads: false, writes: true, excludes: true, joins: true},
	writes:   {reads: true, writes: true, excludes: true, joins: true},
	excludes: {reads: true, writes: true, excludes: false, joins: true},
	joins:    {reads: true, writes: true, excludes: true, joins: false},
}

// item is a depend item, or a part of one.
type item struct {
	start, end uint64
	class      class
	keep       unsafe.Pointer
}

// itemsOf returns the items of a clause without overlaps: bytes that several items name with
// different classes count as written. The result all reports whether omp_all_memory is among them.
func itemsOf(depend []tasks.Depend, imports bool) (items []item, all bool) {
	for k := range depend {
		d := &depend[k]
		switch {
		case d.Kind.AllMemory():
			all = true
			continue
		case d.Ptr == nil || d.Size == 0:
			continue
		}
		start := uint64(uintptr(d.Ptr))
		i := item{start, start + d.Size, classOf(d.Kind), d.Ptr}
		if i.class == excludes && imports {
			// For the children of the task, an order with the tasks that took the storage before
			// replaces mutual exclusion.
			i.class = writes
		}
		items = append(items, i)
	}
	slices.SortStableFunc(items, func(a, b item) int {
		switch {
		case a.start < b.start:
			return -1
		case a.start > b.start:
			return 1
		}
		return 0
	})
	overlap := false
	reach := uint64(0)
	for _, i := range items {
		overlap = overlap || i.start < reach
		reach = max(reach, i.end)
	}
	if overlap {
		items = flatten(items)
	}
	return items, all
}

// flatten cuts items, which are sorted, at the bounds of the items that they overlap.
func flatten(items []item) []item {
	bounds := make([]uint64, 0, 2*len(items))
	for _, i := range items {
		bounds = append(bounds, i.start, i.end)
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	var flat []item
	// open are the items that contain the bytes between the two current bounds.
	var open []item
	next := 0
	for b := 0; b+1 < len(bounds); b++ {
		open = slices.DeleteFunc(open, func(i item) bool { return i.end <= bounds[b] })
		for ; next < len(items) && items[next].start == bounds[b]; next++ {
			open = append(open, items[next])
		}
		if len(open) == 0 {
			continue
		}
		run := item{bounds[b], bounds[b+1], open[0].class, open[0].keep}
		for _, i := range open {
			if i.class != run.class {
				run.class = writes
			}
		}
		flat = append(flat, run)
	}
	return flat
}

// users are the tasks on which a later one may depend by one byte. Every member of last depends
// on every member of before, and the members of each list have one class.
type users struct {
	class, was   class
	last, before []*Task
	// crowd is the length of last at which thin is called.
	crowd int
	// keep keeps the storage reachable, so that its address is not used for another.
	keep unsafe.Pointer
}

func (u *users) each(f func(t *Task)) {
	for _, t := range u.last {
		f(t)
	}
	for _, t := range u.before {
		f(t)
	}
}

// depends maps the storage that depend items of one region's tasks name to its users, by the byte.
type depends struct {
	by segments[users]
	// all is the last task with omp_all_memory.
	all *Task
	// included are the exporting tasks that were included tasks. All later tasks follow their
	// children.
	included []*Task
	// named counts the references to tasks in this structure.
	named int
	// kept is the value of named after the last prune.
	kept int
}

func (d *depends) hold(t *Task) {
	d.named++
	t.hold()
}

func (d *depends) drop(t *Task) {
	d.named--
	t.drop()
}

// clone returns a copy of the users, for a segment that was cut in two.
func (d *depends) clone(u users) users {
	u.last, u.before = slices.Clone(u.last), slices.Clone(u.before)
	u.each(d.hold)
	return u
}

// name makes t, which is being created, a user of the storage that its items name, and collects the
// siblings on which it depends.
func (d *depends) name(t *Task) {
	if !t.all && len(t.items) == 0 {
		return
	}
	if d.all != nil {
		t.follow(d.all)
	}
	for _, e := range d.included {
		t.followChildren(e)
	}
	if t.all {
		d.nameAll(t)
		return
	}
	for _, i := range t.items {
		d.by.splice(i.start, i.end, d.clone, func(pieces []segment[users]) []segment[users] {
			if len(pieces) == 1 && pieces[0].start == i.start && pieces[0].end == i.end {
				d.use(&pieces[0].value, t, i.class)
				pieces[0].value.keep = i.keep
				return pieces
			}
			named := make([]segment[users], 0, 2*len(pieces)+1)
			at := i.start
			fresh := func(end uint64) {
				if at < end {
					named = append(named, segment[users]{at, end, users{class: i.class, last: []*Task{t}, keep: i.keep}})
					d.hold(t)
				}
			}
			for _, p := range pieces {
				fresh(p.start)
				d.use(&p.value, t, i.class)
				p.value.keep = i.keep
				named = append(named, p)
				at = p.end
			}
			fresh(i.end)
			return named
		})
	}
}

// use makes t a user of a byte.
func (d *depends) use(u *users, t *Task, c class) {
	ahead := u.last
	if !orders[u.class][c] {
		ahead = u.before
	}
	for _, p := range ahead {
		t.follow(p)
	}
	if c == writes || c != u.class {
		for _, p := range u.before {
			d.drop(p)
		}
		u.before, u.last = u.last, append(u.before[:0:0], t)
		u.was, u.class, u.crowd = u.class, c, 0
	} else {
		if len(u.last) >= max(u.crowd, minCrowd) {
			d.thin(u)
		}
		u.last = append(u.last, t)
	}
	d.hold(t)
}

// thin drops each member of last whose end is followed by a later member on the same chain.
func (d *depends) thin(u *users) {
	last := make(map[uint32]uint32, len(u.last))
	for _, t := range u.last {
		if t.started {
			last[t.at.chain] = max(last[t.at.chain], t.at.position)
		}
	}
	u.last = slices.DeleteFunc(u.last, func(t *Task) bool {
		// The body of a task may go on after a task that follows only its beginning has its place
		// on the chain.
		gone := t.ended && !t.body && t.trail == nil && t.at.position < last[t.at.chain]
		if gone {
			d.drop(t)
		}
		return gone
	})
	u.crowd = 2 * len(u.last)
}

// nameAll makes t follow all users, and the children of those that export them. All later tasks
// follow t.
func (d *depends) nameAll(t *Task) {
	d.by.each(func(at *segment[users]) { at.value.each(t.follow) })
	d.release()
	d.all = t
	d.hold(t)
}

// find collects the users on which t, which is not a sibling of theirs, depends by its items.
// Mutual exclusion between tasks of different regions is replaced by an order.
func (d *depends) find(t *Task) {
	if !t.all && len(t.items) == 0 {
		return
	}
	if d.all != nil {
		t.follow(d.all)
	}
	for _, e := range d.included {
		t.followChildren(e)
	}
	if t.all {
		d.by.each(func(at *segment[users]) { at.value.each(t.follow) })
		return
	}
	for _, i := range t.items {
		ordered := func(c class) bool { return orders[c][i.class] || c == excludes && i.class == excludes }
		d.by.overlapping(i.start, i.end, func(at *segment[users]) {
			u := &at.value
			if ordered(u.class) {
				for _, p := range u.last {
					t.follow(p)
				}
			}
			if ordered(u.was) {
				for _, p := range u.before {
					t.follow(p)
				}
			}
		})
	}
}

// snapshot returns a copy of the current users.
func (d *depends) snapshot() *depends {
	s := &depends{all: d.all, included: slices.Clone(d.included)}
	s.by = d.by.copied(s.clone)
	if s.all != nil {
		s.hold(s.all)
	}
	for _, t := range s.included {
		s.hold(t)
	}
	return s
}

// prune forgets the users that every later sibling follows, which are those in the clock's merge.
// An exporting task, or one that follows an exporting task, is forgotten only when its children
// are in the merge too.
func (d *depends) prune(c *clock) {
	gone := func(t *Task) bool {
		if t.lingers(c) {
			return false
		}
		d.drop(t)
		return true
	}
	d.by.filter(func(at *segment[users]) bool {
		u := &at.value
		u.before = slices.DeleteFunc(u.before, gone)
		u.last = slices.DeleteFunc(u.last, gone)
		return len(u.last)+len(u.before) > 0
	}, func(a, b users) bool { return false })
	if d.all != nil && gone(d.all) {
		d.all = nil
	}
	d.included = slices.DeleteFunc(d.included, gone)
}

// lingers reports whether the clock's merge lacks something that every task has to follow that
// follows the end of t.
func (t *Task) lingers(c *clock) bool {
	if !t.ended || !c.follows(t.at) || t.trail.lingers(c) {
		return true
	}
	// A task without a body is followed only with its end.
	return t.body && slices.ContainsFunc(t.after.entries, func(e entry) bool { return !c.follows(e) })
}

// lingers reports whether the clock's merge lacks some user.
func (d *depends) lingers(c *clock) bool {
	lingers := false
	look := func(t *Task) {
		if lingers {
			return
		}
		lingers = t.lingers(c)
	}
	d.by.each(func(at *segment[users]) { at.value.each(look) })
	if d.all != nil {
		look(d.all)
	}
	for _, t := range d.included {
		look(t)
	}
	return lingers
}

// release forgets all users.
func (d *depends) release() {
	d.by.each(func(at *segment[users]) { at.value.each(d.drop) })
	if d.all != nil {
		d.drop(d.all)
	}
	for _, t := range d.included {
		d.drop(t)
	}
	d.by, d.all, d.included = segments[users]{}, nil, nil
}

// view is what the children of an importing task can depend on besides their siblings: the users of
// storage when the task was created, and the task's own view if its region imports too.
type view struct {
	siblings *depends
	outer    *view
	// imported is the trail of the task, set when it starts.
	imported *trail
	// regions counts the uses of the view by tasks that have not ended and by inner views.
	regions int
}

// release gives up one use of the view.
func (v *view) release() {
	for ; v != nil; v = v.outer {
		v.regions--
		if v.regions > 0 {
			return
		}
		v.siblings.release()
		v.imported.drop()
		v.imported = nil
	}
}
