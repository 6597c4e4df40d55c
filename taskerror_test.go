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

// A failure is the same error wherever a program meets it: in the graph, as the cause of a task that
// was not run, in a wait that reports several failures, and in what a body makes of that.
func TestOneFailureIsOneError(t *testing.T) {
	rt := vktest.Open(t, func(o *vkomp.Options) { o.KeepGraph = true })
	ctx := t.Context()
	x, y := []uint32{0}, []uint32{0}
	fails := func(label string, s []uint32) {
		must(t, rt.Task(ctx, vkomp.Task{Label: label, Depend: []vkomp.Depend{vkomp.Out(s)}, Body: func(context.Context) error { return errors.New(label) }}))
	}
	fails("first", x)
	fails("second", y)
	err := rt.Task(ctx, vkomp.Task{Label: "follows", If: vkomp.If(false), Depend: []vkomp.Depend{vkomp.In(x)}, Body: func(context.Context) error { return nil }})
	var follows *vkomp.TaskError
	if !errors.As(err, &follows) {
		t.Fatalf("the task that follows: %v", err)
	}
	fails("third", []uint32{0})
	waited := rt.Taskwait(ctx)
	found := 0
	for _, task := range rt.Graph().Tasks {
		switch task.Label {
		case "first":
			found++
			if task.Failure != follows.Cause {
				t.Errorf("the graph has %#v, the cause of the dependent is %#v", task.Failure, follows.Cause)
			}
		case "second", "third":
			found++
			if _, ok := task.Failure.(*vkomp.TaskError); !ok || !errors.Is(waited, task.Failure) {
				t.Errorf("the graph has %#v, Taskwait %v", task.Failure, waited)
			}
		}
	}
	if found != 3 {
		t.Errorf("%d of 3 failures are in the graph", found)
	}
	wraps := rt.Task(ctx, vkomp.Task{Label: "wraps", If: vkomp.If(false), Body: func(context.Context) error { return waited }})
	var outer *vkomp.TaskError
	if !errors.As(wraps, &outer) || outer.Task != "wraps" || !errors.Is(wraps, waited) {
		t.Errorf("a body that returns the error of its wait: %v", wraps)
	}
}
