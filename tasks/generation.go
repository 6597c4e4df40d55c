package tasks

// generation is a set of accesses of one class, shared by segments. In one segment all of them
// follow the same other accesses, unless one has superseded the other (see absorb).
type generation struct {
	class   class
	members spans[member]
	// refs counts the segments that use it.
	refs int
	// retired is a number: members of tasks before it are also in the retired generation.
	retired uint64
	// newest is the largest number of a task that has been a member.
	newest  uint64
	through through
	// joined is the last access that became a member.
	joined *access
	next   *generation
}

// member is the membership of an access in a generation.
type member struct {
	access *access
	of     *generation
	// next links the memberships of the access.
	next *span[member]
}

// gather makes a generation from a set of a location, nil from an empty one.
func (t *tangle) gather(set *access) *generation {
	if set == nil {
		return nil
	}
	var g *generation
	for a := set; a != nil; {
		next := a.next
		a.next, a.prev = nil, nil
		if g == nil {
			g = t.newGeneration(a.class)
		}
		t.addMember(g, a)
		a = next
	}
	return g
}

func (t *tangle) newGeneration(c class) *generation {
	g := t.spareGenerations
	if g == nil {
		g = &generation{}
	} else {
		t.spareGenerations, g.next = g.next, nil
		t.spares--
	}
	g.class = c
	return g
}

// generation returns a new generation with one access.
func (t *tangle) generation(a *access) *generation {
	g := t.newGeneration(a.class)
	t.addMember(g, a)
	return g
}

// addMember makes a a member of g, unless it is one.
func (t *tangle) addMember(g *generation, a *access) {
	if g.joined == a {
		return
	}
	g.joined = a
	g.newest = max(g.newest, a.node.seq)
	m := t.spareMembers
	if m == nil {
		m = &span[member]{}
	} else {
		t.spareMembers, m.left = m.left, nil
		t.spares--
	}
	m.start, m.end, m.value = a.loc.start, a.loc.end(), member{a, g, a.memberships}
	a.memberships = m
	g.members.insert(m)
}

// leaveGenerations removes a from the histories.
func (a *access) leaveGenerations(t *tangle) {
	for a.memberships != nil {
		t.removeMember(a.memberships)
	}
	a.retired = false
}

// removeMember ends a membership.
func (t *tangle) removeMember(m *span[member]) {
	a, g := m.value.access, m.value.of
	link := &a.memberships
	for *link != m {
		link = &(*link).value.next
	}
	*link = m.value.next
	g.members.remove(m)
	if g.joined == a {
		g.joined = nil
	}
	*m = span[member]{}
	if t.spare() {
		m.left, t.spareMembers = t.spareMembers, m
	}
	t.unused(g)
}

// unused recycles a generation that has neither members nor segments.
func (t *tangle) unused(g *generation) {
	if g.refs > 0 || !g.members.empty() {
		return
	}
	*g = generation{}
	if t.spare() {
		g.next, t.spareGenerations = t.spareGenerations, g
	}
}

// letGo drops a segment's reference to a generation.
func (t *tangle) letGo(g *generation) {
	if g == nil {
		return
	}
	if g.refs--; g.refs == 0 && !g.members.empty() {
		t.left = append(t.left, g)
		return
	}
	t.unused(g)
}

// disband ends the memberships in generations that no segment has any more. No search reaches these members: a task
// that would depend on them depends on others that follow them. It is called after place, because until then a piece
// may still refer to such a generation.
func (t *tangle) disband() {
	for i, g := range t.left {
		t.left[i] = nil
		for g.refs == 0 && !g.members.empty() {
			t.removeMember(g.members.root)
		}
	}
	t.left = t.left[:0]
}

// other returns a member other than a with a byte in [start, end), or nil.
func (g *generation) other(start, end uintptr, a *access) *span[member] {
	return g.members.find(start, end, func(m *span[member]) bool { return m.value.access != a })
}
