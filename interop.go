package vkomp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/vkomp/vkomp/internal/foreign"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/tasks"
)

// Interop describes an interop construct (OpenMP 5.1 §2.15.1). It has at least one of the
// clauses init, use and destroy; each object is in only one of them.
type Interop struct {
	// Device is the device clause, for init; the zero Device is the default device.
	Device Device
	// Init are new objects, Use the objects that the construct orders, and Destroy objects
	// that it ends, with all their copies, and sets to interop.None.
	Init    []InteropInit
	Use     []interop.Object
	Destroy []*interop.Object
	// Depend orders the construct's task among its siblings. It requires an object with type
	// targetsync.
	Depend []Depend
	// NoWait lets the task be deferred. Without it, and in a final task, a task with Depend is included:
	// Interop waits for its predecessors.
	NoWait bool
}

// InteropInit is an init clause.
type InteropInit struct {
	// Object is the object to initialise: it is interop.None, or was destroyed.
	Object *interop.Object
	// Types are the interop types, at least one.
	Types interop.Types
	// Prefer is the prefer_type modifier, best first. vkomp supports Vulkan only: every
	// object has that foreign runtime, even if it is not among the preferred ones, for which
	// case OpenMP leaves the choice to the implementation.
	Prefer []interop.Preference
}

// Interop executes an interop construct.
//
// An object with type target gives access to the device's Vulkan handles; the device is
// opened if it is not open. The runtime owns the handles, which are valid until the object is
// destroyed or the runtime closed.
//
// With objects of type targetsync the construct has an empty mergeable task. Foreign work that
// one of the objects was given before the construct is complete before the task begins; foreign
// work that it is given later begins after the task is complete. See [interop.Object.Next],
// [interop.Object.Submit] and [interop.Object.Queue] for how an object is given foreign work.
//
//   - Without NoWait and without Depend the task is merged: the construct only orders foreign
//     work, and does not wait.
//   - With NoWait the task is deferred. The device orders target tasks before and after it.
//     Interop does not wait.
//   - With Depend and without NoWait the task is included: Interop waits until the predecessors
//     that Depend names are complete, so that their results can be read when it returns. It
//     waits for foreign work only if a predecessor does.
//
// If the objects belong to several devices, there are always tasks, and the host keeps the
// order between the devices. Without targetsync NoWait has no effect.
//
// An object that cannot be initialised becomes interop.None, which is not an error (OpenMP):
// objects of the initial device, and of a device that cannot be opened. The log says why. None
// may be used and destroyed; a construct whose objects are all None keeps the order that Depend
// asks for.
//
// On a lost device a construct with Use is ErrDeviceLost, new objects are None, and destroying
// objects succeeds. Nothing waits for foreign work there.
//
// After an error in the construct itself no object has changed. The errors of other work are
// returned by a construct that has been executed: if it has no task, failures of earlier calls
// of [interop.Object.Submit]; if its task is included, as by Taskwait with depend items, a
// *TaskError whose Cause is that of a predecessor that failed, or the cause of ctx if that ends
// before the predecessors are complete. The text of such a TaskError says that the construct was
// not run, although it has been executed. If ctx has ended before the call, Interop returns its cause
// and does nothing, not even what Destroy asks for.
func (rt *Runtime) Interop(ctx context.Context, i Interop) error {
	if err := rt.interop(ctx, &i); err != nil {
		return rt.unrecorded(ctx, condAbsent, fmt.Errorf("interop: %w", err))
	}
	return nil
}

func (rt *Runtime) interop(ctx context.Context, i *Interop) error {
	if err := rt.construct(ctx); err != nil {
		return err
	}
	defer rt.using.leave(rt.using.enter())
	if err := rt.checkInterop(i); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidArgument, err)
	}
	c := rt.current(ctx)
	if recording := c.records(condAbsent); recording != nil {
		return recording.refuse("", "", "foreign work is not recorded")
	}
	t := foreign.Task{Construct: construct.Construct{Label: "interop", Scope: c.children(), Group: c.group(), Place: c.place, NoWait: i.NoWait && !c.final}}
	var told *announced
	if events := rt.events.Load(); events != nil {
		told = &announced{Construct: c.describe(events, &t.Construct, &directive{flags: targetFlags(t.NoWait)}), events: events}
		t.ObserverOf = told.onDevice
	}
	var err error
	if t.Depend, err = i.items(); err != nil {
		return err
	}
	if !t.NoWait && len(t.Depend) > 0 {
		t.Included = new(foreign.Included)
	}
	made, err := rt.initObjects(c, i)
	if err != nil {
		return err
	}
	parts := rt.partsOf(i, made)
	generated, err := rt.generateOn(parts, t)
	if !generated {
		for _, o := range made {
			if o != interop.None {
				err = errors.Join(err, rt.ownerOf(o).Destroy(foreign.Object(o)))
			}
		}
		return err
	}
	for k := range i.Init {
		*i.Init[k].Object = made[k]
	}
	err = errors.Join(err, rt.destroyObjects(i.Destroy))
	if len(parts) == 0 {
		if err == nil && len(t.Depend) > 0 {
			err = rt.join(ctx, t.Label, t.Depend, t.NoWait)
		}
		return err
	}
	var waited error
	if t.Included != nil {
		waited = t.Included.Wait(ctx, c.place)
	}
	if t.NoWait || t.Included != nil {
		if told != nil {
			told.Depend = t.Depend
		}
		_ = told.done(ctx, waited)
	}
	if err == nil {
		return waited
	}
	return errors.Join(err, waited)
}

