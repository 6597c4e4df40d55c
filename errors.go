package vkomp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
	"github.com/vkomp/vkomp/vk/spirv"
)

// Errors to test for with errors.Is. The error itself names the construct, the argument,
// the device or the Vulkan call.
var (
	// ErrInvalidArgument says that a clause or an argument is invalid by itself.
	ErrInvalidArgument = errors.New("invalid argument")
	// ErrInvalidDevice says that a device number is neither 0 to NumDevices nor
	// InitialDeviceNumber, that a selector matches no device, or that a construct without a
	// device clause finds no default device. It is also the error for a Device or a DevicePtr of
	// another runtime, a DevicePtr of another device, and devices that a call or a saved taskgraph
	// cannot use, such as the initial device.
	ErrInvalidDevice = errors.New("invalid device")
	// ErrInvalidLaunch says that arguments or a range do not fit the kernel or the
	// device.
	ErrInvalidLaunch = kernel.ErrInvalidLaunch
	// ErrInvalidModule says that bytes are not a well-formed SPIR-V module, or one without the
	// compute entry point that was asked for.
	ErrInvalidModule = spirv.ErrInvalid
	// ErrInvalidDepend says that a depend item is not valid.
	ErrInvalidDepend = tasks.ErrInvalidDepend
	// ErrCancelled says that the taskgroup is cancelled. A body that returns it has not
	// failed.
	ErrCancelled = tasks.ErrCancelled
	// ErrFulfilled says that the event was fulfilled before.
	ErrFulfilled = tasks.ErrFulfilled
	// ErrPartialOverlap says that a mapped section is present on the device only in part
	// (OpenMP 5.2 §5.8.3, a restriction to the map clause), or that host storage of a
	// construct is pinned only in part.
	ErrPartialOverlap = memory.ErrPartialOverlap
	// ErrNotPresent says that host storage has no corresponding storage on the device,
	// although a clause or a routine requires it.
	ErrNotPresent = memory.ErrNotPresent
	// ErrNotShared says that the device cannot use the host's storage, although the self
	// modifier requires it (OpenMP 6.0 §7.10.4).
	ErrNotShared = memory.ErrNotShared
	// ErrAssociated says that host storage already has corresponding storage, where
	// other storage was to be associated with it.
	ErrAssociated = sched.ErrAssociated
	// ErrInvalidPointer says that a DevicePtr is nil, points into freed memory or past
	// the end of its storage, or does not point to the beginning of an allocation where
	// that is required; or that pinned storage was freed before.
	ErrInvalidPointer = sched.ErrInvalidPointer
	// ErrBusy says that something cannot be removed because it is in use.
	ErrBusy = sched.ErrBusy
	// ErrOutOfMemory says that the device, or the host on its behalf, is out of memory,
	// whichever call needed it: for a task's storage, a submission, a wait, a pipeline, or
	// the creation of a device or instance. Only that operation has failed.
	ErrOutOfMemory = memory.ErrOutOfMemory
	// ErrOutOfHostMemory is the ErrOutOfMemory of errors for which the driver or the
	// runtime knows that host memory is missing.
	ErrOutOfHostMemory = vk.ErrOutOfHostMemory
	// ErrOutOfDeviceMemory is the same for device memory.
	ErrOutOfDeviceMemory = vk.ErrOutOfDeviceMemory
	// ErrLeaked says that storage was still mapped, or memory not freed, when the runtime
	// was closed.
	ErrLeaked = memory.ErrLeaked
	// ErrNotReplayable says that a construct cannot be recorded, in a taskgraph region that is: see
	// [Runtime.Taskgraph].
	ErrNotReplayable = errors.New("not replayable")
	// ErrUnsupported says that the device, the driver or this build lacks something.
	ErrUnsupported = vk.ErrUnsupported
	// ErrDeviceLost says that the device is lost (VK_ERROR_DEVICE_LOST), together with its
	// mapped and allocated memory. Its tasks fail with this error, including those
	// generated later. Nothing waits for it: foreign work of interop objects counts as
	// withdrawn, and calls on these objects fail, except for Withdraw and their
	// destruction. A hard pause makes the device usable again: see
	// [Runtime.PauseResource].
	ErrDeviceLost = vk.ErrDeviceLost
	// ErrClosed says that the runtime is closed; that it is being closed and the
	// construct does not belong to a task that was generated before; or that the kernel is
	// closed.
	ErrClosed = sched.ErrClosed
)

// TaskError is the failure of one task, as constructs and waits report it. Use errors.As to
// find it in an error, which may report the failures of several tasks.
type TaskError struct {
	// Task is the task's label.
	Task string
	// Cause is the failure itself. For a task that was not run because a task that it depends
	// on has failed, it is the *TaskError of that task.
	Cause error
	// Dependent says that the task was not run because a task that it depends on has failed.
	Dependent bool
	// failure is what the task graph knows of the failure, nil for a merged task.
	failure *tasks.Error
}

// Error returns the task's label and the cause.
func (e *TaskError) Error() string {
	return (&tasks.Error{Task: e.Task, Cause: e.Cause, Dependent: e.Dependent}).Error()
}

// Unwrap returns the cause.
func (e *TaskError) Unwrap() error { return e.Cause }

// PanicError is a panic in code of the program's that the runtime has called: the body of a
// task, the Host variant of a kernel, a function of a Mapper, foreign work, a tool's callback,
// or a report of progress. Use errors.As to find it in an error.
type PanicError struct {
	// Value is what panic was called with.
	Value any
	// Stack is the stack of the goroutine that panicked, as debug.Stack formats it.
	Stack []byte
}

// Error returns the value and the stack.
func (e *PanicError) Error() string { return (*protect.PanicError)(e).Error() }

// Unwrap returns the value if it is an error, else nil.
func (e *PanicError) Unwrap() error { return (*protect.PanicError)(e).Unwrap() }

// The packages below make these errors themselves wherever a failure arises, so that one failure
// is the same error in all that reports it.

var taskErrors = tasks.Errors{
	Public: func(e *tasks.Error) error {
		return &TaskError{Task: e.Task, Cause: e.Cause, Dependent: e.Dependent, failure: e}
	},
	Failure: func(err error) *tasks.Error {
		if e, ok := err.(*TaskError); ok {
			return e.failure
		}
		return nil
	},
}

func init() {
	protect.Public = func(p *protect.PanicError) error { return (*PanicError)(p) }
}

// ofTask reports whether err is, or wraps, the failure of a task.
func ofTask(err error) bool {
	var failed *TaskError
	return errors.As(err, &failed)
}

// failure returns the error with which a construct or a wait returns to the program. If ctx has
// ended, it also says which foreign work is awaited.
func (rt *Runtime) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		if awaited := rt.awaited(); len(awaited) > 0 {
			err = fmt.Errorf("%w (foreign work that the runtime awaits: %s)", err, strings.Join(awaited, "; "))
		}
	}
	return fmt.Errorf("vkomp: %w", err)
}
