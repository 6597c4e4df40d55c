package sched

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
)

// newIntakeRig returns a rig with x present, whose tasks are not observed. There is a placer from so many
// tasks in flight on.
func newIntakeRig(t *testing.T, many int, x ...[]uint32) *rig {
	t.Helper()
	r := newRig(t, memoryModes[1], 1)
	r.watches = false
	var enter []arg
	for _, s := range x {
		enter = append(enter, to(s))
	}
	r.run(launch{label: "enter", enter: enter, included: true})
	r.s.intake.many = many
	return r
}

// leaveAll opens the intake as a placer does, so that the tasks that are created are left there, until start
// is called.
func (r *rig) leaveAll() (start func()) {
	in := &r.s.intake
	r.s.mu.Lock()
	in.placing = true
	r.s.mu.Unlock()
	in.open.Store(true)
	return func() {
		r.t.Helper()
		in.open.Store(false)
		w := tasks.NewWork()
		r.s.startLeft(w)
		w.Finish()
		r.s.mu.Lock()
		in.placing = false
		r.s.mu.Unlock()
		if left, turning := in.left.Load(), in.turning.Load(); left+turning != 0 {
			r.t.Errorf("%d tasks are left, %d becoming targets", left, turning)
		}
	}
}

// add1 is a deferred task that adds 1 to x.
func add1(x []uint32) launch {
	return launch{label: "add", kernel: "add", args: []arg{tofrom(x)}, constant: 1, out: [][]uint32{x}}
}

func TestTasksThatAreLeftAreNotComplete(t *testing.T) {
	x, y := filled(16, 1), filled(16, 0)
	r := newIntakeRig(t, 0, x, y)
	defer r.close()
	start := r.leaveAll()
	r.run(add1(x))
	if n := r.s.Stats().Dispatches; n != 0 {
		t.Errorf("%d dispatches", n)
	}
	for name, f := range map[string]func() error{
		"Idle": r.s.Idle, "Relinquish": r.s.Relinquish, "Discard": func() error { _, err := r.s.Discard(); return err },
	} {
		if err := f(); !errors.Is(err, ErrBusy) {
			t.Errorf("%s: %v", name, err)
		}
	}
	start()
	r.taskwait()
	if err := r.s.Idle(); err != nil {
		t.Error(err)
	}
	r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
	r.expect("x", x, filled(16, 2)...)
}

// Tasks that are left start in the order in which they were created, also where they are more than are started
// in a row.
func TestTasksThatAreLeftStartInOrder(t *testing.T) {
	const n = 3*startsAtOnce + 5
	x := filled(16*n, 1)
	r := newIntakeRig(t, 0, x)
	defer r.close()
	start := r.leaveAll()
	for i := range n {
		r.run(add1(x[16*i : 16*i+16]))
	}
	var queue []*resident
	r.s.intake.takeLocked()
	for l := r.s.intake.rest; l != nil; l = l.next {
		queue = append(queue, l)
	}
	if len(queue) != n {
		t.Fatalf("%d tasks", len(queue))
	}
	for i := 1; i < n; i++ {
		if queue[i-1].node.ID() > queue[i].node.ID() {
			t.Fatalf("task %d comes after task %d", queue[i-1].node.ID(), queue[i].node.ID())
		}
	}
	start()
	if got := r.s.Stats().Dispatches; got != n {
		t.Errorf("%d dispatches, want %d", got, n)
	}
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16*n, 2)...)
}

// Where goroutines run one at a time, one that has created many tasks starts them, with those that wait for
// one of them, and leaves the next ones to the placer again.
func TestGoroutineThatCreatesManyTakesTheTurn(t *testing.T) {
	x := filled(16, 1)
	r := newIntakeRig(t, 0, x)
	defer r.close()
	r.s.intake.turns = true
	start := r.leaveAll()
	for i := range mostLeft {
		if n := r.s.Stats().Dispatches; n != 0 {
			t.Fatalf("%d dispatches when %d tasks have been created", n, i)
		}
		r.run(add1(x))
	}
	for range 2 {
		if n := r.s.Stats().Dispatches; n != mostLeft {
			t.Errorf("%d dispatches, want %d", n, mostLeft)
		}
		r.run(add1(x))
	}
	start()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16, 1+mostLeft+2)...)
}

