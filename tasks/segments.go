package tasks

// tangle is the history of storage of sections that overlap in part. The storage is divided into
// segments where sections begin and end and the history differs:
//
//	InOut a   ├────────────────┤
//	InOut b         ├────────────────┤
//	In c               ├──────────────────┤
//	          ├──a──┼b─┼─b then c────┼─c──┤
//
// Each segment has the two sets of accesses of a location (see location), here called
// generations. Neighbouring segments share generations, so that storage that is common to many
// sections is one segment: a member of a generation is in the history of those segments that have
// the generation and overlap its own section. So a task costs a search for each segment that its
// section touches, and an edge for each predecessor there.
//
// A location whose section overlaps others in use is tangled: it is found through the segments, never
// by its section. Tasks that name the same section in succession share a location; others that name it
// may have another.
//
// It is guarded by the scope's lock.
type tangle struct {
	segments spans[segment]
	// retired has the accesses of all classes that were superseded while the scope has
	// onlookers, which may still depend on them (see Scope.overlooked). It is nil before the
	// first.
	retired *generation
	// held has the holders of mutexinoutset storage.
	held spans[hold]

	// The numbers of spans left by the last sweeps.
	keptSegments, keptHeld int

	// Scratch memory and spare records.
	touched          []*span[segment]
	pieces           []piece
	members          []*span[member]
	holders          []*span[hold]
	spareSegments    *span[segment]
	spareMembers     *span[member]
	spareGenerations *generation
	// spares counts the spare records.
	spares int
	// left are the generations that have lost their last segment since the last disband. Some may have one again.
	left []*generation
}

// piece is a range of bytes whose history is being changed.
type piece struct {
	start, end uintptr
	segment
	role role
}

// role says what an access that names a section does in a piece. Until classifyLocked has looked, it
// supersedes all that there is.
type role uint8

const (
	outside    role = iota // nothing: the piece is not in the section
	begins                 // it begins the history of the piece
	supersedes             // it follows cur, which becomes prev
	joins                  // it is another member of cur, and follows prev
)

// segment is the history of a range of bytes: every member of cur follows every member of prev
// there.
type segment struct {
	cur, prev *generation
}

// minSweep is the smallest number of spans added to a set before it is swept.
const minSweep = 64

// entangleLocked moves the history of a location, which no other overlapped so far, into segments.
func (s *Scope) entangleLocked(l *location) {
	if s.tangle == nil {
		s.tangle = &tangle{}
	}
	t := s.tangle
	s.unindexLocked(l)
	l.tangled = true
	if l.epoch != s.epoch {
		s.supersedeLocked(l)
	}
	for a := l.older; a != nil; {
		next := a.next
		a.next, a.prev = nil, nil
		t.retire(a)
		a = next
	}
	prev := t.gather(l.prev)
	cur := t.gather(l.cur)
	l.cur, l.prev, l.older, l.newestOlder = nil, nil, nil, nil
	if cur != nil {
		t.addSegment(l.start, l.end(), segment{cur, prev})
	}
	if l.holder != nil {
		t.take(l.holder, l)
	} else if l.gave != nil {
		t.take(l.gave, l)
	}
}

// addSegment adds a segment.
func (t *tangle) addSegment(start, end uintptr, v segment) {
	at := t.spareSegments
	if at == nil {
		at = &span[segment]{}
	} else {
		t.spareSegments, at.left = at.left, nil
		t.spares--
	}
	at.start, at.end, at.value = start, end, v
	v.hold()
	t.segments.insert(at)
}

// hold adds a segment's references to the generations of v; release drops them.
func (v segment) hold() {
	v.cur.refs++
	if v.prev != nil {
		v.prev.refs++
	}
}

func (t *tangle) release(v segment) {
	t.letGo(v.prev)
	t.letGo(v.cur)
}

// dropSegment recycles a segment that has been removed.
func (t *tangle) dropSegment(at *span[segment]) {
	t.release(at.value)
	*at = span[segment]{}
	if t.spare() {
		at.left, t.spareSegments = t.spareSegments, at
	}
}

// spare reports whether another spare record may be kept.
func (t *tangle) spare() bool {
	if t.spares >= 3*maxSpare {
		return false
	}
	t.spares++
	return true
}

