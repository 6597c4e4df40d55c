package vkomp

import (
	"context"
	"fmt"

	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
)

// standalone is a data directive without a body or kernel, except for its clauses.
type standalone struct {
	kind      ompt.TargetKind
	label     string
	device    Device
	condition Cond
	noWait    bool
	// replayable is the replayable clause, and at the place in the program, as of directive.
	replayable Cond
	at         observe.Site
	// missed says that hit has asked the device's scheduler.
	missed bool
}

// name returns the directive's name in OpenMP.
func (d *standalone) name() string {
	switch d.kind {
	case ompt.TargetEnterData:
		return "target enter data"
	case ompt.TargetExitData:
		return "target exit data"
	}
	return "target update"
}

// labels are those of the directive's items.
func (d *standalone) labels() *itemLabels {
	if d.kind == ompt.TargetUpdate {
		return motionLabels
	}
	return mapLabels
}

// add checks the k-th item of the directive and adds it to the clauses of the task.
func (d *standalone) add(c *clauses, a *Arg, k int) error {
	label := d.labels().of(k)
	if err := a.check(label); err != nil {
		return err
	}
	switch d.kind {
	case ompt.TargetEnterData:
		return c.enterItem(a, label)
	case ompt.TargetExitData:
		return c.exitItem(a, label)
	}
	return c.motion(a, label)
}

// failed says that the directive has failed.
func (d *standalone) failed(err error) error {
	if d.label == "" {
		return fmt.Errorf("%s: %w", d.name(), err)
	}
	return fmt.Errorf("%s %q: %w", d.name(), d.label, err)
}

// standalone generates the directive's target task.
func (rt *Runtime) standalone(ctx context.Context, d *standalone, items []Arg, depend []Depend) error {
	if err := rt.construct(ctx); err != nil {
		return rt.unrecorded(ctx, d.replayable, d.failed(err))
	}
	defer rt.using.leave(rt.using.enter())
	c := rt.current(ctx)
	if len(depend) == 0 && rt.hit(&c, d, items) {
		return nil
	}
	if err := rt.standaloneIn(ctx, &c, d, items, depend); err != nil {
		return rt.unrecorded(ctx, d.replayable, err)
	}
	return nil
}

// mostHits is the largest number of items with which a directive is tried as a hit before its clauses
// are evaluated.
const mostHits = 4

// hit carries out a directive without a depend clause that does no more than count blocks which are
// present and stay so (see sched.Scheduler.Hit). Most directives of programs that map what is present
// are such, and need none of what the generation of a task does. hit reports whether this is one;
// otherwise it has done nothing, and has left errors to standaloneIn.
func (rt *Runtime) hit(c *current, d *standalone, items []Arg) bool {
	if d.kind == ompt.TargetUpdate || d.noWait || c.recording != nil || len(items) == 0 || len(items) > mostHits || rt.events.Load() != nil {
		return false
	}
	dev, err := rt.resolve(*c, d.device, d.condition)
	if err != nil || dev.physical == nil {
		return false
	}
	s := dev.live.Load()
	if s == nil {
		return false
	}
	leaving := d.kind == ompt.TargetExitData
	var maps [mostHits]memory.Map
	for k := range items {
		a := &items[k]
		if a.kind != argMap || a.always || a.deletes || a.self || a.part() != nil || a.image() != nil ||
			!leaving && !a.mapType.Enters() || pointerPath(a.at.elem) != "" {
			return false
		}
		maps[k].Section, maps[k].Type = a.at.host, a.mapType
	}
	d.missed = !s.Hit(c.children(), c.group(), maps[:len(items)], leaving)
	return !d.missed
}

// standaloneIn is standalone for a construct that c encounters.
func (rt *Runtime) standaloneIn(ctx context.Context, c *current, d *standalone, items []Arg, depend []Depend) error {
	name := d.name()
	label := name
	if d.label != "" {
		label = rt.labels.intern(d.label)
	}
	passed := newClauses()
	defer passed.giveBack()
	passed.Label, passed.Missed = label, d.missed
	recording := c.records(d.replayable)
	if recording != nil && !d.noWait {
		return recording.refuse(name, label, undeferred)
	}
	s, err := rt.evaluateStandalone(c, passed, d, items, depend)
	if err != nil {
		return d.failed(err)
	}
	if s == nil && len(passed.Depend) == 0 {
		return nil
	}
	passed.directive = directive{kind: d.kind, flags: targetFlags(d.noWait && !c.final), device: passed.device.number, at: d.at}
	if s != nil && rt.observed() {
		passed.does = passed.data()
	}
	var kept *recordedStandalone
	if recording != nil {
		if kept, err = recording.standalone(passed, d, items, depend); err != nil {
			return err
		}
	}
	err = c.generate(ctx, passed, s)
	if err == nil && kept != nil {
		recording.add(ctx, kept)
	}
	return err
}

// evaluateStandalone evaluates the clauses of a directive that c encounters. It returns the
// scheduler of the directive's device, nil for the initial device.
func (rt *Runtime) evaluateStandalone(c *current, passed *clauses, d *standalone, items []Arg, depend []Depend) (s *sched.Scheduler, err error) {
	passed.device, err = rt.resolve(*c, d.device, d.condition)
	for k := 0; k < len(items) && err == nil; k++ {
		err = d.add(passed, &items[k], k)
	}
	if err == nil {
		s, err = passed.device.open()
	}
	passed.Depend = appendItems(passed.Depend, depend)
	return s, err
}
