package order

import (
	"iter"
	"sort"
)

// maxSegments is the number of segments at which a history becomes coarser.
const maxSegments = 512

// Span is the range of Size bytes of an allocation from offset Start.
type Span struct{ Start, Size uint64 }

// history records which commands have written or transferred the bytes of an allocation. Its
// segments are disjoint and in ascending order, so that commands on different bytes do not affect
// each other.
type history struct {
	segments []segment
	// at is the index that from returned last. Commands often go through an allocation in steps, so it, or one
	// beside it, is the next one to be looked for.
	at int
}

// segment is a range of bytes that have the same history.
type segment struct {
	lo, hi uint64
	// wrote are the last writes of the bytes by the device, moved the last commands that
	// copied the bytes from or to elsewhere.
	wrote, moved SyncSet
	// under are writes that those of wrote replaced, and followed at the time. A command
	// that need not follow wrote may still have to follow these. Of each queue it has the
	// last write, which stands for all before it.
	under SyncSet
}

// alike reports whether commands on the bytes of either segment follow the same points, apart from
// under.
func (g *segment) alike(o *segment) bool { return g.wrote.equal(&o.wrote) && g.moved.equal(&o.moved) }

// absorb adds the next segment to g. Of the writes of the two on a queue, wrote keeps only the later one,
// which may be in flight when the other one is complete: so that one goes under it.
func (g *segment) absorb(next *segment) {
	g.hi = next.hi
	if !g.wrote.equal(&next.wrote) {
		g.under.AddAll(&g.wrote)
		g.under.AddAll(&next.wrote)
		g.wrote.AddAll(&next.wrote)
	}
	g.moved.AddAll(&next.moved)
	g.under.AddAll(&next.under)
}

// Reset forgets everything. last is the last use of the memory before this allocation, and counts
// as a transfer of all its size bytes, which every command follows.
func (h *history) Reset(size uint64, last *SyncSet) {
	h.truncate(0)
	if last.Len() > 0 {
		h.insert(0, 0, size)
		h.segments[0].wrote.SetAll(last)
		h.segments[0].moved.SetAll(last)
	}
}

// truncate removes the segments from the n-th on, whose sets keep their memory for
// reuse.
func (h *history) truncate(n int) { h.segments = h.segments[:n] }

// insert inserts a segment without a history as the i-th.
func (h *history) insert(i int, lo, hi uint64) {
	n := len(h.segments)
	if n < cap(h.segments) {
		h.segments = h.segments[:n+1]
	} else {
		h.segments = append(h.segments, segment{})
	}
	fresh := h.segments[n]
	copy(h.segments[i+1:], h.segments[i:n])
	fresh.lo, fresh.hi = lo, hi
	fresh.wrote.Set(SyncPoint{})
	fresh.moved.Set(SyncPoint{})
	fresh.under.Set(SyncPoint{})
	h.segments[i] = fresh
}

// from returns the index of the first segment that ends above lo.
func (h *history) from(lo uint64) int {
	for i := max(h.at-1, 0); i < min(h.at+2, len(h.segments)); i++ {
		if h.segments[i].hi > lo {
			if i > 0 && h.segments[i-1].hi > lo {
				break
			}
			h.at = i
			return i
		}
	}
	h.at = sort.Search(len(h.segments), func(i int) bool { return h.segments[i].hi > lo })
	return h.at
}

// within yields the segments that have bytes in a span.
func (h *history) within(bytes Span) iter.Seq[*segment] {
	return func(yield func(*segment) bool) {
		for i := h.from(bytes.Start); i < len(h.segments) && h.segments[i].lo < bytes.Start+bytes.Size; i++ {
			if !yield(&h.segments[i]) {
				return
			}
		}
	}
}

// split divides the i-th segment at an inner byte.
func (h *history) split(i int, at uint64) {
	h.insert(i+1, at, h.segments[i].hi)
	h.segments[i].hi = at
	h.segments[i+1].wrote.SetAll(&h.segments[i].wrote)
	h.segments[i+1].moved.SetAll(&h.segments[i].moved)
	h.segments[i+1].under.SetAll(&h.segments[i].under)
}

// touch records that a command at a sync point, which follows known, wrote or moved bytes.
func (h *history) touch(bytes Span, at SyncPoint, known Clock, wrote, moved bool) {
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
			g.under.AddAll(&g.wrote)
			g.wrote.follow(at, known)
		}
		if moved {
			g.moved.follow(at, known)
		}
		lo = g.hi
	}
	if i > first+1 {
		h.merge(first, i)
	}
}

// merge joins neighbours that are alike, from the i-th segment up to but without the end-th.
// After a command on all of their bytes they are alike, and the next command does not have to
// visit each of them.
func (h *history) merge(i, end int) {
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

// coarsen joins neighbours in pairs. The joined segment follows more than its bytes need, but never
// less.
func (h *history) coarsen() {
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
