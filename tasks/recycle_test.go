package tasks

import (
	"context"
	"runtime"
	"runtime/debug"
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

// A region that has ended remembers who has taken storage exclusively. That is nobody's business whose tasks have
// the nodes by then, if the region gets another task after all.
func TestExclusionInARegionThatGoesOn(t *testing.T) {
	withoutCollections(t)
	var g Graph
	s := g.NewScope()
	x := make([]uint64, 4)
	exclusive := func() {
		var w Work
		for i := range 3 {
			// Two of them overlap in part.
			if _, err := s.Add(&Task{Runner: instant{}, Depend: []Depend{long(DependMutexInOutSet, x[i:i+2])}}, &w); err != nil {
				t.Fatal(err)
			}
			w.Run()
		}
		if !s.Settled() {
			t.Error("a task has not run")
		}
	}
	for range 100 {
		exclusive()
		s.Retire()
		var others sync.WaitGroup
		others.Go(func() {
			o := g.NewScope()
			var w Work
			for range 3 {
				if _, err := o.Add(&Task{Runner: instant{}, Depend: []Depend{long(DependMutexInOutSet, x)}}, &w); err != nil {
					t.Error(err)
				}
				w.Run()
			}
			o.Retire()
		})
		exclusive()
		others.Wait()
	}
}
