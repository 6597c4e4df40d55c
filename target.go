package vkomp

import (
	"cmp"
	"context"
	"fmt"

	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
)

// Target describes a target region (OpenMP target construct): a kernel that runs on a device
// over a range, with its data mapped in the meantime.
//
// The clauses (sections, values and depend items) are evaluated when Target is called. The
// contents of the mapped slices are read when the task runs.
type Target struct {
	// Device is the device clause; the zero Device is the current task's default
	// device.
	Device Device
	// If, when false, makes the region run on the initial device.
	If Cond
	// Kernel is what runs, over the invocations of Range.
	Kernel Kernel
	Range  Range
	// Args are the data clauses: slices made with To, From, ToFrom, Alloc or Implicit,
	// device memory (IsDevicePtr, HasDeviceAddr), and values (Value, AddressOf).
	Args []Arg
	// Depend orders the task among its siblings.
	Depend []Depend
	// DependArgs adds a depend item for each slice argument: in if it is mapped To or the
	// kernel declares it readonly, else inout. It is an extension of OpenMP.
	DependArgs bool
	// NoWait lets the task be deferred: Target returns when it is generated.
	// Otherwise the task is included, and Target returns when it is complete.
	NoWait bool
	// Priority is as in Task. On a Vulkan device, a task with a priority above 0 is submitted
	// at once, together with everything that its queue has collected. A queue begins its work
	// in the order of submission, so that no task starves.
	Priority int
	// Replayable, when false, keeps the construct out of the record of a [Taskgraph] (OpenMP 6.0
	// replayable clause).
	Replayable Cond
	// Label names the task in errors and graphs; the kernel's name by default.
	Label string
}

// Target generates a target task (OpenMP target).
//
// If device and host share memory, slices of at least 1 MiB that no other construct maps are
// used in place and not copied. They must be mapped From or ToFrom, or To with a kernel that
// declares them readonly. The device then accesses them while the task runs.
//
// Errors in the construct itself are returned at once, and no task is generated:
// ErrInvalidArgument, ErrInvalidLaunch, ErrInvalidDevice, ErrInvalidPointer, ErrUnsupported.
// Errors when the task runs are a *TaskError, which is returned here for an included task and
// by the next Taskwait for a deferred one: ErrOutOfMemory, ErrPartialOverlap, ErrNotPresent,
// ErrNotShared, ErrDeviceLost, and ErrInvalidLaunch where it depends on the place of an argument
// in its storage whether it can be bound.
//
// If ctx has ended before the task is generated, Target returns its cause, and no task is generated.
// If ctx ends before an included task does, Target returns its cause, up to a millisecond later, or
// when it has ended the tasks whose ends it is working on, with their copies to the host. The task
// goes on like a deferred one, and its slices belong to the runtime until a Taskwait has returned; on
// the initial device a task that has not started is dropped. A deferred task that has not started when
// ctx ends is dropped and counts as failed.
//
// A device compiles a kernel in the background (see [Runtime.NewKernel]), which may take any
// time; its first launch waits for that, and for no other kernel. An included task is
// generated after the compilation: if ctx ends first, Target returns its cause, nothing has
// been done, and the error says which kernel is still being compiled. A deferred task waits
// for the compilation as for a dependence, and fails if the device refuses the kernel. In
// both cases the compilation continues, for the kernel's next use.
func (rt *Runtime) Target(ctx context.Context, t Target) error {
	h := hide(&t)
	args, depend := h.Args, h.Depend
	h.Args, h.Depend = nil, nil
	if err := rt.target(ctx, h, args, depend); err != nil {
		return rt.unrecorded(ctx, h.Replayable, err)
	}
	return nil
}

// target generates the task of a region. t describes it without its slices.
func (rt *Runtime) target(ctx context.Context, t *Target, args []Arg, depend []Depend) error {
	if err := rt.construct(ctx); err != nil {
		label := cmp.Or(t.Label, "target")
		if t.Label == "" && t.Kernel.k != nil {
			label = t.Kernel.k.name
		}
		return fmt.Errorf("target %q: %w", label, err)
	}
	defer rt.using.leave(rt.using.enter())
	c := rt.current(ctx)
	return rt.targetIn(ctx, &c, t, args, depend, observe.Site{})
}

