package order

import "slices"

// access is an access of one command to some bytes.
type access struct {
	column int
	pos    uint64
	by     *Command
}

// span is a range of bytes with the same history.
type span struct {
	lo, hi uint64
	write  access // the last write; by is nil if there is none
	// reads are those since then, the last of each column. Spans may share the slice: it is
	// replaced, never changed.
	reads []access
}

// space is a memory whose ranges of bytes can be compared: a VkDeviceMemory, or the host's
// addresses. Its spans are disjoint and sorted, in chunks, so that inserting is cheap.
type space struct {
	name   string
	chunks [][]span
}

const maxChunk = 128

// find returns the position of the first span that ends above lo.
func (s *space) find(lo uint64) (chunk, i int) {
	chunk, _ = slices.BinarySearchFunc(s.chunks, lo, func(c []span, lo uint64) int {
		if c[len(c)-1].hi <= lo {
			return -1
		}
		return 1
	})
	if chunk == len(s.chunks) {
		return chunk, 0
	}
	i, _ = slices.BinarySearchFunc(s.chunks[chunk], lo, func(p span, lo uint64) int {
		if p.hi <= lo {
			return -1
		}
		return 1
	})
	return chunk, i
}

// overlapping calls f for each span with bytes in [lo, hi), restricted to these.
func (s *space) overlapping(lo, hi uint64, f func(span)) {
	chunk, i := s.find(lo)
	for ; chunk < len(s.chunks); chunk, i = chunk+1, 0 {
		for ; i < len(s.chunks[chunk]); i++ {
			p := s.chunks[chunk][i]
			if p.lo >= hi {
				return
			}
			p.lo, p.hi = max(p.lo, lo), min(p.hi, hi)
			f(p)
		}
	}
}

// replace replaces the spans in [lo, hi) by others, which are sorted and lie in the range.
func (s *space) replace(lo, hi uint64, with []span) {
	chunk, i := s.find(lo)
	if chunk == len(s.chunks) {
		if len(with) == 0 {
			return
		}
		if chunk == 0 || len(s.chunks[chunk-1]) >= maxChunk {
			s.chunks = append(s.chunks, slices.Clone(with))
			s.split(len(s.chunks) - 1)
			return
		}
		s.chunks[chunk-1] = append(s.chunks[chunk-1], with...)
		s.split(chunk - 1)
		return
	}
	last, j := chunk, i
	for last < len(s.chunks) && j < len(s.chunks[last]) && s.chunks[last][j].lo < hi {
		if j++; j == len(s.chunks[last]) && last+1 < len(s.chunks) {
			last, j = last+1, 0
		}
	}
	var room [4]span
	put := room[:0]
	if first := s.chunks[chunk][i]; first.lo < lo {
		first.hi = lo
		put = append(put, first)
	}
	put = append(put, with...)
	if last != chunk || j != i {
		c, k := last, j-1
		if k < 0 {
			c, k = last-1, len(s.chunks[last-1])-1
		}
		if end := s.chunks[c][k]; end.hi > hi {
			end.lo = hi
			put = append(put, end)
		}
	}
	if last == chunk {
		s.chunks[chunk] = slices.Replace(s.chunks[chunk], i, j, put...)
	} else {
		s.chunks[chunk] = append(s.chunks[chunk][:i], put...)
		s.chunks[last] = slices.Delete(s.chunks[last], 0, j)
		end := last
		if len(s.chunks[last]) == 0 {
			end++
		}
		s.chunks = slices.Delete(s.chunks, chunk+1, end)
	}
	if len(s.chunks[chunk]) == 0 {
		s.chunks = slices.Delete(s.chunks, chunk, chunk+1)
		return
	}
	s.split(chunk)
}

// split splits a chunk that is too large.
func (s *space) split(chunk int) {
	for ; len(s.chunks[chunk]) > maxChunk; chunk++ {
		c := s.chunks[chunk]
		rest := append(make([]span, 0, maxChunk), c[maxChunk/2:]...)
		clear(c[maxChunk/2:])
		s.chunks[chunk] = c[:maxChunk/2]
		s.chunks = slices.Insert(s.chunks, chunk+1, rest)
	}
}

// read records a read and calls f for the writes that it must come after.
func (s *space) read(lo, hi uint64, by access, f func(other access, lo, hi uint64)) {
	var room [4]span
	put, at := room[:0], lo
	s.overlapping(lo, hi, func(p span) {
		if p.write.by != nil {
			f(p.write, p.lo, p.hi)
		}
		if at < p.lo {
			put = append(put, span{lo: at, hi: p.lo, reads: []access{by}})
		}
		at = p.hi
		p.reads = withRead(p.reads, by)
		put = append(put, p)
	})
	if at < hi {
		put = append(put, span{lo: at, hi: hi, reads: []access{by}})
	}
	s.replace(lo, hi, put)
}

func withRead(reads []access, by access) []access {
	out := make([]access, 0, len(reads)+1)
	for _, r := range reads {
		if r.column != by.column {
			out = append(out, r)
		}
	}
	return append(out, by)
}

// write records a write and calls f for the accesses that it must come after.
func (s *space) write(lo, hi uint64, by access, f func(other access, wrote bool, lo, hi uint64)) {
	s.overlapping(lo, hi, func(p span) {
		if p.write.by != nil {
			f(p.write, true, p.lo, p.hi)
		}
		for _, r := range p.reads {
			f(r, false, p.lo, p.hi)
		}
	})
	s.replace(lo, hi, []span{{lo: lo, hi: hi, write: by}})
}

// forget drops the history of [lo, hi) and calls f for it.
func (s *space) forget(lo, hi uint64, f func(other access, lo, hi uint64)) {
	s.overlapping(lo, hi, func(p span) {
		if p.write.by != nil {
			f(p.write, p.lo, p.hi)
		}
		for _, r := range p.reads {
			f(r, p.lo, p.hi)
		}
	})
	s.replace(lo, hi, nil)
}
