package tasks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
)

// The tasks of a set follow the children of an exporting task. The join behind the set does not: it would fail with them, and
// be counted among the tasks that were not run.
func TestAJoinDoesNotFailWithTheChildrenOfAnExportingTask(t *testing.T) {
	s := newScript()
	s.graph.JoinSets(scripted{s, joinLabel, true})
	s.graph.largeSet = 1
	back := s.inner("export", Export, Task{Depend: s.use(DependOut, "y")})
	s.add(Task{Label: "child", Depend: s.use(DependOut, "x")})
	s.add(Task{Label: "other child", Depend: s.use(DependOut, "z")})
	children := s.scope
	back()
	for _, label := range []string{"p", "q"} {
		s.add(Task{Label: label, Depend: append(s.use(DependIn, "x"), s.use(DependIn, "y")...)})
	}
	for _, label := range []string{"a", "b", "c"} {
		s.add(Task{Label: label, Depend: s.use(DependInOutSet, "x")})
	}
	s.expect(t, "start export", "start child", "start other child")
	s.complete("export", nil)
	s.complete("child", errBroken)
	s.expect(t, "drop p", "drop q", "drop a", "drop b", "start "+joinLabel, "drop c")
	if c := s.graph.Counts(); c.Tasks != 8 || c.Failures != 6 || c.Done != 7 {
		t.Errorf("%d tasks, %d failures and %d live, want 8, 6 and 1", c.Tasks, c.Failures, c.Tasks-c.Done)
	}
	const want = `task "child": broken (5 dependent tasks not run)`
	if err := s.waitNow(); err == nil || err.Error() != want {
		t.Errorf("the wait reports %v, want %s", err, want)
	}
	s.scope = children
	s.complete("other child", nil)
}

// counted is a crewed that counts the tasks that are not run.
type counted struct {
	crewed
	dropped *atomic.Int64
}

func (r *counted) Drop(*Node, error) { r.dropped.Add(1) }

// Several goroutines generate sets behind one task, and go on while the tasks run and fail. No task meets one of another
// set, and waits count the tasks of the program that were not run.
func TestConcurrentSetsNeverMeet(t *testing.T) {
	const rounds, makers, each = 20, 3, 60
	var joins atomic.Int64
	for round := range rounds {
		var g Graph
		g.JoinSets(joinSet(func(*Node) { joins.Add(1); runtime.Gosched() }))
		g.largeSet = 1 + round%5
		s := g.NewScope()
		var c crew
		var cell int
		var together, failed, dropped atomic.Int64
		begin := make(chan struct{})
		add := func(task Task, device bool, body func() error) {
			task.Runner = &counted{crewed{&c, device, body}, &dropped}
			task.Depend[0].Ptr, task.Depend[0].Size = unsafe.Pointer(&cell), 8
			if device {
				task.Domain = 1
			}
			var w Work
			if _, err := s.Add(&task, &w); err != nil {
				t.Error(err)
			}
			w.Run()
		}
		add(Task{Label: "first", Depend: []Depend{{Kind: DependOut}}}, false, func() error { <-begin; return nil })
		var adding, half sync.WaitGroup
		for maker := range makers {
			half.Add(1)
			adding.Go(func() {
				choices := rand.New(rand.NewPCG(uint64(maker), uint64(round)))
				for i := range each {
					if i == each/2 {
						half.Done()
					}
					kinds := []DependKind{DependIn, DependMutexInOutSet, DependInOutSet}
					kind := kinds[(i/6+choices.IntN(16)/15)%len(kinds)]
					device := choices.IntN(6) == 0
					fails := !device && choices.IntN(60) == 0
					add(Task{Label: "task", Depend: []Depend{{Kind: kind}}}, device, func() error {
						switch kind {
						case DependIn:
							if cell < 0 {
								return errBroken
							}
						case DependMutexInOutSet:
							cell++
						case DependInOutSet:
							together.Add(int64(cell & 1))
						}
						if fails {
							failed.Add(1)
							return errBroken
						}
						return nil
					})
				}
			})
		}
		half.Wait()
		close(begin)
		adding.Wait()
		err := s.Wait(context.Background(), nil)
		c.busy.Wait()
		if (err != nil) != (failed.Load() > 0) {
			t.Errorf("%d tasks failed: %v", failed.Load(), err)
		}
		if count := fmt.Sprintf("(%d dependent tasks not run)", dropped.Load()); dropped.Load() > 0 && !strings.HasSuffix(err.Error(), count) {
			t.Errorf("the wait reports %v, want %s", err, count)
		}
		if c := g.Counts(); c.Tasks != makers*each+1 || c.Failures != uint64(failed.Load()+dropped.Load()) || c.Done != c.Tasks {
			t.Errorf("%d tasks, %d failures and %d live, want %d, %d and 0", c.Tasks, c.Failures, c.Tasks-c.Done, makers*each+1, failed.Load()+dropped.Load())
		}
		if !s.Settled() || remembered(s) != 0 || s.joins != 0 || len(s.children) != 0 {
			t.Errorf("%d locations at rest, settled %v, %d joins, %d children", remembered(s), s.Settled(), s.joins, len(s.children))
		}
	}
	if joins.Load() == 0 {
		t.Error("there were no joins")
	}
}

