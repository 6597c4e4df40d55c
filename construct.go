package vkomp

import (
	"context"
	"unsafe"

	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/host"
)

// directive is what listeners are told of a construct, besides its label and its depend clause.
type directive struct {
	// kind is the kind of a target region in its form without nowait, 0 if it is none.
	kind  ompt.TargetKind
	flags ompt.TaskFlag
	form  observe.Form
	// device is the number of the device that the task is for.
	device int
	// at is where the construct is in the program; the zero Site is here.
	at observe.Site
}

// encounter completes a construct that c encounters, whose label and depend clause are set,
// and announces its task to the runtime's listeners. The result is not nil if one of them wants
// to know what the construct does: the caller sets Data of it, and calls done.
func (c *current) encounter(to *construct.Construct, d *directive) *announced {
	// A construct of a record can have another's.
	to.Scope, to.Group, to.Place, to.Observer = c.children(), c.group(), c.place, nil
	to.NoWait = d.flags&ompt.TaskUndeferred == 0
	events := c.rt.events.Load()
	if events == nil {
		return nil
	}
	heard := c.describe(events, to, d)
	to.Observer = events.Task(heard)
	if !events.Data() {
		return nil
	}
	return &announced{heard, events, to.Observer}
}

// announced is a construct that listeners have heard of.
type announced struct {
	observe.Construct
	events *observe.Listeners
	// task is the observer of its task, or nil.
	task construct.Observer
}

// describe returns the construct as listeners are told of it.
func (c *current) describe(events *observe.Listeners, of *construct.Construct, d *directive) observe.Construct {
	heard := observe.Construct{Label: of.Label, Kind: d.kind, Flags: d.flags, Form: d.form, Device: d.device, Depend: of.Depend}
	heard.Site = d.at
	c.origin(events, &heard.Origin)
	return heard
}

// onDevice announces the task that an interop construct has on a device, of which no
// construct waits, and returns its observer, or nil.
func (a *announced) onDevice(device int) construct.Observer {
	task := a.Construct
	task.Device, task.Flags = device, targetFlags(true)
	return a.events.Task(task)
}

// done says what came of the construct, err, and returns that.
func (a *announced) done(ctx context.Context, err error) error {
	if a != nil {
		a.events.Generated(ctx, a.Construct, a.task, err)
	}
	return err
}

// observed reports whether a listener wants to know what constructs do to storage.
func (rt *Runtime) observed() bool {
	events := rt.events.Load()
	return events != nil && events.Data()
}

// generate generates the task of a construct that c encounters and whose clauses are evaluated: on
// the device of s, or, if s is nil, on the host and without a body.
func (c *current) generate(ctx context.Context, passed *clauses, s *sched.Scheduler) error {
	told := c.encounter(&passed.Construct, &passed.directive)
	if told != nil {
		told.Data = passed.does
	}
	return told.done(ctx, c.rt.run(ctx, s, &passed.Region))
}

// run generates the task of a construct: on the device of s, or, if s is nil, on the host, where it has
// nothing to do.
func (rt *Runtime) run(ctx context.Context, s *sched.Scheduler, r *sched.Region) error {
	if s == nil {
		return rt.host.Run(ctx, host.Region{Construct: r.Construct})
	}
	return s.Run(ctx, r)
}

// origin sets what o says of c, and where in the program the construct is unless it is set.
func (c *current) origin(events *observe.Listeners, o *observe.Origin) {
	o.Region = c.observer
	if c.inside != nil {
		o.Taskgroup = c.inside.notes
	}
	if o.Site == (observe.Site{}) {
		o.Site = events.Here()
	}
}

// waiting announces a region in which c waits for tasks.
func (c *current) waiting(kind ompt.SyncRegion, dependent bool) observe.Waiting {
	events := c.rt.events.Load()
	if events == nil {
		return observe.Waiting{}
	}
	w := observe.Wait{Kind: kind, Dependent: dependent}
	c.origin(events, &w.Origin)
	return events.Region(w)
}

// targetFlags are the flags of a target task.
func targetFlags(noWait bool) ompt.TaskFlag {
	if noWait {
		return ompt.TaskTarget
	}
	return ompt.TaskTarget | ompt.TaskUndeferred
}

// pointed announces a pointer to storage of the device that corresponds to the host's.
func (d *device) pointed(p sched.Pointer, host unsafe.Pointer) {
	if events := d.rt.events.Load(); events != nil {
		events.Pointed(d.number, p, host)
	}
}
