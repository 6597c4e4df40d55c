package tasks

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// remembered returns the number of locations that the scope has, without the dead ones that it may keep.
func remembered(s *Scope) int { return s.index.len() - min(s.dead, maxDead) }

func TestItemWithoutStorageOrdersNothing(t *testing.T) {
	s := newScript()
	for _, label := range []string{"a", "b"} {
		s.add(Task{Label: label, Depend: []Depend{{Kind: DependInOut}}})
	}
	s.expect(t, "start a", "start b")
}

func TestInvalidDependKindAddsNothing(t *testing.T) {
	s := newScript()
	x := s.storage("x")
	n, err := s.scope.Add(&Task{Label: "odd", Depend: []Depend{{Kind: DependOut, Ptr: x, Size: 8}, {Kind: 9, Ptr: x, Size: 8}}, Runner: scripted{script: s, label: "odd"}}, &s.work)
	if n != nil || !errors.Is(err, ErrInvalidDepend) {
		t.Fatalf("got %v, %v", n, err)
	}
	for _, want := range []string{`"odd"`, "item 1", "DependKind(9)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
	if c := s.graph.Counts(); c != (Counts{}) {
		t.Errorf("counts %+v", c)
	}
	s.add(Task{Label: "next", Depend: []Depend{{Kind: DependIn, Ptr: x, Size: 8}}})
	s.expect(t, "start next")
}

func TestItemBeyondTheAddressSpaceIsInvalid(t *testing.T) {
	s := newScript()
	d := Depend{Kind: DependIn, Ptr: s.storage("x"), Size: ^uint64(0)}
	if _, err := s.scope.Add(&Task{Depend: []Depend{d}, Runner: held{}}, &s.work); !errors.Is(err, ErrInvalidDepend) || !strings.Contains(err.Error(), "address space") {
		t.Errorf("got %v", err)
	}
	if s.scope.Pending() {
		t.Error("the task was added")
	}
}

// A task follows a predecessor of its predecessor without an edge.
func TestImpliedEdgesAreNotMade(t *testing.T) {
	for name, middle := range map[string]func(s *script) []Depend{
		"write of the same":  func(s *script) []Depend { return s.use(DependInOut, "x") },
		"write of the whole": func(s *script) []Depend { return []Depend{{Kind: DependOut, Ptr: s.storage("x"), Size: 16}} },
		"omp_all_memory":     func(*script) []Depend { return []Depend{{Kind: DependInOutAllMemory}} },
	} {
		s := newScript()
		s.add(Task{Label: "a", Depend: s.use(DependOut, "x")})
		s.add(Task{Label: "b", Depend: middle(s)})
		s.add(Task{Label: "c", Depend: s.use(DependIn, "x")})
		if got := drawing(s.graph.Snapshot()); !strings.HasSuffix(got, "; a→b b→c") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestScopesDoNotOrderEachOther(t *testing.T) {
	s := newScript()
	x := s.storage("x")
	s.add(Task{Label: "a", Depend: []Depend{{Kind: DependOut, Ptr: x, Size: 8}}})
	s.scope = s.graph.NewScope()
	s.add(Task{Label: "b", Depend: []Depend{{Kind: DependOut, Ptr: x, Size: 8}}})
	s.expect(t, "start a", "start b")
}

// startWait begins a Wait and returns when it is in progress.
func startWait(s *Scope, ctx context.Context) <-chan error {
	before := countWaiters(s)
	result := make(chan error, 1)
	go func() { result <- s.Wait(ctx, nil) }()
	for countWaiters(s) == before {
		// The waiter registers itself, and there is no event to wait for.
		select {
		case err := <-result:
			result <- err
			return result
		default:
			runtime.Gosched()
		}
	}
	return result
}

func countWaiters(s *Scope) int {
	s.lock()
	defer s.unlock()
	return len(s.waiters)
}

func TestWaitCoversOnlyChildrenMadeBefore(t *testing.T) {
	s := newScript()
	s.add(Task{Label: "before"})
	result := startWait(s.scope, context.Background())
	s.add(Task{Label: "later"})
	s.complete("before", nil)
	if err := <-result; err != nil {
		t.Error(err)
	}
	if s.scope.Settled() {
		t.Error("the later task is not complete")
	}
	s.complete("later", nil)
	if !s.scope.Settled() {
		t.Error("all tasks are complete")
	}
}

func TestConcurrentWaitsBothReportAndALaterOneDoesNot(t *testing.T) {
	s := newScript()
	s.add(Task{Label: "a"})
	first := startWait(s.scope, context.Background())
	second := startWait(s.scope, context.Background())
	s.complete("a", errBroken)
	for _, result := range []<-chan error{first, second} {
		if err := <-result; !errors.Is(err, errBroken) {
			t.Errorf("got %v", err)
		}
	}
	if err := s.scope.Wait(context.Background(), nil); err != nil {
		t.Errorf("reported again: %v", err)
	}
}

func TestCutWaitLeavesItsFailuresToTheOtherWaiters(t *testing.T) {
	for _, cutFirst := range []bool{true, false} {
		t.Run(fmt.Sprint("cut before the other wait ends ", cutFirst), func(t *testing.T) {
			s := newScript()
			s.add(Task{Label: "a", Depend: []Depend{{Kind: DependOut, Ptr: s.storage("x"), Size: 8}}})
			other := startWait(s.scope, context.Background())
			s.add(Task{Label: "slow"})
			ctx, cancel := context.WithCancelCause(context.Background())
			cut := startWait(s.scope, ctx)
			why := errors.New("no more time")
			if cutFirst {
				cancel(why)
				if err := <-cut; err != why {
					t.Errorf("the cut wait returned %v", err)
				}
				s.complete("a", errBroken)
			} else {
				s.complete("a", errBroken)
				cancel(why)
				if err := <-cut; err != why {
					t.Errorf("the cut wait returned %v", err)
				}
			}
			if err := <-other; !errors.Is(err, errBroken) {
				t.Errorf("the other wait returned %v", err)
			}
			s.complete("slow", nil)
			if err := s.scope.Wait(context.Background(), nil); err != nil {
				t.Errorf("reported twice: %v", err)
			}
		})
	}
}

func TestTwoWaitsThatEndTogetherReportEachRootOnce(t *testing.T) {
	s := newScript()
	s.add(Task{Label: "a", Depend: s.use(DependOut, "x")})
	s.add(Task{Label: "b", Depend: s.use(DependInOut, "x")})
	first := startWait(s.scope, context.Background())
	second := startWait(s.scope, context.Background())
	s.complete("a", errBroken)
	for _, result := range []<-chan error{first, second} {
		if got, want := (<-result).Error(), `task "a": broken (1 dependent tasks not run)`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestWaitReportsARootOnceThoughItsDependentsFailedLater(t *testing.T) {
	s := newScript()
	s.add(Task{Label: "slow"})
	s.add(Task{Label: "a", Depend: s.use(DependOut, "x")})
	first := startWait(s.scope, context.Background())
	s.add(Task{Label: "gate", Depend: s.use(DependOut, "y")})
	s.add(Task{Label: "b", Depend: append(s.use(DependIn, "x"), s.use(DependIn, "y")...)})
	second := startWait(s.scope, context.Background())
	s.complete("a", errBroken)
	s.complete("slow", nil)
	if got, want := (<-first).Error(), `task "a": broken`; got != want {
		t.Errorf("the first wait returned %s, want %s", got, want)
	}
	s.complete("gate", nil)
	if got, want := (<-second).Error(), `task "a": broken (1 dependent tasks not run)`; got != want {
		t.Errorf("the second wait returned %s, want %s", got, want)
	}
}

func TestWaitCountsATaskOnceThoughTwoWaitsShareIt(t *testing.T) {
	s := newScript()
	s.add(Task{Label: "a", Depend: s.use(DependOut, "x")})
	add := func(label, gate string) {
		s.add(Task{Label: gate, Depend: s.use(DependOut, gate)})
		s.add(Task{Label: label, Depend: append(s.use(DependIn, "x"), s.use(DependIn, gate)...)})
	}
	s.add(Task{Label: "slow"})
	add("b", "gate b")
	add("c", "gate c")
	s.complete("a", errBroken)
	first := startWait(s.scope, context.Background())
	s.add(Task{Label: "gate d", Depend: s.use(DependOut, "gate d")})
	s.add(Task{Label: "d", Depend: append(s.use(DependIn, "x"), s.use(DependIn, "gate d")...)})
	second := startWait(s.scope, context.Background())
	for _, gate := range []string{"gate d", "gate b", "gate c"} {
		s.complete(gate, nil)
	}
	s.complete("slow", nil)
	if got, want := (<-first).Error(), `task "a": broken (2 dependent tasks not run)`; got != want {
		t.Errorf("the first wait returned %s, want %s", got, want)
	}
	if got, want := (<-second).Error(), `task "a": broken (3 dependent tasks not run)`; got != want {
		t.Errorf("the second wait returned %s, want %s", got, want)
	}
}

func TestFailureIsReportedTheMomentTheWaitEnds(t *testing.T) {
	s := newScript()
	s.add(Task{Label: "a", Depend: s.use(DependOut, "x")})
	wait := startWait(s.scope, context.Background())
	s.complete("a", errBroken)
	s.add(Task{Label: "b", Depend: s.use(DependIn, "x")})
	s.expect(t, "start a", "start b")
	if err := <-wait; !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

func TestCutWaitHandsOnWhatAnotherTaskOfTheSameRootHasMarked(t *testing.T) {
	s := newScript()
	s.add(Task{Label: "slow"})
	s.add(Task{Label: "a", Depend: s.use(DependOut, "x")})
	ctx, cut := context.WithCancelCause(context.Background())
	wait := startWait(s.scope, ctx)
	s.add(Task{Label: "b", Depend: append(s.use(DependIn, "x"), s.use(DependOut, "y")...)})
	s.complete("a", errBroken)
	cut(errCut)
	if err := <-wait; err != errCut {
		t.Fatal(err)
	}
	s.complete("slow", nil)
	if got, want := s.waitNow().Error(), `task "a": broken (1 dependent tasks not run)`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.take()
	s.add(Task{Label: "c", Depend: s.use(DependInOut, "x")})
	s.add(Task{Label: "d", Depend: s.use(DependInOut, "y")})
	s.expect(t, "start c", "start d")
}

func TestCutWaitKeepsFailedStorageUntilReported(t *testing.T) {
	s := newScript()
	x := s.storage("x")
	s.add(Task{Label: "slow"})
	ctx, cancel := context.WithCancel(context.Background())
	cut := startWait(s.scope, ctx)
	s.add(Task{Label: "a", Depend: []Depend{{Kind: DependOut, Ptr: x, Size: 8}}})
	s.complete("a", errBroken)
	cancel()
	if err := <-cut; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	s.add(Task{Label: "b", Depend: []Depend{{Kind: DependIn, Ptr: x, Size: 8}}})
	s.expect(t, "start slow", "start a", "drop b")
	s.complete("slow", nil)
	err := s.scope.Wait(context.Background(), nil)
	if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "1 dependent tasks not run") {
		t.Errorf("got %v", err)
	}
	s.add(Task{Label: "c", Depend: []Depend{{Kind: DependIn, Ptr: x, Size: 8}}})
	s.expect(t, "start c")
}

func TestNodeWait(t *testing.T) {
	s := newScript()
	n := s.add(Task{Label: "a", Included: true})
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("no more time")
	cancel(why)
	if err := n.Wait(ctx, nil); err != why {
		t.Errorf("got %v", err)
	}
	if n.Completed() {
		t.Error("complete")
	}
	s.complete("a", errBroken)
	// The task is complete: it does not matter that the context has ended.
	if err := n.Wait(ctx, nil); err != nil {
		t.Errorf("got %v", err)
	}
	err := n.Outcome()
	var failure *Error
	if !errors.As(err, &failure) || failure.Task != "a" || failure.Dependent || !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	if err := s.scope.Wait(context.Background(), nil); err != nil {
		t.Errorf("the included task's failure was reported twice: %v", err)
	}
}

func TestDependentErrorNamesTaskAndRoot(t *testing.T) {
	s := newScript()
	x := s.storage("x")
	for _, label := range []string{"a", "b", "c"} {
		s.add(Task{Label: label, Depend: []Depend{{Kind: DependInOut, Ptr: x, Size: 8}}})
	}
	s.complete("a", errBroken)
	err := s.nodes["c"].failure()
	if got, want := err.Error(), `task "c" not run: it depends on failed task "a": broken`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if c := s.graph.Counts(); c != (Counts{Tasks: 3, Done: 3, Edges: 2, Failures: 3}) {
		t.Errorf("counts %+v", c)
	}
}

// instant is a runner whose task is complete as soon as it starts.
type instant struct{}

func (instant) Start(n *Node, w *Work) { n.Complete(nil, w) }

func (instant) Recycle() {}

func TestTableForgetsLocationsOfCompletedTasks(t *testing.T) {
	oneGoroutine(t)
	var g Graph
	s := g.NewScope()
	var w Work
	addresses := make([]byte, 1_000_000)
	largest := 0
	for i := range addresses {
		kind := DependOut
		if i%3 == 0 {
			kind = DependIn
		}
		if _, err := s.Add(&Task{Depend: []Depend{{Kind: kind, Ptr: unsafe.Pointer(&addresses[i]), Size: 8}}, Runner: instant{}}, &w); err != nil {
			t.Fatal(err)
		}
		w.Run()
		largest = max(largest, s.index.len())
	}
	if largest > maxDead {
		t.Errorf("%d locations remembered, with no task in flight", largest)
	}
	if err := s.Wait(context.Background(), nil); err != nil || remembered(s) != 0 {
		t.Errorf("%v, %d locations at rest", err, remembered(s))
	}
}

// Tasks name the storage of the tasks before a wait again, whose locations are still there.
func TestLocationsAreFoundAgainAfterAWait(t *testing.T) {
	oneGoroutine(t)
	var g Graph
	s := g.NewScope()
	var w Work
	var storage [maxDead + 50][8]byte
	step := func() {
		for i := range storage {
			if _, err := s.Add(&Task{Depend: []Depend{{Kind: DependOut, Ptr: unsafe.Pointer(&storage[i]), Size: 8}}, Runner: instant{}}, &w); err != nil {
				t.Fatal(err)
			}
			w.Run()
		}
		if err := s.Wait(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
	}
	step()
	if s.dead != maxDead {
		t.Errorf("%d locations are kept, want %d", s.dead, maxDead)
	}
	last := section{start: uintptr(unsafe.Pointer(&storage[len(storage)-1])), size: 8}
	kept := s.index.find(last)
	step()
	if again := s.index.find(last); kept == nil || again != kept || s.dead != maxDead {
		t.Errorf("location %p of the last task is %p after the next wait, of %d", kept, again, s.dead)
	}
}

func TestReadersOfOneLocationAreForgotten(t *testing.T) {
	var g Graph
	s := g.NewScope()
	var w Work
	var x uint64
	for range 100_000 {
		if _, err := s.Add(&Task{Depend: []Depend{{Kind: DependIn, Ptr: unsafe.Pointer(&x), Size: 8}}, Runner: instant{}}, &w); err != nil {
			t.Fatal(err)
		}
		w.Run()
		if l := s.index.find(section{uintptr(unsafe.Pointer(&x)), 8}); l != nil && l.cur != nil {
			t.Fatal("a reader is remembered, with no task in flight")
		}
	}
}

func TestSweepKeepsTasksInFlight(t *testing.T) {
	s := newScript()
	s.add(Task{Label: "a", Depend: []Depend{{Kind: DependOut, Ptr: s.storage("x"), Size: 8}}})
	s.add(Task{Label: "r", Depend: []Depend{{Kind: DependIn, Ptr: s.storage("y"), Size: 8}}})
	addresses := make([]byte, 8*maxDead)
	for i := range addresses {
		if _, err := s.scope.Add(&Task{Depend: []Depend{{Kind: DependOut, Ptr: unsafe.Pointer(&addresses[i]), Size: 8}}, Runner: instant{}}, &s.work); err != nil {
			t.Fatal(err)
		}
		s.work.Run()
	}
	s.add(Task{Label: "b", Depend: []Depend{{Kind: DependIn, Ptr: s.storage("x"), Size: 8}, {Kind: DependOut, Ptr: s.storage("y"), Size: 8}}})
	s.expect(t, "start a", "start r")
	s.complete("a", nil)
	s.expect(t)
	s.complete("r", nil)
	s.expect(t, "start b")
}

// pooled is a runner that completes its task on a goroutine of its own.
type pooled struct {
	done *sync.WaitGroup
	body func() error
}

func (p pooled) Start(n *Node, _ *Work) {
	p.done.Add(1)
	go func() {
		defer p.done.Done()
		var w Work
		n.Complete(p.body(), &w)
		w.Run()
	}()
}

func (pooled) Recycle() {}

func TestConcurrentUseKeepsEveryChain(t *testing.T) {
	const chains, links = 8, 500
	var g Graph
	s := g.NewScope()
	var done, makers sync.WaitGroup
	var counters [chains]int
	for c := range chains {
		makers.Go(func() {
			for i := range links {
				var w Work
				_, err := s.Add(&Task{
					Depend: []Depend{{Kind: DependInOut, Ptr: unsafe.Pointer(&counters[c]), Size: 8}},
					Runner: pooled{&done, func() error {
						if counters[c] != i {
							return fmt.Errorf("link %d of chain %d ran as number %d", i, c, counters[c])
						}
						counters[c]++
						return nil
					}},
				}, &w)
				if err != nil {
					t.Error(err)
				}
				w.Run()
				if i%100 == 0 {
					if err := s.Wait(context.Background(), nil); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	makers.Wait()
	if err := s.Wait(context.Background(), nil); err != nil {
		t.Error(err)
	}
	done.Wait()
	for c, n := range counters {
		if n != links {
			t.Errorf("chain %d ran %d links, want %d", c, n, links)
		}
	}
}

// A failure that has been reported may still be in the scope's list. Settled ignores it, and
// does not change the list, which others may be reading.
func TestSettledLeavesReportedFailuresWhereTheyAre(t *testing.T) {
	s := newScript()
	s.add(Task{Label: "a"})
	s.complete("a", errBroken)
	s.scope.failures.list[0].reported.Store(true)
	for range 2 {
		if !s.scope.Settled() {
			t.Error("a reported failure is left to report")
		}
	}
	if list := s.scope.failures.list; len(list) != 1 || list[0] == nil {
		t.Errorf("the failures are %v", list)
	}
}

// cancelling is a context that has ended. Whoever asks for its error cancels a taskgroup by
// that.
type cancelling struct {
	context.Context
	group *Group
}

func (c cancelling) Done() <-chan struct{} {
	ended := make(chan struct{})
	close(ended)
	return ended
}

func (c cancelling) Err() error {
	c.group.Cancel()
	return context.Canceled
}

func TestTaskOfAGroupThatIsCancelledMeanwhileIsNoFailure(t *testing.T) {
	s := newScript()
	group := NewGroup(nil)
	s.add(Task{Label: "a", Group: group, Context: cancelling{t.Context(), group}})
	s.expect(t, "drop a without failure")
	if err := group.Wait(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// A scope may be sealed again, as by a second Close, while others are refused. (Go's race detector sees whether they read what
// Seal writes.)
func TestScopeIsSealedAgainWhileItRefuses(t *testing.T) {
	s := newScript().scope
	sealed := errors.New("sealed")
	s.Seal(sealed)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range 100 {
				s.Seal(sealed)
				if _, err := s.Add(&Task{Label: "x"}, new(Work)); !errors.Is(err, sealed) {
					t.Errorf("add: %v", err)
				}
			}
		})
	}
	all.Wait()
}

// A sealed scope takes no task, but for those which must run in any case, to give something
// back.
func TestSealedScopeTakesNoTask(t *testing.T) {
	s := newScript()
	closed := errors.New("closed")
	s.add(Task{Label: "before"})
	s.scope.Seal(closed)
	if n := s.add(Task{Label: "after"}); n != nil || s.scope.Pass() {
		t.Error("the scope took a task")
	}
	s.add(Task{Label: "end", Always: true})
	s.expect(t, "start before", `task "after": closed`, "start end")
	inner := s.scope.NewInner()
	if _, err := inner.Add(&Task{Label: "child", Runner: scripted{s, "child", false}}, &s.work); err != nil {
		t.Errorf("the scope inside: %v", err)
	}
}

// A host task waits for its turn on storage that a task of a device holds. Other tasks of that
// device may go past it, unless their storage is shared with the host task's: those would keep
// it waiting.
func TestBlockedTasksKeepOutThoseThatTakeTheirStorage(t *testing.T) {
	s := newScript()
	x := lane(8)
	take := func(label string, on Domain, from, to int) {
		s.add(Task{Label: label, Domain: on, Depend: []Depend{long(DependMutexInOutSet, x[from:to])}})
	}
	take("holder", 1, 0, 8)
	take("blocked", Host, 2, 4)
	s.place("holder")
	s.expect(t, "start holder")
	take("apart", 1, 6, 8)
	s.expect(t, "start apart after holder")
	take("shares", 1, 3, 6)
	s.expect(t)
	s.complete("holder", nil)
	s.expect(t, "start blocked")
	s.complete("blocked", nil)
	s.expect(t, "start shares")
}

// Tasks that are complete at once are counted from the first one on, also those of a scope that has no
// others and whose region has ended.
func TestPassedTasksAreCounted(t *testing.T) {
	var g Graph
	for round := range uint64(3) {
		s := g.NewScope()
		for k := range uint64(2) {
			if !s.Pass() {
				t.Fatal("the scope is open")
			}
			if n := g.Counts().Tasks; n != 2*round+k+1 {
				t.Errorf("%d tasks are counted, want %d", n, 2*round+k+1)
			}
		}
		s.Retire()
	}
	if n := g.Counts().Tasks; n != 6 {
		t.Errorf("%d tasks are counted in the end, want 6", n)
	}
}

// A task that was passed and is added after all counts once, whether or not the counts were read between.
func TestUnpassedTaskCountsOnce(t *testing.T) {
	for _, flushed := range []bool{false, true} {
		s := newScript()
		s.add(Task{Label: "before"})
		graph := s.scope.graph
		before := graph.Counts().Tasks
		if !s.scope.Pass() {
			t.Fatal("the scope is open")
		}
		if flushed {
			s.scope.lock()
			s.scope.family.flushLocked(graph)
			s.scope.unlock()
		}
		s.scope.Unpass()
		if n := graph.Counts().Tasks - before; n != 0 {
			t.Errorf("flushed %t: %d tasks are counted that were taken back", flushed, n)
		}
		s.add(Task{Label: "after"})
		if n := graph.Counts().Tasks - before; n != 1 {
			t.Errorf("flushed %t: %d tasks", flushed, n)
		}
	}
}

// A scope says once that its children are complete, whoever completes the last one and in whatever way.
func TestScopeSaysWhenItIsEmpty(t *testing.T) {
	for name, domain := range map[string]Domain{"host": Host, "device": 1} {
		for _, last := range []Runner{instant{}, held{}} {
			t.Run(fmt.Sprintf("%s, %T", name, last), func(t *testing.T) {
				var g Graph
				var w Work
				s := g.NewScope()
				calls := 0
				emptied := func(of *Scope) {
					calls++
					if of != s || of.Pending() {
						t.Error("it is another scope, or is not empty")
					}
				}
				if s.WhenEmpty(emptied) {
					t.Error("a scope without tasks is not empty")
				}
				x := new(uint64)
				var all []*Node
				for i, r := range []Runner{held{}, instant{}, last} {
					n, err := s.Add(&Task{Runner: r, Domain: domain, Depend: []Depend{cell(DependInOut, x)}}, &w)
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, n)
					if i == 0 && !s.WhenEmpty(emptied) {
						t.Error("a scope with a task is empty")
					}
				}
				w.Run()
				if calls > 0 {
					t.Fatal("a scope with tasks says that it is empty")
				}
				all[0].Complete(nil, &w)
				w.Run()
				if last == (held{}) {
					all[2].Complete(nil, &w)
					w.Run()
				}
				if calls != 1 || s.WhenEmpty(emptied) {
					t.Errorf("%d calls, want 1", calls)
				}
			})
		}
	}
}

// A task on the device learns of two failed predecessors, of a group and of none, and ends by the first. It counts
// as a task that was not run.
func TestTaskThatEndsByOneOfTwoFailuresIsADependent(t *testing.T) {
	s, g := newScript(), NewGroup(nil)
	s.add(Task{Label: "a", Domain: 1, Group: g, Depend: s.use(DependOut, "x")})
	s.add(Task{Label: "b", Domain: 1, Depend: s.use(DependOut, "y")})
	s.place("a")
	s.place("b")
	s.add(Task{Label: "n", Domain: 1, Depend: s.use(DependIn, "x", "y")})
	s.complete("a", errBroken)
	n := s.nodes["n"]
	failure := n.FailedBy()
	s.complete("b", errBroken)
	s.complete("n", failure)
	if err := n.failure(); !n.Completed() || !n.wasDropped() || !strings.Contains(fmt.Sprint(err), `depends on failed task "a"`) {
		t.Errorf("complete %t, dropped %t: %v", n.Completed(), n.wasDropped(), err)
	}
	if err := s.waitNow(); err == nil || !strings.Contains(err.Error(), "1 dependent") {
		t.Errorf("the wait: %v", err)
	}
}

// A failure of a group, which is then left behind, does not hide that of another task, in whatever order the storage
// of the two is named.
func TestFailureOfAGroupHidesNoOther(t *testing.T) {
	for _, items := range [][]string{{"x", "y"}, {"y", "x"}} {
		s, g := newScript(), NewGroup(nil)
		s.add(Task{Label: "live", Group: g})
		s.add(Task{Label: "a", Group: g, Depend: s.use(DependOut, "x")})
		s.add(Task{Label: "b", Depend: s.use(DependOut, "y")})
		s.add(Task{Label: "h", Depend: s.use(DependOut, "h")})
		s.complete("a", errBroken)
		s.complete("b", errBroken)
		s.add(Task{Label: "n", Group: g, Depend: append(s.use(DependIn, append(items, "h")...), s.use(DependOut, "z")...)})
		ended, end := context.WithCancel(t.Context())
		end()
		if err := g.Wait(ended, nil); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		s.add(Task{Label: "m", Depend: s.use(DependIn, "z")})
		s.complete("h", nil)
		s.expect(t, "start live", "start a", "start b", "start h", "drop n", "drop m")
	}
}
