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
	"github.com/vkomp/vkomp/interop"
)

var (
	// ErrClosed: the Device is closed, or the interop object is no more, because it was
	// destroyed or its runtime closed.
	ErrClosed = errors.New("closed")
	// ErrBusy: submissions have not been made yet.
	ErrBusy = errors.New("busy")
	// ErrObject: the interop object cannot be what is asked of it.
	ErrObject = errors.New("unfit interop object")
)

// Device is vkomp's device as vgpu sees it. It is safe for concurrent use; what vgpu makes
// on it is not, and stays inside [Device.Do].
type Device struct {
	// GPU is for vgpu's constructors. It is filled in as its Config would; Config itself
	// and Destroy are not to be called.
	GPU *vgpu.GPU
	// Device is the logical device with the object's queue, for vgpu's constructors.
	Device vgpu.Device

	object interop.Object
	queue  interop.ForeignQueue
	// draws: the queue is of a family for graphics.
	draws bool
	// hook is what hook.c knows of the device; its handle is a cgo.Handle of this.
	hook C.vkvgpu_device

	closed atomic.Bool
	// submitting counts calls of Submit, pending submissions that await their predecessors.
	submitting, pending atomic.Int64

	// mu is held while vgpu's code runs. It guards the fields below.
	mu      sync.Mutex
	systems []*vgpu.System
	frames  []*vgpu.RenderFrame
}

// Open opens vgpu on the device of an interop object with the types target and targetsync.
// The object and its device stay the runtime's, and the program closes what Open returns
// before it destroys the object or closes the runtime. ErrObject when the object has not
// both types; ErrClosed when it is no more.
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

// describe fills in GPU as vgpu's GPU.Config does, with no instance and device of its own.
func (d *Device) describe(h interop.Handles) error {
	// NewGPU would ask for a swapchain. What else differs is for GPU.Config.
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

// PanicError is what [Device.Do] makes of a panic.
type PanicError struct {
	// Value is what was panicked with; Stack is that of the panic, as debug.Stack has it.
	Value any
	Stack []byte
}

// Error is the panic's text.
func (e *PanicError) Error() string { return fmt.Sprintf("vgpu panicked: %v", e.Value) }

// Unwrap returns Value where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Do calls f, which calls vgpu, and returns its error; a panic of f's goroutine is a
// [*PanicError]. What vgpu had made by then stays as it is, to be used or destroyed: the
// Device itself is as before.
//
// Meanwhile f has the Device to itself and an operating system's thread, and vgpu's calls
// that would break into what is vkomp's do not: the device and the instance are not
// destroyed, a submission takes the queue's lock, and a wait for the device waits for the
// object's queue alone. f may call methods of the Device; goroutines that it starts are not
// part of it. ErrClosed when the Device is closed, or the object is no more.
//
// The garbage collector does not run meanwhile, in the whole process, unless runtime.GC is
// called: vgpu's binding frees memory with finalizers that Vulkan is yet to read. So f is
// short, and what debug.SetGCPercent and debug.SetMemoryLimit are told meanwhile is undone.
func (d *Device) Do(f func() error) error {
	if err := d.do(f); err != nil {
		return fmt.Errorf("vgpu: %w", err)
	}
	return nil
}

func (d *Device) do(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := C.vkvgpu_enter(d.hook)
	defer C.vkvgpu_enter(before)
	if before.handle == d.hook.handle {
		// Called from within f. A handle's number is never used again.
		return guard(f)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return err
	}
	holdCollector()
	defer releaseCollector()
	return guard(f)
}

// guard calls f and makes an error of its panic.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{p, debug.Stack()}
		}
	}()
	return f()
}

// mustDraw refuses graphics on a queue that only computes.
func (d *Device) mustDraw() error {
	if !d.draws {
		return fmt.Errorf("%w: its queue, of family %d, does not draw", ErrObject, d.queue.Family)
	}
	return nil
}

// usable refuses a Device that is closed, by itself or by its runtime.
func (d *Device) usable() error {
	switch {
	case d.closed.Load():
		return fmt.Errorf("the device is %w", ErrClosed)
	case d.object.Types() == 0:
		return fmt.Errorf("the interop object is %w: it was destroyed, or its runtime closed", ErrClosed)
	}
	return nil
}

// Close destroys what NewSystem and NewRenderFrame made and the program has not destroyed
// itself, after it has waited for the object's queue. The device, the object and the
// memory are the runtime's, and stay. ErrBusy, and nothing is destroyed, while submissions
// await their predecessors: wait for the tasks first. ErrClosed where the object is no
// more: then nothing is left that could be destroyed. A second Close does nothing. Close is
// not for calling inside Do.
func (d *Device) Close() error {
	if d.closed.Load() {
		return nil
	}
	if err := d.do(d.destroy); err != nil {
		return fmt.Errorf("vgpu: close: %w", err)
	}
	cgo.Handle(d.hook.handle).Delete()
	return nil
}

// awaited reports whether work of the object, or a construct, has not been submitted. A
// submission that the object could not put into its order is never made, and stays
// pending.
func (d *Device) awaited() bool {
	last, rc := d.object.Int(interop.PropertyWaitValue)
	ended, end := context.WithCancel(context.Background())
	end()
	return rc != interop.RCSuccess || d.object.Ready(ended, uint64(last)) != nil
}

// destroy is called by do.
func (d *Device) destroy() error {
	if n := d.submitting.Load(); n > 0 {
		return fmt.Errorf("%w: %d submissions are under way", ErrBusy, n)
	}
	if n := d.pending.Load(); n > 0 && d.awaited() {
		return fmt.Errorf("%w: %d submissions await their predecessors", ErrBusy, n)
	}
	d.Device.DeviceWaitIdle()
	var errs []error
	// GPU is nil in what the program has destroyed itself.
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
	d.closed.Store(true)
	return errors.Join(errs...)
}
