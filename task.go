package vkomp

import (
	"context"
	"fmt"

	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/tasks"
)

// Task is an explicit task on the host (OpenMP task construct).
type Task struct {
	// Body runs on a goroutine of its own. Constructs called with its ctx
	// generate children of this task; that ctx is of no use once Body has
	// returned. Body must not call Runtime.Close, which waits for it.
	Body func(ctx context.Context) error
	// Depend orders the task among its siblings, target tasks included.
	Depend []Depend
	// Label names the task in errors and graphs; "task" by default.
	Label string
}

// Task generates a deferred task on the host (OpenMP task). The context's end
// does not stop it. A failure of the body, or a panic in it, is a *TaskError of
// the next Taskwait.
func (rt *Runtime) Task(ctx context.Context, t Task) error {
	if err := rt.task(ctx, &t); err != nil {
		return fmt.Errorf("vkomp: %w", err)
	}
	return nil
}

func (rt *Runtime) task(ctx context.Context, t *Task) error {
	if err := rt.construct(ctx); err != nil {
		return err
	}
	if t.Label == "" {
		t.Label = "task"
	}
	if t.Body == nil {
		return fmt.Errorf("%w: task %q has no body", ErrInvalidArgument, t.Label)
	}
	inner := rt.graph.NewScope()
	runner := &hostBody{rt: rt, scope: inner, run: t.Body}
	runner.ctx = context.WithValue(context.WithoutCancel(ctx), scopeKey{rt}, inner)
	var w tasks.Work
	if _, err := rt.scope(ctx).Add(tasks.Task{Label: t.Label, Depend: t.Depend, Runner: runner}, &w); err != nil {
		return err
	}
	w.Run()
	return nil
}

// hostBody runs an explicit task.
type hostBody struct {
	rt    *Runtime
	ctx   context.Context
	scope *tasks.Scope
	run   func(ctx context.Context) error
}

// Start implements tasks.Runner.
func (b *hostBody) Start(n *tasks.Node, _ *tasks.Work) {
	go func() {
		err := sched.Protect(func() error { return b.run(b.ctx) })
		b.rt.adopt(b.scope)
		var w tasks.Work
		n.Complete(err, &w)
		w.Run()
	}()
}

// Drop implements tasks.Runner.
func (b *hostBody) Drop(*tasks.Node) {}

// scopeKey is the key of a context's current task in one runtime.
type scopeKey struct{ rt *Runtime }

// scope returns the children's scope of the task that ctx carries.
func (rt *Runtime) scope(ctx context.Context) *tasks.Scope {
	if s, ok := ctx.Value(scopeKey{rt}).(*tasks.Scope); ok {
		return s
	}
	return rt.initial
}

// adopt keeps the scope of a finished task for Close while it has children that
// are not complete or failures that no wait reported: a task need not wait for
// its children.
func (rt *Runtime) adopt(s *tasks.Scope) {
	if s.Settled() {
		return
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	kept := rt.orphans[:0]
	for _, o := range rt.orphans {
		if !o.Settled() {
			kept = append(kept, o)
		}
	}
	clear(rt.orphans[len(kept):])
	rt.orphans = append(kept, s)
}

// Taskwait waits for the children that the current task has generated so far
// (OpenMP taskwait) and returns their failures joined. When ctx ends first its
// cause is returned; the tasks go on, and their slices stay the runtime's until
// a later Taskwait returns.
func (rt *Runtime) Taskwait(ctx context.Context) error {
	if err := rt.scope(ctx).Wait(ctx); err != nil {
		return fmt.Errorf("vkomp: %w", err)
	}
	return nil
}
