package foreign_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vkomp/vkomp/internal/foreign"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/vk"
)

// A construct of two objects, with a task or without one, comes between their foreign work:
// what was announced for either object before it is ordered before what is announced for the
// other one afterwards.
func TestConstructOfTwoObjectsOrdersTheOneAfterTheOther(t *testing.T) {
	for name, noWait := range map[string]bool{"task": true, "merged": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(0)
				a, b := initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync)
				_, before := announce(t, a)
				generated, err := r.device.Generate(foreign.Task{
					Construct: construct.Construct{Scope: r.scope, NoWait: noWait},
					Parts: []foreign.Part{
						{Object: foreign.Object(b), Action: foreign.ActionUse}, {Object: foreign.Object(a), Action: foreign.ActionDestroy},
					},
				})
				succeed(t, err)
				if !generated {
					t.Error("the construct was not carried out")
				}
				if pending := r.scope.Pending(); pending != noWait {
					t.Errorf("there is a task: %v", pending)
				}
				after, signal := announce(t, b)
				var ready error = errors.New("not yet")
				go func() { ready = b.Ready(t.Context(), after) }()
				synctest.Wait()
				if ready == nil {
					t.Error("work after the construct may be submitted, and that before it was not")
				}
				awaits := "interop object 2 of device 3 has a construct, of value 1, that awaits interop object 1 of device 3"
				r.awaits(t, "interop object 1 of device 3 awaits value 1, which no foreign work was submitted to signal", awaits)
				s, _ := a.Semaphore()
				succeed(t, a.Submitted(before))
				synctest.Wait()
				succeed(t, ready)
				r.settle()
				if v := r.valueOf(t, b); v != 0 {
					t.Errorf("the semaphore of %v is at %d, and what was before the construct has not come", b, v)
				}
				r.newQueue("foreign").submit(nil, nil, nil, values(s, before))
				succeed(t, b.Withdraw(signal))
				r.settle()
				if va, vb := r.valueOf(t, a), r.valueOf(t, b); va != before+1 || vb != signal {
					t.Errorf("the semaphores are at %d and %d", va, vb)
				}
				succeed(t, r.scope.Wait(t.Context(), nil))
				r.free(t)
			})
		})
	}
}

// sent returns those of the labels whose constructs were submitted.
func (r *rig) sent(labels ...string) (sent []string) {
	for _, l := range labels {
		if r.scheduler.made[l] != nil {
			sent = append(sent, l)
		}
	}
	return sent
}

// Constructs without foreign work between them are not ordered among themselves, and are
// submitted in the order in which their tasks start. If they were ordered, a task that waits
// for children of another could wait for ever: the children's construct may have been
// encountered after its own.
func TestConstructsWithoutForeignWorkBetweenThemAreSentAsTheirTasksStart(t *testing.T) {
	r := newRig(0)
	o := initialise(t, r.device, interop.TypeTargetSync)
	var x, y uint64
	first, second := r.hostTask(&x), r.hostTask(&y)
	r.useAll(t, "x", []interop.Object{o}, inOut(&x))
	r.useAll(t, "y", []interop.Object{o}, inOut(&y))
	r.useAll(t, "none", []interop.Object{o})
	wait, signal := announce(t, o)
	r.useAll(t, "after", []interop.Object{o})
	if wait != 3 || signal != 4 {
		t.Errorf("values %d and %d", wait, signal)
	}
	sent := func(want int, labels ...string) {
		t.Helper()
		if got := r.sent(labels...); len(got) != want {
			t.Errorf("%q were submitted, want %d of %q", got, want, labels)
		}
	}
	sent(1, "none", "x", "y", "after")
	refused(t, o.Submitted(1), interop.ErrInvalid, "value 1 was signalled, or is on its way")
	refused(t, o.Submitted(3), interop.ErrInvalid, "value 3 is vkomp's own to signal")
	second.complete(nil)
	sent(1, "y", "x", "after")
	first.complete(nil)
	sent(2, "y", "x", "after")
	s, _ := o.Semaphore()
	r.newQueue("foreign").submit(values(s, wait), nil, nil, values(s, signal))
	succeed(t, o.Submitted(signal))
	sent(1, "after")
	r.steps()
	if v := r.valueOf(t, o); v != 5 {
		t.Errorf("the semaphore has %d", v)
	}
	succeed(t, r.scope.Wait(t.Context(), nil))
	r.free(t)
}

