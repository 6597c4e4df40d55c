package sched

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/vkomp/vkomp/memory"
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
	const n = 50
	steps := func() {
		before := r.wakeUps()
		for range n {
			r.run(launch{label: "step", kernel: "add", args: []arg{alloc(x)}, constant: 1, included: true})
		}
		if woken := r.wakeUps() - before; woken != 0 {
			t.Errorf("%d constructs woke waiters %d times", n, woken)
		}
	}
	steps()
	before := r.wakeUps()
	r.run(launch{label: "deferred", kernel: "add", args: []arg{alloc(x)}, constant: 1})
	r.taskwait()
	if woken := r.wakeUps() - before; woken != 1 {
		t.Errorf("a deferred construct woke waiters %d times, want once", woken)
	}
	steps() // there is a waiter now
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16, 2*n+1)...)
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
	submitted := r.d.submissions()
	r.d.hold()
	synchronous := make(chan error)
	go func() {
		synchronous <- r.s.Run(context.Background(), r.region(launch{label: "synchronous", kernel: "add", args: []arg{alloc(x)}, constant: 1, included: true}))
	}()
	r.eventually("the construct drives", func() bool { return q.Drivers() == 1 && r.d.submissions() == submitted+1 })
	before := r.wakeUps()
	r.run(launch{label: "deferred", kernel: "add", args: []arg{alloc(y)}, constant: 2})
	if woken := r.wakeUps() - before; woken != 0 {
		t.Errorf("the waiter was woken %d times beside a driver", woken)
	}
	r.d.advance(uint64(submitted + 1))
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
	r.drivesNothing()
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
	gate, submitting := r.gate(x), make(chan struct{})
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
	r.drivesNothing()
	r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapDelete}}, included: true})
}
