package tasks

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"
	"weak"
)

// The index forgets locations that no task uses any more: they are never more than those in
// use, or twice maxDead.
func TestLocationsOfCompleteTasksAreForgotten(t *testing.T) {
	oneGoroutine(t)
	for _, load := range workloads() {
		if load.prefill != nil || load.name == "fan" {
			continue
		}
		for _, inline := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, inline %v", load.name, inline), func(t *testing.T) {
				d := newDrive(load, inline)
				largest := 0
				for range 20_000 {
					if err := d.task(); err != nil {
						t.Fatal(err)
					}
					largest = max(largest, d.scope.index.len())
				}
				live := 5
				if !inline {
					live *= benchWindow + 1
				}
				if largest > live+max(live, 2*maxDead)+1 {
					t.Errorf("%d locations remembered, %d in use", largest, live)
				}
				d.drain()
				if err := d.scope.Wait(context.Background(), nil); err != nil || remembered(d.scope) != 0 {
					t.Errorf("%v, %d locations at rest", err, remembered(d.scope))
				}
			})
		}
	}
}

// steady makes tasks, and checks that once everything is allocated that many tasks make at most
// limit allocations.
func steady(t *testing.T, task func() error, limit float64, tasks int) {
	t.Helper()
	many := func() {
		for range tasks {
			if err := task(); err != nil {
				t.Fatal(err)
			}
		}
	}
	many()
	many()
	if n := testing.AllocsPerRun(3, many); n > limit {
		t.Errorf("%v allocations in %d tasks", n, tasks)
	}
}

func TestTasksAllocateNothingOnceWarm(t *testing.T) {
	oneGoroutine(t)
	for _, load := range workloads() {
		if load.prefill != nil {
			continue
		}
		for _, inline := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, inline %v", load.name, inline), func(t *testing.T) {
				// A task with hundreds of successors, and a slice over hundreds of locations,
				// give the memory for their lists back afterwards: some allocations stay.
				limit := 0.0
				if strings.HasPrefix(load.name, "random") || load.name == "fan" || strings.HasPrefix(load.name, "sets") || strings.HasSuffix(load.name, "addresses") {
					limit = 100
				}
				d := newDrive(load, inline)
				steady(t, d.task, limit, 2000)
				d.drain()
			})
		}
	}
	x := new(uint64)
	for _, load := range []workload{
		{name: "chain", items: func(_ int, items []Depend) []Depend { return append(items, cell(DependInOut, x)) }},
		{name: "stencil", items: stencilRows(2)},
		{name: "mutexinoutset", items: func(_ int, items []Depend) []Depend { return append(items, cell(DependMutexInOutSet, x)) }},
	} {
		t.Run(load.name+" on a device", func(t *testing.T) {
			d := newDeviceDrive(load)
			steady(t, d.task, 0, 2000)
			d.drain()
		})
	}
}

func TestIncludedTasksAndWaitsAllocateNothingOnceWarm(t *testing.T) {
	var g Graph
	s := g.NewScope()
	var w Work
	x := new(uint64)
	depend := []Depend{cell(DependInOut, x)}
	steady(t, func() error {
		n, err := s.Add(&Task{Runner: instant{}, Depend: depend, Included: true}, &w)
		if err != nil {
			return err
		}
		w.Run()
		defer n.Release()
		if err := n.Wait(context.Background(), nil); err != nil {
			return err
		}
		return s.Wait(context.Background(), nil)
	}, 0, 2000)
}

