package vgpu

// #include "hook.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/cgo"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/goki/vgpu/vgpu"
	"github.com/goki/vulkan"
	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
)

var (
	// ErrClosed is the error of a Device that was closed, or whose interop object was
	// destroyed, by itself or with its runtime.
	ErrClosed = errors.New("closed")
	// ErrBusy is the error of Close while submissions have not been made yet, or cannot be
	// executed because tasks before them have not been submitted.
	ErrBusy = errors.New("busy")
	// ErrObject is the error for an interop object that lacks a type or a kind of queue.
	ErrObject = errors.New("unfit interop object")
)

// Device is a device of vkomp's as vgpu sees it. It is safe for concurrent use. What vgpu makes
// on it is not: it may be used inside [Device.Do] only.
type Device struct {
	// GPU is for vgpu's constructors. It has what its Config method would set. Neither Config
	// nor Destroy may be called.
	GPU *vgpu.GPU
	// Device is the logical device with the object's queue, for vgpu's constructors.
	Device vgpu.Device

	object interop.Object
	queue  interop.ForeignQueue
	// draws says that the queue's family supports graphics.
	draws bool
	// hook is what hook.c knows of the device. Its handle is a cgo.Handle of this Device.
	hook C.vkvgpu_device

	closed atomic.Bool
	// submitting counts calls of Submit in progress, and pending the submissions that wait for
	// their predecessors.
	submitting, pending atomic.Int64

	// thread is the one that holds mu, 0 for none.
	thread atomic.Uintptr
	// mu is held while vgpu's code runs. It guards the fields below.
	mu      sync.Mutex
	systems []*vgpu.System
	frames  []*vgpu.RenderFrame
}

// Open opens vgpu on the device of an interop object with the types target and targetsync. The
// object and its device remain the runtime's: the program closes the result of Open before it
// destroys the object or closes the runtime. Open returns ErrObject if the object has not both
// types, and ErrClosed if it was destroyed.
func Open(o interop.Object) (*Device, error) {
	d, err := open(o)
	if err != nil {
		return nil, fmt.Errorf("vgpu: open: %w", err)
	}
	return d, nil
}

func open(o interop.Object) (*Device, error) {
	h, target := o.Vulkan()
	queue, targetsync := o.Queue()
	switch {
	case o == interop.None:
		return nil, fmt.Errorf("%w: it is none", ErrObject)
	case o.Types() == 0:
		return nil, fmt.Errorf("the interop object is %w", ErrClosed)
	case !target || !targetsync:
		return nil, fmt.Errorf("%w: it has the types %v: want target,targetsync", ErrObject, o.Types())
	}
	if err := bind(h); err != nil {
		return nil, err
	}
	d := &Device{object: o, queue: queue}
	d.hook = C.vkvgpu_device{
		instance: pointer(h.Instance), device: pointer(h.Device), queue: pointer(queue.Handle),
		handle: C.uintptr_t(cgo.NewHandle(d)),
	}
	d.Device = vgpu.Device{
		Device: dispatchable[vulkan.Device](h.Device), QueueIndex: queue.Family, Queue: dispatchable[vulkan.Queue](queue.Handle),
	}
	if err := d.do(func() error { return d.describe(h) }); err != nil {
		cgo.Handle(d.hook.handle).Delete()
		return nil, err
	}
	return d, nil
}