// items returns the construct's depend items.
func (i *Interop) items() (items []tasks.Depend, err error) {
	for k := range i.Depend {
		item := i.Depend[k].item
		if err := tasks.CheckDepend(item); err != nil {
			return nil, fmt.Errorf("depend clause %d: %w", k, err)
		}
		if item.Kind == tasks.DependMutexInOutSet {
			// Foreign work orders the tasks of one object, so they must not wait for each
			// other's storage in another order. A join takes no part in exclusion either.
			item.Kind = tasks.DependInOut
		}
		items = append(items, item)
	}
	return items, nil
}

// partsOf returns what the construct does to its objects with targetsync, those of one device in a
// row. made are the new objects.
func (rt *Runtime) partsOf(i *Interop, made []interop.Object) []foreign.Part {
	var parts []foreign.Part
	add := func(o interop.Object, action foreign.Action) {
		if o.Types()&interop.TypeTargetSync != 0 {
			parts = append(parts, foreign.Part{Object: foreign.Object(o), Action: action})
		}
	}
	for _, o := range made {
		add(o, foreign.ActionInit)
	}
	for _, o := range i.Use {
		add(o, foreign.ActionUse)
	}
	for _, p := range i.Destroy {
		add(*p, foreign.ActionDestroy)
	}
	slices.SortStableFunc(parts, func(a, b foreign.Part) int { return cmp.Compare(a.Object.DeviceNum(), b.Object.DeviceNum()) })
	return parts
}

// destroyObjects destroys objects and sets them to interop.None. Those that cannot be destroyed
// stay as they are.
func (rt *Runtime) destroyObjects(objects []*interop.Object) (err error) {
	for _, p := range objects {
		if *p == interop.None {
			continue
		}
		if e := rt.ownerOf(*p).Destroy(foreign.Object(*p)); e != nil {
			err = errors.Join(err, fmt.Errorf("%w: %w", ErrInvalidArgument, e))
			continue
		}
		*p = interop.None
	}
	return err
}

// generateOn generates a construct's task, or tasks, on the devices of its objects. parts are those
// of partsOf.
func (rt *Runtime) generateOn(parts []foreign.Part, t foreign.Task) (generated bool, err error) {
	generate := func(t foreign.Task) bool {
		for rest := parts; len(rest) > 0; rest = rest[len(t.Parts):] {
			t.Parts = ofFirstDevice(rest)
			done, e := rt.ownerOf(interop.Object(rest[0].Object)).Generate(t)
			err = errors.Join(err, e)
			if !done {
				return false
			}
			t.Included = nil // the tasks have the same predecessors
		}
		return true
	}
	if len(ofFirstDevice(parts)) == len(parts) {
		generated = generate(t)
		return generated, err
	}
	// The host keeps the order between devices. Each device has two tasks, one behind earlier
	// work and one before later work; the second ones wait for all of the first.
	all := unsafe.Pointer(new([8]byte))
	before, after := t, t
	before.Depend = append(slices.Clip(t.Depend), tasks.Depend{Kind: tasks.DependIn, Ptr: all, Size: 8})
	after.Depend, after.Included = []tasks.Depend{{Kind: tasks.DependInOutSet, Ptr: all, Size: 8}}, nil
	generated = generate(before) && generate(after)
	return generated, err
}

// ofFirstDevice returns the parts at the beginning of parts that are of one device.
func ofFirstDevice(parts []foreign.Part) []foreign.Part {
	for n := range parts {
		if parts[n].Object.DeviceNum() != parts[0].Object.DeviceNum() {
			return parts[:n]
		}
	}
	return parts
}

// interopClause is one of the clauses of an interop construct.
type interopClause struct {
	name  string
	index int
}

// String names the clause in errors.
func (c interopClause) String() string { return fmt.Sprintf("%s clause %d", c.name, c.index) }

