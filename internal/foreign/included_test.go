package foreign_test

import (
	"context"
	"errors"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/internal/foreign"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/tasks"
)

// The wait of an included construct ends when its predecessors are complete on the device. It
// does not wait for foreign work that the construct comes after.
func TestIncludedWaitsForPredecessorsOnTheDevice(t *testing.T) {
	r := newRig(0)
	a, b := initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync)
	var x uint64
	depend := func(kind tasks.DependKind, x *uint64) tasks.Depend {
		return tasks.Depend{Kind: kind, Ptr: unsafe.Pointer(x), Size: 8}
	}
	r.useAll(t, "before", []interop.Object{a}, depend(tasks.DependOut, &x))
	_, signal := announce(t, b)
	// A context that has ended matters only if there is something to wait for.
	cause := errors.New("no more time")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	generate := func(depend ...tasks.Depend) *foreign.Included {
		included := new(foreign.Included)
		_, err := r.device.Generate(foreign.Task{
			Construct: construct.Construct{Label: "included", Scope: r.scope, Depend: depend},
			Included:  included,
			Parts:     []foreign.Part{{Object: foreign.Object(b), Action: foreign.ActionUse}},
		})
		succeed(t, err)
		return included
	}
	waiting, given := generate(depend(tasks.DependIn, &x)), generate(depend(tasks.DependIn, &x))
	if err := given.Wait(ended, nil); !errors.Is(err, cause) {
		t.Errorf("before the predecessor is complete: %v", err)
	}
	// These constructs have no predecessors.
	succeed(t, generate(depend(tasks.DependIn, new(uint64))).Wait(ended, nil))
	succeed(t, generate().Wait(ended, nil))
	r.steps()
	succeed(t, waiting.Wait(ended, nil))
	if v := r.valueOf(t, b); v != 0 {
		t.Errorf("the semaphore has %d", v)
	}
	succeed(t, b.Withdraw(signal))
	r.steps()
	succeed(t, r.scope.Wait(t.Context(), nil))
	r.free(t)
}
