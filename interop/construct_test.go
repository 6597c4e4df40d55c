package interop_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/vkomp/vkomp/interop"
)

// What foreign code does with one object comes after what it did with the other before
// a construct of both, whether that has a task or not.
func TestConstructOfTwoObjectsOrdersTheOneAfterTheOther(t *testing.T) {
	for name, noWait := range map[string]bool{"task": true, "merged": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(0)
				a, b := initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync)
				_, before := announce(t, a)
				generated, err := r.device.Generate(interop.Task{Scope: r.scope, NoWait: noWait, Parts: []interop.Part{
					{Object: b, Action: interop.ActionUse}, {Object: a, Action: interop.ActionDestroy},
				}})
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

// sent returns the labels of the constructs that were submitted.
func (r *rig) sent(labels ...string) (sent []string) {
	for _, l := range labels {
		if r.scheduler.made[l] != nil {
			sent = append(sent, l)
		}
	}
	return sent
}

// A task can wait for children of another: their construct is then before its own,
// whatever the order in which the two were encountered.
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

// Foreign work of one object can be between two constructs that share another: the one
// that has to be second is so in both, also when its task starts first.
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

// A construct of several objects that cannot be submitted is signalled by the host when
// all that is before it has come, in each of them.
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
				_, err := r.device.Generate(interop.Task{Scope: r.scope, NoWait: noWait, Parts: []interop.Part{
					{Object: a, Action: interop.ActionUse}, {Object: b, Action: interop.ActionUse},
				}})
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
					refused(t, r.construct(a, interop.ActionUse, false), refuse)
				}
				r.free(t)
			})
		})
	}
}

// Nothing of a construct is carried out if one of its objects is no more.
func TestConstructWithADestroyedObjectChangesNothing(t *testing.T) {
	r := newRig(2)
	a, b := initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync)
	succeed(t, r.device.Destroy(b))
	generated, err := r.device.Generate(interop.Task{Scope: r.scope, NoWait: true, Parts: []interop.Part{
		{Object: a, Action: interop.ActionUse}, {Object: b, Action: interop.ActionUse},
	}})
	refused(t, err, interop.ErrInvalid, "interop object 2 of device 3 was destroyed")
	if last, _ := a.Int(interop.PropertyWaitValue); generated || last != 0 || r.scope.Pending() || len(r.submissions) > 0 {
		t.Errorf("carried out: %v, last value %d, tasks: %v, submissions %q", generated, last, r.scope.Pending(), r.submissions)
	}
	r.free(t)
}

// Whoever waits for an object's own queue to be idle holds its lock meanwhile, and what
// it waits for can be a construct that another task lets start.
func TestConstructStartsWhileItsOwnQueueIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1)
		o := initialise(t, r.device, interop.TypeTargetSync)
		var x uint64
		h := r.hostTask(&x)
		r.useAll(t, "held", []interop.Object{o}, inOut(&x))
		q, _ := o.Queue()
		q.Lock.Lock()
		go func() { _ = r.construct(o, interop.ActionUse, true) }()
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

// Constructs name their objects in any order, on any goroutine.
func TestConstructsOfTheSameObjectsAtOnce(t *testing.T) {
	r := newRig(2)
	a, b := initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync)
	var constructs sync.WaitGroup
	for k := range 8 {
		parts := []interop.Part{{Object: a, Action: interop.ActionUse}, {Object: b, Action: interop.ActionUse}}
		if k%2 == 1 {
			slices.Reverse(parts)
		}
		constructs.Go(func() {
			for range 200 {
				if _, err := r.device.Generate(interop.Task{Scope: r.scope, NoWait: k%4 < 2, Parts: parts}); err != nil {
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
