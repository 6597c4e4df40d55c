package vkomp

import (
	"context"
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/vk"
)

// Target is a target region (OpenMP target construct): a kernel, run on a
// device over a range, with its data mapped for the duration.
type Target struct {
	// Device is the device clause; the zero Device is the default device.
	Device Device
	Kernel Kernel
	Range  Range
	Args   []Arg
	// Depend orders the task among its siblings.
	Depend []Depend
	// NoWait lets the task be deferred: Target returns when it is generated.
	// Otherwise the task is included, and Target returns when it is complete.
	NoWait bool
	// Label names the task in errors and graphs; the kernel's name by default.
	Label string
}

// Target generates a target task (OpenMP target).
//
// What is wrong with the construct itself is returned at once and generates no
// task: ErrInvalidArgument, ErrInvalidLaunch, ErrInvalidDevice, ErrUnsupported.
// What goes wrong when the task runs is a *TaskError, returned here for an
// included task and by the next Taskwait for a deferred one: ErrOutOfMemory,
// ErrPartialOverlap, ErrDeviceLost.
//
// When ctx ends before an included task, Target returns its cause. The task goes
// on as if it were deferred, and its slices stay the runtime's until a Taskwait
// returns; on the initial device one that has not started is dropped.
func (rt *Runtime) Target(ctx context.Context, t Target) error {
	if err := rt.target(ctx, &t); err != nil {
		return fmt.Errorf("vkomp: %w", err)
	}
	return nil
}

func (rt *Runtime) target(ctx context.Context, t *Target) error {
	if err := rt.construct(ctx); err != nil {
		return err
	}
	k := t.Kernel.k
	switch {
	case k == nil:
		return fmt.Errorf("%w: target %q has no kernel: make one with NewKernel", ErrInvalidArgument, t.Label)
	case k.rt != rt:
		return fmt.Errorf("%w: kernel %q belongs to another runtime", ErrInvalidArgument, k.name)
	}
	if t.Label == "" {
		t.Label = k.name
	}
	inLabel := func(err error) error { return fmt.Errorf("target %q: %w", t.Label, err) }
	extent, err := t.Range.extent()
	if err != nil {
		return inLabel(err)
	}
	if err := checkArgs(t.Args); err != nil {
		return inLabel(err)
	}
	d, err := rt.resolve(t.Device)
	if err != nil {
		return inLabel(err)
	}
	if d.physical == nil {
		return rt.targetOnHost(ctx, t)
	}
	if k.shader == nil {
		return inLabel(fmt.Errorf("%w: kernel %q has no SPIR-V, only the initial device can run it", ErrUnsupported, k.name))
	}
	s, err := d.open()
	if err != nil {
		return inLabel(err)
	}
	maps, values := splitArgs(t.Args)
	return s.Run(ctx, sched.Region{
		Label:  t.Label,
		Scope:  rt.scope(ctx),
		Depend: t.Depend,
		NoWait: t.NoWait,
		Enter:  maps,
		Exit:   maps,
		Kernel: k.shader,
		Range:  extent,
		Values: values,
	})
}

// targetOnHost runs the kernel's Host variant on the initial device.
func (rt *Runtime) targetOnHost(ctx context.Context, t *Target) error {
	k := t.Kernel.k
	if k.host == nil {
		return fmt.Errorf("target %q: %w: kernel %q has no Host variant for the initial device", t.Label, ErrUnsupported, k.name)
	}
	call := &HostCall{Range: t.Range, name: k.name}
	call.Range.Y = max(call.Range.Y, 1)
	call.Range.Z = max(call.Range.Z, 1)
	args := append([]Arg(nil), t.Args...)
	empty := t.Range.X == 0
	var sizes []uint64
	var values [][]byte
	for i := range args {
		a := &args[i]
		if a.isValue {
			call.values = append(call.values, a)
			values = append(values, a.bytes())
			continue
		}
		call.buffers = append(call.buffers, a)
		sizes = append(sizes, a.section.Size)
		if k.shader == nil && a.section.Size == 0 {
			empty = true
		}
	}
	if k.shader != nil {
		if err := k.shader.Fits(nil, sizes, values); err != nil {
			return fmt.Errorf("target %q: %w", t.Label, err)
		}
		empty = empty || k.shader.Empty(sizes)
	}
	r := sched.HostRegion{Label: t.Label, Scope: rt.scope(ctx), Depend: t.Depend, NoWait: t.NoWait}
	if !empty {
		r.Body = func() error { return errors.Join(k.host(call), call.err) }
	}
	return rt.host.Run(ctx, r)
}

// extent returns the range with its defaults filled in.
func (r Range) extent() ([3]uint64, error) {
	if r.X < 0 || r.Y < 0 || r.Z < 0 {
		return [3]uint64{}, fmt.Errorf("%w: range %d×%d×%d is negative", ErrInvalidArgument, r.X, r.Y, r.Z)
	}
	return [3]uint64{uint64(r.X), uint64(max(r.Y, 1)), uint64(max(r.Z, 1))}, nil
}

func checkArgs(args []Arg) error {
	for k := range args {
		if err := args[k].check(k); err != nil {
			return err
		}
	}
	return nil
}

// splitArgs returns the maps and the values among args, each in order. The values
// lie in args.
func splitArgs(args []Arg) (maps []memory.Map, values [][]byte) {
	maps = make([]memory.Map, 0, len(args))
	for k := range args {
		a := &args[k]
		if a.isValue {
			values = append(values, a.bytes())
			continue
		}
		maps = append(maps, memory.Map{Section: a.section, Type: a.mapType, Label: argumentLabel(k)})
	}
	return maps, values
}

// argumentLabels are made once: a label is only read when something fails.
var argumentLabels = func() (labels [vk.MaxBindings]string) {
	for k := range labels {
		labels[k] = fmt.Sprintf("argument %d", k)
	}
	return labels
}()

func argumentLabel(k int) string {
	if k < len(argumentLabels) {
		return argumentLabels[k]
	}
	return fmt.Sprintf("argument %d", k)
}
