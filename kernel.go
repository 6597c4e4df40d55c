package vkomp

import (
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/vkomp/vkomp/sched"
)

// KernelSource describes a kernel: a compute shader, a Host variant, or both.
type KernelSource struct {
	// Name labels the kernel in errors, logs and graphs.
	Name string
	// SPIRV is the module, in bytes. Empty for a kernel of the initial device
	// only.
	//
	// A sub-slice of a mapped slice can begin where the device cannot bind: then
	// the aligned address below it is bound, and the kernel told how many elements
	// to skip in a push-constant member uint vkomp_offset_<k>, k the
	// binding's number. The runtime fills such members, no value argument does.
	// A kernel without one gets ErrInvalidLaunch for such a slice.
	//
	// A kernel that packs bytes into words reaches all words of an argument of, say, 13
	// bytes that ends where its mapping does. Otherwise the bytes that follow are other
	// data, and the last word is not bound.
	//
	// The code is trusted as the program's own is: the driver compiles it with the rights of
	// the process, and what it does is not examined. See Options.Validate.
	SPIRV []byte
	// Entry is the entry point, "main" when empty.
	Entry string
	// Specialize sets specialization constants by their SpecId; values are the
	// constants' bits (math.Float32bits for a float).
	Specialize map[uint32]uint32
	// Host runs the whole region on the initial device. It sees the caller's
	// own slices: there original and corresponding storage are the same
	// (OpenMP 5.2 §5.8.3). It may run on any goroutine; a panic in it becomes
	// the region's error.
	Host func(*HostCall) error
}

// Range is the number of invocations of a kernel in each dimension. Y and Z
// count as 1 when 0; an X of 0 is the empty range, which runs nothing.
//
// Vulkan launches whole workgroups: the range is rounded up to a multiple of
// the kernel's workgroup size, so a kernel compares its invocation with a bound
// that it gets as an argument. One dimension may have more workgroups than the
// device launches at once (maxComputeWorkGroupCount) and is split then, X or Y of
// a range without Z; a kernel that reads NumWorkgroups gets ErrInvalidLaunch.
type Range struct {
	X, Y, Z int
}

// HostCall is one run of a kernel's Host variant.
type HostCall struct {
	// Range is the launch's range, with no dimension 0.
	Range Range

	name    string
	buffers []hostArg
	values  []hostArg
	err     error
}

// HostSlice returns the k-th argument of the call with storage, nil when there is
// none of that number or its elements are not of type T; the call then fails with
// an error that says so, whatever the Host variant returns. Of Implicit it is the
// slice up to its capacity, of IsDevicePtr all that follows the pointer.
func HostSlice[T any](c *HostCall, k int) []T {
	if k < 0 || k >= len(c.buffers) {
		c.fail(fmt.Errorf("%w: the Host variant of kernel %q asks for slice argument %d of %d", ErrInvalidArgument, c.name, k, len(c.buffers)))
		return nil
	}
	return hostElements[T](c, &c.buffers[k], "slice", k)
}

// HostPointee returns what the k-th value argument of the call points to, a
// DevicePtr or an AddressOf: the elements from there to the end of its storage. It
// is nil for a nil pointer, and where HostSlice is; the call then fails likewise.
func HostPointee[T any](c *HostCall, k int) []T {
	if k < 0 || k >= len(c.values) {
		c.fail(fmt.Errorf("%w: the Host variant of kernel %q asks for value argument %d of %d", ErrInvalidArgument, c.name, k, len(c.values)))
		return nil
	}
	a := &c.values[k]
	if a.kind == argValue {
		c.fail(fmt.Errorf("%w: value argument %d of kernel %q is of type %s, its Host variant expects a pointer", ErrInvalidArgument, k, c.name, a.at.elem))
		return nil
	}
	return hostElements[T](c, a, "value", k)
}

