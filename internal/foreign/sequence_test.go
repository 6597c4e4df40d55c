package foreign_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/vkomp/vkomp/internal/foreign"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused fails the test unless err wraps want and its text has all of says.
func refused(t *testing.T, err, want error, says ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want a %q", err, want)
		return
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
}

// announce announces foreign work and returns its values.
func announce(t *testing.T, o interop.Object) (wait, signal uint64) {
	t.Helper()
	wait, signal, err := o.Next()
	succeed(t, err)
	return wait, signal
}

// use generates a construct with nowait, and so with a task.
func (r *rig) use(t *testing.T, o interop.Object, depend ...tasks.Depend) {
	t.Helper()
	r.useAll(t, "use", []interop.Object{o}, depend...)
}

func (r *rig) useAll(t *testing.T, label string, all []interop.Object, depend ...tasks.Depend) {
	t.Helper()
	task := foreign.Task{Construct: construct.Construct{Label: label, Scope: r.scope, NoWait: true, Depend: depend}}
	for _, o := range all {
		task.Parts = append(task.Parts, foreign.Part{Object: foreign.Object(o), Action: foreign.ActionUse})
	}
	generated, err := r.device.Generate(task)
	succeed(t, err)
	if !generated {
		t.Fatal("no construct was made")
	}
}

// construct generates a construct of one object and returns its result.
func (r *rig) construct(o interop.Object, action foreign.Action, noWait bool) error {
	_, err := r.device.Generate(foreign.Task{Construct: construct.Construct{Scope: r.scope, NoWait: noWait}, Parts: []foreign.Part{{Object: foreign.Object(o), Action: action}}})
	return err
}

func (r *rig) valueOf(t *testing.T, o interop.Object) uint64 {
	t.Helper()
	s, ok := o.Semaphore()
	value, err := r.SemaphoreValue(s)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	return value
}

// awaits fails the test unless the device says that it waits for exactly that.
func (r *rig) awaits(t *testing.T, want ...string) {
	t.Helper()
	if got := r.device.Awaits(); !slices.Equal(got, want) {
		t.Errorf("the device awaits %q, want %q", got, want)
	}
}

func TestSubmittedRefusesWhatWasNotHandedOut(t *testing.T) {
	r := newRig(0)
	defer r.free(t)
	o := initialise(t, r.device, interop.TypeTargetSync)
	_, first := announce(t, o)
	r.use(t, o)
	_, third := announce(t, o)
	if first != 1 || third != 3 {
		t.Fatalf("values %d and %d", first, third)
	}
	succeed(t, o.Submitted(third))
	var noContext context.Context
	for _, c := range []struct {
		err  error
		says string
	}{
		{o.Submitted(0), "value 0 was not handed out: the last one was 3"},
		{o.Withdraw(0), "value 0 was not handed out: the last one was 3"},
		{o.Submitted(5), "value 5 was not handed out: the last one was 3"},
		{o.Withdraw(4), "value 4 was not handed out: the last one was 3"},
		{o.Submitted(2), "value 2 is vkomp's own to signal"},
		{o.Withdraw(2), "value 2 is vkomp's own to signal"},
		{o.Submitted(3), "value 3 was said to be submitted before"},
		{o.Withdraw(3), "value 3 was said to be submitted before"},
		{o.Ready(t.Context(), 4), "value 4 was not handed out: the last one was 3"},
		{o.Submit(t.Context(), nil), "nothing to submit with"},
		{o.Submit(noContext, func(uintptr) error { return nil }), "no context to submit with"},
	} {
		refused(t, c.err, interop.ErrInvalid, c.says, "interop object 1 of device 3")
	}
	s, _ := o.Semaphore()
	foreign := r.newQueue("foreign")
	foreign.submit(nil, nil, nil, values(s, 1))
	foreign.submit(values(s, 2), nil, nil, values(s, 3))
	succeed(t, o.Submitted(first))
	refused(t, o.Submitted(first), interop.ErrInvalid, "value 1 was signalled, or is on its way: it cannot be said twice")
	r.steps()
	if v := r.valueOf(t, o); v != 3 {
		t.Errorf("the semaphore has %d", v)
	}
}