// lateJoins keeps joins that have started.
type lateJoins struct{ started []*Node }

func (l *lateJoins) Start(n *Node, _ *Work) { l.started = append(l.started, n) }
func (*lateJoins) Recycle()                 {}

// A taskgroup ends before the join between its sets does. Who needs a graph without anything under way waits for the join, but
// for none that follows a task which is not complete.
func TestAJoinThatATaskgroupHasLeftIsAwaited(t *testing.T) {
	s, late := newScript(), &lateJoins{}
	s.graph.JoinSets(late)
	s.graph.largeSet = 1
	group := NewGroup(nil)
	for _, label := range []string{"p", "q"} {
		s.add(Task{Label: label, Group: group, Depend: s.use(DependIn, "x")})
	}
	for _, label := range []string{"a", "b"} {
		s.add(Task{Label: label, Group: group, Depend: s.use(DependInOutSet, "x")})
	}
	waits := 0
	s.graph.OnWait(func() {
		waits++
		for _, n := range late.started {
			n.Complete(nil, &s.work)
		}
		late.started = nil
	})
	s.complete("p", nil)
	s.graph.AwaitJoins(context.Background())
	for _, label := range []string{"q", "a", "b"} {
		s.complete(label, nil)
	}
	if err := group.Wait(context.Background(), nil); err != nil || waits > 0 || !s.graph.Pending() {
		t.Fatalf("the taskgroup reports %v after %d waits, pending %v", err, waits, s.graph.Pending())
	}
	if list, more := s.graph.Outstanding(8); len(list)+more > 0 {
		t.Errorf("%v are outstanding, and no task of the program is", list)
	}
	s.graph.AwaitJoins(context.Background())
	if waits != 1 || s.graph.Pending() {
		t.Errorf("%d waits, pending %v", waits, s.graph.Pending())
	}
}

// However large the sets are, the join between them follows each task of the first, and each task of the second follows
// the join, or fails with what it passes on.
func TestAJoinHasAllOfItsSets(t *testing.T) {
	const size = 100
	for last := range size {
		s := newScript()
		s.graph.JoinSets(scripted{s, joinLabel, true})
		s.graph.largeSet = 32
		for i := range size {
			s.add(Task{Label: fmt.Sprint("reader ", i), Depend: s.use(DependIn, "x")})
		}
		for i := range size {
			s.add(Task{Label: fmt.Sprint("writer ", i), Depend: s.use(DependInOutSet, "x")})
		}
		s.take()
		for i := range size {
			if i != last {
				s.complete(fmt.Sprint("reader ", i), nil)
			}
		}
		s.expect(t)
		event := "start writer "
		var failure error
		if last%2 == 1 {
			event, failure = "drop writer ", errBroken
		}
		s.complete(fmt.Sprint("reader ", last), failure)
		writers, joins := 0, 0
		for _, e := range s.take() {
			switch {
			case strings.HasPrefix(e, event):
				writers++
			case e == "start "+joinLabel:
				joins++
			default:
				t.Errorf("after reader %d: %s", last, e)
			}
		}
		if writers != size || joins != 1 {
			t.Fatalf("after reader %d: %q %d times and %d joins, want %d and 1", last, event, writers, joins, size)
		}
	}
}

// A task that has failed early is complete before the join that follows it, and its construct has reported the failure. Its
// node is another task's then, which fails too: that is nothing to the dependents of the join.
func TestAJoinForgetsAFailedTaskThatIsComplete(t *testing.T) {
	s := newScript()
	s.graph.JoinSets(scripted{s, joinLabel, true})
	s.graph.largeSet = 1
	first := s.add(Task{Label: "first", Included: true, Depend: s.use(DependIn, "x")})
	s.add(Task{Label: "second", Depend: s.use(DependIn, "x")})
	for _, label := range []string{"a", "b"} {
		s.add(Task{Label: label, Depend: s.use(DependInOutSet, "x")})
	}
	first.Fail(errBroken)
	s.complete("first", errBroken)
	first.Release()
	other := s.add(Task{Label: "other", Depend: s.use(DependIn, "y")})
	if other != first {
		t.Fatal("the node was not used again")
	}
	other.Fail(errBroken)
	s.take()
	s.add(Task{Label: "c", Domain: 1, Depend: s.use(DependInOutSet, "x")})
	s.complete("second", nil)
	s.expect(t, "drop a", "drop b", "start "+joinLabel, "start c")
}

// observer is a witness that counts its predecessors.
type observer struct{ follows int }

func (o *observer) Follows(Witness) { o.follows++ }
func (*observer) Dropped()          {}

