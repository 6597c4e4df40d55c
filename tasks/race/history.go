package race

import "slices"

// history holds the accesses to the bytes of one space with which a later access may conflict.
type history struct {
	by segments[uses]
}

// uses are the remembered accesses to a byte: the writes that no later access supersedes, and the
// reads since then, without those that a later read is known to supersede.
type uses struct {
	writes, reads []use
	// crowd is the number of reads at which superseded ones are searched for.
	crowd int
}

// use is an access of a task, given by its index.
type use struct {
	task   *Task
	access int
}

const (
	// maxWrites is the largest number of unordered writes of a byte that are remembered. If there
	// are several, they have been reported as races, or the program has allowed them by inoutset
	// items. Writes that are ordered, but that a later one does not cover, are not counted.
	maxWrites = 64
	// minCrowd is the smallest number of reads among which superseded ones are searched for.
	minCrowd = 8
)

func (d *Detector) hold(t *Task) {
	d.remembered++
	t.hold()
}

func (d *Detector) drop(t *Task) {
	d.remembered--
	t.drop()
}

func (d *Detector) clone(u uses) uses {
	u.writes, u.reads = slices.Clone(u.writes), slices.Clone(u.reads)
	for _, a := range u.writes {
		d.hold(a.task)
	}
	for _, a := range u.reads {
		d.hold(a.task)
	}
	return u
}

// check compares the accesses of a task that starts with the history, and adds them to it. The
// clock's merge holds the task's predecessors.
func (d *Detector) check(t *Task) {
	for i := range t.accesses {
		a := &t.accesses[i]
		if a.Size == 0 || a.end() < a.Start {
			continue
		}
		h := d.history[a.Space]
		if h == nil {
			h = &history{}
			d.history[a.Space] = h
		}
		h.by.splice(a.Start, a.end(), d.clone, func(pieces []segment[uses]) []segment[uses] {
			if len(pieces) == 1 && pieces[0].start == a.Start && pieces[0].end == a.end() {
				d.use(&pieces[0], t, i)
				return pieces
			}
			return d.spread(pieces, t, i)
		})
	}
}

// spread adds a task that starts to the users of all bytes of an access. The segments in pieces are
// those of these bytes that have been used before.
func (d *Detector) spread(pieces []segment[uses], t *Task, i int) []segment[uses] {
	a := &t.accesses[i]
	used := make([]segment[uses], 0, len(pieces)+1)
	put := func(s segment[uses]) {
		if n := len(used); n > 0 && used[n-1].end == s.start && s.value.only(t, i) && used[n-1].value.only(t, i) {
			used[n-1].end = s.end
			d.drop(t)
			return
		}
		used = append(used, s)
	}
	at := a.Start
	fresh := func(end uint64) {
		if at < end {
			s := segment[uses]{start: at, end: end}
			d.use(&s, t, i)
			put(s)
		}
	}
	for _, p := range pieces {
		fresh(p.start)
		d.use(&p, t, i)
		put(p)
		at = p.end
	}
	fresh(a.end())
	return used
}

// only reports whether the task's access is the only one in u.
func (u *uses) only(t *Task, i int) bool {
	only := use{t, i}
	return len(u.writes)+len(u.reads) == 1 && (len(u.writes) == 1 && u.writes[0] == only || len(u.reads) == 1 && u.reads[0] == only)
}

// use reports the conflicts of a task's access with those to a segment, and adds the access to it.
func (d *Detector) use(at *segment[uses], t *Task, i int) {
	u := &at.value
	ordered := func(o use) bool { return o.task == t || d.clock.follows(o.task.at) }
	superseded := func(o use) bool {
		if o.task == t {
			return t.coversOwn(i, o.access)
		}
		return !t.shares && !t.accesses[i].Local && d.clock.follows(o.task.at) && t.covers(o.task)
	}
	look := func(o use) {
		if !ordered(o) {
			d.conflict(at.start, at.end, o, use{t, i})
		}
	}
	for _, o := range u.writes {
		look(o)
	}
	if !t.accesses[i].Write {
		for _, o := range u.writes {
			if o.task == t && t.coversOwn(o.access, i) {
				return // the task writes the bytes too
			}
		}
		if len(u.reads) >= max(u.crowd, minCrowd) {
			u.reads = d.without(u.reads, superseded)
			u.reads = d.thin(u.reads)
			u.crowd = 2 * len(u.reads)
		}
		u.reads = append(u.reads, use{t, i})
		d.hold(t)
		return
	}
	for _, o := range u.reads {
		look(o)
	}
	u.reads = d.without(u.reads, superseded)
	u.writes = d.without(u.writes, superseded)
	if len(u.writes) >= maxWrites {
		many := 1 - maxWrites
		counts := func(o use) bool { return !ordered(o) || t.covers(o.task) }
		for _, o := range u.writes {
			if counts(o) {
				many++
			}
		}
		u.writes = d.without(u.writes, func(o use) bool {
			if many <= 0 || !counts(o) {
				return false
			}
			many--
			return true
		})
	}
	u.writes = append(u.writes, use{t, i})
	d.hold(t)
}

