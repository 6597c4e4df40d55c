package tasks

import (
	"context"
	"runtime/debug"
	"slices"
	"testing"
	"unsafe"
)

// chain adds n tasks that follow each other, behind a first task that the caller completes.
func chain(t *testing.T, n int, runner Runner) (*Scope, *Node) {
	t.Helper()
	var g Graph
	s := g.NewScope()
	x := new(uint64)
	var first *Node
	var w Work
	for i := range n + 1 {
		task := Task{Runner: runner, Depend: []Depend{{Kind: DependInOut, Ptr: unsafe.Pointer(x), Size: 8}}}
		if i == 0 {
			task.Runner = held{}
		}
		node, err := s.Add(&task, &w)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = node
		}
	}
	w.Run()
	return s, first
}

// held is a runner that leaves its task to the test.
type held struct{}

func (held) Start(*Node, *Work) {}

func (held) Recycle() {}

const longChain = 100_000

// A stack of this size would overflow if each link of the chain took a frame.
const smallStack = 2 << 20

func TestLongChainRunsWithoutRecursion(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(smallStack))
	s, first := chain(t, longChain, instant{})
	var w Work
	first.Complete(nil, &w)
	w.Run()
	if !s.Settled() {
		t.Error("the chain did not run to its end")
	}
}

func TestLongChainOfDependentsFailsWithoutRecursion(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(smallStack))
	s, first := chain(t, longChain, instant{})
	var w Work
	first.Complete(errBroken, &w)
	w.Run()
	err := s.Wait(context.Background(), nil)
	if err == nil {
		t.Fatal("no failure reported")
	}
	if got, want := err.Error(), `task "": broken (100000 dependent tasks not run)`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLongChainOnTheDeviceCompletesWithoutRecursion(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(smallStack))
	var g Graph
	s := g.NewScope()
	x := new(uint64)
	var w Work
	nodes := make([]*Node, longChain)
	for i := range nodes {
		var err error
		nodes[i], err = s.Add(&Task{Held: true, Domain: 1, Runner: held{}, Depend: []Depend{{Kind: DependInOut, Ptr: unsafe.Pointer(x), Size: 8}}}, &w)
		if err != nil {
			t.Fatal(err)
		}
		w.Run()
		nodes[i].Placed(&w)
	}
	for _, n := range slices.Backward(nodes) {
		if n.Completed() {
			t.Fatal("complete before its predecessors")
		}
		n.Complete(nil, &w)
	}
	w.Run()
	if !s.Settled() {
		t.Error("the chain is not complete")
	}
}

// twice is a runner that puts its task off once.
type twice struct{ starts int }

func (r *twice) Start(n *Node, w *Work) {
	r.starts++
	if r.starts == 1 {
		w.Defer(func(w *Work) { w.Restart(n) })
		return
	}
	n.Complete(nil, w)
}

func (*twice) Recycle() {}

func TestRestartStartsAgainAndDeferComesAfterWhatIsReady(t *testing.T) {
	var g Graph
	s := g.NewScope()
	var w Work
	r := &twice{}
	if _, err := s.Add(&Task{Held: true, Runner: r}, &w); err != nil {
		t.Fatal(err)
	}
	var order []int
	w.Defer(func(*Work) { order = append(order, r.starts) })
	w.Run()
	if r.starts != 2 || !s.Settled() {
		t.Errorf("started %d times, settled %v", r.starts, s.Settled())
	}
	if !slices.Equal(order, []int{1}) {
		t.Errorf("deferred calls saw %v starts", order)
	}
}

// postponed is a runner that never completes its task.
type postponed struct{}

func (postponed) Start(*Node, *Work) {}
func (postponed) Recycle()           {}

// A replay makes no Go allocations for tasks that wait until storage is removed which they map again.
func TestRestartMakesNoAllocations(t *testing.T) {
	var g Graph
	var w Work
	n, err := g.NewScope().Add(&Task{Held: true, Runner: postponed{}}, &w)
	if err != nil {
		t.Fatal(err)
	}
	w.Run()
	if allocs := testing.AllocsPerRun(100, func() {
		w.Restart(n)
		w.Run()
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestRestartOfATaskWhosePredecessorFailedDropsIt(t *testing.T) {
	s := newScript()
	x := s.storage("x")
	s.add(Task{Label: "a", Domain: 1, Depend: []Depend{{Kind: DependOut, Ptr: x, Size: 8}}})
	s.add(Task{Label: "b", Domain: 1, Depend: []Depend{{Kind: DependIn, Ptr: x, Size: 8}}})
	s.place("a")
	b := s.nodes["b"]
	if err := b.FailedBy(); err != nil {
		t.Errorf("nothing failed yet: %v", err)
	}
	s.complete("a", errBroken)
	failure := b.FailedBy()
	if failure == nil {
		t.Fatal("the failure did not reach a task that had started")
	}
	s.work.Restart(b)
	s.work.Run()
	s.expect(t, "start a", "start b after a", "drop b")
	if err := b.failure(); err == nil || !err.(*Error).Dependent {
		t.Errorf("got %v", err)
	}
}

func TestRunnerIsLetGoAtCompletion(t *testing.T) {
	s := newScript()
	n := s.add(Task{Label: "a"})
	if n.Runner() == nil {
		t.Error("no runner while under way")
	}
	s.complete("a", nil)
	if n.Runner() != nil {
		t.Error("the runner is kept")
	}
}

// hears is a Witness and nothing more.
type hears struct{}

func (hears) Follows(Witness) {}
func (hears) Dropped()        {}

// A task with a witness that has to wait starts only after Go, whoever makes it ready. A task
// without a witness is started by the caller that adds it.
func TestTaskWithAWitnessStartsAfterGo(t *testing.T) {
	var g Graph
	s := g.NewScope()
	x := new(uint64)
	var adding, elsewhere Work
	add := func(r Runner) *Node {
		n, err := s.Add(&Task{Runner: r, Depend: []Depend{{Kind: DependInOut, Ptr: unsafe.Pointer(x), Size: 8}}, Witness: hears{}}, &adding)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := add(held{})
	first.Go(&adding)
	adding.Run()
	second := &twice{}
	n := add(second)
	first.Complete(nil, &elsewhere)
	elsewhere.Run()
	if second.starts != 0 {
		t.Fatal("the second task started before Go")
	}
	n.Go(&adding)
	if second.starts != 0 {
		t.Fatal("the second task started before its Work was run")
	}
	adding.Run()
	if second.starts == 0 || !s.Settled() {
		t.Errorf("the second task started %d times", second.starts)
	}
}

// A witness is asked for without the lock, while another goroutine waits for the task. Only Go's race
// detector can find something here.
func TestWitnessIsAskedForWhileATaskIsAwaited(t *testing.T) {
	var g Graph
	s := g.NewScope()
	for range 100 {
		var w Work
		n, err := s.Add(&Task{Runner: held{}, Held: true}, &w)
		if err != nil {
			t.Fatal(err)
		}
		w.Run()
		over := make(chan error)
		go func() { over <- n.Wait(context.Background(), nil) }()
		if n.Witness() != nil {
			t.Error("the task has a witness")
		}
		n.Complete(nil, &w)
		if err := <-over; err != nil {
			t.Error(err)
		}
		n.Release()
	}
}
