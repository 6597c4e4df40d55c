package vkomp

import (
	"errors"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
	"github.com/vkomp/vkomp/vk/spirv"
)

// Errors to test for with errors.Is. The error itself names the construct, the
// argument, the device or the Vulkan call.
var (
	// ErrInvalidArgument: a clause or argument that makes no sense in itself.
	ErrInvalidArgument = errors.New("invalid argument")
	// ErrInvalidDevice: a device number outside 0..NumDevices, or a selector
	// that matches no device.
	ErrInvalidDevice = errors.New("invalid device")
	// ErrInvalidLaunch: arguments or a range that do not fit the kernel or the
	// device.
	ErrInvalidLaunch = sched.ErrInvalidLaunch
	// ErrInvalidModule: bytes that are no well-formed SPIR-V module.
	ErrInvalidModule = spirv.ErrInvalid
	// ErrInvalidDepend: a depend item that is not one.
	ErrInvalidDepend = tasks.ErrInvalidDepend
	// ErrCancelled: the taskgroup is cancelled. For a body to return, which is no
	// failure then.
	ErrCancelled = tasks.ErrCancelled
	// ErrFulfilled: the event was fulfilled before.
	ErrFulfilled = tasks.ErrFulfilled
	// ErrPartialOverlap: a mapped section that is present on the device only in
	// part (OpenMP 5.2 §5.8.3, a restriction to the map clause).
	ErrPartialOverlap = memory.ErrPartialOverlap
	// ErrOutOfMemory: the device, or the host on its behalf, is out of memory.
	ErrOutOfMemory = memory.ErrOutOfMemory
	// ErrUnsupported: the device, the driver or this build lacks something.
	ErrUnsupported = vk.ErrUnsupported
	// ErrDeviceLost: the device is gone; its tasks and mapped contents with it.
	ErrDeviceLost = vk.ErrDeviceLost
	// ErrClosed: the runtime is closed.
	ErrClosed = sched.ErrClosed
)

// TaskError is the failure of one task, as a construct or a wait reports it.
type TaskError = tasks.Error

// PanicError is a panic in a kernel's Host variant or a task's body.
type PanicError = sched.PanicError