// blockChain adds n tasks that follow each other, behind a task that does not end. It returns a
// function that completes them all.
func blockChain(t *testing.T, s *Scope, domain Domain, n int) (all []weak.Pointer[Node], drain func()) {
	var w Work
	x := new(uint64)
	depend := []Depend{cell(DependInOut, x)}
	first, err := s.Add(&Task{Runner: held{}, Domain: domain, Depend: depend}, &w)
	for range n {
		var next *Node
		if err == nil {
			next, err = s.Add(&Task{Runner: instant{}, Domain: domain, Depend: depend}, &w)
			all = append(all, weak.Make(next))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	w.Run()
	return all, func() {
		first.Complete(nil, &w)
		w.Run()
	}
}

// Nodes of complete tasks are kept for later ones. They are few, and do not keep other tasks
// reachable.
func TestCompleteTasksLetGoOfTheirSuccessors(t *testing.T) {
	for name, domain := range map[string]Domain{"host": Host, "device": 1} {
		t.Run(name, func(t *testing.T) {
			var g Graph
			s := g.NewScope()
			all, drain := blockChain(t, s, domain, 10*maxSpare)
			drain()
			if err := s.Wait(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			runtime.GC()
			kept := 0
			for _, p := range all {
				if p.Value() != nil {
					kept++
				}
			}
			// The lists that a scope works with may keep some more.
			if kept > 2*maxSpare {
				t.Errorf("%d of %d complete tasks are kept", kept, len(all))
			}
			for _, n := range s.spareNodes {
				for _, e := range n.successors[:cap(n.successors)] {
					if e.to != nil {
						t.Fatal("a node that is kept for reuse remembers a successor")
					}
				}
				for _, p := range n.predecessors[:cap(n.predecessors)] {
					if p != nil {
						t.Fatal("a node that is kept for reuse remembers a predecessor")
					}
				}
			}
		})
	}
}

const deep = 10_000

func TestDeeplyNestedGroups(t *testing.T) {
	var g Graph
	s := g.NewScope()
	var w Work
	var outermost, group *Group
	var nodes []*Node
	for range deep {
		group = NewGroup(group)
		if outermost == nil {
			outermost = group
		}
		n, err := s.Add(&Task{Runner: held{}, Group: group}, &w)
		if err != nil {
			t.Fatal(err)
		}
		w.Run()
		nodes = append(nodes, n)
	}
	ended, cut := context.WithCancelCause(context.Background())
	cut(errCut)
	for i, n := range nodes {
		if err := outermost.Wait(ended, nil); i%1000 == 0 && err != errCut {
			t.Fatalf("with %d tasks complete: %v", i, err)
		}
		n.Complete(nil, &w)
	}
	if err := outermost.Wait(ended, nil); err != nil {
		t.Errorf("all are complete: %v", err)
	}
	outermost.Cancel()
	if !group.Cancelled() {
		t.Error("the innermost group is not cancelled with the outermost")
	}
}

func TestDeeplyNestedScopes(t *testing.T) {
	for _, how := range []Transparency{NotImpex, Export} {
		t.Run(fmt.Sprint("transparency ", how), func(t *testing.T) {
			var g Graph
			s := g.NewScope()
			root := s
			var w Work
			x := new(uint64)
			var nodes []*Node
			for range deep {
				task := Task{Runner: held{}, Depend: []Depend{cell(DependInOut, x)}, Transparency: how}
				inner := g.NewScope()
				if how != NotImpex {
					inner = s.NewInner()
					task.Inner = inner
				}
				n, err := s.Add(&task, &w)
				if err != nil {
					t.Fatal(err)
				}
				w.Run()
				nodes = append(nodes, n)
				s = inner
			}
			// The outer tasks end first. All stay until the innermost is complete.
			for _, n := range nodes {
				n.Complete(nil, &w)
			}
			if err := root.Wait(context.Background(), nil); err != nil || remembered(root) != 0 || len(root.children) != 0 {
				t.Errorf("%v, %d locations left", err, remembered(root))
			}
		})
	}
}

func TestFailedStorageIsGivenBackAfterTheWaitThatReportsIt(t *testing.T) {
	s := newScript()
	memory := make([]uint64, 1000)
	for i := range memory {
		label := fmt.Sprint("t", i)
		s.add(Task{Label: label, Depend: []Depend{cell(DependOut, &memory[i])}})
		s.complete(label, errBroken)
		s.nodes[label].Release()
	}
	if n := len(s.scope.failedStorage.entries); n != len(memory) {
		t.Errorf("%d of %d failed sections are kept", n, len(memory))
	}
	if err := s.waitNow(); err == nil {
		t.Error("nothing reported")
	}
	if n := remembered(s.scope); n != 0 || s.scope.failedStorage != nil {
		t.Errorf("%d locations kept, or failed storage", n)
	}
}

// The storage of a failed task must not be freed before the failure is reported: if it were,
// other storage at the same address would be taken for it.
func TestFailedStorageIsKeptUntilTheFailureIsReported(t *testing.T) {
	var g Graph
	s := g.NewScope()
	var w Work
	fail := func() weak.Pointer[[512]byte] {
		x := new([512]byte)
		n, err := s.Add(&Task{Runner: held{}, Depend: []Depend{{Kind: DependOut, Ptr: unsafe.Pointer(x), Size: 512}}}, &w)
		if err != nil {
			t.Fatal(err)
		}
		w.Run()
		n.Complete(errBroken, &w)
		return weak.Make(x)
	}
	x := fail()
	runtime.GC()
	if x.Value() == nil {
		t.Error("the storage is gone, and its address means something else")
	}
	if err := s.Wait(context.Background(), nil); err == nil {
		t.Error("nothing reported")
	}
	runtime.GC()
	if x.Value() != nil {
		t.Error("the storage is kept")
	}
}

// A program that keeps an error for long does not keep the region whose wait has returned it.
func TestErrorsDoNotKeepTheirScopes(t *testing.T) {
	ctx := context.Background()
	fail := func(t *testing.T, s *Scope, task Task, err error) {
		t.Helper()
		var w Work
		task.Runner, task.Held = held{}, true
		n, added := s.Add(&task, &w)
		if added != nil {
			t.Fatal(added)
		}
		w.Run()
		n.Complete(err, &w)
		w.Run()
		n.Release()
	}
	item := func() []Depend { return []Depend{cell(DependOut, new(uint64))} }
	for name, run := range map[string]func(t *testing.T, s *Scope) error{
		"wait": func(t *testing.T, s *Scope) error {
			fail(t, s, Task{Label: "a", Depend: item()}, errBroken)
			return s.Wait(ctx, nil)
		},
		"failures that are alike": func(t *testing.T, s *Scope) error {
			for i := range 3 {
				fail(t, s, Task{Label: "a", Depend: item()}, fmt.Errorf("%w", errBroken))
				fail(t, s, Task{Label: "b"}, fmt.Errorf("%w", []error{errBroken, context.Canceled, ErrCancelled}[i]))
			}
			return s.Wait(ctx, nil)
		},
		"taskgroup": func(t *testing.T, s *Scope) error {
			group := NewGroup(nil)
			fail(t, s, Task{Label: "a", Group: group, Depend: item()}, errBroken)
			return group.Wait(ctx, nil)
		},
		"failures of a region that has ended": func(t *testing.T, s *Scope) error {
			fail(t, s, Task{Label: "a", Depend: item()}, errBroken)
			fail(t, s, Task{Label: "b"}, errBroken)
			var left Failures
			if !s.Settle(&left) {
				t.Error("the region is not settled")
			}
			return left.Report()
		},
	} {
		t.Run(name, func(t *testing.T) {
			var g Graph
			var err error
			scope := func() weak.Pointer[Scope] {
				s := g.NewScope()
				err = run(t, s)
				s.Retire()
				return weak.Make(s)
			}()
			runtime.GC()
			if scope.Value() != nil {
				t.Error("the error keeps the scope")
			}
			if !errors.Is(err, errBroken) {
				t.Errorf("the wait has returned %v", err)
			}
		})
	}
}

func TestFailuresThatGroupsReportAreForgotten(t *testing.T) {
	s := newScript()
	slow := s.add(Task{Label: "slow"})
	x := new(uint64)
	for range 1000 {
		group := NewGroup(nil)
		n := s.add(Task{Label: "a", Group: group, Depend: []Depend{cell(DependOut, x)}})
		s.complete("a", errBroken)
		n.Release()
		if err := group.Wait(context.Background(), nil); err == nil {
			t.Fatal("nothing reported")
		}
	}
	if n := len(s.scope.failures.list); n > 1 {
		t.Errorf("%d reported failures are kept", n)
	}
	if s.scope.failedStorage != nil {
		t.Error("the storage is marked as failed still")
	}
	slow.Complete(nil, &s.work)
}

func TestNodesAreReused(t *testing.T) {
	var g Graph
	s := g.NewScope()
	var w Work
	seen := make(map[*Node]bool)
	for range 1000 {
		n, err := s.Add(&Task{Runner: instant{}}, &w)
		if err != nil {
			t.Fatal(err)
		}
		w.Run()
		seen[n] = true
	}
	if len(seen) != 1 {
		t.Errorf("%d nodes for tasks one after the other", len(seen))
	}
}

func TestHeldNodeIsNotReused(t *testing.T) {
	s := newScript()
	n := s.add(Task{Label: "a"})
	s.complete("a", errBroken)
	if m := s.add(Task{Label: "b"}); m == n {
		t.Error("the node is somebody else's")
	}
	if err := n.failure(); !n.Completed() || err == nil {
		t.Errorf("complete %v, %v", n.Completed(), err)
	}
}

func TestEventOfACompleteTaskFulfilsNoOther(t *testing.T) {
	s := newScript()
	var event, next Event
	n := s.add(Task{Label: "a", Event: &event})
	s.complete("a", nil)
	if err := event.Fulfill(&s.work); err != nil {
		t.Fatal(err)
	}
	n.Release()
	if m := s.add(Task{Label: "b", Event: &next}); m != n {
		t.Fatal("the node was not used again")
	}
	if err := event.Fulfill(&s.work); err != nil {
		t.Fatal(err)
	}
	s.complete("b", nil)
	if s.nodes["b"].Completed() {
		t.Error("an old event let the new task complete")
	}
	if err := next.Fulfill(&s.work); err != nil {
		t.Fatal(err)
	}
	if !s.nodes["b"].Completed() {
		t.Error("the event did not let its task complete")
	}
}

// A million tasks may be in flight, each with a node. Go's allocator has a size of 352 bytes.
func TestNodeIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Node{}); size > 352 {
		t.Errorf("%d bytes", size)
	}
}
