package tasks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// windows are sections of which each overlaps the next ones in part.
type windows struct {
	name string
	// kinds are the dependence types of the tasks by turns. Window i begins at cell i·stride.
	kinds         []DependKind
	width, stride int
	// cell, if not negative, is the only cell that writers name, counted from the window's
	// beginning. It moves on from writer to writer, through so many cells.
	cell, cells int
	// edges bounds the average number of edges of a task, and segments the number of segments
	// that are left.
	edges, segments float64
}

// windowCases are windows that overlap many others, and windows that overlap few.
func windowCases() []windows {
	const wide, none = 100_000, -1
	return []windows{
		{"in", []DependKind{DependIn}, wide, 1, none, 1, 1, 2},
		{"inoutset", []DependKind{DependInOutSet}, wide, 1, none, 1, 1, 2},
		{"mutexinoutset", []DependKind{DependMutexInOutSet}, wide, 1, none, 1, 1, 2},
		{"inout", []DependKind{DependInOut}, wide, 1, none, 1, 2, 2001},
		{"in and inout", []DependKind{DependIn, DependInOut}, wide, 1, none, 1, 3, 2001},
		{"in and inoutset", []DependKind{DependIn, DependInOutSet}, wide, 1, none, 1, 3, 2002},
		{"in, few neighbours", []DependKind{DependIn}, 8, 1, none, 1, 1, 2},
		{"inout, few neighbours", []DependKind{DependInOut}, 8, 1, none, 1, 2, 2001},
		{"in and inout, few neighbours", []DependKind{DependIn, DependIn, DependInOut}, 8, 1, none, 1, 5, 1335},
		{"inout, halves", []DependKind{DependInOut}, 64, 32, none, 1, 2, 2001},
		{"in of much, inout of its first cell", []DependKind{DependIn, DependInOut}, wide, 0, 0, 1, 3, 3},
		{"in of much, inout of a cell of it", []DependKind{DependIn, DependInOut}, wide, 0, wide / 2, 1, 3, 4},
		{"in of much, inout of one cell of it after the other", []DependKind{DependInOut, DependIn}, wide, 0, 0, wide, 1.1, 8},
		{"in of much, inout of few cells of it by turns", []DependKind{DependInOut, DependIn}, wide, 0, 0, 100, 1.1, 8},
		{"twice in of much, inout of one cell of it after the other", []DependKind{DependInOut, DependIn, DependIn}, wide, 0, 0, wide, 1.5, 8},
	}
}

// slide adds n tasks on windows, behind a task that does not end. It returns a function that
// completes them.
func (c windows) slide(s *Scope, cells []uint64, n int, w *Work) (drain func(), err error) {
	first, err := s.Add(&Task{Runner: held{}, Depend: []Depend{long(DependInOut, cells)}}, w)
	for i := 0; i < n && err == nil; i++ {
		at := i * c.stride % (len(cells) - c.width)
		kind, width := c.kinds[i%len(c.kinds)], c.width
		if kind == DependInOut && c.cell >= 0 {
			at, width = at+c.cell+i/len(c.kinds)*7919%c.cells, 1
		}
		_, err = s.Add(&Task{Runner: instant{}, Depend: []Depend{long(kind, cells[at:at+width])}}, w)
	}
	w.Run()
	return func() {
		first.Complete(nil, w)
		w.Run()
	}, err
}

func TestSectionsThatOverlapInPartHaveFewEdges(t *testing.T) {
	cells := lane(1 << 18)
	const n = 2000
	for _, c := range windowCases() {
		t.Run(c.name, func(t *testing.T) {
			var g Graph
			var w Work
			s := g.NewScope()
			drain, err := c.slide(s, cells, n, &w)
			if err != nil {
				t.Fatal(err)
			}
			if got := float64(g.Counts().Edges) / n; got > c.edges {
				t.Errorf("%v edges a task, want %v at most", got, c.edges)
			}
			if k := s.tangle.segments.count; float64(k) > c.segments {
				t.Errorf("%d segments, want %v at most", k, c.segments)
			}
			drain()
			if err := s.Wait(context.Background(), nil); err != nil || s.live != 0 {
				t.Errorf("%v, %d tasks left", err, s.live)
			}
			if k := s.tangle.segments.count + s.tangle.held.count + remembered(s); k != 0 {
				t.Errorf("%d segments, holders and locations at rest", k)
			}
		})
	}
}

