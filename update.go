package vkomp

import (
	"context"
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/transfer"
)

// TargetUpdate describes a construct that copies between mapped storage and the host's
// (OpenMP target update construct).
type TargetUpdate struct {
	// Device is the device clause; the zero Device is the current task's default
	// device.
	Device Device
	// If, when false, makes the construct copy nothing.
	If Cond
	// Motions are slices made with To, which are copied to the device, or From, which are
	// copied to the host. Present may modify them; Shape and Section select the part to copy,
	// which may have gaps (OpenMP 5.0).
	Motions []Arg
	// Depend orders the task among its siblings.
	Depend []Depend
	// NoWait lets the task be deferred.
	NoWait bool
	// Replayable, when false, keeps the construct out of the record of a [Taskgraph] (OpenMP 6.0
	// replayable clause).
	Replayable Cond
	// Label names the task in errors and graphs; "target update" by default.
	Label string
}

// TargetUpdate generates a target task that copies between host storage and its
// corresponding storage, whatever the reference count is, and leaves the count as it is
// (OpenMP 4.0 target update). An item that is absent when the task runs is left out, unless
// it is Present (OpenMP 5.1): then nothing is copied, and the task fails with ErrNotPresent.
// An item must lie in one mapped block; one that is present in part is ErrPartialOverlap. On
// the initial device it moves nothing but still orders tasks.
//
// The clauses are evaluated during the call; the contents of the slices are read when the
// task runs. Errors in the construct itself are returned at once: an ErrInvalidArgument names
// the item. Later failures are returned as by Target.
func (rt *Runtime) TargetUpdate(ctx context.Context, d TargetUpdate) error {
	h := hide(&d)
	return rt.standalone(ctx, &standalone{
		kind: ompt.TargetUpdate, label: h.Label, device: h.Device, condition: h.If, noWait: h.NoWait, replayable: h.Replayable,
	}, h.Motions, h.Depend)
}

// motion adds an item of a motion clause.
func (c *clauses) motion(a *Arg, label string) error {
	switch {
	case a.kind != argMap:
		return a.wrongKind("slice made with To or From", label)
	case a.mapType != memory.MapTo && a.mapType != memory.MapFrom:
		return fmt.Errorf("%w: %s has map type %v: a motion is To or From", ErrInvalidArgument, label, a.mapType)
	case a.always, a.close, a.self, a.deletes:
		return fmt.Errorf("%w: %s has a modifier of maps: Present is that of motions", ErrInvalidArgument, label)
	}
	m := transfer.Request{Kind: transfer.UpdateTo, Host: a.at.host, Present: a.presence == memory.MustBePresent, Label: label}
	if a.mapType == memory.MapFrom {
		m.Kind = transfer.UpdateFrom
	}
	if a.part() != nil {
		s, err := a.selected()
		if err == nil && s.gaps {
			m.Rows, err = s.rows()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", label, err)
		}
		m.Host = s.section
	}
	m.Size = m.Host.Size
	if image := a.image(); image != nil {
		m.Size, m.Image = image.size, &transfer.Image{Write: image.write, Read: image.read}
	}
	c.Transfers = append(c.Transfers, m)
	for k := range a.members() {
		member := a.member(k)
		if member.mapType != a.mapType {
			continue // the member is not mapped in this direction
		}
		member.always, member.deletes = false, false // these modifiers are only for maps
		if err := c.motion(&member, fmt.Sprintf("%s, member %d", label, k)); err != nil {
			return err
		}
	}
	return nil
}
