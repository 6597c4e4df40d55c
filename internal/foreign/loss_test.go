package foreign_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"unsafe"

	"github.com/vkomp/vkomp/internal/foreign"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

var errLost = &vk.Error{Op: "vkQueueSubmit", Result: vk.ErrorDeviceLost}

// Whoever notices the loss of the device first, nothing waits for the device afterwards. Its
// objects can be destroyed, and refuse everything else.
func TestLostDeviceIsAwaitedByNobody(t *testing.T) {
	for name, tell := range map[string]func(t *testing.T, r *rig, own, shared interop.Object){
		"a look": func(_ *testing.T, r *rig, _, _ interop.Object) { r.device.Awaits() },
		"a submission to the object's own queue": func(t *testing.T, r *rig, own, _ interop.Object) {
			_, _, err := own.Next()
			refused(t, err, vk.ErrDeviceLost)
		},
		"destroy": func(t *testing.T, r *rig, own, _ interop.Object) {
			succeed(t, r.construct(own, foreign.ActionDestroy, false))
		},
		"the scheduler": func(t *testing.T, r *rig, own, _ interop.Object) {
			succeed(t, r.construct(own, foreign.ActionDestroy, true))
		},
		"somebody else": func(_ *testing.T, r *rig, _, _ interop.Object) { r.scheduler.Lose(errLost) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(1)
				own, shared := initialise(t, r.device, both), initialise(t, r.device, both)
				var x uint64
				depend := tasks.Depend{Kind: tasks.DependInOut, Ptr: unsafe.Pointer(&x), Size: 8}
				// There is work that will signal, work that will not, and a task behind each.
				r.use(t, own)
				_, first := announce(t, shared)
				succeed(t, shared.Submitted(first))
				r.useAll(t, "first", []interop.Object{shared}, depend)
				_, second := announce(t, shared)
				r.useAll(t, "second", []interop.Object{shared, own}, depend)
				called := false
				succeed(t, shared.Submit(t.Context(), func(uintptr) error { called = true; return nil }))
				r.useAll(t, "third", []interop.Object{shared}, depend)
				last, _ := shared.Int(interop.PropertyWaitValue)
				waited := make(chan error, 1)
				go func() { waited <- shared.Ready(t.Context(), uint64(last)) }()
				synctest.Wait()

				r.lose(errLost)
				tell(t, r, own, shared)
				synctest.Wait()
				r.awaits(t)
				if err := r.scope.Wait(t.Context(), nil); !errors.Is(err, vk.ErrDeviceLost) {
					t.Errorf("the tasks: %v", err)
				}
				if called {
					t.Error("foreign work was to be submitted to the lost device")
				}
				_, _, next := shared.Next()
				init, failed := r.device.Init(foreign.Types(interop.TypeTarget))
				if init != foreign.None {
					t.Error("the lost device has a new object")
				}
				for what, err := range map[string]error{
					"Ready, before": <-waited, "Ready": shared.Ready(t.Context(), 1), "Next": next, "Init": failed,
					"Submitted": shared.Submitted(second), "Submit": shared.Submit(t.Context(), func(uintptr) error { return nil }),
					"use":         r.construct(shared, foreign.ActionUse, false),
					"use, nowait": r.construct(shared, foreign.ActionUse, true),
				} {
					if !errors.Is(err, vk.ErrDeviceLost) {
						t.Errorf("%s: %v", what, err)
					}
				}
				succeed(t, shared.Withdraw(second))
				succeed(t, r.construct(shared, foreign.ActionDestroy, true))
				// A construct that destroys an object has nothing to do on a lost device, so
				// its task does not fail.
				succeed(t, r.scope.Wait(context.Background(), nil))
				for _, o := range []interop.Object{own, shared} {
					succeed(t, r.device.Destroy(foreign.Object(o)))
				}
				r.free(t)
			})
		})
	}
}
