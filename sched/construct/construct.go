// Package construct has what all task-generating constructs have in common, whatever the task
// does and wherever it runs: the clauses that place it in the task graph, and its observer. It is
// internal to this module.
//
//	Construct ──Add──▶ tasks.Scope ──▶ Observer.Created ──▶ the task may start
//
// A target region (sched.Region), a region of the initial device or an explicit task
// (host.Region) and an interop construct (foreign.Task) each embed a Construct.
package construct

import (
	"context"

	"github.com/vkomp/vkomp/tasks"
)

// Construct is a task-generating construct.
type Construct struct {
	// Label names the task in errors and graphs.
	Label string
	// Scope is the task region that encounters the construct.
	Scope *tasks.Scope
	// Group is the taskgroup that the task belongs to, or nil.
	Group *tasks.Group
	// Depend orders the task among its siblings. It is not kept.
	Depend []tasks.Depend
	// NoWait makes the task deferred. Otherwise it is an included or undeferred task, for
	// which the construct waits.
	NoWait bool
	// Priority orders ready tasks, the highest first.
	Priority int
	// Always says that the task runs whatever happens to its predecessors (see tasks.Task), like the one
	// that ends a data region.
	Always bool
	// Place, if not nil, is given up while the construct waits.
	Place tasks.Place
	// Observer, if not nil, is told what the task does.
	Observer Observer
}

// Fill sets the fields of t that the construct determines and leaves the others.
func (c *Construct) Fill(t *tasks.Task) {
	t.Label, t.Included, t.Depend, t.Group, t.Always = c.Label, !c.NoWait, c.Depend, c.Group, c.Always
	if c.Observer != nil {
		t.Witness = c.Observer
	}
}

// Add adds the task to the construct's scope, after Fill, and tells its observer. The task can
// start during Add, or when w is run. If the observer ends the goroutine, nobody waits for an
// included task: it is abandoned, after a call of left if that is not nil. A deferred task is
// dropped if ctx ends before it starts.
func (c *Construct) Add(ctx context.Context, t *tasks.Task, w *tasks.Work, left func()) (*tasks.Node, error) {
	c.Fill(t)
	if c.NoWait && ctx.Done() != nil {
		t.Context = ctx
	}
	n, err := c.Scope.Add(t, w)
	if err != nil || c.Observer == nil {
		return n, err
	}
	Created(c.Observer, n, c.Depend, w, func() {
		if c.NoWait {
			return
		}
		if left != nil {
			left()
		}
		n.Abandon()
	})
	return n, nil
}