// Two constructs share an object, and foreign work of another object, announced between them,
// orders them. So the second waits for the first also where its own task could start earlier. A
// construct that follows neither does not wait.
func TestConstructsOfSeveralObjectsDoNotBlockEachOther(t *testing.T) {
	r := newRig(0)
	a, b := initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync)
	both := []interop.Object{a, b}
	var x uint64
	h := r.hostTask(&x)
	r.useAll(t, "first", both, inOut(&x))
	_, signal := announce(t, a)
	r.useAll(t, "second", both)
	r.useAll(t, "other", []interop.Object{b})
	if got := r.sent("first", "second", "other"); len(got) != 1 || got[0] != "other" {
		t.Errorf("%q were submitted", got)
	}
	h.complete(nil)
	if got := r.sent("first", "second"); len(got) != 1 || got[0] != "first" {
		t.Errorf("%q were submitted", got)
	}
	r.awaits(t, "interop object 1 of device 3 awaits value 2, which no foreign work was submitted to signal",
		"interop object 2 of device 3 has a construct, of value 3, that awaits interop object 1 of device 3")
	s, _ := a.Semaphore()
	r.newQueue("foreign").submit(values(s, signal-1), nil, nil, values(s, signal))
	succeed(t, a.Submitted(signal))
	r.steps()
	if va, vb := r.valueOf(t, a), r.valueOf(t, b); va != 3 || vb != 3 {
		t.Errorf("the semaphores are at %d and %d", va, vb)
	}
	succeed(t, r.scope.Wait(t.Context(), nil))
	r.free(t)
}

// A construct of several objects that cannot be submitted is replaced by signals of the host.
// These come when the work before the construct is complete for each of the objects.
func TestConstructOfSeveralObjectsThatCannotBeSubmitted(t *testing.T) {
	refuse := errors.New("refused")
	for name, noWait := range map[string]bool{"task": true, "merged": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(0)
				a, b := initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync)
				q := r.newQueue("foreign")
				_, before := announce(t, b)
				r.shared.fail(refuse)
				r.scheduler.refuse = refuse
				_, err := r.device.Generate(foreign.Task{
					Construct: construct.Construct{Scope: r.scope, NoWait: noWait},
					Parts: []foreign.Part{
						{Object: foreign.Object(a), Action: foreign.ActionUse}, {Object: foreign.Object(b), Action: foreign.ActionUse},
					},
				})
				succeed(t, err)
				succeed(t, b.Submitted(before))
				r.settle()
				if v := r.valueOf(t, a); v != 0 {
					t.Errorf("the semaphore of %v is at %d, and what was before the construct has not come", a, v)
				}
				s, _ := b.Semaphore()
				q.submit(nil, nil, nil, values(s, before))
				r.settle()
				if va, vb := r.valueOf(t, a), r.valueOf(t, b); va != 1 || vb != before+1 {
					t.Errorf("the semaphores are at %d and %d", va, vb)
				}
				if noWait {
					refused(t, r.scope.Wait(t.Context(), nil), refuse)
				} else {
					refused(t, r.construct(a, foreign.ActionUse, false), refuse)
				}
				r.free(t)
			})
		})
	}
}