// hostElements returns an argument's storage as elements of type T.
func hostElements[T any](c *HostCall, a *hostArg, what string, k int) []T {
	want := reflect.TypeFor[T]()
	if a.at.elem != nil && a.at.elem != want {
		c.fail(fmt.Errorf("%w: %s argument %d of kernel %q holds %s, its Host variant expects %s", ErrInvalidArgument, what, k, c.name, a.at.elem, want))
		return nil
	}
	var zero T
	if a.storage.Size == 0 || unsafe.Sizeof(zero) == 0 {
		return nil
	}
	if path := pointerPath(want); path != "" && a.at.elem == nil {
		c.fail(fmt.Errorf("%w: %s argument %d of kernel %q is memory of a device, where its Host variant expects Go pointers (%s)", ErrInvalidArgument, what, k, c.name, path))
		return nil
	}
	if a.storage.Start()%unsafe.Alignof(zero) != 0 {
		c.fail(fmt.Errorf("%w: %s argument %d of kernel %q, at %#x, is not aligned for %s", ErrInvalidArgument, what, k, c.name, a.storage.Start(), want))
		return nil
	}
	return unsafe.Slice((*T)(a.storage.Ptr), a.storage.Size/uint64(unsafe.Sizeof(zero)))
}

// HostValue returns the k-th value argument of the call, the zero T when there
// is none of that number or it is not of type T; the call then fails with an
// error that says so, whatever the Host variant returns. A DevicePtr and an
// AddressOf are a DevicePtr, or their address as a uint64.
func HostValue[T any](c *HostCall, k int) T {
	var v T
	if k < 0 || k >= len(c.values) {
		c.fail(fmt.Errorf("%w: the Host variant of kernel %q asks for value argument %d of %d", ErrInvalidArgument, c.name, k, len(c.values)))
		return v
	}
	a := &c.values[k]
	is, want := a.at.elem, reflect.TypeFor[T]()
	if a.kind != argValue {
		if p, ok := any(&v).(*DevicePtr); ok {
			*p = a.at
			return v
		}
		is = reflect.TypeFor[uint64]()
	}
	if is != want {
		c.fail(fmt.Errorf("%w: value argument %d of kernel %q is of type %s, its Host variant expects %s", ErrInvalidArgument, k, c.name, is, want))
		return v
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v)), a.bytes())
	return v
}

func (c *HostCall) fail(err error) { c.err = errors.Join(c.err, err) }

// Kernel is a handle for a kernel of a Runtime.
type Kernel struct {
	k *kernel
}

type kernel struct {
	rt   *Runtime
	name string
	// shader is nil for a kernel with a Host variant only.
	shader *sched.Kernel
	host   func(*HostCall) error
	closed atomic.Bool
}

// Name returns the kernel's label.
func (k Kernel) Name() string {
	if k.k == nil {
		return ""
	}
	return k.k.name
}

// Close gives up the kernel: constructs that use it from now on are ErrClosed. Those
// generated before are carried out, and Close waits for none of them; what devices have of
// the kernel is destroyed when the last of them is complete. A kernel that is not closed
// lasts as long as its Runtime. Close returns nil. A second Close does nothing, nor does one
// after the Runtime's.
func (k Kernel) Close() error {
	if k.k == nil || k.k.closed.Swap(true) || k.k.shader == nil {
		return nil
	}
	k.k.shader.Close()
	for _, d := range k.k.rt.devices {
		if s := d.opened(); s != nil {
			s.Release(k.k.shader)
		}
	}
	return nil
}

// NewKernel reads a kernel. Its module is checked against the entry point here
// (ErrInvalidModule, ErrUnsupported for what no device can bind), with Options.Validate
// by spirv-val too, against a
// device when it is first launched there, which is when that device compiles it (see
// Target).
func (rt *Runtime) NewKernel(src KernelSource) (Kernel, error) {
	if err := rt.open(); err != nil {
		return Kernel{}, err
	}
	k := &kernel{rt: rt, name: src.Name, host: src.Host}
	if k.name == "" {
		k.name = "kernel"
	}
	if len(src.SPIRV) == 0 && src.Host == nil {
		return Kernel{}, fmt.Errorf("%w: kernel %q has neither SPIR-V nor a Host variant", ErrInvalidArgument, k.name)
	}
	if len(src.SPIRV) > 0 {
		entry := src.Entry
		if entry == "" {
			entry = "main"
		}
		var err error
		if k.shader, err = sched.NewKernel(k.name, src.SPIRV, entry, src.Specialize); err != nil {
			return Kernel{}, err
		}
		if rt.validator != nil {
			if err := rt.validator.check(k.name, src.SPIRV); err != nil {
				return Kernel{}, err
			}
		}
	}
	return Kernel{k}, nil
}
