package vkomp

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
)

// TargetData describes a target data region (OpenMP target data construct): its slices have
// storage on the device while the body runs.
type TargetData struct {
	// Device is the device clause; the zero Device is the current task's default
	// device.
	Device Device
	// If, when false, makes the region map nothing: it is then on the initial device.
	If Cond
	// Maps are slices made with To, From, ToFrom or Alloc, possibly with the modifiers
	// Always, Close, Present and Self.
	Maps []Arg
	// Use sets device pointers to storage that is present, through Maps or before.
	Use []UseDevice
	// Depend orders the beginning and the end of the region among the siblings, and
	// with NoWait the region as a whole (OpenMP 6.0).
	Depend []Depend
	// NoWait makes the region a deferred task (OpenMP 6.0), whose body runs on the host.
	NoWait bool
	// NoGroup lets the region end before the tasks that its body generates: the body is
	// then not a taskgroup (OpenMP 6.0 nogroup clause).
	NoGroup bool
	// Label names the region in errors and graphs; "target data" by default.
	Label string
}

// TargetData maps storage, calls body, and unmaps the storage (OpenMP target data). Target
// regions in the body find their slices present and copy nothing. The body runs on the
// calling goroutine as part of the current task, and as the body of a taskgroup (OpenMP 6.0
// §15.7): before the region ends it waits for all tasks that the body has generated, and
// for their descendants. TargetData returns when the region has ended, with the errors that
// [Runtime.Taskgroup] returns. If ctx ends first, the region ends without waiting, as with
// NoGroup. If its end fails, as for want of memory for copies to the host, the slices that can be
// unmapped are unmapped without copies.
//
// With NoGroup the region does not wait for the tasks that its body leaves behind. Slices
// that such a task maps stay mapped until it is complete, and then the task makes the copy
// to the host. A task that has not started when the region ends maps its slices anew, by its
// own map types.
//
// With NoWait TargetData returns when the task is generated, and the errors are
// failures of that task. The task is transparent (OpenMP 6.0 §15.7: [ImpEx] is what holds without
// a transparent clause), so tasks of the body can depend on earlier siblings of the region, and
// siblings that depend on the region also on tasks that its body leaves behind.
func (rt *Runtime) TargetData(ctx context.Context, d TargetData, body func(ctx context.Context) error) error {
	defer rt.using.leave(rt.using.enter())
	r, err := rt.newDataRegion(ctx, &d, body != nil)
	if err != nil {
		return rt.unrecorded(ctx, condAbsent, err)
	}
	if !d.NoWait || rt.current(ctx).final {
		return r.run(ctx, r.depend, body)
	}
	// Tasks of the body follow earlier siblings of the region, and siblings that follow the region also the tasks
	// of its body, as they do without nowait, where all of them are siblings.
	return rt.Task(ctx, Task{Label: r.label, Depend: d.Depend, Transparent: ImpEx, Body: func(ctx context.Context) error {
		return r.run(ctx, nil, body)
	}})
}

// dataRegion is a target data region whose clauses have been evaluated, so that it can
// begin.
type dataRegion struct {
	rt    *Runtime
	label string
	// scheduler is that of the region's device, nil if original and corresponding storage are the same.
	scheduler *sched.Scheduler
	device    *device
	// enter are the maps and then the items of uses; found says which of them are on the
	// device. exit are the items that the end of the region unmaps.
	enter, exit []memory.Map
	found       []bool
	uses        []UseDevice
	depend      []tasks.Depend
	noGroup     bool
	// site is the place of the construct in the program, with Options.LeakSites.
	site *memory.Site
	// at is the place of the construct in the program, as far as listeners ask for it.
	at observe.Site
	// images are items of enter, and of exit at the same indices.
	images []transfer.Image
}

