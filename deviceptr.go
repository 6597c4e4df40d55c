package vkomp

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"github.com/vkomp/vkomp/internal/striped"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
)

// DevicePtr is an address in the memory of a device, including the initial one, or in host
// storage as one end of a copy (see [HostPtr]). It knows its device and the allocation that
// it points into, so that a pointer to freed memory is recognised even if the address is in
// use again. It is comparable; the zero DevicePtr is nil.
//
// A DevicePtr to memory from [Device.Alloc] does not keep that memory, whereas one from
// HostPtr keeps the slice reachable.
type DevicePtr struct {
	// d is nil for nil pointers and for host storage.
	d *device
	// p points into the memory of a Vulkan device.
	p sched.Pointer
	// block points into an allocation on the initial device.
	block hostBlock
	// host is the storage of a slice, elem its element type.
	host memory.Section
	elem reflect.Type
	// at is the offset in bytes from the beginning of block or host.
	at int64
}

// HostPtr returns s as one end of a copy, or as the host pointer of a routine. It covers
// the elements of s; a copy past them is ErrInvalidPointer. A nil slice gives nil.
//
// Routines refuse pointers to elements that contain Go pointers.
func HostPtr[T any](s []T) DevicePtr {
	section := sectionOf(s)
	if section.Ptr == nil {
		return DevicePtr{}
	}
	escape(section.Ptr)
	return DevicePtr{host: section, elem: reflect.TypeFor[T]()}
}

// Add returns the pointer n bytes further on; n may be negative. Nil plus n is nil. Routines
// refuse a pointer outside of its storage.
func (p DevicePtr) Add(n int) DevicePtr {
	switch {
	case p.IsNil():
	case p.onVulkan():
		p.p = p.p.Add(int64(n))
	default:
		p.at += int64(n)
	}
	return p
}

// IsNil reports whether p is nil.
func (p DevicePtr) IsNil() bool { return p.d == nil && p.host.Ptr == nil }

// elsewhere reports whether p points to memory of another device than d. A HostPtr points to that of the initial device.
func (p *DevicePtr) elsewhere(d *device) bool { return p.d != d && (p.d != nil || d.physical != nil) }

// Address returns the address as kernels see it: the buffer device address if the device
// supports it, or the host address. It is 0 for nil.
func (p DevicePtr) Address() uint64 {
	if p.onVulkan() {
		return p.p.Address
	}
	return uint64(p.block.address) + uint64(p.host.Start()) + uint64(p.at)
}

// Device returns the device into whose memory p points, the zero Device for nil and for a
// HostPtr.
func (p DevicePtr) Device() Device { return Device{p.d} }

// String returns the pointer in the form "0x7f0000001000 on device 0".
func (p DevicePtr) String() string {
	switch {
	case p.IsNil():
		return "nil"
	case p.d == nil:
		return fmt.Sprintf("%#x in a []%v", p.Address(), p.elem)
	case p.d.physical == nil:
		return fmt.Sprintf("%#x on the initial device", p.Address())
	default:
		return fmt.Sprintf("%#x on device %d", p.Address(), p.d.number)
	}
}

// onVulkan reports whether p points into the memory of a Vulkan device.
func (p *DevicePtr) onVulkan() bool { return p.d != nil && p.d.physical != nil }

// endpoint is the target of a DevicePtr: memory of a Vulkan device, or host storage from
// there to its end.
type endpoint struct {
	// d is nil for host storage.
	d    *device
	p    sched.Pointer
	host memory.Section
	// shared is the address on the host if p points to host storage itself, where that is known.
	shared uintptr
}

// owns returns an error for a pointer that does not belong to this runtime, wherever it
// points.
func (rt *Runtime) owns(p *DevicePtr) error {
	switch {
	case p.d != nil && p.d.rt != rt:
		return fmt.Errorf("%w: %v belongs to another runtime", ErrInvalidDevice, *p)
	case p.elem != nil:
		if path := pointerPath(p.elem); path != "" {
			return fmt.Errorf("%w: slice of %v holds Go pointers (%s), which mean nothing on a device", ErrInvalidArgument, p.elem, path)
		}
	}
	return nil
}