// A construct with an object that was destroyed fails, and changes nothing of its other
// objects.
func TestConstructWithADestroyedObjectChangesNothing(t *testing.T) {
	r := newRig(2)
	a, b := initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync)
	succeed(t, r.device.Destroy(foreign.Object(b)))
	generated, err := r.device.Generate(foreign.Task{
		Construct: construct.Construct{Scope: r.scope, NoWait: true},
		Parts: []foreign.Part{
			{Object: foreign.Object(a), Action: foreign.ActionUse}, {Object: foreign.Object(b), Action: foreign.ActionUse},
		},
	})
	refused(t, err, interop.ErrInvalid, "interop object 2 of device 3 was destroyed")
	if last, _ := a.Int(interop.PropertyWaitValue); generated || last != 0 || r.scope.Pending() || len(r.submissions) > 0 {
		t.Errorf("carried out: %v, last value %d, tasks: %v, submissions %q", generated, last, r.scope.Pending(), r.submissions)
	}
	r.free(t)
}

// A goroutine that waits for an object's own queue to be idle holds the queue's lock. What it
// waits for may be a construct that another task lets start: that construct must be submitted
// without the lock.
func TestConstructStartsWhileItsOwnQueueIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1)
		o := initialise(t, r.device, interop.TypeTargetSync)
		var x uint64
		h := r.hostTask(&x)
		r.useAll(t, "held", []interop.Object{o}, inOut(&x))
		q, _ := o.Queue()
		q.Lock.Lock()
		go func() { _ = r.construct(o, foreign.ActionUse, true) }()
		synctest.Wait()
		h.complete(nil)
		if got := r.sent("held"); len(got) != 1 {
			t.Error("the construct was not submitted")
		}
		q.Lock.Unlock()
		r.settle()
		succeed(t, r.scope.Wait(t.Context(), nil))
		r.free(t)
	})
}

// Constructs name the same objects in different orders, on several goroutines.
func TestConstructsOfTheSameObjectsAtOnce(t *testing.T) {
	r := newRig(2)
	a, b := initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync)
	var constructs sync.WaitGroup
	for k := range 8 {
		parts := []foreign.Part{{Object: foreign.Object(a), Action: foreign.ActionUse}, {Object: foreign.Object(b), Action: foreign.ActionUse}}
		if k%2 == 1 {
			slices.Reverse(parts)
		}
		constructs.Go(func() {
			for range 200 {
				if _, err := r.device.Generate(foreign.Task{Construct: construct.Construct{Scope: r.scope, NoWait: k%4 < 2}, Parts: parts}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	constructs.Wait()
	r.steps()
	for _, o := range []interop.Object{a, b} {
		if last, _ := o.Int(interop.PropertyWaitValue); r.valueOf(t, o) != uint64(last) {
			t.Errorf("the semaphore of %v is at %d of %d", o, r.valueOf(t, o), last)
		}
	}
	succeed(t, r.scope.Wait(t.Context(), nil))
	r.free(t)
}

func part(o interop.Object, action foreign.Action) foreign.Part {
	return foreign.Part{Object: foreign.Object(o), Action: action}
}

// generate returns what a construct without a task returns.
func (r *rig) generate(parts ...foreign.Part) error {
	generated, err := r.device.Generate(foreign.Task{Construct: construct.Construct{Scope: r.scope}, Parts: parts})
	if !generated && err == nil {
		return errors.New("the construct was not carried out, and there is no error")
	}
	return err
}

// Work that the program submitted to an object's own queue before a construct is ordered before
// what follows, although the construct has failed for another of its objects.
func TestWorkOnTheOwnQueueBeforeAConstructThatFails(t *testing.T) {
	r := newRig(2)
	a, b := initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync)
	refuse := errors.New("refused")
	r.own[0].fail(refuse)
	refused(t, r.generate(part(a, foreign.ActionUse), part(b, foreign.ActionUse)), refuse)
	last, _ := a.Int(interop.PropertyWaitValue)
	ended, end := context.WithCancel(t.Context())
	end()
	succeed(t, a.Ready(ended, uint64(last)))
	r.steps()
	r.awaits(t)
	r.free(t)
}

// The runtime closes an object's own queue while a construct or an announcement is about to use it.
func TestUsesOfAQueueThatIsBeingClosed(t *testing.T) {
	r := newRig(1)
	a := initialise(t, r.device, interop.TypeTargetSync)
	closed := fmt.Errorf("%w: queue of family 2", vk.ErrClosed)
	r.own[0].fail(closed)
	refused(t, r.generate(part(a, foreign.ActionUse)), foreign.ErrInvalid, "its runtime is being closed")
	r.own[0].fail(closed)
	_, _, err := a.Next()
	refused(t, err, foreign.ErrInvalid, "its runtime is being closed")
	// The construct is made by then, and no later work needs to wait for it.
	r.own[0].fail(closed)
	succeed(t, r.construct(a, foreign.ActionInit, true))
	r.steps()
	r.free(t)
}

// A construct waits for the lock of one object's own queue, which somebody holds. Meanwhile its
// other objects can be used, and the properties of all can be read.
func TestConstructThatWaitsForAQueuesLockHoldsNothingElseUp(t *testing.T) {
	for name, own := range map[string]int{"own queue": 2, "shared queue": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(own)
				a, b := initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync)
				q, _ := b.Queue()
				q.Lock.Lock()
				var waiting, next error = errors.New("not yet"), errors.New("not yet")
				go func() { waiting = r.generate(part(b, foreign.ActionUse), part(a, foreign.ActionUse)) }()
				synctest.Wait()
				if waiting == nil {
					t.Error("the construct does not wait for the lock")
				}
				a.Int(interop.PropertyWaitValue)
				a.Queue()
				if own > 0 {
					r.awaits(t, "interop object 1 of device 3 awaits value 1, which foreign work was submitted to signal: its semaphore is at 0")
					go func() {
						_, signal, err := a.Next()
						next = errors.Join(err, a.Withdraw(signal))
					}()
					synctest.Wait()
					succeed(t, next)
				}
				q.Lock.Unlock()
				r.settle()
				succeed(t, waiting)
				r.free(t)
			})
		})
	}
}