func TestValuesOfThePropertiesAreForOneSubmission(t *testing.T) {
	r := newRig(1)
	o := initialise(t, r.device, interop.TypeTargetSync)
	s, _ := o.Semaphore()
	wait, _ := o.Int(interop.PropertyWaitValue)
	signal, _ := o.Int(interop.PropertySignalValue)
	r.newQueue("foreign").submit(values(s, uint64(wait)), nil, nil, values(s, uint64(signal)))
	succeed(t, o.Submitted(uint64(signal)))
	if q, _ := o.Queue(); q.Implicit {
		t.Error("the queue still keeps the order by itself")
	}
	refused(t, o.Submitted(uint64(signal)), interop.ErrInvalid, "said twice")
	r.steps()
	r.free(t)
}

func TestAwaitsNamesTheFirstThatHoldsUpTheRest(t *testing.T) {
	r := newRig(0)
	defer r.free(t)
	o, other := initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync)
	s, _ := o.Semaphore()
	r.awaits(t)
	var x uint64
	h := r.hostTask(&x)
	r.use(t, o, inOut(&x))
	r.awaits(t, "interop object 1 of device 3 has a construct, of value 1, that awaits its predecessors")
	_, signal := announce(t, o)
	_, last := announce(t, other)
	h.complete(nil)
	r.awaits(t, "interop object 1 of device 3 awaits value 2, which no foreign work was submitted to signal",
		"interop object 2 of device 3 awaits value 1, which no foreign work was submitted to signal")
	succeed(t, other.Withdraw(last))
	r.newQueue("foreign").submit(values(s, 1), nil, nil, values(s, signal))
	succeed(t, o.Submitted(signal))
	r.awaits(t, "interop object 1 of device 3 awaits value 2, which foreign work was submitted to signal: its semaphore is at 0")
	succeed(t, r.device.Destroy(foreign.Object(o)))
	r.awaits(t, "interop object 1 of device 3 awaits value 2, which foreign work was submitted to signal: its semaphore is at 0")
	r.steps()
	r.awaits(t)
}

func TestReadyWaitsForTheSubmissionOfWhatSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(0)
		defer r.free(t)
		o := initialise(t, r.device, interop.TypeTargetSync)
		succeed(t, o.Ready(t.Context(), 0))
		var x uint64
		h := r.hostTask(&x)
		r.use(t, o, inOut(&x))
		wait, signal := announce(t, o)

		cause := errors.New("no more time")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		refused(t, o.Ready(ctx, wait), cause, "value 1 of interop object 1 of device 3", "that awaits its predecessors")

		var ready error = errors.New("not yet")
		go func() { ready = o.Ready(context.Background(), wait) }()
		synctest.Wait()
		if ready == nil {
			t.Error("ready before the construct's task was submitted")
		}
		h.complete(nil)
		synctest.Wait()
		succeed(t, ready)
		if v := r.valueOf(t, o); v != 0 {
			t.Errorf("the semaphore has %d", v)
		}
		// The context has ended, but what the call asks for has been submitted.
		succeed(t, o.Ready(ctx, wait))
		refused(t, o.Ready(ctx, signal), cause, "awaits value 2, which no foreign work was submitted to signal")
		succeed(t, o.Withdraw(signal))
		succeed(t, o.Ready(ctx, signal))
		r.steps()
	})
}

// Values that nobody else signals, one after the other, take one goroutine that waits and one call.
func TestRunOfWithdrawnValuesIsSignalledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(0)
		defer r.free(t)
		o := initialise(t, r.device, interop.TypeTargetSync)
		s, _ := o.Semaphore()
		_, first := announce(t, o)
		succeed(t, o.Submitted(first))
		last := first
		for range 1000 {
			_, last = announce(t, o)
			succeed(t, o.Withdraw(last))
		}
		synctest.Wait()
		r.mu.Lock()
		waiting := len(r.semaphores[s].hostWaits)
		r.mu.Unlock()
		if v := r.valueOf(t, o); waiting != 1 || v != 0 {
			t.Errorf("%d goroutines wait; the semaphore has %d", waiting, v)
		}
		r.newQueue("foreign").submit(nil, nil, nil, values(s, first))
		r.settle()
		if v := r.valueOf(t, o); v != last || r.hostSignals != 1 {
			t.Errorf("the semaphore has %d of %d after %d calls", v, last, r.hostSignals)
		}
		// What comes later is not added to values that are signalled.
		_, next := announce(t, o)
		succeed(t, o.Withdraw(next))
		r.settle()
		if v := r.valueOf(t, o); v != next || r.hostSignals != 2 {
			t.Errorf("the semaphore has %d of %d after %d calls", v, next, r.hostSignals)
		}
	})
}

func TestAnnouncedWorkOutlivesItsObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(0)
		defer r.free(t)
		o := initialise(t, r.device, interop.TypeTargetSync)
		s, _ := o.Semaphore()
		_, first := announce(t, o)
		wait, second := announce(t, o)
		succeed(t, r.construct(o, foreign.ActionDestroy, true))
		succeed(t, r.device.Destroy(foreign.Object(o)))
		if other := initialise(t, r.device, interop.TypeTargetSync); must(other.Semaphore()) == s {
			t.Error("the semaphore was given to another object")
		}
		r.newQueue("foreign").submit(nil, nil, nil, values(s, first))
		succeed(t, o.Submitted(first))
		succeed(t, o.Ready(t.Context(), wait))
		succeed(t, o.Withdraw(second))
		refused(t, o.Submitted(4), interop.ErrInvalid, "value 4 was not handed out: the last one was 3")
		r.settle()
		if other := initialise(t, r.device, interop.TypeTargetSync); must(other.Semaphore()) != s {
			t.Error("the semaphore is not used again")
		} else if wait, signal := announce(t, other); wait != 3 || signal != 4 {
			t.Errorf("values %d and %d", wait, signal)
		} else {
			refused(t, other.Submitted(wait), interop.ErrInvalid, "value 3 was not handed out: the last one was 4")
			succeed(t, other.Withdraw(signal))
		}
		r.device.Close()
		refused(t, o.Submitted(second), interop.ErrInvalid, "interop object 1 of device 3")
	})
}

// Withdraw, Release and Free are what a runtime calls when it is closed.
func TestWithdrawNamesWhatWasAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(0)
		defer r.free(t)
		o := initialise(t, r.device, interop.TypeTargetSync)
		announce(t, o)
		r.use(t, o)
		_, third := announce(t, o)
		err := r.device.Withdraw()
		refused(t, err, interop.ErrNeverSubmitted, "value 1 of interop object 1 of device 3", "value 3 of interop object 1 of device 3")
		if strings.Contains(err.Error(), "value 2") {
			t.Error(err)
		}
		refused(t, o.Submitted(third), interop.ErrInvalid, "value 3 was signalled, or is on its way")
		succeed(t, r.device.Withdraw())
		r.settle()
		if v := r.valueOf(t, o); v != 3 {
			t.Errorf("the semaphore has %d", v)
		}
		succeed(t, r.scope.Wait(t.Context(), nil))
	})
}

func TestReleaseSignalsWhatIsDueAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(0)
		o := initialise(t, r.device, interop.TypeTargetSync)
		succeed(t, r.release())
		for range 2 {
			_, signal := announce(t, o)
			succeed(t, o.Submitted(signal))
			r.use(t, o)
		}
		err := r.release()
		refused(t, err, interop.ErrNeverSignalled, "value 1 of interop object 1 of device 3")
		if v := r.valueOf(t, o); v != 1 || strings.Contains(err.Error(), "value 3") {
			t.Errorf("the semaphore has %d: %v", v, err)
		}
		succeed(t, r.release())
		r.steps()
		refused(t, r.release(), interop.ErrNeverSignalled, "value 3 of interop object 1 of device 3")
		r.steps()
		succeed(t, r.release())
		r.awaits(t)
		r.free(t)
	})
}

func TestFreeWaitsForForeignWorkAndThenNamesIt(t *testing.T) {
	for _, comes := range []bool{true, false} {
		t.Run(fmt.Sprint("comes ", comes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(0)
				o := initialise(t, r.device, interop.TypeTargetSync)
				s, _ := o.Semaphore()
				_, first := announce(t, o)
				q := r.newQueue("foreign")
				succeed(t, o.Submitted(first))
				_, second := announce(t, o)
				// The host makes this signal when the work before it has signalled.
				succeed(t, o.Withdraw(second))
				if comes {
					go func() {
						time.Sleep(foreignTimeout / 2)
						q.submit(nil, nil, nil, values(s, first))
						r.steps()
					}()
				}
				began := time.Now()
				r.device.Close()
				err := r.device.Free()
				took := time.Since(began)
				if comes {
					succeed(t, err)
					if took != foreignTimeout/2 {
						t.Errorf("it took %v", took)
					}
				} else {
					refused(t, err, interop.ErrNeverSignalled, "value 1 of interop object 1 of device 3")
					if took < foreignTimeout {
						t.Errorf("it took %v", took)
					}
				}
				if value, ok := r.destroyed[s]; !ok || value != second {
					t.Errorf("the semaphore ends with %d (%v)", value, ok)
				}
				if len(r.failures) > 0 {
					t.Error(r.failures)
				}
			})
		})
	}
}