// targetIn is target for a construct that c encounters at a place in the program.
func (rt *Runtime) targetIn(ctx context.Context, c *current, t *Target, args []Arg, depend []Depend, at observe.Site) error {
	k, label, err := rt.kernelOf(t)
	if err != nil {
		return err
	}
	recording := c.records(t.Replayable)
	if recording != nil && !t.NoWait {
		return recording.refuse("target", label, undeferred)
	}
	passed := newClauses()
	defer passed.giveBack()
	passed.Label = label
	s, err := rt.evaluate(c, passed, t, args, depend)
	if err != nil {
		return fmt.Errorf("target %q: %w", label, err)
	}
	d := &passed.directive
	d.kind, d.flags, d.device, d.at = ompt.Target, targetFlags(t.NoWait && !c.final), passed.device.number, at
	if rt.observed() {
		passed.does = argumentData(k, args, passed.device)
	}
	var kept *recordedTarget
	if recording != nil {
		if kept, err = recording.target(passed, t, args, depend); err != nil {
			return err
		}
	}
	if s == nil {
		err = rt.targetOnHost(ctx, c, t, args, passed)
	} else {
		err = c.generate(ctx, passed, s)
	}
	if err == nil && kept != nil {
		recording.add(ctx, kept)
	}
	return err
}

// evaluate evaluates the clauses of a region that c encounters. It returns the scheduler of the
// region's device, nil for the initial device.
func (rt *Runtime) evaluate(c *current, passed *clauses, t *Target, args []Arg, depend []Depend) (s *sched.Scheduler, err error) {
	k := t.Kernel.k
	if err = t.Range.extent(&passed.Range); err != nil {
		return nil, err
	}
	if err := checkArgs(args, argumentLabels); err != nil {
		return nil, err
	}
	d, err := rt.resolve(*c, t.Device, t.If)
	if err != nil {
		return nil, err
	}
	passed.device = d
	passed.Depend = appendItems(passed.Depend, depend)
	if t.DependArgs {
		passed.dependOnArgs(k, args)
	}
	passed.Priority = rt.priority(t.Priority)
	if d.physical == nil {
		return nil, nil
	}
	if k.shader == nil {
		return nil, fmt.Errorf("%w: kernel %q has no SPIR-V, only the initial device can run it", ErrUnsupported, k.name)
	}
	if s, err = d.open(); err != nil {
		return nil, err
	}
	passed.Kernel, passed.Structured = k.shader, true
	return s, passed.arguments(k, args, d)
}

// kernelOf returns the construct's kernel, and its label: the kernel's name if it has none.
func (rt *Runtime) kernelOf(t *Target) (k *sharedKernel, label string, err error) {
	k = t.Kernel.k
	if t.Label != "" {
		label = rt.labels.intern(t.Label)
	}
	switch {
	case k == nil:
		return nil, "", fmt.Errorf("%w: target %q has no kernel: make one with NewKernel", ErrInvalidArgument, label)
	case k.closed.Load():
		return nil, "", fmt.Errorf("target %q: kernel %q is %w", cmp.Or(label, k.name), k.name, ErrClosed)
	case k.rt != rt:
		return nil, "", fmt.Errorf("%w: target %q: kernel %q belongs to another runtime", ErrInvalidArgument, cmp.Or(label, k.name), k.name)
	}
	return k, cmp.Or(label, k.name), nil
}

// extent sets e to the range with defaults filled in.
func (r Range) extent(e *[3]uint64) error {
	if r.X < 0 || r.Y < 0 || r.Z < 0 {
		return fmt.Errorf("%w: range %d×%d×%d is negative", ErrInvalidArgument, r.X, r.Y, r.Z)
	}
	e[0], e[1], e[2] = uint64(r.X), uint64(max(r.Y, 1)), uint64(max(r.Z, 1))
	return nil
}