// endpoint looks p up. In host storage it checks that size bytes follow, offset bytes past
// p; the endpoint keeps the storage reachable. In memory of a Vulkan device the device's
// scheduler checks that.
func (rt *Runtime) endpoint(p *DevicePtr, offset, size uint64) (endpoint, error) {
	if p.onVulkan() {
		if offset > math.MaxInt64 {
			// The address would begin again at 0.
			return endpoint{}, fmt.Errorf("%w: %d bytes from byte %d on run past the end of all storage (%v)", ErrInvalidPointer, size, offset, *p)
		}
		return endpoint{d: p.d, p: p.p}, rt.owns(p)
	}
	host, _, err := rt.hostStorage(p, offset, size)
	return endpoint{host: host}, err
}

// hostStorage is endpoint for a pointer that does not point into the memory of a Vulkan device. atEnd says that the
// pointer is past the last byte of the storage: host then has the address of the storage only to keep it reachable.
func (rt *Runtime) hostStorage(p *DevicePtr, offset, size uint64) (host memory.Section, atEnd bool, err error) {
	if err := rt.owns(p); err != nil {
		return memory.Section{}, false, err
	}
	all := p.host
	switch {
	case p.IsNil():
		return memory.Section{}, false, fmt.Errorf("%w: it is nil", ErrInvalidPointer)
	case p.d != nil:
		if all, err = rt.hostMemory.find(p); err != nil {
			return memory.Section{}, false, err
		}
	}
	if p.at < 0 || uint64(p.at) > all.Size {
		return memory.Section{}, false, fmt.Errorf("%w: %v is %d bytes from the beginning of storage of %d bytes", ErrInvalidPointer, *p, p.at, all.Size)
	}
	left := all.Size - uint64(p.at)
	if offset > left || size > left-offset {
		return memory.Section{}, false, fmt.Errorf("%w: %d bytes from byte %d on run past the end of storage of %d bytes (%v)", ErrInvalidPointer, size, uint64(p.at)+offset, all.Size, *p)
	}
	if left > 0 {
		// At the end of the storage it would point to something else.
		all.Ptr = unsafe.Add(all.Ptr, p.at)
	}
	return memory.Section{Ptr: all.Ptr, Size: left}, left == 0 && p.at > 0, nil
}

// use prevents a pause until end is called on the result.
func (d Device) use() use {
	if d.d == nil {
		return use{}
	}
	return use{d.d.rt, d.d.rt.using.enter()}
}

// use is the use of a runtime that must not be paused meanwhile.
type use struct {
	of *Runtime
	at striped.Cell
}

func (u use) end() {
	if u.of != nil {
		u.of.using.leave(u.at)
	}
}

// construct returns the runtime of the device, or an error if no construct is allowed.
func (d Device) construct(ctx context.Context) (*Runtime, error) {
	rt, err := d.runtime()
	if err == nil {
		err = rt.construct(ctx)
	}
	return rt, err
}

// usable returns the runtime of the device, or an error if it is not usable. It is for routines that give something
// back, and do so also when ctx has ended.
func (d Device) usable(ctx context.Context) (*Runtime, error) {
	rt, err := d.runtime()
	if err == nil {
		err = rt.usable(ctx)
	}
	return rt, err
}

// runtime returns the runtime of the device. The zero Device, which DefaultDevice returns
// when there is no device, has none.
func (d Device) runtime() (*Runtime, error) {
	if d.d == nil {
		return nil, fmt.Errorf("%w: the zero Device is of no runtime: Runtime.DefaultDevice returns the default device", ErrInvalidDevice)
	}
	return d.d.rt, nil
}