func TestQueueGoesToAnotherObjectWhenNothingOnItWaitsForTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1)
		o := initialise(t, r.device, interop.TypeTargetSync)
		var x uint64
		h := r.hostTask(&x)
		r.use(t, o, inOut(&x))
		succeed(t, r.device.Destroy(foreign.Object(o)))
		second := initialise(t, r.device, interop.TypeTargetSync)
		if q, _ := second.Queue(); q.Implicit || q.Handle != r.shared.Handle() {
			t.Errorf("%+v", q)
		}
		h.complete(nil)
		third := initialise(t, r.device, interop.TypeTargetSync)
		if q, _ := third.Queue(); !q.Implicit || q.Handle != r.own[0].Handle() || q.Lock != r.own[0].Locker() {
			t.Errorf("%+v", q)
		}
		announce(t, third)
		if q, _ := third.Queue(); q.Implicit || q.Handle != r.own[0].Handle() {
			t.Errorf("%+v", q)
		}
		refused(t, r.device.Withdraw(), interop.ErrNeverSubmitted, "interop object 3 of device 3")
		r.settle()
		r.free(t)
	})
}

// The construct's task does not wait on the host, so that the task's signal is submitted before
// the object's own queue waits for it.
func TestOwnQueueWaitsForWhatIsSubmitted(t *testing.T) {
	r := newRig(1)
	o := initialise(t, r.device, interop.TypeTargetSync)
	r.use(t, o)
	if want := []string{"own 0", "scheduler", "own 0"}; !slices.Equal(r.submissions, want) {
		t.Errorf("submissions to %q, want %q", r.submissions, want)
	}
	r.steps()
	r.free(t)
}

func TestWorkOnTheOwnQueueThatDoesNotEndIsNamed(t *testing.T) {
	r := newRig(1)
	o := initialise(t, r.device, interop.TypeTargetSync)
	q := r.own[0]
	never := vk.Semaphore(1)
	r.semaphores[never] = &semaphore{changed: make(chan struct{})}
	q.submit(values(never, 1), nil, &job{}, nil)
	r.use(t, o)
	r.steps()
	r.awaits(t, "interop object 1 of device 3 awaits value 1, which foreign work was submitted to signal: its semaphore is at 0")
	refused(t, o.Submitted(1), interop.ErrInvalid, "value 1 was signalled, or is on its way")
}

// The failure of an object that was destroyed is reported at the end, although another object
// uses its semaphore.
func TestFailureThatNoConstructReportedStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(0)
		o := initialise(t, r.device, interop.TypeTargetSync)
		boom := errors.New("boom")
		_, signal := announce(t, o)
		succeed(t, o.Submit(t.Context(), func(uintptr) error { return boom }))
		succeed(t, r.device.Destroy(foreign.Object(o)))
		succeed(t, o.Withdraw(signal))
		r.settle()
		initialise(t, r.device, interop.TypeTargetSync)
		refused(t, r.device.Withdraw(), boom, "interop object 1 of device 3: foreign work of value 2: boom")
		r.free(t)
	})
}

