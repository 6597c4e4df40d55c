package sched

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// wakeUps returns how often the waiters of the queues have been woken.
func (r *rig) wakeUps() (n uint64) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	for _, q := range r.s.order.All() {
		n += q.WakeUps()
	}
	return n
}

// A synchronous construct waits for its queue itself: it does not wake the goroutine that
// otherwise waits for the queue.
func TestSynchronousConstructWakesNoWaiter(t *testing.T) {
	for _, open := range []bool{false, true} {
		r := newRig(t, memoryModes[0], 1)
		r.open, r.d.prompt, r.s.driveLimit = open, true, time.Hour
		wakesNoWaiter(t, r)
		r.close()
	}
}

func wakesNoWaiter(t *testing.T, r *rig) {
	r.watches = false
	x := filled(16, 0)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	before := r.wakeUps()
	const n = 50
	for range n {
		r.run(launch{label: "step", kernel: "add", args: []arg{alloc(x)}, constant: 1, included: true})
	}
	if woken := r.wakeUps() - before; woken != 0 {
		t.Errorf("%d constructs woke waiters %d times", n, woken)
	}
	before = r.wakeUps()
	r.run(launch{label: "deferred", kernel: "add", args: []arg{alloc(x)}, constant: 1})
	r.taskwait()
	if woken := r.wakeUps() - before; woken != 1 {
		t.Errorf("a deferred construct woke waiters %d times, want once", woken)
	}
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16, n+1)...)
}

// The context of a construct ends while the construct waits for the batch before its own: it does not wait
// for that one too.
func TestConstructNoticesBetweenWaitsThatItsContextHasEnded(t *testing.T) {
	for seed := range uint64(8) {
		r := newRig(t, memoryModes[0], seed)
		r.watches, r.d.prompt, r.s.driveLimit = false, true, time.Hour
		x := filled(16, 0)
		r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
		r.d.hold()
		r.run(add1(x))
		ctx, cancel := context.WithCancel(context.Background())
		r.d.set(func() {
			before := r.d.limited
			r.d.wait = func() error {
				if r.d.limited == before+1 {
					cancel()
					r.d.held = false
				}
				if r.d.limited > before+1 {
					t.Error("the construct has waited again")
				}
				return nil
			}
		})
		included := add1(x)
		included.included = true
		err := r.s.Run(ctx, r.region(included))
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		r.d.set(func() { r.d.wait = nil })
		r.taskwait()
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		r.expect("x", x, filled(16, 2)...)
		r.close()
	}
}

// The context of a construct has ended before the construct comes to wait: it does not wait at all.
func TestConstructWhoseContextHasEndedDoesNotWait(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	r.watches = false
	x := filled(16, 0)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	r.d.hold()
	before := r.d.limited
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	included := add1(x)
	included.included = true
	if err := r.s.Run(ctx, r.region(included)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	r.d.set(func() {
		if n := r.d.limited - before; n != 0 {
			t.Errorf("the construct has waited %d times", n)
		}
	})
	r.d.release()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16, 1)...)
}

// Batches are submitted while a synchronous construct waits for the queue in the waiter's
// place, and are still in flight when it returns: the waiter has to be woken for them then.
func TestDriverLeavesWorkInFlightToTheWaiter(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	r.watches = false
	x, y := filled(16, 0), filled(16, 0)
	r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
	q := r.s.order.All()[0]
	r.s.mu.Lock()
	submitted := r.s.order.Submissions()
	r.s.mu.Unlock()
	r.d.hold()
	synchronous := make(chan error)
	go func() {
		synchronous <- r.s.Run(context.Background(), r.region(launch{label: "synchronous", kernel: "add", args: []arg{alloc(x)}, constant: 1, included: true}))
	}()
	r.eventually("the construct drives", func() bool { return q.Drivers() == 1 && r.s.order.Submissions() == submitted+1 })
	before := r.wakeUps()
	r.run(launch{label: "deferred", kernel: "add", args: []arg{alloc(y)}, constant: 2})
	if woken := r.wakeUps() - before; woken != 0 {
		t.Errorf("the waiter was woken %d times beside a driver", woken)
	}
	r.s.mu.Lock()
	first := r.s.order.Submissions() - 1
	r.s.mu.Unlock()
	r.d.advance(first)
	if err := <-synchronous; err != nil {
		t.Error(err)
	}
	if woken := r.wakeUps() - before; woken != 1 {
		t.Errorf("the waiter was woken %d times when the driver left, want once", woken)
	}
	r.d.release()
	// The taskwait waits for the task's completion alone: only the waiter can find it complete.
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
	r.expect("x", x, filled(16, 1)...)
	r.expect("y", y, filled(16, 2)...)
}

