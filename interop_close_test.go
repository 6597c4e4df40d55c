package vkomp_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/tests/foreign"
)

// The runtime's own submission signals behind work that was given to Submit, so Close waits for that
// work, however long it takes and ForeignTimeout is. CloseContext gives up, and names it.
func TestCloseWaitsForWorkGivenToSubmit(t *testing.T) {
	for name, queues := range map[string]int{"own queue": 0, "shared queue": -1} {
		t.Run(name, func(t *testing.T) {
			rt, err := vkomp.Open(vkomp.Options{InteropQueues: queues, ForeignTimeout: 1})
			must(t, err)
			ctx, x, done := t.Context(), []uint32{0}, false
			// The work waits for a value of the other object's semaphore, which is the test's to signal.
			o, other := newObject(t, rt, targetAndSync), newObject(t, rt, targetAndSync)
			code, err := foreign.Open(o)
			must(t, err)
			s, _ := o.Semaphore()
			waited, _ := other.Semaphore()
			end := sync.OnceValue(func() error { return vkomp.SignalSemaphore(rt.DefaultDevice(ctx), waited, 1) })
			defer func() { _ = end() }()
			must(t, o.Submit(ctx, func(queue uintptr) error { return code.SubmitBetween(queue, 0, other, 1, 0) }))
			must(t, rt.Interop(ctx, later(use(o), vkomp.InOut(x))))
			must(t, rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: func(context.Context) error { done = true; return nil }}))

			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			err = rt.CloseContext(short)
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, interop.ErrNeverSignalled) || !strings.Contains(err.Error(), "foreign work was submitted to signal") {
				t.Errorf("CloseContext: %v", err)
			}
			if value, err := vkomp.SemaphoreValue(rt.DefaultDevice(ctx), s); err != nil || value != 0 || done {
				t.Errorf("the semaphore has %d, %v; the task is done: %v", value, err, done)
			}
			must(t, end())
			code.Close()
			must(t, rt.Close())
			if !done {
				t.Error("the task after the work has not run")
			}
		})
	}
}

// A program closes its runtime again and again, each time for less than ForeignTimeout. Foreign work
// that never signals does not keep it from the end.
func TestCloseContextGoesOnCountingTheTimeOfForeignWork(t *testing.T) {
	rt, err := vkomp.Open(vkomp.Options{InteropQueues: -1, ForeignTimeout: 50 * time.Millisecond})
	must(t, err)
	o := newObject(t, rt, targetAndSync)
	_, signal, err := o.Next()
	must(t, err)
	must(t, o.Submitted(signal))
	must(t, rt.Interop(t.Context(), later(use(o))))
	ended, end := context.WithCancel(t.Context())
	end()
	err = context.Canceled
	for begun := time.Now(); errors.Is(err, context.Canceled); time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal(err)
		}
		err = rt.CloseContext(ended)
	}
	if !errors.Is(err, interop.ErrNeverSignalled) {
		t.Errorf("CloseContext: %v, want %v", err, interop.ErrNeverSignalled)
	}
}

// Work that was given to Submit can be called when the devices are being closed already, where objects have no
// queues of their own. It uses its object and others as before.
func TestWorkThatCloseCallsUsesObjects(t *testing.T) {
	rt, err := vkomp.Open(vkomp.Options{InteropQueues: -1})
	must(t, err)
	ctx := t.Context()
	d, o, other := rt.DefaultDevice(ctx), newObject(t, rt, targetAndSync), newObject(t, rt, targetAndSync)
	closing := make(chan struct{})
	go func() {
		defer close(closing)
		for !vkomp.Closing(d) {
			runtime.Gosched()
		}
	}()
	must(t, o.Submit(ctx, func(uintptr) error {
		<-closing
		for range 100 {
			if _, ok := other.Semaphore(); !ok {
				return errors.New("the object is stale")
			}
			time.Sleep(time.Microsecond)
		}
		return nil
	}))
	must(t, rt.Close())
	if _, ok := other.Semaphore(); ok {
		t.Error("the object of a closed runtime has a semaphore")
	}
}

// An opening of a device, or a DeclareTarget, can keep Close waiting for the devices, and not CloseContext.
func TestCloseContextGivesUpWhileADeviceIsHeld(t *testing.T) {
	for _, initial := range []bool{false, true} {
		rt, err := vkomp.Open(vkomp.Options{})
		must(t, err)
		d := rt.DefaultDevice(t.Context())
		if initial {
			d = rt.InitialDevice()
		}
		release := sync.OnceFunc(vkomp.HoldLife(d))
		// Whoever waits for the device instead of the context comes to the end then.
		limit := time.AfterFunc(20*time.Second, release)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if err := rt.CloseContext(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("initial device %v: %v", initial, err)
		}
		cancel()
		if !limit.Stop() {
			t.Errorf("initial device %v: CloseContext has waited for it", initial)
		}
		release()
		must(t, rt.Close())
	}
}

// A task that opens the device when Close has already withdrawn foreign work can announce none, for
// which Close would wait for ever.
func TestForeignWorkOfADeviceThatIsOpenedDuringClose(t *testing.T) {
	rt, err := vkomp.Open(vkomp.Options{})
	must(t, err)
	goOn, announced := make(chan struct{}), make(chan error, 1)
	must(t, rt.Task(t.Context(), vkomp.Task{Body: func(ctx context.Context) error {
		<-goOn
		var o interop.Object
		err := rt.Interop(ctx, vkomp.Interop{Init: []vkomp.InteropInit{{Object: &o, Types: targetAndSync}}})
		_, _, never := o.Next()
		announced <- never
		return err
	}}))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := rt.CloseContext(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want what has ended the context", err)
	}
	close(goOn)
	if err := <-announced; !errors.Is(err, interop.ErrInvalid) {
		t.Errorf("work is announced while the runtime is being closed: %v", err)
	}
	must(t, rt.Close())
}