// live returns the history without generations that have no members there.
func live(at *span[segment]) segment {
	v := at.value
	if v.prev != nil && !v.prev.members.overlaps(at.start, at.end) {
		v.prev = nil
	}
	if !v.cur.members.overlaps(at.start, at.end) {
		v.cur, v.prev = v.prev, nil
	}
	return v
}

// useLocked makes a, whose location is tangled and whose section has just been laid out, the
// newest access of its section, and collects the tasks on which n depends by it.
func (s *Scope) useLocked(n *Node, a *access) {
	t := s.tangle
	joined, stands := s.classifyLocked(a)
	s.followPiecesLocked(n, a.loc.section)
	t.joinPieces(a, stands)
	s.beginPiecesLocked(a, joined)
	t.place()
	if t.segments.count > 2*t.keptSegments+minSweep {
		t.sweepSegments()
	}
	t.disband()
}

// lay divides the segments that overlap a section into pieces, cut at its bounds, with pieces
// without history between them. It reports whether there is any history; if there is none, it
// removes segments without accesses.
func (t *tangle) lay(at section) bool {
	start, end := at.start, at.end()
	t.touched = t.segments.appendOverlapping(t.touched[:0], start, end)
	t.pieces = t.pieces[:0]
	from := start
	for _, o := range t.touched {
		v := live(o)
		if v.cur == nil {
			continue
		}
		lo, hi := max(o.start, start), min(o.end, end)
		if o.start < lo {
			t.pieces = append(t.pieces, piece{start: o.start, end: lo, segment: v})
		}
		if from < lo {
			t.pieces = append(t.pieces, piece{start: from, end: lo, role: begins})
		}
		t.pieces = append(t.pieces, piece{start: lo, end: hi, segment: v, role: supersedes})
		if hi < o.end {
			t.pieces = append(t.pieces, piece{start: hi, end: o.end, segment: v})
		}
		from = hi
	}
	used := len(t.pieces) > 0
	if !used {
		for _, o := range t.touched {
			t.segments.remove(o)
			t.dropSegment(o)
		}
		t.touched = t.touched[:0]
	}
	if from < end {
		t.pieces = append(t.pieces, piece{start: from, end: end, role: begins})
	}
	return used
}

// named returns the location through which the last access of some piece has named exactly the section
// that has just been laid out, or nil. One that n uses for another item does not count.
func (t *tangle) named(n *Node, at section) *location {
	for i := range t.pieces {
		p := &t.pieces[i]
		if p.role != supersedes || p.cur.joined == nil {
			continue
		}
		if l := p.cur.joined.loc; l.section == at && l.seen != n.seq {
			return l
		}
	}
	return nil
}

// place replaces the segments by the pieces made from them.
func (t *tangle) place() {
	old := t.touched
	for i := 0; i < len(t.pieces); {
		p := t.pieces[i]
		for i++; i < len(t.pieces) && t.pieces[i].segment == p.segment && t.pieces[i].start == p.end; i++ {
			p.end = t.pieces[i].end
		}
		for len(old) > 0 && old[0].start < p.start {
			t.segments.remove(old[0])
			t.dropSegment(old[0])
			old = old[1:]
		}
		if len(old) == 0 || old[0].start > p.start {
			t.addSegment(p.start, p.end, p.segment)
			continue
		}
		was := old[0].value
		p.segment.hold()
		old[0].value = p.segment
		t.release(was)
		if old[0].end != p.end {
			t.segments.resize(old[0], p.end)
		}
		old = old[1:]
	}
	for _, o := range old {
		t.segments.remove(o)
		t.dropSegment(o)
	}
}

// followPiecesLocked collects the tasks on which n depends by an access to that section. Adjacent
// pieces of one generation are searched together.
func (s *Scope) followPiecesLocked(n *Node, at section) {
	t := s.tangle
	for i := 0; i < len(t.pieces); {
		p, g := t.pieces[i], t.pieces[i].follows(at)
		for i++; g != nil && i < len(t.pieces) && t.pieces[i].start == p.end && t.pieces[i].follows(at) == g; i++ {
			p.end = t.pieces[i].end
		}
		if g == nil {
			continue
		}
		t.members = g.members.appendOverlapping(t.members[:0], p.start, p.end)
		for _, m := range t.members {
			if from := m.value.access.node; from.visited != n.seq {
				s.meetLocked(from, n)
			}
		}
	}
}