// Foreign work that never signals is reported once, whatever comes behind it, and the host
// makes the signals that are vkomp's own, once each.
func TestFreeWithAConstructBehindForeignWorkThatNeverSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(0)
		a, b := initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync)
		_, signal := announce(t, b)
		succeed(t, b.Submitted(signal))
		succeed(t, r.generate(part(a, foreign.ActionUse), part(b, foreign.ActionUse)))
		succeed(t, r.device.Withdraw())
		r.device.Close()
		freed := make(chan error, 1)
		go func() { freed <- r.device.Free() }()
		for {
			r.settle()
			select {
			case err := <-freed:
				refused(t, err, interop.ErrNeverSignalled, "value 1 of interop object 2 of device 3")
				if n := strings.Count(err.Error(), interop.ErrNeverSignalled.Error()); n != 1 {
					t.Errorf("%d failures for one: %v", n, err)
				}
				for _, failure := range r.failures {
					t.Error(failure)
				}
				for _, q := range r.queues {
					if len(q.operations)+len(q.signals) > 0 {
						t.Errorf("%s has work left", q.name)
					}
				}
				return
			default:
				time.Sleep(time.Millisecond)
			}
		}
	})
}

// A queue waits for foreign work that never signals. Work behind it on the queue cannot signal
// either, but is not lost: only the first is reported, and the rest goes on when the host has
// signalled in its place.
func TestReleaseLeavesWhatIsBehindLostWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(0)
		a, b, c := initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync)
		_, signal := announce(t, b)
		succeed(t, b.Submitted(signal))
		// With this construct the shared queue waits for b's work. The work that a submits to
		// that queue next is behind it.
		succeed(t, r.generate(part(b, foreign.ActionUse), part(c, foreign.ActionUse)))
		succeed(t, a.Submit(t.Context(), func(uintptr) error { return nil }))
		r.settle()
		err := r.release()
		refused(t, err, interop.ErrNeverSignalled, "value 1 of interop object 2 of device 3")
		if strings.Contains(err.Error(), "interop object 1 ") {
			t.Error(err)
		}
		r.settle()
		if v := r.valueOf(t, a); v != 1 {
			t.Errorf("the semaphore of %v is at %d", a, v)
		}
		r.free(t)
	})
}

