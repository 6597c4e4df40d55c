package order

import (
	"iter"
	"slices"
)

// maxSegments is the number of segments at which a history becomes coarser.
const maxSegments = 512

// Span is a range of bytes of an allocation.
type Span struct{ Start, Size uint64 }

// History says which commands have written or transferred the bytes of an allocation. Its
// segments are disjoint and in ascending order, so that commands on different bytes have
// nothing to do with each other.
type History struct{ segments []Segment }

// Segment is a range of bytes that have the same history.
type Segment struct {
	lo, hi uint64
	// Wrote are the last writes of the bytes by the device, Moved the last commands that
	// copied the bytes from or to somewhere else.
	Wrote, Moved SyncSet
	// Under are writes that those of Wrote replaced, and followed at the time. A command
	// that need not follow Wrote may still have to follow these. Of each queue it has the
	// last write, which stands for all before it.
	Under SyncSet
}

// alike reports whether commands that touch the bytes of either segment follow the same
// points, Under apart.
func (g *Segment) alike(o *Segment) bool { return g.Wrote.equal(&o.Wrote) && g.Moved.equal(&o.Moved) }

// absorb adds the next segment to g.
func (g *Segment) absorb(next *Segment) {
	g.hi = next.hi
	g.Wrote.AddAll(&next.Wrote)
	g.Moved.AddAll(&next.Moved)
	g.Under.AddAll(&next.Under)
}

// Reset forgets everything but the last use of the memory before: it counts as a transfer of
// all bytes, size of them, which every command follows.
func (h *History) Reset(size uint64, last *SyncSet) {
	h.truncate(0)
	if last.Len() > 0 {
		h.insert(0, 0, size)
		h.segments[0].Wrote.SetAll(last)
		h.segments[0].Moved.SetAll(last)
	}
}

// truncate drops the segments from the n-th on. Their sets keep their memory for segments to
// come.
func (h *History) truncate(n int) { h.segments = h.segments[:n] }

// insert makes the i-th segment one without a history.
func (h *History) insert(i int, lo, hi uint64) {
	n := len(h.segments)
	if n < cap(h.segments) {
		h.segments = h.segments[:n+1]
	} else {
		h.segments = append(h.segments, Segment{})
	}
	fresh := h.segments[n]
	copy(h.segments[i+1:], h.segments[i:n])
	fresh.lo, fresh.hi = lo, hi
	fresh.Wrote.Set(SyncPoint{})
	fresh.Moved.Set(SyncPoint{})
	fresh.Under.Set(SyncPoint{})
	h.segments[i] = fresh
}

// from returns the index of the first segment that ends above lo.
func (h *History) from(lo uint64) int {
	i, _ := slices.BinarySearchFunc(h.segments, lo, func(g Segment, lo uint64) int {
		if g.hi <= lo {
			return -1
		}
		return 1
	})
	return i
}

// Within yields the segments that share bytes with a span.
func (h *History) Within(bytes Span) iter.Seq[*Segment] {
	return func(yield func(*Segment) bool) {
		for i := h.from(bytes.Start); i < len(h.segments) && h.segments[i].lo < bytes.Start+bytes.Size; i++ {
			if !yield(&h.segments[i]) {
				return
			}
		}
	}
}

// split divides the i-th segment at a byte inside of it.
func (h *History) split(i int, at uint64) {
	h.insert(i+1, at, h.segments[i].hi)
	h.segments[i].hi = at
	h.segments[i+1].Wrote.SetAll(&h.segments[i].Wrote)
	h.segments[i+1].Moved.SetAll(&h.segments[i].Moved)
	h.segments[i+1].Under.SetAll(&h.segments[i].Under)
}

// Touch records that a command at a sync point, which follows known, wrote or moved bytes.
func (h *History) Touch(bytes Span, at SyncPoint, known Clock, wrote, moved bool) {
	lo, hi := bytes.Start, bytes.Start+bytes.Size
	if len(h.segments) >= maxSegments {
		h.coarsen()
	}
	first, i := h.from(lo), 0
	for i = first; lo < hi; i++ {
		switch {
		case i == len(h.segments) || h.segments[i].lo >= hi:
			h.insert(i, lo, hi)
		case h.segments[i].lo > lo:
			h.insert(i, lo, h.segments[i].lo)
		case h.segments[i].lo < lo:
			h.split(i, lo)
			first++
			continue
		case h.segments[i].hi > hi:
			h.split(i, hi)
		}
		g := &h.segments[i]
		if wrote {
			g.Under.AddAll(&g.Wrote)
			g.Wrote.Follow(at, known)
		}
		if moved {
			g.Moved.Follow(at, known)
		}
		lo = g.hi
	}
	if i > first+1 {
		h.merge(first, i)
	}
}

// merge joins neighbours that are alike, from the i-th segment to before the end-th. A
// command that has touched all of their bytes makes them alike, and the next one need not go
// through them one by one again.
func (h *History) merge(i, end int) {
	n := i
	for i++; i < end; i++ {
		if g := &h.segments[n]; g.alike(&h.segments[i]) {
			g.absorb(&h.segments[i])
			continue
		}
		n++
		h.segments[n], h.segments[i] = h.segments[i], h.segments[n]
	}
	if n++; n < end {
		for ; i < len(h.segments); i++ {
			h.segments[n], h.segments[i] = h.segments[i], h.segments[n]
			n++
		}
		h.truncate(n)
	}
}

// coarsen joins neighbours two by two. The joined segment follows more than its bytes need,
// never less.
func (h *History) coarsen() {
	n := 0
	for i := 0; i < len(h.segments); i += 2 {
		h.segments[n], h.segments[i] = h.segments[i], h.segments[n]
		if i+1 < len(h.segments) {
			h.segments[n].absorb(&h.segments[i+1])
		}
		n++
	}
	h.truncate(n)
}