// describe sets the fields of GPU as vgpu's GPU.Config does, without an instance and a device
// of its own.
func (d *Device) describe(h interop.Handles) error {
	// NewGPU would require a swapchain. The other differences between the two matter only to
	// GPU.Config.
	gpu := vgpu.NewComputeGPU()
	gpu.Compute = false
	gpu.AppName = "vkomp"
	gpu.Instance, gpu.GPU = dispatchable[vulkan.Instance](h.Instance), dispatchable[vulkan.PhysicalDevice](h.PhysicalDevice)

	vulkan.GetPhysicalDeviceFeatures(gpu.GPU, &gpu.GPUFeats)
	gpu.GPUFeats.Deref()
	vulkan.GetPhysicalDeviceProperties(gpu.GPU, &gpu.GPUProps)
	gpu.GPUProps.Deref()
	gpu.GPUProps.Limits.Deref()
	gpu.DeviceName = gpu.GetDeviceName(&gpu.GPUProps, 0)
	vulkan.GetPhysicalDeviceMemoryProperties(gpu.GPU, &gpu.MemoryProps)
	gpu.MemoryProps.Deref()
	gpu.MaxComputeWorkGroupCount1D = int(gpu.GPUProps.Limits.MaxComputeWorkGroupCount[0])
	d.GPU = gpu

	var count uint32
	vulkan.GetPhysicalDeviceQueueFamilyProperties(gpu.GPU, &count, nil)
	families := make([]vulkan.QueueFamilyProperties, count)
	vulkan.GetPhysicalDeviceQueueFamilyProperties(gpu.GPU, &count, families)
	if d.queue.Family >= count {
		return fmt.Errorf("%w: its queue is of family %d of %d", ErrObject, d.queue.Family, count)
	}
	families[d.queue.Family].Deref()
	d.draws = families[d.queue.Family].QueueFlags&vulkan.QueueFlags(vulkan.QueueGraphicsBit) != 0
	return nil
}

// PanicError is the error that [Device.Do] makes of a panic.
type PanicError struct {
	// Value is the value of the panic, and Stack its stack trace as debug.Stack returns it.
	Value any
	Stack []byte
}

// Error returns the text of the panic.
func (e *PanicError) Error() string { return fmt.Sprintf("vgpu panicked: %v", e.Value) }

// Unwrap returns Value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Do calls f, which calls vgpu, and returns its error; a panic on f's goroutine becomes a
// [*PanicError]. What vgpu had made before a panic stays as it is, to be used or destroyed, and
// the Device is as before.
//
// While f runs it has the Device and an operating system's thread for itself. Calls of vgpu
// that would interfere with vkomp have no such effect: the device and the instance are not
// destroyed, a submission takes the queue's lock, and a wait for the device waits only for the
// object's queue. If that is the object's own, its constructs hold it up until the tasks before
// them are complete: f must not wait for the queue or the device as long as such a task cannot
// complete before f returns. f may call methods of the Device, and of others. If several goroutines
// nest Do of the same Devices, all of them must nest them in the same order. Goroutines that f
// starts are not protected. Do returns ErrClosed if the Device is closed or the object was destroyed.
//
// While f runs there is no garbage collection in the whole process, unless runtime.GC is
// called: vgpu's binding has finalizers that free memory before Vulkan has read it. So f should
// be short. Settings made by debug.SetGCPercent and debug.SetMemoryLimit meanwhile are undone.
func (d *Device) Do(f func() error) error {
	if err := d.do(f); err != nil {
		return fmt.Errorf("vgpu: %w", err)
	}
	return nil
}

func (d *Device) do(f func() error) error {
	return d.run(func() error {
		if err := d.usable(); err != nil {
			return err
		}
		return f()
	})
}

// run is do for a Device that may be unusable.
func (d *Device) run(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := C.vkvgpu_enter(d.hook)
	defer C.vkvgpu_enter(before)
	thread := uintptr(C.vkvgpu_thread())
	if d.thread.Load() == thread {
		// Do was called inside f, perhaps inside Do of another Device.
		return guard(f)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.thread.Store(thread)
	defer d.thread.Store(0)
	holdCollector()
	defer releaseCollector()
	return guard(f)
}

// guard calls f and turns its panic into an error.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{p, debug.Stack()}
		}
	}()
	return f()
}

