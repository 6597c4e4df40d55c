package vkomp

import (
	"context"
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/sched"
)

// TargetData is a target data region (OpenMP target data construct): its slices
// have storage on the device while the body runs.
type TargetData struct {
	// Device is the device clause; the zero Device is the default device.
	Device Device
	// Maps are slices made with To, From, ToFrom or Alloc.
	Maps []Arg
	// Label names the region in errors; "target data" by default.
	Label string
}

// TargetData maps storage, calls body, and unmaps it (OpenMP target data).
// Target regions inside find their slices present and copy nothing. The body
// runs on the calling goroutine, as part of the current task; its error is
// returned after the region has ended.
//
// The region does not wait for deferred tasks that the body left behind: what
// they hold stays mapped until they finish, so copies to the host may be theirs
// to make. A body that needs results waits for them.
func (rt *Runtime) TargetData(ctx context.Context, d TargetData, body func(ctx context.Context) error) error {
	if d.Label == "" {
		d.Label = "target data"
	}
	if err := rt.targetData(ctx, &d, body); err != nil {
		return fmt.Errorf("vkomp: %w", err)
	}
	return nil
}

func (rt *Runtime) targetData(ctx context.Context, d *TargetData, body func(ctx context.Context) error) error {
	if err := rt.open(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	inLabel := func(err error) error { return fmt.Errorf("target data %q: %w", d.Label, err) }
	if err := checkArgs(d.Maps); err != nil {
		return inLabel(err)
	}
	for k := range d.Maps {
		if d.Maps[k].isValue {
			return inLabel(fmt.Errorf("%w: map %d is a value", ErrInvalidArgument, k))
		}
	}
	dev, err := rt.resolve(d.Device)
	if err != nil {
		return inLabel(err)
	}
	if dev.physical == nil {
		// Original and corresponding storage are the same.
		return sched.Protect(func() error { return body(ctx) })
	}
	s, err := dev.open()
	if err != nil {
		return inLabel(err)
	}
	maps, _ := splitArgs(d.Maps)
	// Beginning and end follow no sibling, so they take no longer than their
	// copies: a ctx that ends meanwhile does not leave the region half mapped.
	whole := context.WithoutCancel(ctx)
	scope := rt.scope(ctx)
	if err := s.Run(whole, sched.Region{Label: d.Label, Scope: scope, Enter: maps}); err != nil {
		return err
	}
	err = sched.Protect(func() error { return body(ctx) })
	return errors.Join(err, s.Run(whole, sched.Region{Label: d.Label, Scope: scope, Exit: maps}))
}
