package vkomp

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/vkomp/vkomp/sched/kernel"
)

// KernelSource describes a kernel: a compute shader, a Host variant, or both. [Runtime.NewKernel]
// keeps neither SPIRV nor Specialize.
type KernelSource struct {
	// Name is the kernel's label in errors, logs and graphs.
	Name string
	// SPIRV is the bytes of the module. It is empty for a kernel that runs only on the
	// initial device.
	//
	// A sub-slice of a mapped slice may begin at an address to which the device cannot
	// bind a buffer. Then an aligned address below it is bound, and the number of
	// elements to skip is passed in a push-constant member uint vkomp_offset_<k>, where k
	// is the number of the binding. The runtime fills these members; no value argument
	// does. A kernel without the member gets ErrInvalidLaunch for such a slice, and so does one
	// whose block has members before its array, which the offset does not move, and a place of
	// which no aligned address below it in its storage is whole elements away. The members
	// are found by their names, so a module must not be stripped of these. The length() of the
	// array counts the skipped elements.
	//
	// A structure in the block takes one value, a Go structure with its layout. If it is all that the
	// block has, as in a module that naga makes of WGSL's var<immediate>, its members for offsets are filled,
	// too, whatever the value has there. naga writes the names of members only with its flag -g.
	//
	// A slice that the kernel accesses needs an element, because a descriptor has at least a
	// byte: a launch with one that has none is ErrInvalidLaunch, unless its Range is empty. A
	// binding that the module declares and the kernel does not access may have any argument.
	//
	// A kernel that packs bytes into words can access every word of an argument whose
	// size is not a multiple of 4, if the argument ends where its mapping does. Otherwise
	// the following bytes are other data, and the last, partial word is not bound. Of a binding
	// whose elements are smaller than a word only the argument is bound.
	//
	// A launch on a device without what the module needs is ErrUnsupported: its capabilities,
	// the features of Vulkan that SPIR-V has no capability for, and room for its workgroups,
	// shared variables and push constants. What is needed is that of the whole module, whichever
	// entry points have it. One feature is not looked for: a program whose blocks have the
	// scalar layout has to know that its devices have scalarBlockLayout.
	//
	// The code is trusted like the program's own: the driver compiles it with the rights of
	// the process, and nothing restricts what it does. See Options.Validate.
	SPIRV []byte
	// Entry is the name of the entry point; empty means "main".
	Entry string
	// Specialize sets specialization constants of 4 bytes by their SpecId. The values are the
	// bits of the constants (math.Float32bits for a float). Sizes of the workgroup, of arguments and of
	// push constants follow them.
	Specialize map[uint32]uint32
	// Host runs the whole region on the initial device. It accesses the caller's slices,
	// because there original and corresponding storage are the same (OpenMP 5.2 §5.8.3). It
	// may run on any goroutine; a panic in it becomes the region's error.
	Host func(*HostCall) error
}

// Range is the number of invocations of a kernel in each dimension. A Y or Z of 0 counts as
// 1; an X of 0 is the empty range, which runs nothing.
//
// Vulkan launches whole workgroups: the range is rounded up to a multiple of the kernel's
// workgroup size, so a kernel has to compare its invocation with a bound that it gets as an
// argument. One dimension, X or Y of a range without Z, may have more workgroups than the
// device can launch at once (maxComputeWorkGroupCount); the launch is then split. A kernel
// that reads NumWorkgroups gets ErrInvalidLaunch in that case.
type Range struct {
	X, Y, Z int // invocations along each dimension
}

// HostCall is one call of a kernel's Host variant, and ends when that returns: it is used again for
// other calls.
type HostCall struct {
	// Range is the range of the launch, with each dimension at least 1.
	Range Range

	name    string
	buffers []hostArg
	values  []hostArg
	err     error
}

// HostSlice returns the k-th argument with storage of the call. If there is none, or its
// elements are not of type T, it returns nil, and the call fails with an error that says so,
// whatever the Host variant returns. For Implicit it returns the slice up to its capacity,
// for IsDevicePtr everything that follows the pointer.
func HostSlice[T any](c *HostCall, k int) []T {
	a := c.argument("slice", c.buffers, k)
	if a == nil {
		return nil
	}
	return hostElements[T](c, a, "slice", k)
}

// argument returns the k-th of the arguments of a kind. If there is none it returns nil, and the call fails.
func (c *HostCall) argument(kind string, all []hostArg, k int) *hostArg {
	if k < 0 || k >= len(all) {
		c.fail(fmt.Errorf("%w: the Host variant of kernel %q asks for %s argument %d of %d", ErrInvalidArgument, c.name, kind, k, len(all)))
		return nil
	}
	return &all[k]
}

