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
func (rt *Runtime) TargetData(ctx context.Context, d TargetData, body func(ctx context.Context) error) (err error) {
	if d.Label == "" {
		d.Label = "target data"
	}
	end, err := rt.beginTargetData(ctx, &d, body != nil)
	if err != nil {
		return fmt.Errorf("vkomp: %w", err)
	}
	// Deferred, because a body can leave by runtime.Goexit.
	defer func() {
		if ending := end(); ending != nil {
			err = errors.Join(err, fmt.Errorf("vkomp: %w", ending))
		}
	}()
	return sched.Protect(func() error { return body(ctx) })
}

// beginTargetData maps the region's storage; end unmaps it.
func (rt *Runtime) beginTargetData(ctx context.Context, d *TargetData, hasBody bool) (end func() error, err error) {
	if err := rt.construct(ctx); err != nil {
		return nil, err
	}
	fail := func(err error) (func() error, error) {
		return nil, fmt.Errorf("target data %q: %w", d.Label, err)
	}
	if !hasBody {
		return fail(fmt.Errorf("%w: no body", ErrInvalidArgument))
	}
	if err := checkArgs(d.Maps); err != nil {
		return fail(err)
	}
	for k := range d.Maps {
		if d.Maps[k].isValue {
			return fail(fmt.Errorf("%w: map %d is a value", ErrInvalidArgument, k))
		}
	}
	dev, err := rt.resolve(d.Device)
	if err != nil {
		return fail(err)
	}
	if dev.physical == nil {
		// Original and corresponding storage are the same.
		return func() error { return nil }, nil
	}
	s, err := dev.open()
	if err != nil {
		return fail(err)
	}
	maps, _ := splitArgs(d.Maps)
	// Beginning and end follow no sibling, so they take no longer than their
	// copies: a ctx that ends meanwhile does not leave the region half mapped.
	whole := context.WithoutCancel(ctx)
	scope := rt.scope(ctx)
	if err := s.Run(whole, sched.Region{Label: d.Label, Scope: scope, Enter: maps}); err != nil {
		return nil, err
	}
	return func() error {
		return s.Run(whole, sched.Region{Label: d.Label, Scope: scope, Exit: maps})
	}, nil
}
