package tasks

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
)

// located counts the locations of the scope.
func located(s *Scope) int {
	n := 0
	for l := s.locations.after; l != nil && l != &s.locations; l = l.after {
		n++
	}
	return n
}

// Tasks that are not run, because tasks on the same storage have failed, leave little behind:
// what the scope keeps is bounded by the number of different sections, and is gone when a wait
// has reported the failure.
func TestFailuresOnSharedStorageLeaveLittleBehind(t *testing.T) {
	x, y := lane(3), lane(2)
	a, b := x[:2], x[1:]
	for _, c := range []struct {
		name string
		// broken are the items of tasks that fail, and then those of tasks that are not run.
		broken []Depend
		then   [][]Depend
	}{
		{"one failure", []Depend{long(DependInOut, a)}, [][]Depend{{long(DependInOut, a)}, {long(DependInOut, b)}}},
		{"two failures", []Depend{long(DependIn, y[:1]), long(DependIn, y[1:])}, [][]Depend{
			{long(DependInOut, y[:1]), long(DependIn, a)},
			{long(DependInOut, y[1:]), long(DependIn, b)},
			{long(DependInOut, y[:1]), long(DependIn, b)},
			{long(DependInOut, y[1:]), long(DependIn, a)},
		}},
	} {
		t.Run(c.name, func(t *testing.T) { testDropped(t, c.broken, c.then) })
	}
}

func testDropped(t *testing.T, broken []Depend, then [][]Depend) {
	s := newScript()
	for i, d := range broken {
		s.add(Task{Label: fmt.Sprint("broken ", i), Depend: []Depend{d}})
	}
	// This task waits for one that fails, and its section overlaps others in part.
	s.add(Task{Label: "t", Depend: then[1]}).Release()
	for i := range broken {
		s.complete(fmt.Sprint("broken ", i), errBroken)
	}
	most := len(broken)
	for _, items := range then {
		most += len(items)
	}
	const n = 5000
	for i := range n {
		s.add(Task{Label: "t", Depend: then[i%len(then)]}).Release()
		entries, failures := 0, 0
		for k := range s.scope.failedStorage.byClass {
			for _, at := range s.scope.failedStorage.byClass[k].appendAll(nil) {
				entries++
				failures = max(failures, len(at.value.failures))
			}
		}
		if k := located(s.scope); k > 4*most || entries > most || failures > 4*len(broken) {
			t.Fatalf("after %d tasks %d locations, %d failed sections, %d failures at one", i, k, entries, failures)
		}
	}
	for _, event := range s.take() {
		if !strings.HasPrefix(event, "start broken") && event != "drop t" {
			t.Fatal(event)
		}
	}
	err := s.waitNow()
	if !errors.Is(err, errBroken) || !strings.HasSuffix(err.Error(), fmt.Sprintf("(%d dependent tasks not run)", n+1)) {
		t.Errorf("the wait reports %v", err)
	}
	if s.scope.failedStorage != nil || remembered(s.scope) != 0 {
		t.Errorf("%d locations at rest, or failed storage", remembered(s.scope))
	}
	s.add(Task{Label: "after", Depend: then[1]})
	s.expect(t, "start after")
}

// A failed task's section drops later tasks whose sections overlap it in part, whether such a
// section was known before the failure or not. The scope keeps one entry for it.
func TestFailedStorageIsFoundThroughAnySectionThatOverlaps(t *testing.T) {
	for _, reported := range []bool{false, true} {
		t.Run(fmt.Sprint("reported ", reported), func(t *testing.T) {
			x := lane(4)
			s := newScript()
			items := func(kind DependKind, from, to int) []Depend { return []Depend{long(kind, x[from:to])} }
			s.add(Task{Label: "a", Depend: items(DependIn, 0, 2)})
			s.complete("a", errBroken)
			s.add(Task{Label: "reader", Depend: items(DependIn, 0, 2)})
			s.add(Task{Label: "shares", Depend: items(DependIn, 1, 3)})
			s.complete("reader", errBroken)
			if n := len(s.scope.failedStorage.entries); n != 1 {
				t.Errorf("%d entries of one section", n)
			}
			s.expect(t, "start a", "start reader", "start shares")
			if reported {
				s.complete("shares", nil)
				if err := s.waitNow(); !errors.Is(err, errBroken) {
					t.Error(err)
				}
				s.add(Task{Label: "w", Depend: items(DependInOut, 1, 2)})
				s.add(Task{Label: "all", Depend: []Depend{{Kind: DependOutAllMemory}}})
				s.complete("w", nil)
				s.expect(t, "start w", "start all")
				return
			}
			s.add(Task{Label: "w", Depend: items(DependInOut, 2, 3)})
			s.add(Task{Label: "dropped", Depend: items(DependInOut, 1, 2)})
			s.add(Task{Label: "all", Depend: []Depend{{Kind: DependOutAllMemory}}})
			s.expect(t)
			s.complete("shares", nil)
			s.expect(t, "start w", "drop dropped")
			s.complete("w", nil)
			s.expect(t, "drop all")
			// Every later task depends on the task with omp_all_memory, which was dropped.
			s.add(Task{Label: "elsewhere", Depend: s.use(DependIn, "y")})
			s.expect(t, "drop elsewhere")
		})
	}
}

