package vkomp

import (
	"context"
	"errors"
	"fmt"
)

// PauseKind is a kind of pause (omp_pause_resource_t).
type PauseKind int

const (
	// PauseSoft frees what a device keeps for later work: staging memory, empty memory
	// blocks, command buffers, descriptor pools and goroutines. All mapped, allocated
	// and pinned storage stays, with its contents and the pointers to it. It is
	// ErrDeviceLost for a lost device.
	PauseSoft PauseKind = 1
	// PauseHard frees everything that a device has. Mapped data is not copied back; device
	// pointers, associations, registered buffers and exported memory become invalid.
	// Declared storage is initialised again from the host's at the next use. Pinned storage
	// stays, and is pinned for the device again then.
	PauseHard PauseKind = 2
	// PauseStopTool is PauseHard; applied to the initial device or to all, it also stops
	// Options.Tool, which gets the events of the end of the open devices and then no more
	// (OpenMP 6.0 omp_pause_stop_tool).
	PauseStopTool PauseKind = 3
)

// String returns the name of the kind, such as "soft".
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

// PauseResource frees what the runtime has on a device (OpenMP 5.0 omp_pause_resource); the
// device's next use allocates it again. Stats and MemoryReport show what there was and what
// is left. See [PauseSoft] and [PauseHard] for what stays.
//
// A hard pause destroys the VkDevice, unless it was adopted. Options.Tool observes the end
// of the device, and its initialization at the next use. Old device pointers are recognised
// and are ErrInvalidPointer. On the initial device a hard pause frees the memory of
// [Device.Alloc], and both kinds end the goroutines of the host pool.
//
// A hard pause also makes a lost device (ErrDeviceLost) usable again. First its tasks must
// have been waited for, structured constructs must have ended, and its interop objects must
// have been destroyed, which is possible on a lost device. The next use opens the device
// anew. An adopted VkDevice, however, has to be replaced by the application, with a new
// runtime that adopts the new one.
//
// The pause concerns the whole program. It is ErrBusy while a task of any device is not
// complete, while a construct is in progress, including the body of a data region, and inside
// a task or taskgroup. A hard pause is also ErrBusy while an interop object of the device has
// not been destroyed, while foreign work of a destroyed one is not complete, while pinned
// storage that the device's driver has allocated is not freed, while memory of the initial
// device is associated with that of a device that is not paused too, or while a device compiles
// a kernel for a construct. It waits for the queues that such objects had to
// themselves, if the runtime submits to them too, until ctx ends and for at most
// Options.ForeignTimeout. It also waits, until ctx ends, for kernels that the device compiles
// and that no construct has used there; those whose turn has not come are compiled when the
// device is opened again. After any error except one of a Vulkan call nothing has changed. A hard
// pause also returns the failures of foreign work that no construct has reported; it has taken
// place then.
func (rt *Runtime) PauseResource(ctx context.Context, kind PauseKind, d Device) error {
	if d.d == nil || d.d.rt != rt {
		return fmt.Errorf("vkomp: pause: %w: not a device of this runtime", ErrInvalidDevice)
	}
	if err := rt.pause(ctx, kind, d.d); err != nil {
		return fmt.Errorf("vkomp: %v pause of device %d: %w", kind, d.d.number, err)
	}
	return nil
}

// PauseResourceAll is PauseResource for all devices, including the initial one (OpenMP 5.0
// omp_pause_resource_all). If it is ErrBusy for one of them, none has changed.
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
	// Constructs that are called during the pause wait; the pause does not wait for any.
	if !rt.using.pause() {
		return fmt.Errorf("%w: a construct is under way", ErrBusy)
	}
	defer rt.using.resume()
	rt.graph.AwaitJoins(ctx) // a taskgroup has waited for the program's tasks alone
	if rt.graph.Pending() {
		return fmt.Errorf("%w: tasks are not complete", ErrBusy)
	}
	if kind != PauseSoft {
		for _, d := range devices {
			if err := d.busy(ctx, devices); err != nil {
				return err
			}
		}
		for _, d := range devices {
			defer d.resumeCompiling()
			if err := d.stopCompiling(ctx); err != nil {
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
			_ = rt.hostMemory.close() // a hard pause frees what was not freed
		}
		if kind == PauseStopTool {
			errs = append(errs, rt.stopTool())
		}
	}
	return errors.Join(errs...)
}
