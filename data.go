package vkomp

import (
	"context"
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/tasks"
)

// TargetData is a target data region (OpenMP target data construct): its slices
// have storage on the device while the body runs.
type TargetData struct {
	// Device is the device clause; the zero Device is the current task's default
	// device.
	Device Device
	// If false maps nothing: the region is on the initial device.
	If Cond
	// Maps are slices made with To, From, ToFrom or Alloc.
	Maps []Arg
	// Depend orders the beginning and the end of the region among the siblings, and
	// with NoWait the whole of it (OpenMP 6.0).
	Depend []Depend
	// NoWait makes the region a deferred task (OpenMP 6.0), which begins, runs the
	// body in a taskgroup on the host, and ends.
	NoWait bool
	// Label names the region in errors and graphs; "target data" by default.
	Label string
}

// TargetData maps storage, calls body, and unmaps it (OpenMP target data).
// Target regions inside find their slices present and copy nothing. The body
// runs on the calling goroutine, as part of the current task; its error is
// returned after the region has ended.
//
// The region does not wait for deferred tasks that the body left behind: what
// they hold stays mapped until they finish, so copies to the host may be theirs
// to make. A body that needs results waits for them. With NoWait the region does
// wait for them, and TargetData returns when the task is generated: body's error
// is a failure of the task then.
func (rt *Runtime) TargetData(ctx context.Context, d TargetData, body func(ctx context.Context) error) error {
	r, err := rt.meet(ctx, hide(&d), body != nil)
	if err != nil {
		return fmt.Errorf("vkomp: %w", err)
	}
	if !d.NoWait || rt.current(ctx).final {
		return r.run(ctx, r.depend, body)
	}
	return rt.Task(ctx, Task{Label: r.label, Depend: d.Depend, Body: func(ctx context.Context) error {
		return r.run(ctx, nil, func(ctx context.Context) error { return rt.Taskgroup(ctx, body) })
	}})
}

// dataRegion is a target data region that was met: its clauses are evaluated, and
// it can begin.
type dataRegion struct {
	rt    *Runtime
	label string
	// device is nil where original and corresponding storage are the same.
	device *sched.Scheduler
	maps   []memory.Map
	depend []tasks.Depend
}

// meet evaluates the clauses of a region.
func (rt *Runtime) meet(ctx context.Context, d *TargetData, hasBody bool) (*dataRegion, error) {
	if err := rt.construct(ctx); err != nil {
		return nil, err
	}
	r := &dataRegion{rt: rt, label: "target data"}
	if d.Label != "" {
		r.label = rt.labels.intern(d.Label)
	}
	fail := func(err error) (*dataRegion, error) {
		return nil, fmt.Errorf("target data %q: %w", r.label, err)
	}
	if !hasBody {
		return fail(fmt.Errorf("%w: no body", ErrInvalidArgument))
	}
	if err := checkArgs(d.Maps); err != nil {
		return fail(err)
	}
	for k := range d.Maps {
		if d.Maps[k].isValue {
			return fail(fmt.Errorf("%w: map %d is a value", ErrInvalidArgument, k))
		}
	}
	dev, err := rt.resolve(rt.current(ctx), d.Device, d.If)
	if err != nil {
		return fail(err)
	}
	r.depend = appendItems(r.depend, d.Depend)
	if dev.physical == nil {
		return r, nil
	}
	if r.device, err = dev.open(); err != nil {
		return fail(err)
	}
	for k := range d.Maps {
		r.maps = append(r.maps, memory.Map{Section: d.Maps[k].section, Type: d.Maps[k].mapType, Label: argumentLabel(k)})
	}
	return r, nil
}

// run begins the region, calls body, and ends it.
func (r *dataRegion) run(ctx context.Context, depend []tasks.Depend, body func(ctx context.Context) error) (err error) {
	if len(depend) > 0 {
		// What the region follows can take long: a ctx that ends meanwhile leaves
		// nothing behind. Where that is over, beginning and end take no longer than
		// their copies, and ctx no longer counts: it must not leave the region half
		// mapped.
		if err := r.rt.join(ctx, r.label, waitItems(depend), false); err != nil {
			return fmt.Errorf("vkomp: %w", err)
		}
	}
	if err := r.move(ctx, depend, false); err != nil {
		return fmt.Errorf("vkomp: %w", err)
	}
	// Deferred, because a body can leave by runtime.Goexit.
	defer func() {
		if ending := r.move(ctx, depend, true); ending != nil {
			err = errors.Join(err, fmt.Errorf("vkomp: %w", ending))
		}
	}()
	return sched.Protect(func() error { return body(ctx) })
}

// move generates the included task of the region's beginning, or of its end, which
// unmaps what was mapped in any case.
func (r *dataRegion) move(ctx context.Context, depend []tasks.Depend, ending bool) error {
	c := r.rt.current(ctx)
	enter, exit := r.maps, []memory.Map(nil)
	if ending {
		enter, exit = nil, r.maps
	}
	if r.device == nil {
		if len(depend) == 0 {
			return nil
		}
		return r.rt.host.Run(context.WithoutCancel(ctx), sched.HostRegion{
			Label: r.label, Scope: c.children(), Depend: depend, Group: c.group(), Place: c.place, Always: ending,
		})
	}
	return r.device.Run(context.WithoutCancel(ctx), sched.Region{
		Label: r.label, Scope: c.children(), Depend: depend, Enter: enter, Exit: exit, Group: c.group(), Place: c.place,
		Always: ending,
	})
}

// waitItems returns the items with which an empty task follows whatever one with
// these items does; taskwait takes no mutexinoutset.
func waitItems(depend []tasks.Depend) []tasks.Depend {
	items := append([]tasks.Depend(nil), depend...)
	for k := range items {
		if items[k].Kind == tasks.DependMutexInOutSet {
			items[k].Kind = tasks.DependInOut
		}
	}
	return items
}
