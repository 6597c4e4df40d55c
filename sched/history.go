package sched

import (
	"iter"
	"slices"
)

// maxSegments is the number of segments from which a history is kept coarser.
const maxSegments = 512

// history says what of the device's work has touched the bytes of a store, by
// segments, which are disjoint and in ascending order. Writes and transfers of other
// bytes than those that a command uses need no order with it.
type history struct{ segments []segment }

// segment is a range of bytes that have the same history.
type segment struct {
	lo, hi uint64
	// wrote are the last device writes, moved the last commands that moved contents to
	// or from there.
	wrote, moved trail
	// under are writes that those of wrote have taken the place of, and at the time
	// come after: who does not follow these may follow those. Of each queue it has the
	// last one, which stands for all before it.
	under trail
}

// alike reports whether commands come after the same of both segments, but for what is
// under.
func (g *segment) alike(o *segment) bool { return g.wrote.equal(&o.wrote) && g.moved.equal(&o.moved) }

// take makes the segment longer by the next one.
func (g *segment) take(next *segment) {
	g.hi = next.hi
	g.wrote.addAll(&next.wrote)
	g.moved.addAll(&next.moved)
	g.under.addAll(&next.under)
}

// reset forgets everything but that all bytes, size of them, were last touched by r:
// that counts as a transfer, which everything is ordered after.
func (h *history) reset(size uint64, r *trail) {
	h.truncate(0)
	if r.len() > 0 {
		h.insert(0, 0, size)
		h.segments[0].wrote.setAll(r)
		h.segments[0].moved.setAll(r)
	}
}

// truncate drops the segments from the n-th on, whose trails keep their memory for
// those to come.
func (h *history) truncate(n int) { h.segments = h.segments[:n] }

// insert makes the i-th segment an empty one.
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
	fresh.wrote.set(mark{})
	fresh.moved.set(mark{})
	fresh.under.set(mark{})
	h.segments[i] = fresh
}

// from returns the index of the first segment that ends above lo.
func (h *history) from(lo uint64) int {
	i, _ := slices.BinarySearchFunc(h.segments, lo, func(g segment, lo uint64) int {
		if g.hi <= lo {
			return -1
		}
		return 1
	})
	return i
}

// within yields the segments that share bytes with a span.
func (h *history) within(bytes span) iter.Seq[*segment] {
	return func(yield func(*segment) bool) {
		for i := h.from(bytes.start); i < len(h.segments) && h.segments[i].lo < bytes.start+bytes.size; i++ {
			if !yield(&h.segments[i]) {
				return
			}
		}
	}
}

// split makes a segment end at a place inside of the i-th one.
func (h *history) split(i int, at uint64) {
	h.insert(i+1, at, h.segments[i].hi)
	h.segments[i].hi = at
	h.segments[i+1].wrote.setAll(&h.segments[i].wrote)
	h.segments[i+1].moved.setAll(&h.segments[i].moved)
	h.segments[i+1].under.setAll(&h.segments[i].under)
}

// touch records that a command at a mark, which follows known, wrote or moved bytes.
func (h *history) touch(bytes span, at mark, known clock, wrote, moved bool) {
	lo, hi := bytes.start, bytes.start+bytes.size
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
			g.under.addAll(&g.wrote)
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

// merge joins the neighbours from the i-th to before the end-th segment that are alike,
// as those are which one command has touched: what comes for all of their bytes does not
// go through them one by one again.
func (h *history) merge(i, end int) {
	n := i
	for i++; i < end; i++ {
		if g := &h.segments[n]; g.alike(&h.segments[i]) {
			g.take(&h.segments[i])
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

// coarsen joins neighbours.
func (h *history) coarsen() {
	n := 0
	for i := 0; i < len(h.segments); i += 2 {
		h.segments[n], h.segments[i] = h.segments[i], h.segments[n]
		if i+1 < len(h.segments) {
			h.segments[n].take(&h.segments[i+1])
		}
		n++
	}
	h.truncate(n)
}

// follow adds a mark, and drops those of other queues that it follows.
func (r *trail) follow(at mark, known clock) {
	kept := r.more[:0]
	for _, m := range r.more {
		if !known.covers(m) && !mutated(followsTooMuch) || m.queue == at.queue {
			kept = append(kept, m)
		}
	}
	r.more = kept
	if r.first.value != 0 && r.first.queue != at.queue && (known.covers(r.first) || mutated(followsTooMuch)) {
		r.first = mark{}
		if n := len(r.more); n > 0 {
			r.first, r.more = r.more[n-1], r.more[:n-1]
		}
	}
	r.add(at)
}
