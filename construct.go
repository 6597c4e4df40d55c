package vkomp

import (
	"context"
	"unsafe"

	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/tasks"
)

// met is a construct that a region meets, on the way to its task.
type met struct {
	label string
	// kind is that of the target region in the form that waits, 0 for none.
	kind  ompt.TargetKind
	flags ompt.TaskFlag
	form  observe.Form
	// device is the number of the device that the task is for.
	device int
	depend []tasks.Depend
	// at is where the construct is in the program; the zero Site is here.
	at observe.Site
}

// construct returns what the construct m, which c meets, has in common with others, and
// announces its task to the runtime's listeners. told is not nil if one of them asks what
// the construct does: it gets that, and says later what came of the construct.
func (c *current) construct(m *met) (common construct.Construct, told *announced) {
	common = construct.Construct{
		Label: m.label, Scope: c.children(), Group: c.group(), Place: c.place, Depend: m.depend, NoWait: m.flags&ompt.TaskUndeferred == 0,
	}
	if events := c.rt.events.Load(); events != nil {
		heard := c.describe(events, m)
		common.Observer = events.Task(heard)
		if events.Data() {
			told = &announced{heard, events, common.Observer}
		}
	}
	return common, told
}

// announced is a construct that listeners have heard of.
type announced struct {
	observe.Construct
	events *observe.Listeners
	// task is the observer of its task, or nil.
	task construct.Observer
}

// describe returns the construct as listeners hear of it.
func (c *current) describe(events *observe.Listeners, m *met) observe.Construct {
	heard := observe.Construct{Label: m.label, Kind: m.kind, Flags: m.flags, Form: m.form, Device: m.device, Depend: m.depend}
	heard.Site = m.at
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