func TestFailuresOfSubmitNameTheirWork(t *testing.T) {
	boom := errors.New("boom")
	fail := func(uintptr) error { return boom }
	says := []string{"interop object 1 of device 3: foreign work of value 1: boom"}
	for name, report := range map[string]func(*testing.T, *rig, interop.Object) error{
		"task": func(t *testing.T, r *rig, o interop.Object) error {
			r.use(t, o)
			r.steps()
			return r.scope.Wait(t.Context(), nil)
		},
		"task after one that is refused": func(t *testing.T, r *rig, o interop.Object) error {
			refuse := errors.New("refused")
			r.scheduler.refuse = refuse
			r.use(t, o)
			r.settle()
			refused(t, r.scope.Wait(t.Context(), nil), refuse)
			r.use(t, o)
			r.settle()
			return r.scope.Wait(t.Context(), nil)
		},
		"merged construct": func(t *testing.T, r *rig, o interop.Object) error {
			return r.construct(o, foreign.ActionUse, false)
		},
		"end": func(t *testing.T, r *rig, o interop.Object) error { return r.device.Withdraw() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(0)
				o := initialise(t, r.device, interop.TypeTargetSync)
				succeed(t, o.Submit(t.Context(), fail))
				synctest.Wait()
				refused(t, report(t, r, o), boom, says...)
				succeed(t, r.construct(o, foreign.ActionUse, false))
				succeed(t, r.device.Withdraw())
				r.steps()
				r.free(t)
			})
		})
	}
	t.Run("own queue", func(t *testing.T) {
		r := newRig(1)
		defer r.free(t)
		o := initialise(t, r.device, interop.TypeTargetSync)
		refused(t, o.Submit(t.Context(), fail), boom)
		var p *protect.PanicError
		if err := o.Submit(t.Context(), func(uintptr) error { panic("oh") }); !errors.As(err, &p) || p.Value != "oh" {
			t.Errorf("a panic: %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(boom)
		refused(t, o.Submit(ctx, func(uintptr) error { panic("called") }), boom)
		// The queue's lock was released after each failure.
		var lent uintptr
		succeed(t, o.Submit(t.Context(), func(queue uintptr) error { lent = queue; return nil }))
		if lent != r.own[0].Handle() {
			t.Errorf("the queue is %#x", lent)
		}
	})
}

// The runtime begins to close while Submit waits for the lock of the object's own queue, which closing takes before the
// device is destroyed: the function is not called.
func TestSubmitThatWaitsForItsQueueWhileTheRuntimeCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1)
		o := initialise(t, r.device, interop.TypeTargetSync)
		lock := r.own[0].Locker()
		lock.Lock()
		over := make(chan error)
		go func() {
			over <- o.Submit(t.Context(), func(uintptr) error {
				t.Error("the function was called")
				return nil
			})
		}()
		synctest.Wait()
		succeed(t, r.device.Withdraw())
		lock.Unlock()
		refused(t, <-over, interop.ErrInvalid, "its runtime is being closed")
		r.free(t)
	})
}

// The scheduler's lock is taken before that of a queue, so Submit does not ask the scheduler about a loss while it holds the
// lock of the object's own queue.
func TestSubmitDoesNotAskTheSchedulerWithTheQueueHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1)
		o := initialise(t, r.device, interop.TypeTargetSync)
		asked, called := 0, false
		r.scheduler.asked = func() {
			asked++
			if r.own[0].lock.held() {
				t.Error("the scheduler was asked with the lock held")
			}
		}
		succeed(t, o.Submit(t.Context(), func(uintptr) error {
			called = r.own[0].lock.held()
			return nil
		}))
		if asked == 0 || !called {
			t.Errorf("the scheduler was asked %d times; the function was called with the lock held: %t", asked, called)
		}
		r.scheduler.asked = nil
		r.settle()
		r.free(t)
	})
}

// settle lets the device, and the goroutines that signal in place of foreign work, finish.
func (r *rig) settle() {
	for {
		synctest.Wait()
		if !r.step(0) {
			return
		}
	}
}

// hostTask generates a host task on storage.
func (r *rig) hostTask(storage *uint64) *held {
	h := &held{}
	w := tasks.NewWork()
	defer w.Finish()
	_, err := r.scope.Add(&tasks.Task{Label: "host", Runner: h, Always: true, Depend: []tasks.Depend{inOut(storage)}}, w)
	if err != nil {
		panic(err)
	}
	return h
}

func inOut(storage *uint64) tasks.Depend {
	return tasks.Depend{Kind: tasks.DependInOut, Ptr: unsafe.Pointer(storage), Size: 8}
}

func must[T any](v T, ok bool) T {
	if !ok {
		panic("no such value")
	}
	return v
}

// held is the runner of a host task that runs until complete is called.
type held struct{ node *tasks.Node }

// Start implements tasks.Runner.
func (h *held) Start(n *tasks.Node, w *tasks.Work) { h.node = n }

func (*held) Recycle() {}

func (h *held) complete(err error) {
	w := tasks.NewWork()
	h.node.Complete(err, w)
	w.Finish()
}