// A failure of an object's foreign work fails the next construct of that object, and not one
// that only comes behind it through another object.
func TestFailureStaysWithItsObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(0)
		a, b := initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync)
		_, first := announce(t, b)
		bad := errors.New("bad")
		succeed(t, b.Submit(t.Context(), func(uintptr) error { return bad }))
		succeed(t, r.generate(part(a, foreign.ActionUse), part(b, foreign.ActionUse)))
		var x uint64
		r.use(t, b, inOut(&x))
		s, _ := b.Semaphore()
		r.newQueue("foreign").submit(nil, nil, nil, values(s, first))
		succeed(t, b.Submitted(first))
		r.settle()
		refused(t, r.scope.Wait(t.Context(), nil), bad)
		succeed(t, r.construct(a, foreign.ActionUse, false))
		r.settle()
		r.free(t)
	})
}

// The submission of a construct fails when one of its objects has been destroyed. The failure
// is reported by the next construct of the object that is left.
func TestFailureIsNotThatOfADestroyedObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(0)
		a, b := initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync)
		refuse := errors.New("refused")
		_, first := announce(t, b)
		succeed(t, r.generate(part(a, foreign.ActionDestroy), part(b, foreign.ActionUse)))
		succeed(t, r.device.Destroy(foreign.Object(a)))
		r.shared.fail(refuse)
		succeed(t, b.Withdraw(first))
		r.settle()
		refused(t, r.construct(b, foreign.ActionUse, false), refuse)
		r.settle()
		r.free(t)
	})
}

// Foreign work has failed. The first construct that was encountered after it fails, even if a
// later one is submitted earlier or has no task.
func TestTheNextConstructFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(0)
		o := initialise(t, r.device, interop.TypeTargetSync)
		bad := errors.New("bad")
		succeed(t, o.Submit(t.Context(), func(uintptr) error { return bad }))
		synctest.Wait()
		var x uint64
		h := r.hostTask(&x)
		r.useAll(t, "next", []interop.Object{o}, inOut(&x))
		r.useAll(t, "later", []interop.Object{o})
		succeed(t, r.construct(o, foreign.ActionUse, false))
		h.complete(nil)
		r.settle()
		refused(t, r.scope.Wait(t.Context(), nil), bad, `"next"`)
		r.free(t)
	})
}

// Constructs without tasks link three objects in a chain: foreign work of the last one comes
// after foreign work of the first.
func TestChainOfConstructsWithoutTasks(t *testing.T) {
	r := newRig(0)
	var o [3]interop.Object
	for k := range o {
		o[k] = initialise(t, r.device, interop.TypeTargetSync)
	}
	_, before := announce(t, o[0])
	succeed(t, r.generate(part(o[0], foreign.ActionUse), part(o[1], foreign.ActionUse)))
	succeed(t, r.generate(part(o[1], foreign.ActionUse), part(o[2], foreign.ActionUse)))
	after, signal := announce(t, o[2])
	cause := errors.New("no more time")
	ended, end := context.WithCancelCause(t.Context())
	end(cause)
	refused(t, o[2].Ready(ended, after), cause, "interop object 3 of device 3 has a construct")
	succeed(t, o[0].Withdraw(before))
	succeed(t, o[2].Ready(ended, after))
	succeed(t, o[2].Withdraw(signal))
	r.steps()
	r.free(t)
}

func TestConstructMistakesAreErrors(t *testing.T) {
	r, other := newRig(0), newRig(0)
	a, b := initialise(t, r.device, interop.TypeTargetSync), initialise(t, other.device, interop.TypeTargetSync)
	refused(t, r.generate(part(a, foreign.ActionUse), part(b, foreign.ActionUse)), interop.ErrInvalid, "is none of device 3")
	refused(t, r.generate(part(a, foreign.ActionUse), part(a, foreign.ActionDestroy)), interop.ErrInvalid, "interop object 1 of device 3 is in a construct twice")
	r.free(t)
	other.free(t)
}
