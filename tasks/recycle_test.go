package tasks

import (
	"context"
	"runtime"
	"runtime/debug"
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

// The event of a task can be fulfilled after its region has ended. It has to do with no task of another region.
func TestEventOfAnEndedRegion(t *testing.T) {
	withoutCollections(t)
	const n = 9
	var g Graph
	var event Event
	first, nodes := endedRegion(t, &g, n, &event)
	detached := nodes[n/2]
	_, nodes = endedRegion(t, &g, n, nil)
	for i, node := range nodes {
		if node == detached {
			t.Errorf("task %d of another region has the node of the event", i)
		}
	}
	if detached.scope != first {
		t.Error("the node has left its region")
	}
	var w Work
	if err := event.Fulfill(&w); err != nil || !w.Empty() {
		t.Errorf("%v, starts tasks: %v", err, !w.Empty())
	}
}
