package vkomp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/construct"
)

// DeclareTarget declares storage that every device has (OpenMP 5.2 declare target
// directive with an enter clause, to before).
type DeclareTarget struct {
	// Enter are slices made with To, whose contents are copied to a device once, or
	// Alloc.
	Enter []Arg
	// Label names the declaration in errors; "declare target" by default.
	Label string
}

// DeclareTarget gives the slices storage on every device: at once on those that were
// used before, and on each other one when it is first used, before anything else is
// there. To copies what the slice holds then. The count is infinite: maps of the
// storage find it present, copy only where they say Always, and no exit, Delete
// included, takes it away; TargetUpdate copies.
//
// ErrInvalidArgument names an item that is neither To nor Alloc or has a modifier;
// storage that a device has, by a map or an association, in part too, is
// ErrAssociated; storage that overlaps other declared storage in part is
// ErrPartialOverlap. An error declares nothing. What is declared already, as a whole,
// stays as it is. Where a device that is opened later cannot take the storage, that
// is why it does not open.
func (rt *Runtime) DeclareTarget(ctx context.Context, d DeclareTarget) error {
	if err := rt.declareTarget(ctx, &d); err != nil {
		return fmt.Errorf("vkomp: %w", err)
	}
	return nil
}

func (rt *Runtime) declareTarget(ctx context.Context, d *DeclareTarget) error {
	if err := rt.construct(ctx); err != nil {
		return err
	}
	label := "declare target"
	if d.Label != "" {
		label = rt.labels.intern(d.Label)
	}
	items, err := d.items()
	if err != nil {
		return fmt.Errorf("%s: %w", label, err)
	}
	// Devices that open meanwhile would miss the declaration.
	for _, dev := range rt.devices {
		dev.life.Lock()
		defer dev.life.Unlock()
	}
	if items, err = rt.undeclared(items); err != nil {
		return fmt.Errorf("%s: %w", label, err)
	}
	if len(items) == 0 {
		return nil
	}
	var opened []*device
	for _, dev := range rt.devices {
		if dev.opened() != nil {
			opened = append(opened, dev)
		}
	}
	// What one device does not take, no other gets.
	if len(opened) > 1 {
		for _, dev := range opened {
			if err := dev.canDeclare(label, items); err != nil {
				return fmt.Errorf("on device %d: %w", dev.number, err)
			}
		}
	}
	for _, dev := range opened {
		if err := dev.declare(dev.opened(), label, items); err != nil {
			return fmt.Errorf("on device %d: %w", dev.number, err)
		}
	}
	rt.declared = append(rt.declared, items...)
	rt.race.declared(rt.devices, items)
	return nil
}

// items evaluates the directive's items: by address, an enclosing one before those
// in it. Those without bytes are left out.
func (d *DeclareTarget) items() ([]memory.Map, error) {
	var items []memory.Map
	for k := range d.Enter {
		a, label := &d.Enter[k], mapLabels.of(k)
		if err := a.check(label); err != nil {
			return nil, err
		}
		m, err := a.entering(label)
		switch {
		case err != nil:
			return nil, err
		case a.image != nil:
			return nil, fmt.Errorf("%w: %s is made by a Mapper: a declaration takes slices", ErrInvalidArgument, label)
		case m.Type != memory.MapTo && m.Type != memory.MapAlloc:
			return nil, fmt.Errorf("%w: %s has map type %v: a declaration takes To and Alloc", ErrInvalidArgument, label, m.Type)
		case m.Always || m.Presence != memory.MayBeAbsent || m.Share != memory.ShareNever:
			return nil, fmt.Errorf("%w: %s has a modifier, which means nothing in a declaration", ErrInvalidArgument, label)
		case m.Size > 0:
			items = append(items, m)
		}
	}
	slices.SortStableFunc(items, func(a, b memory.Map) int {
		return cmp.Or(cmp.Compare(a.Start(), b.Start()), cmp.Compare(b.Size, a.Size))
	})
	return items, nil
}

// undeclared returns those of the items, sorted as by DeclareTarget.items, that no
// declaration holds and that do not lie in one another. Every device's life is held.
func (rt *Runtime) undeclared(items []memory.Map) ([]memory.Map, error) {
	var fresh []memory.Map
	for _, m := range items {
		inside := false
		for _, others := range [...][]memory.Map{rt.declared, fresh} {
			for _, o := range others {
				if m.Start() >= o.End() || o.Start() >= m.End() {
					continue
				}
				if m.Start() < o.Start() || m.End() > o.End() {
					return nil, &memory.OverlapError{Section: m.Section, Label: m.Label, With: o.Section, WithLabel: o.Label}
				}
				inside = true
			}
		}
		if !inside {
			fresh = append(fresh, m)
		}
	}
	return fresh, nil
}

// declare gives items storage on the device, which s is the scheduler of; d.life is
// held.
func (d *device) declare(s *sched.Scheduler, label string, items []memory.Map) error {
	if len(items) == 0 {
		return nil
	}
	scope := d.rt.graph.NewScope()
	defer scope.Retire()
	return s.Run(context.Background(), sched.Region{Construct: construct.Construct{Label: label, Scope: scope}, Enter: items, Infinite: true})
}

// canDeclare returns why the device, which is open, would not take the items.
func (d *device) canDeclare(label string, items []memory.Map) error {
	s := d.opened()
	scope := d.rt.graph.NewScope()
	defer scope.Retire()
	trial := slices.Clone(items)
	for k := range trial {
		if s.Present(trial[k].Section) {
			return fmt.Errorf("%s: %s: %w", label, trial[k].Label, ErrAssociated)
		}
		trial[k].Type = memory.MapAlloc
	}
	err := s.Run(context.Background(), sched.Region{Construct: construct.Construct{Label: label, Scope: scope}, Enter: trial, Exit: trial})
	if errors.Is(err, ErrPartialOverlap) {
		err = fmt.Errorf("%w: %w", ErrAssociated, err)
	}
	return err
}