// A later task depends on the task with omp_all_memory, and so needs no edges from the tasks
// before that.
func TestNothingOfSharedStorageIsLeftBehindATaskWithAllMemory(t *testing.T) {
	s := newScript()
	s.add(Task{Label: "a", Depend: s.use(DependOut, "x")})
	s.add(Task{Label: "b", Depend: []Depend{{Kind: DependOut, Ptr: s.storage("x"), Size: 16}}})
	s.add(Task{Label: "all", Depend: []Depend{{Kind: DependInOutAllMemory}}})
	s.add(Task{Label: "c", Depend: []Depend{{Kind: DependIn, Ptr: s.storage("x"), Size: 12}}})
	if got := drawing(s.graph.Snapshot()); !strings.HasSuffix(got, "; a→b b→all all→c") {
		t.Error(got)
	}
}

// The segments that are kept are as many as the tasks in flight need, however much storage was
// named before, and although readers of some of it are always in flight.
func TestSegmentsOfCompleteTasksAreForgotten(t *testing.T) {
	oneGoroutine(t)
	var g Graph
	var w Work
	s := g.NewScope()
	cells := lane(100_000)
	var readers []*Node
	for i := 0; i+4 <= len(cells); i += 2 {
		r, err := s.Add(&Task{Runner: held{}, Depend: []Depend{long(DependIn, cells[i:i+4])}}, &w)
		if err != nil {
			t.Fatal(err)
		}
		w.Run()
		if readers = append(readers, r); len(readers) == 3 {
			readers[0].Complete(nil, &w)
			readers = readers[1:]
		}
		// This writer is complete at once and leaves nothing behind.
		if _, err := s.Add(&Task{Runner: instant{}, Depend: []Depend{long(DependInOut, cells[max(i-3, 0):max(i-2, 1)])}}, &w); err != nil {
			t.Fatal(err)
		}
		w.Run()
		if s.tangle != nil && s.tangle.segments.count > 2*minSweep {
			t.Fatalf("%d segments after %d tasks", s.tangle.segments.count, i)
		}
	}
}

// What tasks in flight keep for storage that is part of the storage of others is what the newest of them need:
// those that others have superseded keep nothing but their nodes.
func TestSupersededAccessesOfSharedStorageKeepNothing(t *testing.T) {
	const parts, each = 16, 50
	for name, kinds := range map[string][]DependKind{
		"inout": {DependInOut}, "in and inout": {DependIn, DependInOut}, "inoutset and in": {DependInOutSet, DependIn},
		"mutexinoutset and in": {DependMutexInOutSet, DependIn},
	} {
		t.Run(name, func(t *testing.T) {
			var g Graph
			var w Work
			s := g.NewScope()
			cells := lane(4 * parts)
			first, err := s.Add(&Task{Runner: held{}, Depend: []Depend{long(DependInOut, cells)}}, &w)
			for i := 0; i < parts*each && err == nil; i++ {
				at := i % parts * 4
				_, err = s.Add(&Task{Runner: instant{}, Depend: []Depend{long(kinds[i/parts%len(kinds)], cells[at:at+4])}}, &w)
			}
			if err != nil {
				t.Fatal(err)
			}
			w.Run()
			locations, memberships := make(map[*location]bool), 0
			for _, n := range s.children {
				for i := range n.items {
					a := &n.items[i]
					locations[a.loc] = true
					for m := a.memberships; m != nil; m = m.value.next {
						memberships++
					}
				}
			}
			if k := len(locations); k > parts+1 {
				t.Errorf("%d locations of %d sections", k, parts+1)
			}
			if most := 2*parts + 1; memberships > most {
				t.Errorf("%d memberships in the histories of %d parts, want %d at most", memberships, parts, most)
			}
			first.Complete(nil, &w)
			w.Run()
			if err := s.Wait(context.Background(), nil); err != nil || s.live != 0 || remembered(s) != 0 {
				t.Errorf("%v, %d tasks and %d locations left", err, s.live, remembered(s))
			}
		})
	}
}