// No join stands for tasks of which somebody wants to see each edge, nor for an exporting task, whose children are
// looked up by its dependents.
func TestSetsThatAreNotJoined(t *testing.T) {
	const size = 5
	for name, of := range map[string]struct{ kept, first, second bool }{
		"kept graph": {kept: true}, "witnesses": {first: true, second: true},
		"witnesses of the first set": {first: true}, "witnesses of the second set": {second: true},
	} {
		var g Graph
		if of.kept {
			g.Keep()
		}
		s := newScript()
		g.JoinSets(scripted{s, joinLabel, true})
		g.largeSet = 1
		scope := g.NewScope()
		for i := range 2 * size {
			task := Task{Label: "task", Runner: scripted{s, "task", false}, Depend: s.use(DependIn, "x")}
			witness, want := of.first, 0
			if i >= size {
				task.Depend, witness = s.use(DependInOutSet, "x"), of.second
				if of.first {
					want = size // a witness hears of predecessors that have one, too
				}
			}
			o := new(observer)
			if witness {
				task.Witness = o
			} else {
				want = 0
			}
			var w Work
			if _, err := scope.Add(&task, &w); err != nil {
				t.Fatal(err)
			}
			if o.follows != want {
				t.Errorf("%s: task %d hears of %d predecessors, want %d", name, i, o.follows, want)
			}
		}
		if n := g.Counts().Edges; n != size*size {
			t.Errorf("%s: %d edges, want %d", name, n, size*size)
		}
		if n := len(g.Snapshot().Edges); n != size*size {
			t.Errorf("%s: a snapshot has %d edges, want %d", name, n, size*size)
		}
	}

	s := newScript()
	s.graph.JoinSets(scripted{s, joinLabel, true})
	s.graph.largeSet = 1
	back := s.inner("export", Export, Task{Depend: s.use(DependIn, "x")})
	s.add(Task{Label: "child", Depend: s.use(DependOut, "y")})
	back()
	s.add(Task{Label: "other", Depend: s.use(DependIn, "x")})
	for _, label := range []string{"a", "b", "c"} {
		s.add(Task{Label: label, Depend: append(s.use(DependInOutSet, "x"), s.use(DependIn, "y")...)})
	}
	s.complete("other", nil)
	s.complete("export", nil)
	s.expect(t, "start export", "start child", "start other")
	s.complete("child", nil)
	s.expect(t, "start a", "start b", "start c")
}

// What follows a task with omp_all_memory is joined as other sets are, also while that task is not complete.
func TestSetsBehindATaskWithAllMemoryAreJoined(t *testing.T) {
	const size = 50
	s := newScript()
	s.graph.JoinSets(scripted{s, joinLabel, true})
	s.graph.largeSet = 1
	s.add(Task{Label: "before", Depend: s.use(DependIn, "x")})
	s.add(Task{Label: "all", Depend: []Depend{{Kind: DependInOutAllMemory}}})
	for i := range size {
		s.add(Task{Label: fmt.Sprint("reader ", i), Depend: s.use(DependIn, "x")})
	}
	for i := range size {
		s.add(Task{Label: fmt.Sprint("writer ", i), Depend: s.use(DependInOutSet, "x")})
	}
	s.expect(t, "start before")
	// The task with omp_all_memory follows one task, and each reader and writer follows it. Two writers and the join follow
	// each reader, and the other writers follow the join.
	if n, want := s.graph.Counts().Edges, uint64(1+2*size+3*size+size-2); n != want {
		t.Errorf("%d edges, want %d", n, want)
	}
	s.complete("before", nil)
	s.expect(t, "start all")
	s.complete("all", nil)
	var readers []string
	for i := range size {
		readers = append(readers, fmt.Sprint("start reader ", i))
	}
	s.expect(t, readers...)
	for i := range size - 1 {
		s.complete(fmt.Sprint("reader ", i), nil)
	}
	s.expect(t)
	s.complete(fmt.Sprint("reader ", size-1), nil)
	if started := s.take(); len(started) != size+1 {
		t.Errorf("behind the readers %q start, want %d writers and a join", started, size)
	}
}

// failingJoins completes joins with an error.
type failingJoins struct{}

func (failingJoins) Start(n *Node, w *Work) { n.Complete(errBroken, w) }
func (failingJoins) Recycle()               {}

func TestAJoinNeverFails(t *testing.T) {
	s := newScript()
	s.graph.JoinSets(failingJoins{})
	s.graph.largeSet = 1
	for i, kind := range []DependKind{DependIn, DependInOutSet} {
		for _, label := range []string{"a", "b", "c"} {
			s.add(Task{Label: fmt.Sprint(label, i), Depend: s.use(kind, "x")})
		}
	}
	s.take()
	for _, label := range []string{"a0", "b0", "c0"} {
		s.complete(label, nil)
	}
	s.expect(t, "start a1", "start b1", "start c1")
	for _, label := range []string{"a1", "b1", "c1"} {
		s.complete(label, nil)
	}
	if err := s.waitNow(); err != nil || s.graph.Counts().Failures != 0 {
		t.Errorf("the wait reports %v, after %d failures", err, s.graph.Counts().Failures)
	}
}
