package tasks

import (
	"context"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"weak"
)

// endedRegion is a task region with n tasks in a row, of which the middle one has an event, if there is one, and
// that has ended. It returns the scope and the nodes that the tasks had.
func endedRegion(t *testing.T, g *Graph, n int, event *Event) (s *Scope, nodes []*Node) {
	t.Helper()
	s = g.NewScope()
	var w Work
	x := make([]uint64, 1)
	for i := range n {
		task := Task{Label: "task", Runner: held{}, Depend: []Depend{long(DependInOut, x)}}
		if i == n/2 {
			task.Event = event
		}
		node, err := s.Add(&task, &w)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, node)
	}
	w.Run()
	for i, node := range nodes {
		node.Complete(nil, &w)
		if i == n/2 && event != nil {
			if err := event.Fulfill(&w); err != nil {
				t.Fatal(err)
			}
		}
		w.Run()
	}
	if err := s.Wait(context.Background(), nil); err != nil || !s.Settled() {
		t.Fatalf("%v, settled: %v", err, s.Settled())
	}
	s.Retire()
	return s, nodes
}

// withoutCollections runs the test on one processor and without garbage collections, so that a pool keeps what
// it is given.
func withoutCollections(t *testing.T) {
	percent, processors := debug.SetGCPercent(-1), runtime.GOMAXPROCS(1)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		runtime.GOMAXPROCS(processors)
	})
}

// A region uses the nodes of one that has ended, and does not keep that.
func TestRegionsUseTheNodesOfOthers(t *testing.T) {
	oneGoroutine(t) // under the race detector a pool loses what it is given
	withoutCollections(t)
	const n = 100
	var g Graph
	first, nodes := endedRegion(t, &g, n, nil)
	old := weak.Make(first)
	had := map[*Node]bool{}
	for _, node := range nodes {
		had[node] = true
	}
	second, nodes := endedRegion(t, &g, n/2, nil)
	for i, node := range nodes {
		if !had[node] {
			t.Errorf("task %d has a node of its own", i)
		}
	}
	runtime.GC()
	if old.Value() != nil {
		t.Error("a scope is kept by nodes that others have")
	}
	runtime.KeepAlive(second)
	runtime.KeepAlive(had) // with the nodes that are spare
}

// A region of few tasks takes few nodes of one that had many.
func TestSmallRegionsTakeFewNodes(t *testing.T) {
	oneGoroutine(t)
	withoutCollections(t)
	var g Graph
	endedRegion(t, &g, 20*magazineNodes, nil)
	var w Work
	for range 5 {
		s := g.NewScope()
		n, err := s.Add(&Task{Runner: held{}}, &w)
		if err != nil {
			t.Fatal(err)
		}
		w.Run()
		if got := len(s.spareNodes); got != magazineNodes-1 {
			t.Errorf("a region of one task has %d spare nodes", got)
		}
		n.Complete(nil, &w)
		w.Run()
		s.Retire()
		if len(s.spareNodes) != 0 {
			t.Error("a region that has ended has spare nodes")
		}
	}
}

// The event of a task can be fulfilled after its region has ended. It is no event of the task of another region
// that has the node by then, whose tasks end meanwhile.
func TestEventOfAnEndedRegion(t *testing.T) {
	withoutCollections(t)
	const n = 9
	var g Graph
	for range 100 {
		var event, other Event
		_, nodes := endedRegion(t, &g, n, &event)
		detached := nodes[n/2]
		var ended sync.WaitGroup
		ended.Go(func() {
			var w Work
			if err := event.Fulfill(&w); err != nil || !w.Empty() {
				t.Errorf("%v, starts tasks: %v", err, !w.Empty())
			}
			if event.Witness() != nil {
				t.Error("the event of a task that has ended has a witness")
			}
		})
		endedRegion(t, &g, n, &other)
		ended.Wait()
		s := g.NewScope()
		var w Work
		for range n {
			node, err := s.Add(&Task{Runner: instant{}, Event: &other}, &w)
			if err != nil {
				t.Fatal(err)
			}
			w.Run()
			if err := event.Fulfill(&w); err != nil || !w.Empty() {
				t.Errorf("%v, starts tasks: %v", err, !w.Empty())
			}
			if s.live != 1 {
				t.Fatalf("an event of another region has ended the task, which has its node: %v", node == detached)
			}
			if err := other.Fulfill(&w); err != nil {
				t.Fatal(err)
			}
			w.Run()
		}
	}
}