// tasksOfWindows generates random tasks on storage that overlaps in part: windows, single
// cells, and large sections around them. It completes some of them, and returns the items of
// the others by the numbers of their tasks.
func tasksOfWindows(t *testing.T, s *Scope, choices *rand.Rand) map[uint64][]Depend {
	var w Work
	cells := lane(200)
	started := &window{}
	left := make(map[uint64][]Depend)
	kinds := []DependKind{DependIn, DependIn, DependInOut, DependInOutSet, DependMutexInOutSet}[choices.IntN(3):]
	longest, whole := 1+choices.IntN(100), choices.IntN(2) == 0
	for i := range 250 {
		var items []Depend
		for range 1 + choices.IntN(2) {
			kind, at := kinds[choices.IntN(len(kinds))], choices.IntN(len(cells))
			to := min(at+1+choices.IntN(longest), len(cells))
			switch {
			case !whole:
			case kind == DependInOut:
				// There are few different cells, so that each is named several times.
				at = at / 20 * 20
				to = at + 1
			default:
				at, to = at/100*100*choices.IntN(2), len(cells)
			}
			items = append(items, long(kind, cells[at:to]))
		}
		if i%83 == 82 {
			items = append(items, Depend{Kind: DependInOutAllMemory})
		}
		n, err := s.Add(&Task{Runner: started, Depend: items}, &w)
		if err != nil {
			t.Fatal(err)
		}
		left[n.seq] = items
		w.Run()
		for len(started.started) > 0 && choices.IntN(3) == 0 {
			k := choices.IntN(len(started.started))
			n := started.started[k]
			started.started[k] = started.started[0]
			started.started = started.started[1:]
			delete(left, n.seq)
			n.Complete(nil, &w)
			w.Run()
		}
	}
	return left
}

// TestSegmentsOrderWhatAllPairsDemand compares the paths between tasks with all pairs of their
// items: every order has a path, and every edge stands for an order.
func TestSegmentsOrderWhatAllPairsDemand(t *testing.T) {
	for seed := range random(200) {
		var g Graph
		left := tasksOfWindows(t, g.NewScope(), rand.New(rand.NewPCG(seed, 4)))
		// before has, for each task, the tasks from which a path leads to it.
		before := make(map[uint64]map[uint64]bool)
		for id := range left {
			before[id] = make(map[uint64]bool)
		}
		edges := 0
		for _, e := range g.Snapshot().Edges {
			if e.Exclusion {
				continue
			}
			edges++
			if relateAll(left[e.From], left[e.To]) != follows {
				t.Fatalf("seed %d: %d follows %d, which no items demand", seed, e.To, e.From)
			}
			// The edges are sorted by the tasks that they lead to.
			before[e.To][e.From] = true
			for p := range before[e.From] {
				before[e.To][p] = true
			}
		}
		for a, earlier := range left {
			for b, later := range left {
				if a < b && relateAll(earlier, later) == follows && !before[b][a] {
					t.Fatalf("seed %d: nothing orders %d before %d", seed, a, b)
				}
			}
		}
		if edges == 0 {
			t.Errorf("seed %d: no edges", seed)
		}
	}
}

// BenchmarkWindows generates and completes a task whose section overlaps others in part, among
// 20,000 of them.
func BenchmarkWindows(b *testing.B) {
	cells := lane(1 << 18)
	for _, c := range windowCases() {
		b.Run(fmt.Sprint(c.name), func(b *testing.B) {
			const n = 20_000
			for b.Loop() {
				var g Graph
				var w Work
				drain, err := c.slide(g.NewScope(), cells, n, &w)
				if err != nil {
					b.Fatal(err)
				}
				drain()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/task")
		})
	}
}
