package race

import (
	"slices"
	"sort"
)

// segment is a range of bytes [start, end) with one value.
type segment[V any] struct {
	start, end uint64
	value      V
}

// maxChunk is the number of segments above which a chunk is split.
const maxChunk = 256

// segments maps bytes to values. It consists of disjoint segments in ascending order, stored in
// chunks of at most maxChunk segments, none of which is empty. The zero value is empty.
type segments[V any] struct {
	chunks [][]segment[V]
	count  int
	// pieces and built are working memory of splice.
	pieces, built []segment[V]
}

// len returns the number of segments.
func (s *segments[V]) len() int { return s.count }

// trim frees the working memory.
func (s *segments[V]) trim() { s.pieces, s.built = nil, nil }

// splice replaces the segments in [start, end), which must not be empty. It calls f with these
// segments in ascending order, the outer ones cut at the bounds. f returns their replacement:
// disjoint segments within the bounds, in ascending order. It may return its argument, which it
// must not keep. clone copies the value of a segment that is cut.
func (s *segments[V]) splice(start, end uint64, clone func(V) V, f func(pieces []segment[V]) []segment[V]) {
	first := max(sort.Search(len(s.chunks), func(c int) bool { return s.chunks[c][0].start > start })-1, 0)
	s.pieces, s.built = s.pieces[:0], s.built[:0]
	var rest segment[V]
	var behind []segment[V]
	last := first
	for ; last < len(s.chunks); last++ {
		chunk := s.chunks[last]
		if last > first && chunk[0].start >= end {
			break
		}
		s.count -= len(chunk)
		from := sort.Search(len(chunk), func(i int) bool { return chunk[i].end > start })
		s.built = append(s.built, chunk[:from]...)
		for ; from < len(chunk) && chunk[from].start < end; from++ {
			p := chunk[from]
			if p.start < start {
				s.built = append(s.built, segment[V]{p.start, start, clone(p.value)})
				p.start = start
			}
			if p.end > end {
				rest = segment[V]{end, p.end, clone(p.value)}
				p.end = end
			}
			s.pieces = append(s.pieces, p)
		}
		// Only the last chunk visited has segments behind the end.
		behind = chunk[from:]
	}
	s.built = append(s.built, f(s.pieces)...)
	if rest.end > rest.start {
		s.built = append(s.built, rest)
	}
	s.built = append(s.built, behind...)
	s.count += len(s.built)
	s.place(first, last)
	clear(s.pieces)
	clear(s.built)
	if cap(s.built) > 16*maxChunk {
		s.pieces, s.built = nil, nil
	}
}

// place replaces the chunks first to last by the segments built.
func (s *segments[V]) place(first, last int) {
	if last-first == 1 && len(s.built) > 0 && len(s.built) <= maxChunk {
		chunk := s.chunks[first]
		if n := len(chunk); n > len(s.built) {
			clear(chunk[len(s.built):])
		}
		s.chunks[first] = append(chunk[:0], s.built...)
		return
	}
	var fresh [][]segment[V]
	for rest := s.built; len(rest) > 0; {
		n := len(rest)
		if n > maxChunk {
			n = min(n/2, maxChunk/2)
		}
		fresh = append(fresh, append(make([]segment[V], 0, n+n/4+1), rest[:n]...))
		rest = rest[n:]
	}
	s.chunks = append(s.chunks[:first], append(fresh, s.chunks[last:]...)...)
}

// filter visits all segments in ascending order. keep may change the value, and returns whether
// the segment stays. Adjacent segments for whose values same returns true are merged.
func (s *segments[V]) filter(keep func(at *segment[V]) bool, same func(a, b V) bool) {
	s.built = s.built[:0]
	for _, chunk := range s.chunks {
		for i := range chunk {
			p := &chunk[i]
			if !keep(p) {
				continue
			}
			if n := len(s.built); n > 0 && s.built[n-1].end == p.start && same(s.built[n-1].value, p.value) {
				s.built[n-1].end = p.end
				continue
			}
			s.built = append(s.built, *p)
		}
	}
	s.count = len(s.built)
	s.chunks = s.chunks[:0:0]
	s.place(0, 0)
	s.built = nil
}

// each calls f for all segments in ascending order.
func (s *segments[V]) each(f func(at *segment[V])) {
	for _, chunk := range s.chunks {
		for i := range chunk {
			f(&chunk[i])
		}
	}
}

// copied returns a copy whose values value has copied.
func (s *segments[V]) copied(value func(V) V) segments[V] {
	c := segments[V]{chunks: make([][]segment[V], len(s.chunks)), count: s.count}
	for i, chunk := range s.chunks {
		c.chunks[i] = slices.Clone(chunk)
		for k := range c.chunks[i] {
			at := &c.chunks[i][k].value
			*at = value(*at)
		}
	}
	return c
}

// overlapping calls f for the segments that have a byte in [start, end), in ascending order.
func (s *segments[V]) overlapping(start, end uint64, f func(at *segment[V])) {
	first := max(sort.Search(len(s.chunks), func(c int) bool { return s.chunks[c][0].start > start })-1, 0)
	for _, chunk := range s.chunks[min(first, len(s.chunks)):] {
		if chunk[0].start >= end {
			return
		}
		from := sort.Search(len(chunk), func(i int) bool { return chunk[i].end > start })
		for ; from < len(chunk) && chunk[from].start < end; from++ {
			f(&chunk[from])
		}
	}
}
