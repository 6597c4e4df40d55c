package tasks

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// imports is a program of tasks on storage that they share in part, where some are children
// of importing tasks. None of them ends, so that the paths along the edges between them are
// all the order that there is.
type imports struct {
	graph   Graph
	work    Work
	regions []*Scope
	// bounds has for each region but the first the number of tasks in the outer one that its
	// children can follow.
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

// demanded reports whether the k-th task has to follow an earlier one, by their own items.
func (x *imports) demanded(earlier, k int) bool {
	a, b := x.tasks[earlier], x.tasks[k]
	switch relateAll(a.depend, b.depend) {
	case unrelated:
		return false
	case excludes:
		// Within a region a lock keeps them apart.
		if a.region == b.region {
			return false
		}
	}
	return a.region == b.region || a.region == 0 && earlier < x.bounds[b.region]
}

// check compares the paths with all pairs: each order has a path, and no path leads where
// none does that the items demand.
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

// importPrograms is the number of programs of importing tasks that are made.
const importPrograms = 10_000

// TestImportedChildrenFollowWhatAllPairsDemand compares the paths between tasks of one region
// and of importing tasks in it with all pairs of their items.
func TestImportedChildrenFollowWhatAllPairsDemand(t *testing.T) {
	for seed := range uint64(importPrograms) {
		var x imports
		if err := x.run(rand.New(rand.NewPCG(seed, 5)).IntN); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(x.steps, "\n"))
		}
	}
}
