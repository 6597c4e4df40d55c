package tasks

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// imports is a program of tasks that share parts of their storage, some of them children of
// importing tasks. No task ever ends, so that every order between two tasks must show as a path
// along edges.
type imports struct {
	graph   Graph
	work    Work
	regions []*Scope
	// bounds has, for each region but the first, how many tasks of the first region were
	// generated before it: its children can depend on these.
	bounds []int
	tasks  []importingTask
	steps  []string
}

type importingTask struct {
	node   *Node
	depend []Depend
	region int
}

func (x *imports) add(region int, kind DependKind, cells []uint64, what string) error {
	depend := []Depend{long(kind, cells)}
	n, err := x.regions[region].Add(&Task{Runner: held{}, Held: true, Depend: depend}, &x.work)
	x.tasks = append(x.tasks, importingTask{n, depend, region})
	x.steps = append(x.steps, fmt.Sprintf("t%d in region %d: %v[%s]", len(x.tasks)-1, region, kind, what))
	return err
}

func (x *imports) open() error {
	inner := x.regions[0].NewInner()
	n, err := x.regions[0].Add(&Task{Runner: held{}, Held: true, Transparency: Import, Inner: inner}, &x.work)
	x.steps = append(x.steps, fmt.Sprintf("region %d", len(x.regions)))
	x.regions = append(x.regions, inner)
	x.bounds = append(x.bounds, len(x.tasks))
	x.tasks = append(x.tasks, importingTask{node: n})
	return err
}

// demanded reports whether the items of the k-th task demand that it follows an earlier one.
func (x *imports) demanded(earlier, k int) bool {
	a, b := x.tasks[earlier], x.tasks[k]
	switch relateAll(a.depend, b.depend) {
	case unrelated:
		return false
	case excludes:
		// Tasks of one region that exclude each other are kept apart by a lock, without an
		// edge.
		if a.region == b.region {
			return false
		}
	}
	return a.region == b.region || a.region == 0 && earlier < x.bounds[b.region]
}

// check compares the paths with all pairs of tasks: every order that is demanded has a path,
// and there is no path without a chain of demanded orders.
func (x *imports) check() error {
	index := make(map[*Node]int)
	for k := range x.tasks {
		index[x.tasks[k].node] = k
	}
	var got, want [32]uint32
	for k := range x.tasks {
		for _, e := range x.tasks[k].node.successors {
			got[index[e.to]] |= 1<<k | got[k]
		}
		for j := range k {
			if x.demanded(j, k) {
				want[k] |= 1<<j | want[j]
			}
		}
		if got[k] != want[k] {
			return fmt.Errorf("t%d follows %#b, want %#b", k, got[k], want[k])
		}
	}
	return nil
}

func (x *imports) run(choose func(int) int) error {
	x.regions, x.bounds = []*Scope{x.graph.NewScope()}, []int{0}
	cells := lane(8)
	kinds := []DependKind{DependIn, DependInOut, DependInOutSet, DependMutexInOutSet}
	for range 2 + choose(30) {
		if len(x.regions) < 4 && choose(6) == 0 {
			if err := x.open(); err != nil {
				return err
			}
			continue
		}
		region := 0
		if choose(3) == 0 {
			region = choose(len(x.regions))
		}
		from := choose(len(cells))
		to := from + 1 + choose(len(cells)-from)
		if err := x.add(region, kinds[choose(len(kinds))], cells[from:to], fmt.Sprintf("%d:%d", from, to)); err != nil {
			return err
		}
	}
	x.work.Run()
	return x.check()
}

// importPrograms is the number of random programs.
const importPrograms = 10_000

// TestImportedChildrenFollowWhatAllPairsDemand compares the paths between tasks, of one region
// and of importing tasks in it, with what all pairs of their items demand.
func TestImportedChildrenFollowWhatAllPairsDemand(t *testing.T) {
	for seed := range random(importPrograms) {
		var x imports
		if err := x.run(rand.New(rand.NewPCG(seed, 5)).IntN); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(x.steps, "\n"))
		}
	}
}

// BenchmarkImports generates n importing tasks one after the other, and then a child of each that depends on
// the tasks before its parent.
func BenchmarkImports(b *testing.B) {
	x := lane(1)
	items := []Depend{long(DependInOut, x)}
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				var g Graph
				var w Work
				outer := g.NewScope()
				parents := make([]*Node, n)
				inner := make([]*Scope, n)
				for i := range n {
					inner[i] = outer.NewInner()
					p, err := outer.Add(&Task{Runner: held{}, Held: true, Depend: items, Transparency: Import, Inner: inner[i]}, &w)
					if err != nil {
						b.Fatal(err)
					}
					parents[i] = p
				}
				for i, p := range parents {
					c, err := inner[i].Add(&Task{Runner: held{}, Held: true, Depend: items}, &w)
					if err != nil {
						b.Fatal(err)
					}
					w.Run()
					for _, n := range []*Node{c, p} {
						n.Complete(nil, &w)
						n.Release()
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/task")
		})
	}
}
