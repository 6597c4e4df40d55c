package vkomp

import (
	"context"
	"fmt"

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

// add checks the k-th item of the directive and adds it to the clauses of the task.
func (d *standalone) add(c *clauses, a *Arg, k int) error {
	labels := &mapLabels
	if d.kind == ompt.TargetUpdate {
		labels = &motionLabels
	}
	label := labels.of(k)
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

// standalone generates the directive's target task.
func (rt *Runtime) standalone(ctx context.Context, d *standalone, items []Arg, depend []Depend) error {
	if err := rt.construct(ctx); err != nil {
		return fmt.Errorf("vkomp: %w", err)
	}
	rt.using.RLock()
	defer rt.using.RUnlock()
	name := d.name()
	label := name
	if d.label != "" {
		label = rt.labels.intern(d.label)
	}
	passed := newClauses()
	defer passed.giveBack()
	c := rt.current(ctx)
	dev, err := rt.resolve(c, d.device, d.condition)
	for k := 0; k < len(items) && err == nil; k++ {
		err = d.add(passed, &items[k], k)
	}
	var s *sched.Scheduler
	if err == nil && dev.physical != nil {
		s, err = dev.open()
	}
	if err != nil {
		if label == name {
			return fmt.Errorf("vkomp: %s: %w", name, err)
		}
		return fmt.Errorf("vkomp: %s %q: %w", name, label, err)
	}
	passed.Depend = appendItems(passed.Depend, depend)
	noWait := d.noWait && !c.final
	if s == nil && len(passed.Depend) == 0 {
		return nil
	}
	passed.Label = label
	told := c.encounter(&passed.Construct, &directive{kind: d.kind, flags: targetFlags(noWait), device: dev.number})
	if told != nil && s != nil {
		told.Data = passed.data()
	}
	if err := told.done(ctx, rt.run(ctx, s, &passed.Region, nil)); err != nil {
		return rt.failure(ctx, err)
	}
	return nil
}