// checkInterop returns an error for a construct that OpenMP does not allow.
func (rt *Runtime) checkInterop(i *Interop) error {
	if len(i.Init)+len(i.Use)+len(i.Destroy) == 0 {
		return fmt.Errorf("%w: no init, use or destroy clause", interop.ErrInvalid)
	}
	variables := map[*interop.Object]interopClause{}
	variable := func(p *interop.Object, clause interopClause) error {
		if p == nil {
			return fmt.Errorf("%w: %s has no object", interop.ErrInvalid, clause)
		}
		if first, ok := variables[p]; ok {
			return fmt.Errorf("%w: an object is in %s and in %s: one clause of a construct at most", interop.ErrInvalid, first, clause)
		}
		variables[p] = clause
		return nil
	}
	objects := map[interop.Object]interopClause{}
	object := func(o interop.Object, clause interopClause) error {
		if o == interop.None {
			return nil
		}
		if first, ok := objects[o]; ok {
			return fmt.Errorf("%w: %v is in %s and in %s: one clause of a construct at most", interop.ErrInvalid, o, first, clause)
		}
		objects[o] = clause
		switch {
		case o.Types() == 0:
			return fmt.Errorf("%w: %s: %v was destroyed before, or its device is closed", interop.ErrInvalid, clause, o)
		case rt.ownerOf(o) == nil:
			return fmt.Errorf("%w: %s: the object is of another runtime", interop.ErrInvalid, clause)
		}
		return nil
	}
	// An object that is None may have been asked for with targetsync.
	syncs := false
	for k := range i.Init {
		n, clause := &i.Init[k], interopClause{"init", k}
		if err := variable(n.Object, clause); err != nil {
			return err
		}
		if n.Object.Types() != 0 {
			return fmt.Errorf("%w: %s: the variable has %v, which is to be destroyed before", interop.ErrInvalid, clause, *n.Object)
		}
		if err := checkInit(n.Types, n.Prefer); err != nil {
			return fmt.Errorf("%s: %w", clause, err)
		}
		syncs = syncs || n.Types&interop.TypeTargetSync != 0
	}
	for k, o := range i.Use {
		if err := object(o, interopClause{"use", k}); err != nil {
			return err
		}
		syncs = syncs || o == interop.None || o.Types()&interop.TypeTargetSync != 0
	}
	for k, p := range i.Destroy {
		clause := interopClause{"destroy", k}
		if err := variable(p, clause); err != nil {
			return err
		}
		if err := object(*p, clause); err != nil {
			return err
		}
		syncs = syncs || *p == interop.None || p.Types()&interop.TypeTargetSync != 0
	}
	if len(i.Depend) > 0 && !syncs {
		return fmt.Errorf("%w: depend without an object of type targetsync", interop.ErrInvalid)
	}
	return nil
}

// initObjects makes the objects of the init clauses.
func (rt *Runtime) initObjects(c current, i *Interop) (made []interop.Object, err error) {
	if len(i.Init) == 0 && i.Device.d == nil {
		return nil, nil
	}
	d, err := rt.resolve(c, i.Device, condAbsent)
	if err != nil {
		return nil, err
	}
	if len(i.Init) == 0 {
		return nil, nil
	}
	var unable any
	if d.physical == nil {
		unable = "the initial device has no foreign runtime"
	} else if _, err := d.open(); errors.Is(err, ErrClosed) {
		return nil, err
	} else if err != nil {
		unable = err
	}
	for k := range i.Init {
		o := interop.None
		if unable == nil {
			made, err := d.interop().Init(foreign.Types(i.Init[k].Types))
			if err != nil {
				unable = err
			}
			o = interop.Object(made)
		}
		if unable != nil {
			rt.log.Warn("interop object is none", "device", d.number, "types", i.Init[k].Types, "reason", unable)
		}
		made = append(made, o)
	}
	return made, nil
}

// ownerOf returns the maker of an object, nil if the object belongs to another runtime.
func (rt *Runtime) ownerOf(o interop.Object) *foreign.Device {
	for _, d := range rt.devices {
		if made := d.interop(); made != nil && made.Owns(foreign.Object(o)) {
			return made
		}
	}
	return nil
}

// checkInit returns ErrInvalid for an init clause that OpenMP does not allow.
func checkInit(types interop.Types, prefer []interop.Preference) error {
	if types == 0 {
		return fmt.Errorf("%w: init without an interop type: want target, targetsync or both", interop.ErrInvalid)
	}
	if types&^(interop.TypeTarget|interop.TypeTargetSync) != 0 {
		return fmt.Errorf("%w: no interop type is %v", interop.ErrInvalid, types)
	}
	for i, p := range prefer {
		if err := checkPreference(&p); err != nil {
			return fmt.Errorf("prefer_type item %d: %w", i, err)
		}
	}
	return nil
}

// checkPreference returns ErrInvalid for a preference that OpenMP does not allow.
func checkPreference(p *interop.Preference) error {
	if p.Runtime != 0 && p.Name != "" {
		return fmt.Errorf("%w: a preference names its foreign runtime twice, as %v and as %q", interop.ErrInvalid, p.Runtime, p.Name)
	}
	if p.Runtime == 0 && p.Name == "" && len(p.Attr) == 0 {
		return fmt.Errorf("%w: a preference names no foreign runtime and has no attribute", interop.ErrInvalid)
	}
	for _, a := range p.Attr {
		if !strings.HasPrefix(a, "ompx_") || strings.Contains(a, ",") {
			return fmt.Errorf("%w: attribute %q: want ompx_ and more, without a comma", interop.ErrInvalid, a)
		}
	}
	return nil
}