// thin drops the reads that a later one on the same chain supersedes.
func (d *Detector) thin(reads []use) []use {
	last := make(map[uint32]*Task, len(reads))
	for _, o := range reads {
		t, at := o.task, o.task.at
		if l := last[at.chain]; !t.shares && !t.accesses[o.access].Local && (l == nil || l.at.position < at.position) {
			last[at.chain] = t
		}
	}
	return d.without(reads, func(o use) bool {
		l := last[o.task.at.chain]
		return l != nil && o.task.at.position < l.at.position && l.covers(o.task)
	})
}

// covers reports whether an access of t makes the same access of o superfluous, which t follows: each access that has yet
// to be checked and conflicts with o's must conflict with t's as well. Local accesses do not, if they are those of the
// children of a region that has o inside and t outside. So such a region must have returned and have no more children.
func (t *Task) covers(o *Task) bool {
	for region := o.parent; !t.in(region); region = region.parent {
		if !region.returned || len(region.children.open) > 0 {
			return false
		}
	}
	return true
}

// coversOwn is covers for an access of t itself, given by its index.
func (t *Task) coversOwn(access, other int) bool {
	a, o := &t.accesses[access], &t.accesses[other]
	// Whether inoutset items allow accesses to be unordered depends on the names of the bytes.
	return (!a.Local || o.Local) && (!t.shares || a.Unnamed == o.Unnamed && a.Offset == o.Offset)
}

// without drops the accesses for which gone returns true.
func (d *Detector) without(list []use, gone func(use) bool) []use {
	return slices.DeleteFunc(list, func(o use) bool {
		if !gone(o) {
			return false
		}
		d.drop(o.task)
		return true
	})
}

// conflict reports a pair of unordered accesses to a range of bytes, unless the tasks' depend
// clauses allow them to be unordered.
func (d *Detector) conflict(start, end uint64, a, b use) {
	first, second := a.task, b.task
	c := Conflict{
		First: first, FirstAccess: &first.accesses[a.access], Second: second, SecondAccess: &second.accesses[b.access],
		Start: start, Size: end - start,
	}
	if c.FirstAccess.Local && !second.in(first.parent) || c.SecondAccess.Local && !first.in(second.parent) {
		return
	}
	if one, other := kin(first, second); one != nil && (common(one.items, other.items, excludes) || c.together(one, other)) {
		return
	}
	// Exporting and importing tasks make depend items of different regions match.
	if c.together(first, second) {
		return
	}
	if c.First.number > c.Second.number {
		c.First, c.Second, c.FirstAccess, c.SecondAccess = c.Second, c.First, c.SecondAccess, c.FirstAccess
	}
	d.report(c)
}

// in reports whether t is the task region, or descends from it.
func (t *Task) in(region *Task) bool {
	for t.depth > region.depth {
		t = t.parent
	}
	return t == region
}

// kin returns the ancestors of two tasks, or the tasks themselves, that are siblings. What the
// depend clauses of these say about their order also holds for their descendants, which they are
// assumed to wait for. If one task descends from the other, kin returns nil.
func kin(a, b *Task) (one, other *Task) {
	for a.depth > b.depth {
		a = a.parent
	}
	for b.depth > a.depth {
		b = b.parent
	}
	if a == b {
		return nil, nil
	}
	for a.parent != b.parent {
		a, b = a.parent, b.parent
	}
	return a, b
}

// together reports whether inoutset items of the two tasks, which are those of the conflict or
// ancestors of theirs, allow the unordered accesses. Where no item can name the storage, or the
// tasks name it by different addresses, it suffices that they have inoutset items with a byte in
// common.
func (c *Conflict) together(one, other *Task) bool {
	if !c.FirstAccess.SameNames(c.SecondAccess) {
		return common(one.items, other.items, joins)
	}
	start := c.Start + c.FirstAccess.Offset
	return one.joined(start, start+c.Size) && other.joined(start, start+c.Size)
}

// common reports whether items of class c in a and b have a byte in common.
func common(a, b []item, c class) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].class != c || a[0].end <= b[0].start:
			a = a[1:]
		case b[0].class != c || b[0].end <= a[0].start:
			b = b[1:]
		default:
			return true
		}
	}
	return false
}

// joined reports whether inoutset items of the task cover all of the bytes.
func (t *Task) joined(start, end uint64) bool {
	for _, i := range t.items {
		if i.class == joins && i.start <= start && start < i.end {
			start = i.end
		}
	}
	return start >= end
}
