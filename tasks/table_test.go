package tasks

import (
	"fmt"
	"slices"
	"testing"
	"unsafe"
)

// truthTable says how a later task relates to an earlier one, by the kinds of items for shared
// storage (OpenMP 5.2 §15.9.5). With omp_all_memory on either side, the storage does not
// matter.
var truthTable = []struct {
	earlier []DependKind
	// The columns are the kinds of the later task's item; in, out stands for out and inout.
	in, out, mutex, set relation
}{
	{[]DependKind{DependIn}, unrelated, follows, follows, follows},
	{[]DependKind{DependOut, DependInOut}, follows, follows, follows, follows},
	{[]DependKind{DependMutexInOutSet}, follows, follows, excludes, follows},
	{[]DependKind{DependInOutSet}, follows, follows, follows, unrelated},
	{[]DependKind{DependOutAllMemory, DependInOutAllMemory}, follows, follows, follows, follows},
}

// geometry is where two sections are in eight bytes.
type geometry struct {
	name           string
	earlier, later [2]int
	separate       bool
}

var geometries = []geometry{
	{name: "identical", earlier: [2]int{0, 4}, later: [2]int{0, 4}},
	{name: "the later begins inside", earlier: [2]int{0, 4}, later: [2]int{3, 7}},
	{name: "the earlier begins inside", earlier: [2]int{3, 7}, later: [2]int{0, 4}},
	{name: "the later lies inside", earlier: [2]int{0, 8}, later: [2]int{3, 5}},
	{name: "the earlier lies inside", earlier: [2]int{3, 5}, later: [2]int{0, 8}},
	{name: "same start", earlier: [2]int{0, 2}, later: [2]int{0, 8}},
	{name: "same end", earlier: [2]int{0, 8}, later: [2]int{7, 8}},
	{name: "disjoint", earlier: [2]int{0, 4}, later: [2]int{4, 8}, separate: true},
	{name: "the later without storage", earlier: [2]int{0, 4}, later: [2]int{2, 2}, separate: true},
}

func items(memory *[8]byte, at [2]int, kinds ...DependKind) []Depend {
	var d []Depend
	for _, kind := range kinds {
		d = append(d, Depend{Kind: kind, Ptr: unsafe.Pointer(&memory[at[0]]), Size: uint64(at[1] - at[0])})
	}
	return d
}

// observe generates an earlier and a later task with those items and finds out how the engine
// relates them. A gate keeps the earlier one from starting: where no order is demanded, the
// later one starts before it.
func observe(t *testing.T, earlier, later []Depend, included bool) relation {
	t.Helper()
	s := newScript()
	started := func(label string) bool { return slices.Contains(s.events, "start "+label) }
	gate := Depend{Kind: DependOut, Ptr: s.storage("gate"), Size: 8}
	s.add(Task{Label: "gate", Depend: []Depend{gate}})
	gate.Kind = DependIn
	a := s.add(Task{Label: "a", Depend: append(slices.Clone(earlier), gate), Included: included})
	b := s.add(Task{Label: "b", Depend: later, Included: included})
	if started("a") {
		t.Error("the earlier task passed the gate")
	}
	ahead := started("b")
	edges := s.graph.Counts().Edges
	s.complete("gate", nil)
	together := started("a") && started("b")
	var r relation
	switch {
	case together:
		r = unrelated
		s.complete("a", nil)
		s.complete("b", nil)
	case ahead:
		r = excludes
		s.complete("b", nil)
		if !started("a") {
			t.Error("the earlier task waits for nothing")
		}
		s.complete("a", nil)
	default:
		r = follows
		if !started("a") {
			t.Fatal("neither task starts")
		}
		s.complete("a", nil)
		if !started("b") {
			t.Error("the later task waits for nothing")
		}
		s.complete("b", nil)
	}
	if together && !ahead {
		t.Error("the later task waited for the gate alone")
	}
	wantEdges := uint64(1)
	if r == follows {
		// A task that follows a follows the gate by way of a.
		wantEdges++
	}
	if edges != wantEdges {
		t.Errorf("%d edges, want %d", edges, wantEdges)
	}
	a.Release()
	b.Release()
	if s.waitNow() != nil || remembered(s.scope) != 0 {
		t.Error("something is left")
	}
	return r
}