// follows returns the generation that an access to that section follows in the piece, or nil.
func (p *piece) follows(at section) *generation {
	switch {
	case p.role == supersedes:
		return p.cur
	case p.role == joins && !p.implied(at):
		return p.prev
	}
	return nil
}

// classifyLocked finds the pieces whose generation a joins. It returns one of the generations, or nil, and
// whether a stands for earlier members of it.
func (s *Scope) classifyLocked(a *access) (joined *generation, stands bool) {
	t := s.tangle
	superseded := false
	for i := range t.pieces {
		switch p := &t.pieces[i]; {
		case p.role != supersedes:
		case p.cur.class == a.class && a.class != classOut:
			p.role, joined = joins, p.cur
		default:
			superseded = true
		}
	}
	return joined, joined != nil && superseded && s.standForLocked(joined, a)
}

// joinPieces makes a a member of the generations that it joins.
func (t *tangle) joinPieces(a *access, stands bool) {
	for i := range t.pieces {
		p := &t.pieces[i]
		if p.role != joins {
			continue
		}
		t.addMember(p.cur, a)
		if stands && p.prev != nil {
			t.share(i)
		}
	}
}

// beginPiecesLocked has a begin a generation in the other pieces of its section. A generation that a has
// joined can be used there if a is its first member in the piece: then adjacent segments stay one. If a
// writes alone, nothing joins it, so that it is the whole history.
func (s *Scope) beginPiecesLocked(a *access, joined *generation) {
	t := s.tangle
	var last, fresh *generation
	for i := range t.pieces {
		p := &t.pieces[i]
		switch p.role {
		case outside:
			continue
		case joins:
			last = p.cur
			continue
		}
		s.retireGenerationLocked(p.prev)
		if p.prev = p.cur; a.class == classOut {
			s.retireGenerationLocked(p.prev)
			p.prev = nil
		}
		switch {
		case last != nil && last.other(p.start, p.end, a) == nil:
			p.cur = last
		case joined != nil && joined.other(p.start, p.end, a) == nil:
			p.cur = joined
		default:
			if fresh == nil {
				fresh = t.generation(a)
			}
			p.cur = fresh
		}
		last = p.cur
		if p.prev != nil {
			t.share(i)
		}
	}
}

// retireGenerationLocked keeps the members of a generation, which is superseded somewhere, for
// onlookers that may still depend on them.
func (s *Scope) retireGenerationLocked(g *generation) {
	if g == nil || s.onlookers == 0 || g.retired >= s.overlooked {
		return
	}
	g.retired = s.overlooked
	g.members.each(func(m *span[member]) {
		if a := m.value.access; a.node.seq < s.overlooked {
			s.tangle.retire(a)
		}
	})
}

// retire keeps an access for the scope's onlookers.
func (t *tangle) retire(a *access) {
	if a.retired {
		return
	}
	if t.retired == nil {
		t.retired = &generation{refs: 1}
	}
	a.retired = true
	t.addMember(t.retired, a)
}

// supersedeSegmentsLocked forgets the history, because a task follows all of it.
func (s *Scope) supersedeSegmentsLocked() {
	t := s.tangle
	t.touched = t.segments.appendAll(t.touched[:0])
	for _, o := range t.touched {
		s.retireGenerationLocked(o.value.prev)
		s.retireGenerationLocked(o.value.cur)
		t.dropSegment(o)
	}
	t.segments = spans[segment]{}
	t.keptSegments = 0
	t.disband()
}

// followAllLocked collects all tasks in the segments as predecessors of n.
func (s *Scope) followAllLocked(n *Node) {
	s.tangle.lay(everywhere)
	s.followPiecesLocked(n, everywhere)
}

// sweepSegments removes segments without accesses.
func (t *tangle) sweepSegments() {
	t.touched = t.segments.appendAll(t.touched[:0])
	for _, o := range t.touched {
		if live(o).cur == nil {
			t.segments.remove(o)
			t.dropSegment(o)
		}
	}
	t.keptSegments = t.segments.count
}

// rest frees what a scope without tasks does not need.
func (t *tangle) rest() {
	t.sweepSegments()
	t.disband()
	t.sweepHolders()
	if t.segments.empty() && (t.retired == nil || t.retired.members.empty()) && t.held.empty() {
		*t = tangle{}
	}
}
