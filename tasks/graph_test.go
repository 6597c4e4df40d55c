package tasks

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// drawing writes a snapshot on one line: the tasks with their states, then the edges.
func drawing(snap Snapshot) string {
	var b strings.Builder
	label := make(map[uint64]string)
	for i, task := range snap.Tasks {
		if i > 0 {
			b.WriteString(", ")
		}
		label[task.ID] = task.Label
		fmt.Fprintf(&b, "%s %v", task.Label, task.State)
		if task.Failure != nil {
			b.WriteString(" failed")
		}
	}
	b.WriteString(";")
	for _, e := range snap.Edges {
		arrow := "→"
		if e.Exclusion {
			arrow = "⇢"
		}
		fmt.Fprintf(&b, " %s%s%s", label[e.From], arrow, label[e.To])
	}
	return b.String()
}

func expectDrawing(t *testing.T, g *Graph, want string) {
	t.Helper()
	if got := drawing(g.Snapshot()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSnapshotShowsTheTasksThatAreNotComplete(t *testing.T) {
	s := newScript()
	expectDrawing(t, &s.graph, ";")
	s.add(Task{Label: "a", Domain: 1, Depend: s.use(DependOut, "x")})
	s.add(Task{Label: "b", Domain: 1, Depend: s.use(DependInOut, "x")})
	s.add(Task{Label: "c", Depend: append(s.use(DependIn, "x"), s.use(DependIn, "y")...)})
	s.add(Task{Label: "d"})
	expectDrawing(t, &s.graph, "a started, b waiting, c waiting, d started; a→b b→c")
	s.place("a")
	expectDrawing(t, &s.graph, "a placed, b started, c waiting, d started; a→b b→c")
	s.complete("a", nil)
	s.complete("d", nil)
	expectDrawing(t, &s.graph, "b started, c waiting; b→c")
	s.complete("b", nil)
	s.complete("c", nil)
	expectDrawing(t, &s.graph, ";")
}

func TestSnapshotAfterKeepShowsEverything(t *testing.T) {
	s := newScript()
	s.graph.Keep()
	s.add(Task{Label: "a", Depend: s.use(DependOut, "x")})
	s.complete("a", nil)
	s.add(Task{Label: "b", Depend: s.use(DependInOut, "x")})
	s.complete("b", errBroken)
	s.add(Task{Label: "c", Depend: s.use(DependIn, "x")})
	s.add(Task{Label: "d", Depend: s.use(DependIn, "x")})
	s.waitNow()
	s.add(Task{Label: "e", Depend: s.use(DependOut, "x")})
	s.add(Task{Label: "f"})
	expectDrawing(t, &s.graph, "a complete, b complete failed, c complete failed, d complete failed, e started, f started; a→b b→c b→d c→e d→e")
	if c := s.graph.Counts(); c != (Counts{Tasks: 6, Edges: 5, Failures: 3, Done: 4}) {
		t.Errorf("counts %+v", c)
	}
}

func TestSnapshotShowsExclusionOnTheDevice(t *testing.T) {
	for _, keep := range []bool{false, true} {
		s := newScript()
		if keep {
			s.graph.Keep()
		}
		for _, label := range []string{"a", "b"} {
			s.add(Task{Label: label, Domain: 1, Depend: s.use(DependMutexInOutSet, "x")})
		}
		expectDrawing(t, &s.graph, "a started, b waiting;")
		s.place("a")
		expectDrawing(t, &s.graph, "a placed, b started; a⇢b")
	}
}

func TestSnapshotDescribesTasks(t *testing.T) {
	s := newScript()
	x := s.storage("x")
	depend := []Depend{
		{Kind: DependIn, Ptr: x, Size: 4},
		{Kind: DependMutexInOutSet, Ptr: s.storage("y"), Size: 8},
		{Kind: DependInOutAllMemory},
	}
	s.add(Task{Label: "p", Domain: 3, Included: true, Depend: depend})
	parent := s.graph.Snapshot().Tasks[0]
	if parent.ID == 0 || parent.Parent != 0 || parent.Domain != 3 || !parent.Included || !slices.Equal(parent.Depend, depend) {
		t.Errorf("got %+v", parent)
	}
	s.inner("q", ImpEx, Task{})
	s.add(Task{Label: "c"})
	snap := s.graph.Snapshot()
	if len(snap.Tasks) != 3 || snap.Tasks[2].Label != "c" || snap.Tasks[2].Parent != snap.Tasks[1].ID {
		t.Errorf("got %+v", snap.Tasks)
	}
	s.add(Task{Label: "d", Depend: s.use(DependIn, "y")})
	if e := s.graph.Snapshot().Edges; len(e) != 1 || e[0].From != parent.ID {
		t.Errorf("got %+v", e)
	}
	s.scope.Retire()
	if e := s.graph.Snapshot().Edges; len(e) != 0 {
		t.Errorf("edges to tasks that are not shown: %+v", e)
	}
	if n := len(s.graph.Snapshot().Tasks); n != 2 {
		t.Errorf("%d tasks after the scope has retired", n)
	}
}

func TestSnapshotOfAFailedTaskNamesTheFailure(t *testing.T) {
	s := newScript()
	s.graph.Keep()
	s.add(Task{Label: "a", Depend: s.use(DependOut, "x")})
	s.add(Task{Label: "b", Depend: s.use(DependIn, "x")})
	s.complete("a", errBroken)
	snap := s.graph.Snapshot()
	var dependent *Error
	if len(snap.Tasks) != 2 || !errors.Is(snap.Tasks[0].Failure, errBroken) || !errors.As(snap.Tasks[1].Failure, &dependent) || !dependent.Dependent {
		t.Errorf("got %+v", snap.Tasks)
	}
}

// Tasks that wait for other tasks come last, and tasks that wait for the same are counted
// together.
func TestOutstandingTasksAreCountedByWhatTheyWaitFor(t *testing.T) {
	s := newScript()
	var event Event
	s.add(Task{Label: "placed", Domain: 1})
	s.place("placed")
	s.add(Task{Label: "detached", Event: &event})
	s.complete("detached", nil)
	s.add(Task{Label: "first", Depend: s.use(DependOut, "x")})
	s.add(Task{Label: "next", Domain: 2, Depend: s.use(DependInOut, "x")})
	s.add(Task{Label: "next", Domain: 2, Depend: s.use(DependIn, "x")})
	s.add(Task{Label: "next", Domain: 2, Depend: s.use(DependIn, "x")})
	s.add(Task{Label: "done"})
	s.complete("done", nil)
	want := []Outstanding{
		{Label: "detached", State: StateStarted, AwaitsEvent: true, Count: 1}, {Label: "first", State: StateStarted, Count: 1},
		{Label: "placed", Domain: 1, State: StatePlaced, Count: 1}, {Label: "next", Domain: 2, State: StateWaiting, Count: 3},
	}
	for kinds, more := range map[int]int{5: 0, 4: 0, 3: 3, 0: 6} {
		got, left := s.graph.Outstanding(kinds)
		if !slices.Equal(got, want[:min(kinds, 4)]) || left != more {
			t.Errorf("%d kinds: got %+v and %d more, want %+v and %d", kinds, got, left, want[:min(kinds, 4)], more)
		}
	}
}

// A task that is added while the counts are read is not counted as complete.
func TestCountsWhileTasksAreAdded(t *testing.T) {
	var g Graph
	var w Work
	add := func(s *Scope) {
		if _, err := s.Add(&Task{Label: "task", Runner: held{}}, &w); err != nil {
			t.Error(err)
		}
	}
	read, awaited := g.NewScope(), g.NewScope()
	add(read)
	add(awaited)
	// Counts waits at the second scope, whose lock another goroutine holds.
	locked, unlock := make(chan struct{}), make(chan struct{})
	go func() {
		awaited.lock()
		close(locked)
		<-unlock
		awaited.unlock()
	}()
	<-locked
	counts := make(chan Counts)
	go func() { counts <- g.Counts() }()
	for flushed := false; !flushed; {
		runtime.Gosched()
		read.lock()
		flushed = read.family.counted == read.family.last
		read.unlock()
	}
	add(read)
	// What somebody else reads, or the end of the scope, counts the task in the graph.
	read.lock()
	read.family.flushLocked(&g)
	read.unlock()
	close(unlock)
	if c := <-counts; c.Done != 0 {
		t.Errorf("%d of %d tasks are counted as complete, and none is", c.Done, c.Tasks)
	}
}