// The submission for which a synchronous construct was to wait fails, while the queue has other
// work in flight. The queue must not count on the construct to wait.
func TestConstructThatIsNotSubmittedDrivesNothing(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	r.watches = false
	x, y := filled(16, 0), filled(16, 0)
	r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
	r.d.hold()
	r.run(launch{label: "deferred", kernel: "add", args: []arg{alloc(y)}, constant: 2})
	r.d.set(func() { r.d.submit = func(int) error { return errSubmitMemory } })
	err := r.s.Run(context.Background(), r.region(launch{label: "synchronous", kernel: "add", args: []arg{alloc(x)}, constant: 1, included: true}))
	if !errors.Is(err, vk.ErrOutOfMemory) && !errors.Is(err, errSubmitMemory) {
		t.Errorf("the construct returned %v", err)
	}
	r.d.set(func() { r.d.submit = nil })
	r.s.mu.Lock()
	if q := r.s.order.All()[0]; q.Drivers() != 0 {
		t.Errorf("the queue has %d drivers left", q.Drivers())
	}
	r.s.mu.Unlock()
	r.d.release()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
	r.expect("y", y, filled(16, 2)...)
}

// A construct that has to wait for its predecessors is started by another goroutine, which does
// not wait for the queue: so the waiter does, and the construct waits for its task's
// completion.
func TestHeldConstructLeavesTheQueueToTheWaiter(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	r.watches = false
	x := filled(16, 0)
	started, end := make(chan struct{}), make(chan struct{})
	r.host("host", nil, [][]uint32{x}, func() { close(started); <-end })
	<-started
	waiting := make(chan struct{})
	g := r.region(launch{label: "held", kernel: "add", args: []arg{tofrom(x)}, constant: 1, included: true, out: [][]uint32{x}, place: placeFuncs{func() { close(waiting) }}})
	result := make(chan error)
	go func() { result <- r.s.Run(context.Background(), g) }()
	<-waiting
	close(end)
	if err := <-result; err != nil {
		t.Error(err)
	}
	r.expect("x", x, filled(16, 1)...)
}

// placeFuncs is a place whose Leave calls a function.
type placeFuncs struct{ leave func() }

func (p placeFuncs) Leave()  { p.leave() }
func (p placeFuncs) Return() {}

var _ tasks.Place = placeFuncs{}

// The goroutine that starts a held construct's task is not the one in the construct. While it submits the
// task's batch the construct begins to wait for the queue, and then the submission fails.
func TestSubmissionFailsWhileItsConstructAlreadyWaits(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	r.watches = false
	x := filled(16, 0)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	gate, submitting := &heldTask{}, make(chan struct{})
	r.add(&tasks.Task{Label: "gate", Domain: tasks.Host, Runner: gate, Depend: depends(tasks.DependInOut, x)})
	r.d.set(func() {
		r.d.submit = func(int) error {
			close(submitting)
			r.eventually("the construct waits", func() bool {
				q := r.s.order.All()[0]
				return q.Drivers() == 1 && awaitedOf(q.InFlight()[0].Tasks()[0]).driven == nil
			})
			r.d.submit = nil
			return errSubmitMemory
		}
	})
	var starts sync.WaitGroup
	g := r.region(launch{label: "held", kernel: "add", args: []arg{alloc(x)}, constant: 1, included: true, out: [][]uint32{x}, place: placeFuncs{func() {
		// What follows the construct fails on the goroutine that starts the construct's task.
		r.host("after", [][]uint32{x}, nil, func() { t.Error("a task ran after one that failed") })
		// The work of that goroutine is what the pool has last got back.
		w := tasks.NewWork()
		starts.Go(func() {
			gate.node.Load().Complete(nil, w)
			w.Finish()
		})
		<-submitting
	}}})
	if err := r.s.Run(context.Background(), g); !errors.Is(err, vk.ErrOutOfMemory) {
		t.Errorf("the construct returned %v", err)
	}
	starts.Wait()
	_ = r.scope.Wait(context.Background(), nil)
	r.s.mu.Lock()
	if q := r.s.order.All()[0]; q.Drivers() != 0 {
		t.Errorf("the queue has %d drivers left", q.Drivers())
	}
	r.s.mu.Unlock()
	r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapDelete}}, included: true})
}