// A region of few tasks does not keep the nodes of a large one that has ended.
func TestSmallRegionsKeepFewNodes(t *testing.T) {
	oneGoroutine(t)
	var g Graph
	var all []weak.Pointer[Node]
	_, nodes := endedRegion(t, &g, 50*magazineNodes, nil)
	for _, n := range nodes {
		all = append(all, weak.Make(n))
	}
	nodes = nil
	s := g.NewScope()
	var w Work
	if _, err := s.Add(&Task{Runner: held{}}, &w); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		runtime.GC()
	}
	kept := 0
	for _, p := range all {
		if p.Value() != nil {
			kept++
		}
	}
	if kept > magazineNodes {
		t.Errorf("%d nodes are kept for a region of one task", kept)
	}
	runtime.KeepAlive(s)
}

// takesPart adds a task to a scope that takes a part of storage exclusively.
func takesPart(t *testing.T, s *Scope, part []uint64, by Runner) *Node {
	var w Work
	n, err := s.Add(&Task{Runner: by, Depend: []Depend{long(DependMutexInOutSet, part)}}, &w)
	if err != nil {
		t.Error(err)
	}
	w.Run()
	return n
}

// takePartsInTurn has three tasks take parts of x exclusively, each of which overlaps the next. It returns their
// nodes.
func takePartsInTurn(t *testing.T, s *Scope, x []uint64) (nodes []*Node) {
	for i := range 3 {
		nodes = append(nodes, takesPart(t, s, x[i:i+2], held{}))
	}
	for left := slices.Clone(nodes); len(left) > 0; {
		i := slices.IndexFunc(left, func(n *Node) bool { return n.phase == phaseStarted })
		if i < 0 {
			t.Errorf("%d of 3 tasks wait, and the others are complete", len(left))
			break
		}
		n := left[i]
		left = slices.Delete(left, i, i+1)
		var w Work
		n.Complete(nil, &w)
		w.Run()
	}
	return nodes
}

// A region that has ended remembers who has taken parts of storage exclusively. It gets such tasks after all, which
// do not wait for the tasks of another region that have these nodes by then.
func TestExclusionInARegionThatGoesOn(t *testing.T) {
	oneGoroutine(t)
	withoutCollections(t)
	var g Graph
	s, o := g.NewScope(), g.NewScope()
	x := make([]uint64, 4)
	had := takePartsInTurn(t, s, x)
	if !s.Settled() {
		t.Fatal("a task has not run")
	}
	s.Retire()
	for i := range had {
		if n := takesPart(t, o, x[i:i+1], held{}); !slices.Contains(had, n) {
			t.Fatal("a task of the other region has a node of its own")
		}
	}
	takePartsInTurn(t, s, x)
	if !s.Settled() || o.Settled() {
		t.Error("a task waits for one of another region")
	}
}

// The same while the tasks of the other region come and go.
func TestExclusionBesideARegionWithTheNodes(t *testing.T) {
	withoutCollections(t)
	runtime.GOMAXPROCS(2)
	var g Graph
	s := g.NewScope()
	x := make([]uint64, 4)
	for range 300 {
		var both sync.WaitGroup
		both.Go(func() {
			o := g.NewScope()
			takePartsInTurn(t, o, x)
			o.Retire()
		})
		takePartsInTurn(t, s, x)
		both.Wait()
		if !s.Settled() {
			t.Fatal("a task waits for one of another region")
		}
		s.Retire()
	}
}

// A task waits for two exporting tasks, and depends on a child of the first that completes. A child of the second gets the
// node of that one. The waiting task depends on it all the same, although it has met the node before.
func TestWaitingTaskDependsOnANodeThatItHasMetForAnotherTask(t *testing.T) {
	oneGoroutine(t)
	withoutCollections(t)
	var g Graph
	var w Work
	s := g.NewScope()
	x, y := make([]uint64, 1), make([]uint64, 1)
	add := func(s *Scope, task Task, storage ...[]uint64) *Node {
		t.Helper()
		for _, of := range storage {
			task.Depend = append(task.Depend, long(DependInOut, of))
		}
		n, err := s.Add(&task, &w)
		if err != nil {
			t.Fatal(err)
		}
		w.Run()
		return n
	}
	complete := func(n *Node) {
		n.Complete(nil, &w)
		w.Run()
	}
	first, second := s.NewInner(), s.NewInner()
	a := add(s, Task{Runner: held{}, Inner: first, Transparency: Export}, x)
	b := add(s, Task{Runner: held{}, Inner: second, Transparency: Export}, y)
	started := &window{}
	add(s, Task{Runner: started}, x, y)
	child := add(first, Task{Runner: held{}}, x)
	complete(a) // the task meets the child
	complete(child)
	first.Retire()
	another := add(second, Task{Runner: held{}}, y)
	if another != child {
		t.Fatal("the second child has a node of its own")
	}
	complete(b)
	if len(started.started) > 0 {
		t.Fatal("the task has started before a task on which it depends is complete")
	}
	complete(another)
	if len(started.started) != 1 {
		t.Fatalf("%d tasks have started, want 1", len(started.started))
	}
	complete(started.started[0])
}
