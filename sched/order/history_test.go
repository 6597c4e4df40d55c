package order

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// naiveHistory has the sets of every byte.
type naiveHistory []struct{ wrote, moved, under naiveSet }

func newNaiveHistory(size uint64) naiveHistory {
	n := make(naiveHistory, size)
	for i := range n {
		n[i].wrote, n[i].moved, n[i].under = naiveSet{}, naiveSet{}, naiveSet{}
	}
	return n
}

func (n naiveHistory) touch(bytes Span, at SyncPoint, known Clock, wrote, moved bool) {
	for i := bytes.Start; i < bytes.Start+bytes.Size; i++ {
		if wrote {
			for _, m := range n[i].wrote {
				n[i].under.add(m)
			}
			n[i].wrote.follow(at, known)
		}
		if moved {
			n[i].moved.follow(at, known)
		}
	}
}

// shape returns what is wrong with the segments' bounds, "" for nothing.
func (h *history) shape() string {
	end := uint64(0)
	for i, g := range h.segments {
		if g.lo >= g.hi || g.lo < end {
			return fmt.Sprintf("segment %d is %d to %d, after one up to %d", i, g.lo, g.hi, end)
		}
		end = g.hi
	}
	return ""
}

// byteSets returns the sets that within yields for one byte.
func (h *history) byteSets(i uint64) (wrote, moved, under SyncSet, segments int) {
	for g := range h.within(Span{Start: i, Size: 1}) {
		wrote.SetAll(&g.wrote)
		moved.SetAll(&g.moved)
		under.SetAll(&g.under)
		segments++
	}
	return wrote, moved, under, segments
}

// misses returns a point of n for whose queue r has neither that point nor a later one, and the
// zero point if there is none.
func (n naiveSet) misses(r *SyncSet) SyncPoint {
	for q, m := range n {
		if r.on(q).Before(m) {
			return m
		}
	}
	return SyncPoint{}
}

func drawSpan(t *rapid.T, size uint64) Span {
	start := rapid.Uint64Range(0, size-1).Draw(t, "start")
	return Span{Start: start, Size: rapid.Uint64Range(1, size-start).Draw(t, "size")}
}

func TestHistoryKnowsTheSyncSetsOfEachByte(t *testing.T) {
	const size = 24
	rapid.Check(t, func(t *rapid.T) {
		var h history
		naive := newNaiveHistory(size)
		t.Repeat(map[string]func(*rapid.T){
			"touch": func(t *rapid.T) {
				bytes, at, known := drawSpan(t, size), drawPoint(t), drawClock(t)
				at.Value++
				wrote, moved := rapid.Bool().Draw(t, "wrote"), rapid.Bool().Draw(t, "moved")
				h.touch(bytes, at, known, wrote, moved)
				naive.touch(bytes, at, known, wrote, moved)
				var last *segment
				for g := range h.within(bytes) {
					if last != nil && last.alike(g) {
						t.Fatalf("%d to %d and %d to %d are alike after a touch of both", last.lo, last.hi, g.lo, g.hi)
					}
					last = g
				}
			},
			"reset": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "chance") > 0 {
					return
				}
				var r SyncSet
				want := naiveSet{}
				for range rapid.IntRange(0, 3).Draw(t, "points") {
					m := drawPoint(t)
					r.Add(m)
					want.add(m)
				}
				h.Reset(size, &r)
				for i := range naive {
					if _, _, under, _ := h.byteSets(uint64(i)); under.Len() > 0 {
						t.Fatalf("under what was reset is %v", under)
					}
					naive[i].wrote, naive[i].moved, naive[i].under = maps.Clone(want), maps.Clone(want), naiveSet{}
				}
			},
			"within": func(t *rapid.T) {
				bytes := drawSpan(t, size)
				var got []segment
				for g := range h.within(bytes) {
					got = append(got, *g)
				}
				n := 0
				for _, g := range h.segments {
					if g.lo < bytes.Start+bytes.Size && g.hi > bytes.Start {
						if n >= len(got) || got[n].lo != g.lo || got[n].hi != g.hi {
							t.Fatalf("within %+v lacks %d to %d", bytes, g.lo, g.hi)
						}
						n++
					}
				}
				if n != len(got) {
					t.Fatalf("within %+v are %d segments, want %d", bytes, len(got), n)
				}
			},
			"": func(t *rapid.T) {
				if wrong := h.shape(); wrong != "" {
					t.Fatal(wrong)
				}
				for i := range naive {
					wrote, moved, under, segments := h.byteSets(uint64(i))
					if segments > 1 || !naive[i].wrote.equal(&wrote) || !naive[i].moved.equal(&moved) {
						t.Fatalf("byte %d, in %d segments: wrote %v, moved %v, want %v", i, segments, wrote, moved, naive[i])
					}
					if m := naive[i].under.misses(&under); m != (SyncPoint{}) {
						t.Fatalf("byte %d lost the write by %v: under the others is %v", i, m, under)
					}
				}
			},
		})
	})
}