// Where goroutines run one at a time, one that is about to wait starts all that it can, since it would have to
// wait for the placer's turn.
func TestGoroutineThatWaitsTakesTheTurn(t *testing.T) {
	const links = 20
	x := filled(16, 1)
	r := newIntakeRig(t, 0, x)
	defer r.close()
	r.s.intake.turns = true
	start := r.leaveAll()
	for range links {
		r.run(add1(x))
	}
	r.s.SubmitGathered()
	if n := r.s.Stats().Dispatches; n != links {
		t.Errorf("%d dispatches, want %d", n, links)
	}
	start()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16, 1+links)...)
}

// The intake stays closed until the last of the goroutines that run what has become ready is done with that.
func TestIntakeOpensAfterTheLastTurn(t *testing.T) {
	x := filled(16, 1)
	r := newIntakeRig(t, 0, x)
	defer r.close()
	in := &r.s.intake
	in.turns = true
	start := r.leaveAll()
	in.running.Add(1) // as the placer does
	r.s.takeTurn()
	if in.open.Load() {
		t.Error("open, with the placer at work")
	}
	r.s.endTurn()
	if !in.open.Load() {
		t.Error("closed, with nobody at work")
	}
	start()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
}

// A goroutine that has taken the turn does not open the intake when the placer has ended meanwhile.
func TestTurnThatOutlastsThePlacer(t *testing.T) {
	x, y := filled(16, 1), filled(16, 1)
	r := newIntakeRig(t, 0, x, y)
	defer r.close()
	in := &r.s.intake
	in.turns = true
	r.leaveAll()
	r.doing("begin", func() {
		r.s.mu.Lock()
		in.placing = false
		r.s.mu.Unlock()
	})
	leaves, alone := add1(x), add1(x)
	leaves.label, alone.label = "leaves", "alone"
	r.run(alone)
	r.run(leaves)
	if !in.placing {
		t.Fatal("a task that follows one that is left has begun")
	}
	r.s.takeTurn()
	if in.open.Load() || in.running.Load() != 0 {
		t.Errorf("open %t, %d are running", in.open.Load(), in.running.Load())
	}
	after := add1(y)
	after.label = "alone"
	r.run(after)
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
	r.expect("x", x, filled(16, 3)...)
	r.expect("y", y, filled(16, 2)...)
}

// A goroutine that is about to wait does not depend on the placer.
func TestGoroutineThatWaitsStartsWhatIsLeft(t *testing.T) {
	x := filled(16, 1)
	r := newIntakeRig(t, 0, x)
	defer r.close()
	start := r.leaveAll()
	r.run(add1(x))
	r.s.SubmitGathered()
	r.taskwait()
	start()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16, 2)...)
}

// A compound task comes behind what is left: its constructs need not be run one by one.
func TestCompoundTaskComesBehindWhatIsLeft(t *testing.T) {
	x := filled(16, 1)
	r := newIntakeRig(t, 0, x)
	defer r.close()
	c := r.s.NewCompound([]*Region{r.region(add1(x)), r.region(add1(x))})
	start := r.leaveAll()
	r.run(add1(x))
	r.run(add1(x))
	if ran, err := r.s.RunCompound(t.Context(), c, construct.Construct{Scope: r.scope}); !ran || err != nil {
		t.Errorf("ran: %v, %v", ran, err)
	}
	r.taskwait()
	start()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16, 5)...)
}

// Those who create tasks do not leave the device without work while the placer has no processor.
func TestOnlySomeTasksAreLeft(t *testing.T) {
	const n = 4 * mostLeft
	x := filled(16*n, 1)
	r := newIntakeRig(t, 0, x)
	defer r.close()
	// They try again where they find the lock taken, for which the ends of tasks would take it for long.
	r.d.hold()
	start := r.leaveAll()
	for i := range n {
		r.run(add1(x[16*i : 16*i+16]))
	}
	if got := r.s.Stats().Dispatches; got < n-2*mostLeft {
		t.Errorf("%d dispatches of %d tasks", got, n)
	}
	r.d.release()
	start()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16*n, 2)...)
}

// A task that is left can turn out to be a target, because its storage has gone meanwhile.
func TestTaskThatIsLeftBecomesATarget(t *testing.T) {
	x := filled(16, 1)
	r := newIntakeRig(t, 0, x)
	defer r.close()
	start := r.leaveAll()
	r.run(add1(x))
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	start()
	r.taskwait()
	r.expect("x", x, filled(16, 2)...)
}

