package vkomp

import (
	"context"
	"errors"
	"fmt"
)

// PauseKind is a kind of pause (omp_pause_resource_t).
type PauseKind int

const (
	// PauseSoft gives back what a device keeps for work to come: staging memory, blocks of
	// storage that nothing lies in, command buffers and descriptor pools, goroutines. All
	// mapped and allocated storage stays, with its contents and the pointers to it. Of a
	// device that is lost it is ErrDeviceLost.
	PauseSoft PauseKind = 1
	// PauseHard gives back all that a device has. Mapped data is not copied back; device
	// pointers, associations, registered buffers and exported memory are no more. Storage
	// that is declared gets the host's values anew.
	PauseHard PauseKind = 2
	// PauseStopTool is PauseHard, and, of the initial device or of all, the end of
	// Options.Tool: it hears of the end of the devices that are open, and of nothing any
	// more (OpenMP 6.0 omp_pause_stop_tool).
	PauseStopTool PauseKind = 3
)

// String names the kind, such as "soft".
func (k PauseKind) String() string {
	switch k {
	case PauseSoft:
		return "soft"
	case PauseHard:
		return "hard"
	case PauseStopTool:
		return "stop tool"
	}
	return fmt.Sprintf("PauseKind(%d)", int(k))
}

// PauseResource gives back what the runtime has on a device (OpenMP 5.0
// omp_pause_resource); the device's next use takes what it needs again. Stats and
// MemoryReport say what there was and what is left. See [PauseSoft] and [PauseHard] for
// what stays.
//
// A hard pause destroys the VkDevice, unless it was adopted, and Options.Tool hears of
// the end of the device, and of its beginning at the next use. What the program has kept
// is recognised: a device pointer from before is ErrInvalidPointer. On the initial
// device, memory of [Device.Alloc] goes by a hard pause, and either kind ends the
// goroutines that host tasks run on.
//
// A hard pause is also the way to go on with a device that is lost (ErrDeviceLost), once
// its tasks have been waited for, structured constructs have ended and its interop objects
// are destroyed, which succeeds on a lost device as well: the next use opens the device
// anew. That is not so for an adopted VkDevice, which is the application's to replace,
// with a runtime that adopts the new one.
//
// The pause concerns the whole program: it is ErrBusy while a task of whatever device is
// not complete, or a construct is under way, a data region's body included; from inside of
// a task or taskgroup; and a hard one while an interop object of the device is not
// destroyed, or foreign work of one that was is not complete, or while a device compiles a
// kernel. Only the queues that such objects had to themselves, where the runtime submits
// too, are waited for, until ctx ends and no longer than Options.ForeignTimeout. On any
// error but that of a Vulkan call nothing has changed.
func (rt *Runtime) PauseResource(ctx context.Context, kind PauseKind, d Device) error {
	if d.d == nil || d.d.rt != rt {
		return fmt.Errorf("vkomp: pause: %w: not a device of this runtime", ErrInvalidDevice)
	}
	if err := rt.pause(ctx, kind, d.d); err != nil {
		return fmt.Errorf("vkomp: %v pause of device %d: %w", kind, d.d.number, err)
	}
	return nil
}

// PauseResourceAll is PauseResource of all devices, the initial one included (OpenMP 5.0
// omp_pause_resource_all). When it is ErrBusy for one of them, none has changed.
func (rt *Runtime) PauseResourceAll(ctx context.Context, kind PauseKind) error {
	if err := rt.pause(ctx, kind, rt.devices...); err != nil {
		return fmt.Errorf("vkomp: %v pause: %w", kind, err)
	}
	return nil
}

func (rt *Runtime) pause(ctx context.Context, kind PauseKind, devices ...*device) error {
	if err := rt.construct(ctx); err != nil {
		return err
	}
	if kind < PauseSoft || kind > PauseStopTool {
		return fmt.Errorf("%w: there is no such kind, only soft (%d), hard (%d) and stop tool (%d)", ErrInvalidArgument, int(PauseSoft), int(PauseHard), int(PauseStopTool))
	}
	switch c := rt.current(ctx); {
	case c.taskRegion != &rt.initial:
		return fmt.Errorf("%w: a task pauses nothing", ErrBusy)
	case c.inside != nil:
		return fmt.Errorf("%w: a taskgroup is under way", ErrBusy)
	}
	// Constructs that come meanwhile wait; the pause waits for none.
	if !rt.using.TryLock() {
		return fmt.Errorf("%w: a construct is under way", ErrBusy)
	}
	defer rt.using.Unlock()
	if rt.graph.Pending() {
		return fmt.Errorf("%w: tasks are not complete", ErrBusy)
	}
	if kind != PauseSoft {
		for _, d := range devices {
			if err := d.busy(ctx); err != nil {
				return err
			}
		}
	}
	var errs []error
	for _, d := range devices {
		if d.physical != nil {
			errs = append(errs, d.pause(kind))
			continue
		}
		rt.host.Pool().Drain()
		if kind != PauseSoft {
			_ = rt.hostMemory.close() // what was not freed is meant to go
		}
		if kind == PauseStopTool {
			errs = append(errs, rt.stopTool())
		}
	}
	return errors.Join(errs...)
}