// A write covers bytes of which others wrote a part each. It leaves one segment, but for
// bytes that had other transfers.
func TestWriteMergesSegmentsThatItMakesAlike(t *testing.T) {
	const tiles, tile = 100, 4
	for _, c := range []struct {
		name  string
		moved int // the tile that is moved, 0 for none
		want  int
	}{
		{"all alike", 0, 1},
		{"one moved", 50, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h history
			known := make(Clock, 1)
			for i := range uint64(tiles) {
				h.touch(Span{i * tile, tile}, SyncPoint{Value: i + 1}, known, true, c.moved != 0 && i == uint64(c.moved))
			}
			// The write covers all tiles but the first and the last, which stay as they are.
			h.touch(Span{tile, (tiles - 2) * tile}, SyncPoint{Value: tiles + 1}, known, true, false)
			if n := len(h.segments); n != c.want+2 {
				t.Errorf("%d segments, want %d", n, c.want+2)
			}
		})
	}
}

// A history with too many segments merges some. It forgets no access by that, and only orders
// more than it must.
func TestCoarserHistoryOnlyAddsOrder(t *testing.T) {
	const size = 4 * maxSegments
	rapid.Check(t, func(t *rapid.T) {
		var h history
		naive := newNaiveHistory(size)
		touch := func(bytes Span, at SyncPoint, known Clock, wrote bool) {
			h.touch(bytes, at, known, wrote, !wrote)
			naive.touch(bytes, at, known, wrote, !wrote)
		}
		nothing := make(Clock, queues)
		coarser := false
		value, leastStep := uint64(1), uint64(size)
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			step := rapid.Uint64Range(2, 5).Draw(t, "step")
			leastStep = min(leastStep, step)
			queue := rapid.Int32Range(0, queues-1).Draw(t, "queue")
			for at := rapid.Uint64Range(0, 3).Draw(t, "first"); at < size; at += step {
				before := len(h.segments)
				touch(Span{Start: at, Size: 1}, SyncPoint{Value: value, Level: int32(at % 3), Queue: queue}, nothing, at%2 == 0)
				coarser = coarser || len(h.segments) < before
				value++
			}
			bytes, at := drawSpan(t, size), drawPoint(t)
			at.Value += value
			known := drawClock(t)
			for i := range known {
				known[i] += value / 2
			}
			touch(bytes, at, known, rapid.Bool().Draw(t, "wrote"))
			if wrong := h.shape(); wrong != "" {
				t.Fatal(wrong)
			}
			// One touch may fill all gaps between the segments with new ones.
			if n := len(h.segments); n > 2*maxSegments+2 {
				t.Fatalf("%d segments", n)
			}
		}
		if !coarser && size/leastStep > maxSegments {
			t.Fatal("the history was never made coarser")
		}
		keeps := func(what string, i int, has SyncSet, want naiveSet) {
			if m := want.misses(&has); m != (SyncPoint{}) {
				t.Fatalf("byte %d lost %s by %v: it has %v", i, what, m, has)
			}
		}
		for i := range naive {
			wrote, moved, under, _ := h.byteSets(uint64(i))
			keeps("a write", i, wrote, naive[i].wrote)
			keeps("a move", i, moved, naive[i].moved)
			keeps("an earlier write", i, under, naive[i].under)
		}
		// Whatever is complete, each complete write is followed.
		o := new(Queues)
		for q := range queues {
			o.all = append(o.all, &Queue{index: int32(q)})
		}
		choose := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for range 16 {
			for _, q := range o.all {
				q.completed = choose.Uint64N(value + 1)
			}
			for i := range naive {
				var s WaitSet
				for g := range h.within(Span{Start: uint64(i), Size: 1}) {
					o.addWrites(&s, g)
				}
				for q, m := range naive[i].wrote {
					if o.Complete(m) && s.on(q).Before(m) {
						t.Fatalf("byte %d: what comes after the complete write %v follows %v", i, m, s.SyncSet)
					}
				}
			}
		}
	})
}