func TestTasksThatAreLeftFailWithTheScheduler(t *testing.T) {
	for name, end := range map[string]func(r *rig){
		"closed": func(r *rig) {
			r.s.mu.Lock()
			defer r.s.mu.Unlock()
			r.s.life.closing = true
			r.s.refuses.Store(true)
		},
		"lost": func(r *rig) { r.s.Lose(errLostInTest) },
	} {
		t.Run(name, func(t *testing.T) {
			x := filled(16, 1)
			r := newIntakeRig(t, 0, x)
			start := r.leaveAll()
			r.run(add1(x))
			r.run(add1(x))
			end(r)
			start()
			if err := r.scope.Wait(t.Context(), nil); !errors.Is(err, ErrClosed) && !errors.Is(err, errLostInTest) {
				t.Errorf("got %v", err)
			}
			r.s.mu.Lock()
			r.s.life.closing = false
			r.s.mu.Unlock()
			_ = r.s.Close()
		})
	}
}

var errLostInTest = errors.New("lost in a test")

// Goroutines that create chains of tasks leave them to a placer, which ends when they end, whether it had
// to wait for them or they for it.
func TestPlacerStartsWhatGoroutinesCreate(t *testing.T) {
	const chains, links = 4, 300
	for _, many := range []int{1, 3, placerTasks} {
		var x [][]uint32
		for range chains {
			x = append(x, filled(16, 0))
		}
		r := newIntakeRig(t, many, x...)
		r.s.intake.turns = many == 3
		before := r.s.Stats().Dispatches
		var all sync.WaitGroup
		for i := range chains {
			all.Go(func() {
				for k := range links {
					r.run(add1(x[i]))
					if k%50 == i {
						runtime.Gosched()
					}
				}
			})
		}
		all.Wait()
		r.taskwait()
		if n := r.s.Stats().Dispatches - before; n != chains*links {
			t.Errorf("%d dispatches, want %d", n, chains*links)
		}
		r.eventually("the placer has ended", func() bool { return !r.s.intake.placing })
		for i := range x {
			r.run(launch{label: "exit", exit: []arg{from(x[i])}, included: true})
			r.expect("x", x[i], filled(16, links)...)
		}
		r.close()
	}
}

// Goroutines create tasks that nothing orders, and one after another ends, without a call that starts what is
// left.
func TestPlacerLeavesNothingBehind(t *testing.T) {
	const goroutines, each = 3, 1500
	x := filled(16*goroutines*each, 0)
	r := newIntakeRig(t, placerTasks, x)
	defer r.close()
	for round := range 3 {
		r.eventually("the placer has ended", func() bool { return !r.s.intake.placing })
		r.s.intake.turns = round == 1
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				for i := range each - g*round*200 {
					at := 16 * (g*each + i)
					r.run(add1(x[at : at+16]))
				}
			})
		}
		all.Wait()
		r.taskwait()
	}
	r.eventually("the placer has ended", func() bool { return !r.s.intake.placing })
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	for g := range goroutines {
		for i := range each {
			want := uint32(0)
			for round := range 3 {
				if i < each-g*round*200 {
					want++
				}
			}
			if got := x[16*(g*each+i)]; got != want {
				t.Fatalf("task %d of goroutine %d: %d, want %d", i, g, got, want)
			}
		}
	}
}

// The observer of a task behind one that the placer starts ends the goroutine. Another one takes its place.
func TestPlacerOutlivesItsGoroutine(t *testing.T) {
	x, y := filled(16, 0), filled(16, 0)
	r := newIntakeRig(t, 1, x, y)
	defer r.close()
	begun := make(chan struct{})
	r.doing("begin", func() {
		close(begun)
		runtime.Goexit()
	})
	alone, leaves := add1(x), add1(x)
	alone.label, leaves.label = "alone", "leaves"
	start := r.leaveAll()
	r.run(alone)
	r.run(leaves)
	r.s.life.waiters.Go(r.s.place) // as startedAloneLocked does
	<-begun
	r.eventually("another goroutine has ended the placer", func() bool { return !r.s.intake.placing })
	start()
	for range 5 {
		l := add1(y)
		l.label = "alone"
		r.run(l)
	}
	if err := r.scope.Wait(t.Context(), nil); !errors.Is(err, protect.ErrGoexit) {
		t.Errorf("got %v", err)
	}
	r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
	r.expect("y", y, filled(16, 5)...)
}