// newDataRegion evaluates the clauses of a region.
func (rt *Runtime) newDataRegion(ctx context.Context, d *TargetData, hasBody bool) (*dataRegion, error) {
	if err := rt.construct(ctx); err != nil {
		return nil, fmt.Errorf("target data %q: %w", cmp.Or(d.Label, "target data"), err)
	}
	r := &dataRegion{rt: rt, label: "target data", noGroup: d.NoGroup}
	if events := rt.events.Load(); events != nil {
		r.at = events.Here()
	}
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
	c := rt.current(ctx)
	if recording := c.records(condAbsent); recording != nil {
		return nil, recording.refuse("target data", r.label, "code of the program runs between its tasks")
	}
	if err := r.items(d); err != nil {
		return fail(err)
	}
	dev, err := rt.resolve(c, d.Device, d.If)
	if err != nil {
		return fail(err)
	}
	r.depend = appendItems(r.depend, d.Depend)
	if dev.physical == nil {
		return r, nil
	}
	r.device = dev
	if r.scheduler, err = dev.open(); err != nil {
		return fail(err)
	}
	return r, nil
}

// items evaluates the data clauses.
func (r *dataRegion) items(d *TargetData) error {
	if err := checkArgs(d.Maps, mapLabels); err != nil {
		return err
	}
	for k := range d.Maps {
		a := &d.Maps[k]
		m, err := a.entering(mapLabels.of(k))
		if err != nil {
			return err
		}
		r.enter = append(r.enter, m)
		if image := a.image(); image != nil {
			if r.images, err = image.addTo(r.images, &r.enter, a, mapLabels.of(k), r.member); err != nil {
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

// member adds the item for a member of a mapped value.
func (r *dataRegion) member(a *Arg, label string) error {
	m, err := a.entering(label)
	r.enter = append(r.enter, m)
	return err
}

// run begins the region, calls body, and ends the region.
func (r *dataRegion) run(ctx context.Context, depend []tasks.Depend, body func(ctx context.Context) error) (err error) {
	if len(depend) > 0 {
		// Waiting for the predecessors can take long, so a ctx that ends during that time
		// makes the region fail with nothing mapped. After that the beginning and the end of
		// the region take no longer than their copies, and ctx is ignored: it must not leave
		// the region half mapped.
		if err := r.rt.join(ctx, r.label, waitItems(depend), false); err != nil {
			return r.rt.failure(ctx, err)
		}
	}
	if err := r.begin(ctx, depend); err != nil {
		return fmt.Errorf("vkomp: %w", err)
	}
	// Deferred, because the body may call runtime.Goexit.
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
			// Present was checked at the beginning.
			m.Presence = memory.MayBeAbsent
			if k >= maps {
				m.Presence = memory.IfPresent
			}
			r.exit = append(r.exit, m)
		}
	}
	err := r.set(r.found[maps:])
	if err != nil {
		// The body has not run, so there is nothing to copy back.
		for k := range r.exit {
			r.exit[k].Type, r.exit[k].Always = memory.MapRelease, false
		}
		err = errors.Join(err, r.move(ctx, depend, true))
	}
	return err
}

// move generates the included task of the region's beginning or of its end. The end
// unmaps everything that was mapped even if ctx has ended.
func (r *dataRegion) move(ctx context.Context, depend []tasks.Depend, ending bool) error {
	c := r.rt.current(ctx)
	kind := ompt.TargetEnterData
	if ending {
		kind = ompt.TargetExitData
	}
	if r.scheduler == nil && len(depend) == 0 {
		return nil
	}
	d := directive{kind: kind, flags: targetFlags(false), device: r.rt.NumDevices(), at: r.at}
	if r.scheduler != nil {
		d.device = r.device.number
	}
	region := sched.Region{Construct: construct.Construct{Label: r.label, Depend: depend, Always: ending}, Images: r.images}
	if ending {
		region.Exit = r.exit
	} else {
		region.Enter, region.Found, region.Site = r.enter, r.found, r.site
	}
	told := c.encounter(&region.Construct, &d)
	if told != nil {
		told.Data = r.data(ending)
	}
	return told.done(ctx, r.rt.run(context.WithoutCancel(ctx), r.scheduler, &region))
}

// waitItems returns the items with which an empty task depends on everything that a task
// with the given items depends on; taskwait does not allow mutexinoutset.
func waitItems(depend []tasks.Depend) []tasks.Depend {
	items := append([]tasks.Depend(nil), depend...)
	for k := range items {
		if items[k].Kind == tasks.DependMutexInOutSet {
			items[k].Kind = tasks.DependInOut
		}
	}
	return items
}