// A taskgroup that reports a failure looks only at the storage of that failure, and not at all
// failures of the scope that are still to be reported: otherwise reports would cost the square
// of their number. The test adds a failure that is over to every other entry: an entry that is looked at
// would lose it.
func TestReportGoesOverItsOwnFailuresOnly(t *testing.T) {
	const n, reports = 1000, 400
	s := newScript()
	fail := func(g *Group) {
		s.add(Task{Label: "t", Group: g, Depend: s.use(DependOut, fmt.Sprint("x", len(s.memory)))})
		s.complete("t", errBroken)
		s.nodes["t"].Release()
	}
	for range n {
		fail(nil)
	}
	over := &tally{}
	over.reported.Store(true)
	marked := 0
	for _, at := range s.scope.failedStorage.entries {
		at.value.failures = append(at.value.failures, failedUse{tally: over})
	}
	for k := range reports {
		g := NewGroup(nil)
		fail(g)
		if err := g.Wait(t.Context(), nil); !errors.Is(err, errBroken) {
			t.Fatal(err)
		}
		if len(s.scope.failedStorage.entries) != n || len(s.scope.failures.byRoot) != n {
			t.Fatalf("%d failed sections and %d failures after %d reports", len(s.scope.failedStorage.entries), len(s.scope.failures.byRoot), k+1)
		}
	}
	for _, at := range s.scope.failedStorage.entries {
		if f := at.value.failures; f[len(f)-1].tally == over {
			marked++
		}
	}
	if marked != n {
		t.Errorf("the reports have gone over %d of %d sections of others", n-marked, n)
	}
	if k := len(s.scope.failures.list); k != n+reports {
		t.Errorf("the reports have gone over the list of failures: %d are in it", k)
	}
	for range n {
		g := NewGroup(nil)
		fail(g)
		_ = g.Wait(t.Context(), nil)
	}
	if k := len(s.scope.failures.list); k > 2*n+1 {
		t.Errorf("%d failures are listed for %d that are to be reported", k, n)
	}
	if err := s.waitNow(); !errors.Is(err, errBroken) || s.scope.failedStorage != nil {
		t.Errorf("%v, or storage is marked as failed still", err)
	}
}

// BenchmarkFailures generates tasks that are not run, while no wait reports the failure.
func BenchmarkFailures(b *testing.B) {
	x := lane(3)
	for _, c := range []struct {
		name string
		then [][]uint64
	}{
		{"one section", [][]uint64{x[:2]}},
		{"sections that overlap in part", [][]uint64{x[:2], x[1:3]}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var w Work
			var g Graph
			s := g.NewScope()
			n, err := s.Add(&Task{Runner: held{}, Depend: []Depend{long(DependInOut, x[:2])}}, &w)
			if err != nil {
				b.Fatal(err)
			}
			w.Run()
			n.Complete(errBroken, &w)
			i := 0
			for b.Loop() {
				if _, err := s.Add(&Task{Runner: instant{}, Depend: []Depend{long(DependInOut, c.then[i%len(c.then)])}}, &w); err != nil {
					b.Fatal(err)
				}
				w.Run()
				i++
			}
		})
	}
}

// A section's failures, whatever of them is kept in one, are those of the tasks before each number that were added
// and are not over.
func TestFailuresOfASectionAreThoseOfItsTasks(t *testing.T) {
	for seed := range uint64(200) {
		choices := rand.New(rand.NewPCG(seed, 6))
		tallies := make([]*tally, 6)
		for k := range tallies {
			tallies[k] = &tally{}
		}
		var p failedSection
		var added []failedUse
		for range 60 {
			u := failedUse{tallies[choices.IntN(len(tallies))], 1 + choices.Uint64N(9)}
			switch choices.IntN(12) {
			case 0:
				u.reported.Store(true)
			case 1:
				p.tidy()
			default:
				if u.over() {
					continue
				}
				newest := len(added) > 0 && p.newest() == u.tally
				added = append(added, u)
				if p.add(u) == newest {
					t.Fatalf("seed %d: add does not say whether the failure was the newest", seed)
				}
			}
			for before := range uint64(11) {
				got, want := make(map[*tally]bool), make(map[*tally]bool)
				for of, uses := range map[*map[*tally]bool][]failedUse{&got: p.failures, &want: added} {
					for _, u := range uses {
						if !u.over() && u.first < before {
							(*of)[u.tally] = true
						}
					}
				}
				if !maps.Equal(got, want) {
					t.Fatalf("seed %d: %d failures before %d, want %d", seed, len(got), before, len(want))
				}
			}
		}
		if len(p.failures) > 4*len(tallies) {
			t.Fatalf("seed %d: %d failures are kept", seed, len(p.failures))
		}
	}
}