// One goroutine may be about to use an object that another destroys.
func TestConstructOfADestroyedObjectIsRefused(t *testing.T) {
	r := newRig(0)
	o := initialise(t, r.device, interop.TypeTargetSync)
	r.use(t, o)
	r.steps()
	succeed(t, r.device.Destroy(foreign.Object(o)))
	next := initialise(t, r.device, interop.TypeTargetSync)
	refused(t, r.construct(o, foreign.ActionUse, true), interop.ErrInvalid, "interop object 1 of device 3 was destroyed")
	r.use(t, next)
	r.steps()
	r.free(t)
}

// A construct that cannot be submitted is replaced by a signal of the host. Foreign work behind
// the construct comes after that signal, and so the signal must come after the construct's
// predecessors.
func TestConstructThatCannotBeSubmittedKeepsItsPredecessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(0)
		o, p := initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync)
		var x uint64
		// This task on x is placed, and waits for foreign work.
		_, signal := announce(t, p)
		succeed(t, p.Submitted(signal))
		r.use(t, p, inOut(&x))
		r.steps()
		refuse := errors.New("refused")
		r.scheduler.refuse = refuse
		r.use(t, o, inOut(&x))
		synctest.Wait()
		if v := r.valueOf(t, o); v != 0 {
			t.Errorf("the semaphore of %v is at %d, and what its construct follows is under way", o, v)
		}
		s, _ := p.Semaphore()
		succeed(t, r.SignalSemaphore(s, signal))
		r.steps()
		r.settle()
		if v := r.valueOf(t, o); v != 1 {
			t.Errorf("the semaphore of %v is at %d, and what its construct follows is over", o, v)
		}
		refused(t, r.scope.Wait(t.Context(), nil), refuse, "")
		r.free(t)
	})
}

func TestSubmitThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(0)
		o := initialise(t, r.device, interop.TypeTargetSync)
		succeed(t, o.Submit(t.Context(), func(uintptr) error {
			runtime.Goexit()
			return nil
		}))
		r.settle()
		err := r.construct(o, foreign.ActionUse, false)
		if says := "foreign work of value 1: the function ended its goroutine"; err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the construct: %v, want %q", err, says)
		}
		r.free(t)
	})
}

// The submission that signals behind the work of a submit function fails for want of memory, and is made again: the work
// has been submitted, and nothing else says when it ends.
func TestSignalBehindWorkGivenToSubmitFollowsTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(0)
		o := initialise(t, r.device, interop.TypeTargetSync)
		work := &job{name: "work"}
		succeed(t, o.Submit(t.Context(), func(uintptr) error {
			r.shared.submit(nil, nil, work, nil)
			r.shared.refuse = &vk.Error{Op: "vkQueueSubmit", Result: vk.ErrorOutOfHostMemory}
			return nil
		}))
		time.Sleep(time.Second)
		if v := r.valueOf(t, o); v != 0 {
			t.Errorf("the semaphore is at %d, and the work is under way", v)
		}
		r.use(t, o)
		r.settle()
		succeed(t, r.scope.Wait(t.Context(), nil))
		if task := r.scheduler.made["use"]; work.end == 0 || task != nil && task.begin < work.end {
			t.Errorf("the work has ended at %d, the construct's task has begun at %+v", work.end, task)
		}
		r.free(t)
	})
}

// The failures of many works stand side by side in the error that reports them: one inside the other, each would hold the
// text of all before it.
func TestFailuresOfSubmitStandSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const works = 50
		r := newRig(0)
		o := initialise(t, r.device, interop.TypeTargetSync)
		for range works {
			succeed(t, o.Submit(t.Context(), func(uintptr) error { return errors.New("boom") }))
		}
		r.settle()
		err := r.construct(o, foreign.ActionUse, false)
		if n := strings.Count(fmt.Sprint(err), "boom"); n != works {
			t.Errorf("%d failures of %d: %v", n, works, err)
		}
		if n := depth(err); n > 5 {
			t.Errorf("%d errors are one inside the other", n)
		}
		r.free(t)
	})
}

// depth returns how many errors are one inside the other.
func depth(err error) (n int) {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			n = max(n, depth(inner))
		}
	case interface{ Unwrap() error }:
		n = depth(e.Unwrap())
	}
	return n + 1
}