// HostPointee returns the storage to which the k-th value argument of the call points, which
// must be a DevicePtr or an AddressOf: the elements from there to the end of the storage. It
// is nil for a nil pointer. The errors are those of HostSlice.
func HostPointee[T any](c *HostCall, k int) []T {
	a := c.argument("value", c.values, k)
	switch {
	case a == nil:
		return nil
	case a.kind == argValue:
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

// HostValue returns the k-th value argument of the call. If there is none, or it is not of
// type T, it returns the zero T, and the call fails with an error that says so, whatever the
// Host variant returns. A DevicePtr or AddressOf can be read as a DevicePtr, or as its
// address in a uint64.
func HostValue[T any](c *HostCall, k int) T {
	var v T
	a := c.argument("value", c.values, k)
	if a == nil {
		return v
	}
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
	k *sharedKernel
}

// sharedKernel is what the copies of a Kernel share.
type sharedKernel struct {
	rt   *Runtime
	name string
	// shader is nil for a kernel that has only a Host variant.
	shader *kernel.Kernel
	// accepted has, for each value argument, the type that checkValue has accepted first: most launches have the same.
	accepted []atomic.Pointer[reflect.Type]
	host     func(*HostCall) error
	closed   atomic.Bool
}

// Name returns the kernel's label.
func (k Kernel) Name() string {
	if k.k == nil {
		return ""
	}
	return k.k.name
}

// Close closes the kernel: later constructs that use it return ErrClosed. Constructs
// generated before are carried out; Close does not wait for them, and the kernel's pipelines
// are destroyed when the last of them is complete. A kernel that is not closed lasts as long
// as its Runtime. Close returns nil. It does nothing when called again or after the
// Runtime's Close.
func (k Kernel) Close() error {
	if k.k == nil || k.k.closed.Swap(true) || k.k.shader == nil {
		return nil
	}
	k.k.shader.Close()
	k.k.rt.forgetShader(k.k.shader)
	for _, d := range k.k.rt.devices {
		if s := d.opened(); s != nil {
			s.Release(k.k.shader)
		}
	}
	return nil
}

// NewKernel makes a kernel. Its module is checked against the entry point at once
// (ErrInvalidModule; ErrUnsupported for descriptors that no device can bind; ErrInvalidLaunch for
// specialization constants that it does not have or cannot be given), with Options.Validate also
// by spirv-val.
//
// The devices that are open begin to compile the kernel in the background, several kernels at
// the same time, and a device that is opened later begins with all kernels that there are
// then. NewKernel waits for no compilation and opens no device. A kernel's first launch on a
// device waits for that kernel alone (see Target), and reports what is wrong with it there:
// that is no error of NewKernel.
func (rt *Runtime) NewKernel(src KernelSource) (Kernel, error) {
	k, err := rt.newKernel(src)
	if err != nil {
		return Kernel{}, fmt.Errorf("vkomp: %w", err)
	}
	return Kernel{k}, nil
}

func (rt *Runtime) newKernel(src KernelSource) (*sharedKernel, error) {
	k := &sharedKernel{rt: rt, name: cmp.Or(src.Name, "kernel"), host: src.Host}
	if err := rt.open(); err != nil {
		return nil, fmt.Errorf("kernel %q: %w", k.name, err)
	}
	if len(src.SPIRV) == 0 && src.Host == nil {
		return nil, fmt.Errorf("%w: kernel %q has neither SPIR-V nor a Host variant", ErrInvalidArgument, k.name)
	}
	if len(src.SPIRV) > 0 {
		var err error
		if k.shader, err = kernel.New(k.name, src.SPIRV, cmp.Or(src.Entry, "main"), src.Specialize); err != nil {
			return nil, err
		}
		k.accepted = make([]atomic.Pointer[reflect.Type], len(k.shader.Values()))
		if rt.validator != nil {
			if err := rt.validator.check(k.name, src.SPIRV); err != nil {
				return nil, err
			}
		}
		rt.compileAhead(k.shader)
	}
	return k, nil
}

// compileAhead has the open devices compile a new kernel, and those that are opened later.
func (rt *Runtime) compileAhead(k *kernel.Kernel) {
	rt.mu.Lock()
	rt.kernels = append(rt.kernels, k)
	rt.mu.Unlock()
	for _, d := range rt.devices {
		if s := d.opened(); s != nil {
			s.CompileAhead(k)
		}
	}
}

// shaders returns the kernels for devices that are not closed.
func (rt *Runtime) shaders() []*kernel.Kernel {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return slices.Clone(rt.kernels)
}

// forgetShader lets devices that are opened later do without a kernel, which was closed.
func (rt *Runtime) forgetShader(k *kernel.Kernel) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.kernels = slices.DeleteFunc(rt.kernels, func(other *kernel.Kernel) bool { return other == k })
}
