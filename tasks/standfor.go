package tasks

// An access that joins a generation can stand for earlier members. This keeps the history small where
// tasks by turns read much and write a little of it:
//
//	In a      ├─────────────────────────┤
//	InOut b          ├───┤
//	In c      ├─────────────────────────┤
//
// c joins a beside b. It follows b, which follows a, so whoever follows c need not follow a, which is
// removed (standForLocked). Nor need c itself follow what a has followed beside b (implied). In the
// segment of b the generation of c begins behind b. There and beside it, what c follows is made one
// generation, so that all is one segment again (share, absorb).

// through is an order that an earlier task ensures: an access that joins the generation and
// overlaps by depends, through the task that used by, on everything generated before that
// overlaps of.
type through struct {
	of, by section
	before uint64
}

// standForLocked removes from g, which a joins, the members for which a can stand: a has all
// their storage and follows them through a task that has superseded them in some piece. It
// reports whether there are any.
func (s *Scope) standForLocked(g *generation, a *access) (stands bool) {
	t := s.tangle
	for i := range t.pieces {
		p := &t.pieces[i]
		if p.role != supersedes {
			continue
		}
		for {
			m := g.other(p.start, p.end, a)
			if m == nil || m.start < a.loc.start || a.loc.end() < m.end {
				break
			}
			from, by := m.value.access, p.cur.other(p.start, p.end, a)
			if by == nil || by.end <= m.start || m.end <= by.start || by.value.access.node.seq <= from.node.seq {
				break
			}
			if s.onlookers > 0 && from.node.seq < s.overlooked {
				t.retire(from)
			}
			stands = true
			g.through = through{from.loc.section, by.value.access.loc.section, from.node.seq}
			t.removeMember(m)
		}
	}
	return stands
}

// implied reports whether an access to that section, which joins the newer generation of p, need not
// follow the older one: it follows a task that follows a former member of the newer, and so all
// members of the older.
func (p *piece) implied(at section) bool {
	g := &p.cur.through
	return p.prev == nil || p.prev.newest < g.before && g.by.overlaps(at) && g.of.start <= p.start && p.end <= g.of.end()
}

// share lets a piece use the earlier generation of a neighbour with the same history before, so
// that adjacent segments stay one. Implied generations are not shared with others.
func (t *tangle) share(i int) {
	p := &t.pieces[i]
	if p.cur.through.before > 0 && p.prev.newest >= p.cur.through.before {
		return
	}
	for _, k := range [...]int{i - 1, i + 1} {
		if k < 0 || k == len(t.pieces) {
			continue
		}
		o := &t.pieces[k]
		if o.role != outside && o.cur == p.cur && o.prev != nil && t.absorb(o.prev, p.prev, p.start, p.end) {
			p.prev = o.prev
			return
		}
	}
}

// absorb makes the members of q in [start, end) members of g, and reports whether g can replace q
// there. g may have a writer with more storage instead of accesses that q has superseded;
// depending on that too is correct.
func (t *tangle) absorb(g, q *generation, start, end uintptr) bool {
	if g == q || g.class != q.class {
		return g == q
	}
	m := q.other(start, end, nil)
	if m == nil || m.start < start || end < m.end || q.other(start, end, m.value.access) != nil {
		return false
	}
	a := m.value.access
	there := false
	gone := func(m *span[member]) bool {
		there = there || m.value.access == a
		return m.value.access != a && start <= m.start && m.end <= end
	}
	for m := g.members.find(start, end, gone); m != nil; m = g.members.find(start, end, gone) {
		t.removeMember(m)
	}
	if g.class != classOut && g.other(start, end, a) != nil {
		return false
	}
	if !there {
		t.addMember(g, a)
	}
	if g.retired > a.node.seq {
		// The others have been retired, so nothing will look at these members again.
		t.retire(a)
	}
	return true
}
