package order

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// byteHistory is the naive model: the history of one byte.
type byteHistory struct {
	write access
	reads map[int]access
}

// The histories of spans equal the histories of their bytes.
func TestSpacesKeepTheHistoryOfEveryByte(t *testing.T) {
	const size = 160
	rapid.Check(t, func(t *rapid.T) {
		s := &space{}
		model := make([]byteHistory, size)
		pos := uint64(0)
		steps := rapid.IntRange(1, 120).Draw(t, "steps")
		for range steps {
			lo := rapid.Uint64Range(0, size-1).Draw(t, "lo")
			hi := rapid.Uint64Range(lo+1, min(size, lo+1+rapid.Uint64Range(0, 60).Draw(t, "size"))).Draw(t, "hi")
			pos++
			by := access{rapid.IntRange(0, 2).Draw(t, "column"), pos, &Command{}}
			var got, want [size]string
			tell := func(at *[size]string, what string, o access, lo, hi uint64) {
				for i := lo; i < hi; i++ {
					at[i] += fmt.Sprintf("%s%d:%d  ", what, o.column, o.pos)
				}
			}
			kind := rapid.SampledFrom([]string{"read", "read", "read", "write", "forget"}).Draw(t, "kind")
			for i := lo; i < hi; i++ {
				h := &model[i]
				if h.write.by != nil {
					tell(&want, "w", h.write, i, i+1)
				}
				if kind != "read" {
					for _, r := range sortedReads(h.reads) {
						tell(&want, "r", r, i, i+1)
					}
					*h = byteHistory{}
				}
				switch kind {
				case "read":
					if h.reads == nil {
						h.reads = map[int]access{}
					}
					h.reads[by.column] = by
				case "write":
					h.write = by
				}
			}
			switch kind {
			case "read":
				s.read(lo, hi, by, func(o access, lo, hi uint64) { tell(&got, "w", o, lo, hi) })
			case "write":
				s.write(lo, hi, by, func(o access, wrote bool, lo, hi uint64) {
					tell(&got, map[bool]string{true: "w", false: "r"}[wrote], o, lo, hi)
				})
			case "forget":
				// It does not say which accesses are writes.
				s.forget(lo, hi, func(o access, lo, hi uint64) { tell(&got, "", o, lo, hi) })
				for i := range want {
					want[i] = strings.NewReplacer("w", "", "r", "").Replace(want[i])
				}
			}
			for i := range got {
				if !slices.Equal(items(got[i]), items(want[i])) {
					t.Fatalf("%s [%d, %d): byte %d: got %q, want %q", kind, lo, hi, i, got[i], want[i])
				}
			}
			validate(t, s)
		}
	})
}

func sortedReads(reads map[int]access) []access {
	var out []access
	for column := range 3 {
		if r, ok := reads[column]; ok {
			out = append(out, r)
		}
	}
	return out
}

func items(s string) []string {
	out := strings.Split(strings.TrimSpace(s), "  ")
	slices.Sort(out)
	return out
}

// validate checks the invariants of a space's spans.
func validate(t interface{ Fatalf(string, ...any) }, s *space) {
	end := uint64(0)
	for i, c := range s.chunks {
		if len(c) == 0 || len(c) > maxChunk {
			t.Fatalf("chunk %d has %d spans", i, len(c))
		}
		for _, p := range c {
			if p.lo < end || p.hi <= p.lo {
				t.Fatalf("span [%d, %d) after %d", p.lo, p.hi, end)
			}
			end = p.hi
		}
	}
}

// Many spans are in several chunks; one write over them leaves one.
func TestWriteOverManySpansLeavesOne(t *testing.T) {
	s := &space{}
	by := access{1, 1, &Command{}}
	const spans = 5000
	for i := range uint64(spans) {
		s.write(i*7919%spans*4, i*7919%spans*4+4, by, func(o access, _ bool, lo, hi uint64) {
			t.Errorf("[%d, %d) was written by %v", lo, hi, o)
		})
		if i%100 == 0 {
			validate(t, s)
		}
	}
	if len(s.chunks) < spans/maxChunk {
		t.Errorf("%d chunks", len(s.chunks))
	}
	bytes := uint64(0)
	s.write(2, spans*4-2, by, func(_ access, _ bool, lo, hi uint64) { bytes += hi - lo })
	if bytes != spans*4-4 {
		t.Errorf("%d bytes were told of", bytes)
	}
	validate(t, s)
	if len(s.chunks) != 1 || len(s.chunks[0]) != 3 {
		t.Errorf("left: %v", s.chunks)
	}
}