// mustDraw returns an error if the queue's family does not support graphics.
func (d *Device) mustDraw() error {
	if !d.draws {
		return fmt.Errorf("%w: its queue, of family %d, does not draw", ErrObject, d.queue.Family)
	}
	return nil
}

// usable returns an error if the Device was closed or its object destroyed.
func (d *Device) usable() error {
	switch {
	case d.closed.Load():
		return fmt.Errorf("the device is %w", ErrClosed)
	case d.object.Types() == 0:
		return fmt.Errorf("the interop object is %w: it was destroyed, or its runtime closed", ErrClosed)
	}
	return nil
}

// Close waits for the object's queue, and destroys what NewGraphicsSystem, NewComputeSystem and
// NewRenderFrame have made and the program has not destroyed itself. The device, the object and
// the memory remain the runtime's. While submissions wait for their predecessors, Close returns
// ErrBusy and destroys nothing: wait for the tasks first. If the object has a queue of its own, it
// does so also while a construct of the object waits for tasks; once the object is destroyed, Close
// waits for these. Submissions that a lost device keeps from being made are not waited for. If the
// runtime was closed, or a hard pause has closed the device, Close returns ErrClosed and destroys
// nothing, because the VkDevice may be gone. After that, and after success, a second Close does
// nothing. Close may not be called inside Do.
func (d *Device) Close() error {
	if err := d.run(d.destroy); err != nil {
		return fmt.Errorf("vgpu: close: %w", err)
	}
	return nil
}

// probe asks the object whether a value of its semaphore has been submitted, without waiting for
// it. Unlike the object's other methods Ready tells a destroyed object from a closed device.
func (d *Device) probe(value int) error {
	ended, end := context.WithCancel(context.Background())
	end()
	return d.object.Ready(ended, uint64(value))
}

// awaited reports whether foreign work of the object, or a construct, has not been submitted
// yet. A submission that the object could not put into its order is never made, and stays
// pending. So does one that waits for its predecessors when the device is lost.
func (d *Device) awaited() bool {
	last, rc := d.object.Int(interop.PropertyWaitValue)
	err := d.probe(last)
	return !errors.Is(err, vkomp.ErrDeviceLost) && (err != nil || rc != interop.RCSuccess)
}

// destroy destroys everything. It is called inside run.
func (d *Device) destroy() error {
	if d.closed.Load() {
		return nil
	}
	// Every semaphore has reached 0.
	gone := errors.Is(d.probe(0), interop.ErrInvalid)
	if n := d.submitting.Load(); n > 0 && !gone {
		return fmt.Errorf("%w: %d submissions are under way", ErrBusy, n)
	}
	if n := d.pending.Load(); n > 0 && !gone && d.awaited() {
		return fmt.Errorf("%w: %d submissions await their predecessors", ErrBusy, n)
	}
	// The object's own queue waits for a construct that the host has yet to submit, as long as the
	// program has announced no work for other queues. Waiting for the queue would take as long as
	// whatever the construct awaits.
	if q, ok := d.object.Queue(); ok && q.Implicit && d.awaited() {
		return fmt.Errorf("%w: a construct of the object awaits its predecessors", ErrBusy)
	}
	// Submissions are made with the queue's lock held: none is made after this.
	d.queue.Lock.Lock()
	d.closed.Store(true)
	d.queue.Lock.Unlock()
	defer cgo.Handle(d.hook.handle).Delete()
	if gone {
		return fmt.Errorf("the interop object's device is %w", ErrClosed)
	}
	d.Device.DeviceWaitIdle()
	var errs []error
	// GPU is nil in objects that the program has destroyed itself.
	for _, f := range d.frames {
		if f.GPU != nil {
			errs = append(errs, guard(func() error { f.Destroy(); return nil }))
		}
	}
	for _, s := range d.systems {
		if s.GPU != nil {
			errs = append(errs, guard(func() error { s.Destroy(); return nil }))
		}
	}
	d.frames, d.systems = nil, nil
	return errors.Join(errs...)
}
