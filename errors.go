package vkomp

import (
	"errors"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/protect"
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
	// ErrNotPresent: host storage that has no corresponding storage on the device,
	// where a clause or a routine needs that it has.
	ErrNotPresent = memory.ErrNotPresent
	// ErrNotShared: storage that must be the host's own on the device, and is not
	// (OpenMP 6.0 §7.10.4, the self modifier).
	ErrNotShared = memory.ErrNotShared
	// ErrAssociated: host storage that has corresponding storage already, where
	// other storage was to be associated with it.
	ErrAssociated = sched.ErrAssociated
	// ErrInvalidPointer: a DevicePtr that is nil, that points into memory which was
	// freed, or past the end of its storage, or not to where an allocation begins
	// if that is asked for.
	ErrInvalidPointer = sched.ErrInvalidPointer
	// ErrBusy: what is to go is still in use.
	ErrBusy = sched.ErrBusy
	// ErrOutOfMemory: the device, or the host on its behalf, is out of memory, whichever
	// call it is that finds none: of a task's storage, a submission, a wait, a kernel's
	// pipeline, a device's or instance's creation. What it hit has failed, and nothing else.
	ErrOutOfMemory = memory.ErrOutOfMemory
	// ErrOutOfHostMemory and ErrOutOfDeviceMemory: where the driver, or the runtime, knows
	// of which memory there is none; an error that matches one of them is an
	// ErrOutOfMemory as well.
	ErrOutOfHostMemory   = vk.ErrOutOfHostMemory
	ErrOutOfDeviceMemory = vk.ErrOutOfDeviceMemory
	// ErrLeaked: storage was still mapped, or memory not freed, when the runtime was
	// closed.
	ErrLeaked = memory.ErrLeaked
	// ErrUnsupported: the device, the driver or this build lacks something.
	ErrUnsupported = vk.ErrUnsupported
	// ErrDeviceLost: the device is gone (VK_ERROR_DEVICE_LOST), and with it its tasks and
	// what was mapped and allocated there. Its tasks fail with this error, those that are
	// generated later too. Nothing waits for it: foreign work of interop objects counts as
	// withdrawn, and of these objects nothing but Withdraw and their destruction succeeds.
	// A hard pause brings the device back: see [Runtime.PauseResource].
	ErrDeviceLost = vk.ErrDeviceLost
	// ErrClosed: the runtime is closed, or it is being closed and the construct is none of
	// a task that was generated before; or the kernel is closed.
	ErrClosed = sched.ErrClosed
)

// TaskError is the failure of one task, as a construct or a wait reports it: for errors.As.
// Task is the task's label, and Cause the failure itself. Dependent is set when the task was
// not run because one that it depends on has failed; Cause is that task's *TaskError then.
type TaskError = tasks.Error

// PanicError is a panic in code of the program's that the runtime calls: a task's body, a
// kernel's Host variant, a Mapper's functions, foreign work, a tool's callback, a report of
// progress. For errors.As. Value is what panic was called with, and Stack the stack of the
// goroutine that panicked, as debug.Stack has it.
type PanicError = protect.PanicError
