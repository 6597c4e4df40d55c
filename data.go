package vkomp

import (
	"context"
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/host"
	"github.com/vkomp/vkomp/sched/protect"
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
	// Maps are slices made with To, From, ToFrom or Alloc. Always, Close, Present and
	// Self may modify them.
	Maps []Arg
	// Use sets device pointers to storage that is present, by Maps or before.
	Use []UseDevice
	// Depend orders the beginning and the end of the region among the siblings, and
	// with NoWait the whole of it (OpenMP 6.0).
	Depend []Depend
	// NoWait makes the region a deferred task (OpenMP 6.0), which begins, runs the
	// body on the host, and ends.
	NoWait bool
	// NoGroup lets the region end before the tasks that its body generates: the body
	// is not a taskgroup (the nogroup clause of OpenMP 6.0).
	NoGroup bool
	// Label names the region in errors and graphs; "target data" by default.
	Label string
}

// TargetData maps storage, calls body, and unmaps it (OpenMP target data).
// Target regions inside find their slices present and copy nothing. The body
// runs on the calling goroutine, as part of the current task, and as the body of
// a taskgroup (OpenMP 6.0 §15.7): before the region ends it waits for all tasks
// that the body has generated, and for their descendants. TargetData returns when
// the region has ended, with the errors that [Runtime.Taskgroup] returns. When ctx
// ends first, the region ends without waiting, as with NoGroup.
//
// With NoGroup the region does not wait for the tasks that its body leaves behind:
// slices that such a task maps stay mapped until it is complete, and the copy to
// the host is then the task's to make. One that has not started when the region
// ends maps them anew, by its own map types.
//
// With NoWait TargetData returns when the task is generated, and the errors are
// failures of that task.
func (rt *Runtime) TargetData(ctx context.Context, d TargetData, body func(ctx context.Context) error) error {
	rt.using.RLock()
	defer rt.using.RUnlock()
	r, err := rt.meet(ctx, &d, body != nil)
	if err != nil {
		return fmt.Errorf("vkomp: %w", err)
	}
	if !d.NoWait || rt.current(ctx).final {
		return r.run(ctx, r.depend, body)
	}
	return rt.Task(ctx, Task{Label: r.label, Depend: d.Depend, Body: func(ctx context.Context) error {
		return r.run(ctx, nil, body)
	}})
}

// dataRegion is a target data region that was met: its clauses are evaluated, and
// it can begin.
type dataRegion struct {
	rt    *Runtime
	label string
	// device is that of the region, nil where original and corresponding storage are
	// the same; of is the device's record.
	device *sched.Scheduler
	of     *device
	// enter are the maps, then the items of uses; found says which of them are on the
	// device. exit are those that the region's end lets go.
	enter, exit []memory.Map
	found       []bool
	uses        []UseDevice
	depend      []tasks.Depend
	noGroup     bool
	// site is where the construct is in the program, with Options.LeakSites.
	site *memory.Site
	// stack is where the construct is, with Options.Race.
	stack *raceStack
	// images are items of enter, and of exit under the same indices.
	images []sched.Image
}

// meet evaluates the clauses of a region.
func (rt *Runtime) meet(ctx context.Context, d *TargetData, hasBody bool) (*dataRegion, error) {
	if err := rt.construct(ctx); err != nil {
		return nil, err
	}
	r := &dataRegion{rt: rt, label: "target data", noGroup: d.NoGroup, stack: rt.race.callers()}
	if rt.options.LeakSites {
		r.site = memory.CallSite()
	}
	if d.Label != "" {
		r.label = rt.labels.intern(d.Label)
	}
	fail := func(err error) (*dataRegion, error) {
		return nil, fmt.Errorf("target data %q: %w", r.label, err)
	}
	if !hasBody {
		return fail(fmt.Errorf("%w: no body", ErrInvalidArgument))
	}
	if err := r.items(d); err != nil {
		return fail(err)
	}
	dev, err := rt.resolve(rt.current(ctx), d.Device, d.If)
	if err != nil {
		return fail(err)
	}
	r.depend = appendItems(r.depend, d.Depend)
	if dev.physical == nil {
		return r, nil
	}
	r.of = dev
	if r.device, err = dev.open(); err != nil {
		return fail(err)
	}
	return r, nil
}

