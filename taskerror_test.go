package vkomp_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// Failures that a program gets have the types of the root package: the failure itself, and that of
// the task that it depends on.
func TestFailuresAreOfTheTypesThatProgramsKnow(t *testing.T) {
	rt := vktest.Open(t)
	ctx := t.Context()
	x, mine := []uint32{0}, errors.New("mine")
	must(t, rt.Task(ctx, vkomp.Task{Label: "panics", Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { panic(mine) }}))
	err := rt.Task(ctx, vkomp.Task{Label: "follows", If: vkomp.If(false), Depend: []vkomp.Depend{vkomp.In(x)}, Body: func(context.Context) error { return nil }})
	var failed *vkomp.TaskError
	if !errors.As(err, &failed) || failed.Task != "follows" || !failed.Dependent {
		t.Fatalf("the task that follows: %#v in %v", failed, err)
	}
	root, ok := failed.Cause.(*vkomp.TaskError)
	if !ok || root.Task != "panics" || root.Dependent {
		t.Fatalf("it was not run because of %#v", failed.Cause)
	}
	panicked, ok := root.Cause.(*vkomp.PanicError)
	if !ok || panicked.Value != mine || !strings.Contains(string(panicked.Stack), "taskerror_test.go") {
		t.Errorf("the cause is %#v", root.Cause)
	}
	if !errors.Is(err, mine) || !errors.As(err, &panicked) || !strings.Contains(err.Error(), failed.Error()) {
		t.Errorf("the error does not have all of it: %v", err)
	}
	failed = nil
	if err := rt.Taskwait(ctx); !errors.As(err, &failed) || failed.Task != "panics" || !errors.Is(err, mine) {
		t.Errorf("Taskwait: %v", err)
	}
	if err := rt.Taskgroup(ctx, func(context.Context) error { panic(mine) }); !errors.As(err, &panicked) || panicked.Value != mine {
		t.Errorf("Taskgroup: %v", err)
	}
}
