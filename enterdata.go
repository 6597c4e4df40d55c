package vkomp

import (
	"context"
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
)

// TargetEnterData describes a construct that maps storage until another one unmaps it
// (OpenMP 4.5 target enter data construct).
type TargetEnterData struct {
	// Device is the device clause; the zero Device is the current task's default
	// device.
	Device Device
	// If, when false, makes the construct map nothing: it is then on the initial device.
	If Cond
	// Maps are slices made with To or Alloc, possibly with the modifiers Always, Close,
	// Present and Self. From counts as Alloc and ToFrom as To (OpenMP 5.2).
	Maps []Arg
	// Depend orders the task among its siblings.
	Depend []Depend
	// NoWait lets the task be deferred.
	NoWait bool
	// Replayable, when false, keeps the construct out of the record of a [Taskgraph] (OpenMP 6.0
	// replayable clause).
	Replayable Cond
	// Label names the task in errors and graphs; "target enter data" by default.
	Label string
}

// TargetExitData describes a construct that unmaps storage (OpenMP 4.5 target exit data
// construct).
type TargetExitData struct {
	// Device is the device clause; the zero Device is the current task's default
	// device.
	Device Device
	// If, when false, makes the construct unmap nothing: it is then on the initial device.
	If Cond
	// Maps are slices made with From, Release or Delete, possibly with the modifiers Always,
	// Close, Present and Deleting. ToFrom counts as From, To and Alloc as Release (OpenMP
	// 5.2).
	Maps []Arg
	// Depend orders the task among its siblings.
	Depend []Depend
	// NoWait lets the task be deferred.
	NoWait bool
	// Replayable, when false, keeps the construct out of the record of a [Taskgraph] (OpenMP 6.0
	// replayable clause).
	Replayable Cond
	// Label names the task in errors and graphs; "target exit data" by default.
	Label string
}

// TargetEnterData generates a target task that creates corresponding storage where there is
// none, increments the reference count of each storage block that its items lie in, and
// copies as the map types say (OpenMP 4.5 target enter data). On the initial device it moves
// nothing but still orders tasks.
//
// The clauses are evaluated during the call; the contents of the slices are read when the
// task runs. Errors are those of Target: ErrInvalidArgument, naming the item, for Release,
// Delete and anything but a slice; when the task runs ErrOutOfMemory, ErrPartialOverlap,
// ErrNotPresent and ErrNotShared, and then nothing is mapped.
func (rt *Runtime) TargetEnterData(ctx context.Context, d TargetEnterData) error {
	h := hide(&d)
	return rt.standalone(ctx, &standalone{
		kind: ompt.TargetEnterData, label: h.Label, device: h.Device, condition: h.If, noWait: h.NoWait, replayable: h.Replayable,
	}, h.Maps, h.Depend)
}

// TargetExitData generates a target task that decrements the reference count of each storage
// block that its items lie in, to zero for a deleted one. At zero it copies to the host as
// the map types say and frees the storage on the device (OpenMP 4.5 target exit data).
// Absent storage is ignored unless the item is Present; storage whose count is infinite
// stays. On the initial device it moves nothing but still orders tasks.
//
// The clauses are evaluated during the call. Errors are those of Target: ErrInvalidArgument,
// naming the item, for Self and anything but a slice; when the task runs ErrPartialOverlap
// and ErrNotPresent, and then nothing is unmapped.
func (rt *Runtime) TargetExitData(ctx context.Context, d TargetExitData) error {
	h := hide(&d)
	return rt.standalone(ctx, &standalone{
		kind: ompt.TargetExitData, label: h.Label, device: h.Device, condition: h.If, noWait: h.NoWait, replayable: h.Replayable,
	}, h.Maps, h.Depend)
}

// enterItem adds an item of target enter data.
func (c *clauses) enterItem(a *Arg, label string) error {
	m, err := a.entering(label)
	if err != nil {
		return err
	}
	if m.Type.To() {
		m.Type = memory.MapTo
	} else {
		m.Type = memory.MapAlloc
	}
	c.Enter = append(c.Enter, m)
	if image := a.image(); image != nil {
		c.Images, err = image.addTo(c.Images, &c.Enter, a, label, c.enterItem)
	}
	return err
}

// exitItem adds an item of target exit data.
func (c *clauses) exitItem(a *Arg, label string) error {
	switch {
	case a.kind != argMap:
		return a.wrongKind("mapped slice", label)
	case a.self:
		return fmt.Errorf("%w: %s: the self modifier is not for target exit data", ErrInvalidArgument, label)
	}
	m, err := a.item(label)
	if err != nil {
		return err
	}
	switch {
	case m.Type.From():
		m.Type = memory.MapFrom
	case m.Type != memory.MapDelete:
		m.Type = memory.MapRelease
	}
	c.Exit = append(c.Exit, m)
	if image := a.image(); image != nil {
		c.Images, err = image.addTo(c.Images, &c.Exit, a, label, c.exitItem)
	}
	return err
}
