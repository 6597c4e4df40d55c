// Package construct is what all constructs that generate a task have in common, whatever the
// task does and wherever: the clauses that say where it is in the graph, and who observes it.
// It is for this repository alone.
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

// Construct is a construct that generates a task.
type Construct struct {
	// Label names the task in errors and graphs.
	Label string
	// Scope is the task region that the construct belongs to.
	Scope *tasks.Scope
	// Group is the taskgroup that the task belongs to, or nil.
	Group *tasks.Group
	// Depend orders the task among its siblings. Nothing of it is kept.
	Depend []tasks.Depend
	// NoWait lets the task be deferred; otherwise it is included, or undeferred: the
	// construct waits for it.
	NoWait bool
	// Priority orders what is ready, the highest first.
	Priority int
	// Always: the task is run in any case, as in tasks.Task.
	Always bool
	// Place is given back while the construct waits, or nil.
	Place tasks.Place
	// Observer hears what the task does, or is nil.
	Observer Observer
}

// Fill sets what the construct says of its task, whatever t has there.
func (c *Construct) Fill(t *tasks.Task) {
	t.Label, t.Included, t.Depend, t.Group, t.Always = c.Label, !c.NoWait, c.Depend, c.Group, c.Always
	if c.Observer != nil {
		t.Witness = c.Observer
	}
}

// Add fills the task, adds it to the construct's scope and has its observer hear of it. The
// task can start when w is run, or during Add. Where the observer ends the goroutine, nobody
// waits for an included task: left is called, which may be nil, and the task abandoned. A
// deferred task is dropped when ctx ends before it has started.
func (c *Construct) Add(ctx context.Context, t *tasks.Task, w *tasks.Work, left func()) (*tasks.Node, error) {
	c.Fill(t)
	if c.NoWait {
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
