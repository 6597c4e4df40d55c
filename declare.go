package vkomp

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/construct"
)

// DeclareTarget declares storage that every device has (OpenMP 5.2 declare target
// directive with an enter clause, to in earlier versions).
type DeclareTarget struct {
	// Enter are slices made with To, whose contents are copied to a device once, or with
	// Alloc.
	Enter []Arg
	// Label names the declaration in errors; "declare target" by default.
	Label string
}

// DeclareTarget gives the slices storage on every device: at once on devices that are in
// use, and on each other device when it is first used, before anything else is there. To
// copies the contents that the slice has then. The reference count is infinite: maps of the
// storage find it present, copy only with Always or Deleting, and no exit, not even Delete,
// removes it; TargetUpdate copies.
//
// An item that is neither To nor Alloc or has a modifier is ErrInvalidArgument. Storage that
// is present on a device, even in part, by a map or an association is ErrAssociated; storage
// that overlaps other declared storage in part, or of which only a part is pinned, is
// ErrPartialOverlap. Storage that AllocPinned had the driver of a device allocate is
// ErrUnsupported, because it does not outlive the device. After an error nothing is declared.
// Storage that is already declared as a whole stays as it is. A device that is opened later and
// cannot allocate the storage fails to open with that error. Pinned storage of which some is
// declared stays pinned until Close.
func (rt *Runtime) DeclareTarget(ctx context.Context, d DeclareTarget) error {
	if err := rt.declareTarget(ctx, &d); err != nil {
		return fmt.Errorf("vkomp: %w", err)
	}
	return nil
}

func (rt *Runtime) declareTarget(ctx context.Context, d *DeclareTarget) error {
	if err := rt.construct(ctx); err != nil {
		return fmt.Errorf("%s: %w", cmp.Or(d.Label, "declare target"), err)
	}
	label := "declare target"
	if d.Label != "" {
		label = rt.labels.intern(d.Label)
	}
	items, err := d.items()
	if err != nil {
		return fmt.Errorf("%s: %w", label, err)
	}
	// Devices that are opened in the meantime would miss the declaration.
	for _, dev := range rt.devices {
		dev.life.Lock()
		defer dev.life.Unlock()
	}
	if items, err = rt.undeclaredLocked(items); err != nil {
		return fmt.Errorf("%s: %w", label, err)
	}
	if len(items) == 0 {
		return nil
	}
	if err := rt.declareOnDevicesLocked(label, items); err != nil {
		return err
	}
	rt.pinned.mu.Lock()
	rt.declared = append(rt.declared, items...)
	slices.SortFunc(rt.declared, func(a, b memory.Map) int { return cmp.Compare(a.Start(), b.Start()) })
	rt.pinned.mu.Unlock()
	if events := rt.events.Load(); events != nil {
		numbers := make([]int, rt.NumDevices())
		for k := range numbers {
			numbers[k] = k
		}
		events.Declared(numbers, items)
	}
	return nil
}

// declareOnDevicesLocked gives items storage on the devices in use, or after an error on none. The
// caller holds every device's life.
func (rt *Runtime) declareOnDevicesLocked(label string, items []memory.Map) error {
	for k := range items {
		if err := rt.pinned.declarable(&items[k]); err != nil {
			return fmt.Errorf("%s: %w", label, err)
		}
	}
	var claimed []*sched.Scheduler
	for _, dev := range rt.devices {
		s := dev.opened()
		if s == nil {
			continue
		}
		if err := rt.claim(s, label, items); err != nil {
			for _, s := range claimed {
				rt.unclaim(s, label, items)
			}
			return fmt.Errorf("on device %d: %w", dev.number, err)
		}
		claimed = append(claimed, s)
	}
	for _, s := range claimed {
		s.Declare(items)
	}
	return nil
}

// items evaluates the directive's items. It returns them by address, an enclosing item
// before the items in it, and without empty ones.
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
		case a.image() != nil:
			return nil, fmt.Errorf("%w: %s is made by a Mapper: a declaration takes slices", ErrInvalidArgument, label)
		case m.Type != memory.MapTo && m.Type != memory.MapAlloc:
			return nil, fmt.Errorf("%w: %s has map type %v: a declaration takes To and Alloc", ErrInvalidArgument, label, m.Type)
		case m.Always || m.Close || m.Presence != memory.MayBeAbsent || m.Share != memory.ShareNever:
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

// undeclaredLocked returns those of the items, sorted as by DeclareTarget.items, that are not yet
// declared and not contained in another. The caller holds every device's life.
func (rt *Runtime) undeclaredLocked(items []memory.Map) ([]memory.Map, error) {
	var fresh []memory.Map
	for _, m := range items {
		inside := false
		for k, others := range [...][]memory.Map{rt.declared, fresh} {
			_, found := overlapping(others, itemSection, m.Section)
			for i := range found {
				o := &found[i]
				if m.Start() < o.Start() || m.End() > o.End() {
					return nil, &memory.OverlapError{Section: m.Section, Label: m.Label, With: o.Section, WithLabel: o.Label, Declared: k == 0}
				}
				inside = true
				if k > 0 && m.Type == memory.MapTo {
					o.Type = memory.MapTo
				}
			}
		}
		if !inside {
			fresh = append(fresh, m)
		}
	}
	return fresh, nil
}

// claim maps items on a device, where none of them may be present. No exit removes them.
func (rt *Runtime) claim(s *sched.Scheduler, label string, items []memory.Map) error {
	scope := rt.graph.NewScope()
	defer scope.Retire()
	return s.Run(context.Background(), &sched.Region{Construct: construct.Construct{Label: label, Scope: scope}, Enter: items, Absent: true})
}

// unclaim takes claim back. Constructs that have mapped the items in the meantime keep them.
func (rt *Runtime) unclaim(s *sched.Scheduler, label string, items []memory.Map) {
	scope := rt.graph.NewScope()
	defer scope.Retire()
	released := slices.Clone(items)
	for k := range released {
		released[k].Type = memory.MapRelease
	}
	// It fails if the device has been lost, and nothing is mapped there any more.
	_ = s.Run(context.Background(), &sched.Region{Construct: construct.Construct{Label: label, Scope: scope}, Exit: released, Absent: true})
}