func TestTruthTable(t *testing.T) {
	var memory [8]byte
	for _, row := range truthTable {
		for _, earlier := range row.earlier {
			for _, column := range []struct {
				kind DependKind
				want relation
			}{
				{DependIn, row.in}, {DependOut, row.out}, {DependInOut, row.out},
				{DependMutexInOutSet, row.mutex}, {DependInOutSet, row.set},
				{DependOutAllMemory, follows}, {DependInOutAllMemory, follows},
			} {
				later := column.kind
				t.Run(fmt.Sprintf("%v → %v: %v", earlier, later, column.want), func(t *testing.T) {
					for _, g := range geometries {
						want := column.want
						if g.separate && !earlier.AllMemory() && !later.AllMemory() {
							want = unrelated
						}
						if g.later[0] == g.later[1] && !later.AllMemory() {
							want = unrelated
						}
						for _, included := range []bool{false, true} {
							got := observe(t, items(&memory, g.earlier, earlier), items(&memory, g.later, later), included)
							if got != want {
								t.Errorf("%s, included %v: %v, want %v", g.name, included, got, want)
							}
						}
					}
				})
			}
		}
	}
}

// A predecessor that is complete makes no edge and delays nothing.
func TestCompleteTaskOrdersNothing(t *testing.T) {
	kinds := []DependKind{DependIn, DependOut, DependInOut, DependMutexInOutSet, DependInOutSet, DependOutAllMemory, DependInOutAllMemory}
	for _, earlier := range kinds {
		for _, later := range kinds {
			s := newScript()
			s.add(Task{Label: "a", Depend: []Depend{{Kind: earlier, Ptr: s.storage("x"), Size: 8}}})
			s.complete("a", nil)
			s.add(Task{Label: "b", Depend: []Depend{{Kind: later, Ptr: s.storage("x"), Size: 8}}})
			s.expect(t, "start a", "start b")
			if c := s.graph.Counts(); c != (Counts{Tasks: 2, Done: 1}) {
				t.Errorf("%v → %v: %+v", earlier, later, c)
			}
		}
	}
}

// A task can have items of several kinds for one location: any of them that demands an order is
// enough.
func TestMixedKindsOnOneLocation(t *testing.T) {
	kinds := []DependKind{DependIn, DependOut, DependMutexInOutSet, DependInOutSet}
	var memory [8]byte
	for _, a := range kinds {
		for _, b := range kinds {
			t.Run(fmt.Sprintf("%v and %v", a, b), func(t *testing.T) {
				for _, c := range kinds {
					for _, d := range kinds {
						for _, g := range geometries[:5] {
							earlier, later := items(&memory, g.earlier, a, b), items(&memory, g.later, c, d)
							if got, want := observe(t, earlier, later, false), relateAll(earlier, later); got != want {
								t.Errorf("before %v and %v, %s: %v, want %v", c, d, g.name, got, want)
							}
						}
					}
				}
			})
		}
	}
}

// A task without depend items is not ordered by omp_all_memory.
func TestAllMemoryLeavesTasksWithoutDependAlone(t *testing.T) {
	s := newScript()
	s.add(Task{Label: "free before"})
	s.add(Task{Label: "item without storage", Depend: []Depend{{Kind: DependOut}}})
	s.add(Task{Label: "all", Depend: []Depend{{Kind: DependOutAllMemory}}})
	s.add(Task{Label: "free after"})
	s.expect(t, "start free before", "start item without storage", "start all", "start free after")
}

// A task with omp_all_memory looks only at the storage that was named since the one before it.
func TestAllMemoryLooksAtStorageNamedSinceTheOneBefore(t *testing.T) {
	s := newScript()
	for i, names := range [][]string{{"a", "b", "c", "d"}, {"b", "e", "c"}, {"a", "e"}, {"d"}} {
		for _, name := range names {
			s.add(Task{Label: name, Depend: s.use(DependInOut, name)})
		}
		since := 0
		for range s.scope.namedSinceAllMemoryLocked {
			since++
		}
		if since != len(names) {
			t.Errorf("in round %d it looks at %d locations, of which %d were named", i, since, len(names))
		}
		edges := s.graph.Counts().Edges
		s.add(Task{Label: "all", Depend: []Depend{{Kind: DependInOutAllMemory}}})
		want := len(names) + min(i, 1) // and from the one before
		if made := s.graph.Counts().Edges - edges; made != uint64(want) {
			t.Errorf("omp_all_memory has %d edges in round %d, want %d", made, i, want)
		}
	}
}
