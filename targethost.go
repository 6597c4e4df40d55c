package vkomp

import (
	"context"
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/host"
)

// targetOnHost runs the kernel's Host variant on the initial device.
func (rt *Runtime) targetOnHost(ctx context.Context, t *Target, args []Arg, c construct.Construct) error {
	k := t.Kernel.k
	if k.host == nil {
		why := ""
		if rt.NumDevices() == 0 {
			why = ", and there is no other: " + rt.noDevices
		}
		return fmt.Errorf("target %q: %w: kernel %q has no Host variant for the initial device%s", c.Label, ErrUnsupported, k.name, why)
	}
	call := &HostCall{Range: t.Range, name: k.name}
	call.Range.Y = max(call.Range.Y, 1)
	call.Range.Z = max(call.Range.Z, 1)
	empty := t.Range.X == 0
	var sizes, values []uint64
	for i := range args {
		a, err := args[i].hostArg(rt, argumentLabels.of(i))
		if err != nil {
			return fmt.Errorf("target %q: %w", c.Label, err)
		}
		if a.isValue() {
			call.values = append(call.values, a)
			values = append(values, uint64(len(args[i].bytes())))
			continue
		}
		call.buffers = append(call.buffers, a)
		sizes = append(sizes, a.storage.Size)
		if k.shader == nil && a.storage.Size == 0 {
			empty = true
		}
	}
	if k.shader != nil {
		if err := k.shader.Fits(nil, sizes, values); err != nil {
			return fmt.Errorf("target %q: %w", c.Label, err)
		}
		empty = empty || k.shader.Empty(sizes)
	}
	r := host.Region{Construct: c, Target: true}
	if !empty {
		r.Body = func(context.Context) error { return errors.Join(k.host(call), call.err) }
	}
	return rt.host.Run(ctx, r)
}