// A goroutine that waits for tasks starts what is left, and finishes the tasks itself: no waiter is woken for them.
func TestGoroutineThatWaitsForTasksWakesNoWaiter(t *testing.T) {
	const links = 20
	x := filled(16, 1)
	r := newIntakeRig(t, 0, x)
	defer r.close()
	r.d.prompt, r.s.driveLimit = true, time.Hour
	r.s.intake.turns = true
	start := r.leaveAll()
	for range links {
		r.run(add1(x))
	}
	before, drove := r.wakeUps(), false
	err := r.scope.WaitWith(context.Background(), nil, func(over <-chan struct{}) {
		r.s.AwaitTasks(context.Background(), over)
		drove = len(over) == 1
	})
	if err != nil || !drove {
		t.Errorf("%v; the goroutine has finished the tasks itself: %v", err, drove)
	}
	if woken := r.wakeUps() - before; woken != 0 {
		t.Errorf("waiters were woken %d times", woken)
	}
	r.drivesNothing()
	start()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16, 1+links)...)
}

// drivesNothing checks that no queue has a driver.
func (r *rig) drivesNothing() {
	r.t.Helper()
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	for _, q := range r.s.order.All() {
		if q.Drivers() != 0 {
			r.t.Errorf("queue %d has %d drivers", q.Index(), q.Drivers())
		}
	}
}

// A goroutine that waits for tasks leaves the device to the waiters where it cannot know for which queue to wait, or
// for how long: while several queues have work, when its wait has taken long, and when its context has ended.
func TestGoroutineThatWaitsForTasksLeavesTheRestToTheWaiters(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		queues, waits int
		ctx           context.Context
	}{
		"nothing in flight": {0, 0, context.Background()},
		"takes long":        {1, 1, context.Background()},
		"several queues":    {2, 0, context.Background()},
		"context has ended": {1, 0, ended},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, onQueues, 1)
			defer r.close()
			r.watches = false
			x := [][]uint32{filled(16, 1), filled(16, 1)}
			r.run(launch{label: "enter", enter: []arg{to(x[0]), to(x[1])}, included: true})
			r.d.hold()
			for i := range c.queues {
				r.use(i)
				r.run(add1(x[i]))
			}
			before := r.d.limited
			r.s.AwaitTasks(c.ctx, make(chan struct{}, 1))
			r.d.set(func() {
				if n := r.d.limited - before; n != c.waits {
					t.Errorf("the goroutine has waited %d times for the device, want %d", n, c.waits)
				}
			})
			r.drivesNothing()
			r.d.release()
			// The waiters finish the tasks.
			if err := r.scope.Wait(context.Background(), nil); err != nil {
				t.Error(err)
			}
			r.use(0)
			r.run(launch{label: "exit", exit: []arg{from(x[0]), from(x[1])}, included: true})
			for i := range x {
				want := uint32(1)
				if i < c.queues {
					want = 2
				}
				r.expect("x", x[i], filled(16, want)...)
			}
		})
	}
}

// An observer ends the goroutine that waits for tasks and finishes one of them: the others are finished by the
// waiters, and no queue counts on the goroutine.
func TestObserverEndsTheGoroutineThatWaitsForTasks(t *testing.T) {
	ends := 0
	for seed := range uint64(16) {
		r := newRig(t, memoryModes[1], seed)
		r.watches, r.d.prompt, r.s.driveLimit = false, true, time.Hour
		x := filled(16, 1)
		r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
		r.d.hold()
		r.observe = func(label string) construct.Observer {
			r.watches = true
			by := &leaver{watch: r.watched(label).(*watch), at: "end", do: runtime.Goexit}
			r.watches = false
			return by
		}
		r.run(add1(x))
		r.observe = nil
		r.run(add1(x))
		over := make(chan struct{})
		go func() {
			defer close(over)
			returned := false
			defer func() {
				if !returned {
					ends++
				}
			}()
			_ = r.scope.WaitWith(t.Context(), nil, func(over <-chan struct{}) {
				r.d.release()
				r.s.AwaitTasks(t.Context(), over)
			})
			returned = true
		}()
		<-over
		if err := r.scope.Wait(t.Context(), nil); err != nil {
			t.Error(err)
		}
		r.drivesNothing()
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		r.expect("x", x, filled(16, 3)...)
		r.close()
	}
	if ends == 0 {
		t.Error("no goroutine that waited was ended")
	}
}