// items evaluates the data clauses.
func (r *dataRegion) items(d *TargetData) error {
	if err := checkArgs(d.Maps, &mapLabels); err != nil {
		return err
	}
	for k := range d.Maps {
		m, err := d.Maps[k].entering(mapLabels.of(k))
		if err != nil {
			return err
		}
		r.enter = append(r.enter, m)
		if a := &d.Maps[k]; a.image != nil {
			if r.images, err = a.image.addTo(r.images, &r.enter, a, mapLabels.of(k), r.member); err != nil {
				return err
			}
		}
	}
	for k := range d.Use {
		u, label := d.Use[k], useLabels.of(k)
		if err := u.check(r.rt, label); err != nil {
			return err
		}
		r.uses = append(r.uses, u)
		r.enter = append(r.enter, u.item(label))
	}
	return nil
}

// member adds the item of a mapped value's member.
func (r *dataRegion) member(a *Arg, label string) error {
	m, err := a.entering(label)
	r.enter = append(r.enter, m)
	return err
}

// run begins the region, calls body, and ends it.
func (r *dataRegion) run(ctx context.Context, depend []tasks.Depend, body func(ctx context.Context) error) (err error) {
	if len(depend) > 0 {
		// What the region follows can take long: a ctx that ends meanwhile leaves
		// nothing behind. Where that is over, beginning and end take no longer than
		// their copies, and ctx no longer counts: it must not leave the region half
		// mapped.
		if err := r.rt.join(ctx, r.label, waitItems(depend), false); err != nil {
			return r.rt.failure(ctx, err)
		}
	}
	if err := r.begin(ctx, depend); err != nil {
		return fmt.Errorf("vkomp: %w", err)
	}
	// Deferred, because a body can leave by runtime.Goexit.
	defer func() {
		if ending := r.move(ctx, depend, true); ending != nil {
			err = errors.Join(err, fmt.Errorf("vkomp: %w", ending))
		}
	}()
	if r.noGroup {
		return protect.Call(func() error { return body(ctx) })
	}
	return r.rt.taskgroup(ctx, body)
}

// begin maps the region's items and sets the pointers to them.
func (r *dataRegion) begin(ctx context.Context, depend []tasks.Depend) error {
	r.found = make([]bool, len(r.enter))
	if err := r.move(ctx, depend, false); err != nil {
		return err
	}
	maps := len(r.enter) - len(r.uses)
	for k, m := range r.enter {
		if k < maps || r.found[k] {
			// Present was asked at the beginning.
			m.Presence = memory.MayBeAbsent
			if k >= maps {
				m.Presence = memory.IfPresent
			}
			r.exit = append(r.exit, m)
		}
	}
	err := r.set(r.found[maps:])
	if err != nil {
		// The body has not run: there is nothing to copy back.
		for k := range r.exit {
			r.exit[k].Type, r.exit[k].Always = memory.MapRelease, false
		}
		err = errors.Join(err, r.move(ctx, depend, true))
	}
	return err
}

// move generates the included task of the region's beginning, or of its end, which
// unmaps what was mapped in any case.
func (r *dataRegion) move(ctx context.Context, depend []tasks.Depend, ending bool) error {
	c := r.rt.current(ctx)
	kind := ompt.TargetEnterData
	if ending {
		kind = ompt.TargetExitData
	}
	if r.device == nil && len(depend) == 0 {
		return nil
	}
	common := c.construct(r.label, depend, false)
	common.Always = ending
	if r.device == nil {
		common.Observer = r.rt.tool.Load().observer(c, kind, r.rt.NumDevices(), r.label, targetFlags(false))
		err := r.rt.host.Run(context.WithoutCancel(ctx), host.Region{Construct: common})
		r.rt.race.move(ctx, c, r, depend, ending, err)
		return err
	}
	if t := r.rt.tool.Load(); t != nil {
		common.Observer = t.observer(c, kind, r.of.number, r.label, targetFlags(false))
	}
	region := sched.Region{Construct: common, Images: r.images}
	if ending {
		region.Exit = r.exit
	} else {
		region.Enter, region.Found, region.Site = r.enter, r.found, r.site
	}
	err := r.device.Run(context.WithoutCancel(ctx), region)
	r.rt.race.move(ctx, c, r, depend, ending, err)
	return err
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
