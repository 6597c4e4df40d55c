package vkomp

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
)

// DevicePtr is an address in the memory of a device, the initial one included, or
// of host storage as one end of a copy (see [HostPtr]). It knows its device and
// the allocation that it points into: one that was freed is told from what lies
// at the same address now. It is comparable; the zero DevicePtr is nil.
//
// A DevicePtr to memory from [Device.Alloc] does not keep that memory, one from
// HostPtr keeps the slice reachable.
type DevicePtr struct {
	// d is nil of nil and of host storage.
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

// HostPtr returns s as one end of a copy, or as the host pointer that a routine
// takes. What it reaches are the elements of s; a copy past them is
// ErrInvalidPointer. A nil slice gives nil.
//
// Elements with Go pointers are refused by the routine that is given the pointer.
func HostPtr[T any](s []T) DevicePtr {
	section := sectionOf(s)
	if section.Ptr == nil {
		return DevicePtr{}
	}
	escape(section.Ptr)
	return DevicePtr{host: section, elem: reflect.TypeFor[T]()}
}

// Add returns the pointer n bytes further on, which may be less than none. Of nil
// it is nil. Routines refuse a pointer that has left its storage.
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

// Address returns the address as kernels see it: the buffer device address where
// the device has those; on the host where the storage lies. That of nil is 0.
func (p DevicePtr) Address() uint64 {
	if p.onVulkan() {
		return p.p.Address
	}
	return uint64(p.block.address) + uint64(p.host.Start()) + uint64(p.at)
}

// Device returns the device whose memory p points into, the zero Device for nil
// and for a HostPtr.
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

// endpoint is where a DevicePtr points: memory of a Vulkan device, or host storage
// from there to its end.
type endpoint struct {
	// d is nil for host storage.
	d    *device
	p    sched.Pointer
	host memory.Section
	// atEnd: the pointer is past the last byte of the storage, which host has the
	// address of only to keep it.
	atEnd bool
}

// owns refuses a pointer that nothing of this runtime can be done with, wherever it
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

// endpoint looks p up. In host storage it finds the size bytes that are offset bytes
// further on; the storage stays reachable by the endpoint. In memory of a Vulkan
// device the device's scheduler finds them, or not.
func (rt *Runtime) endpoint(p *DevicePtr, offset, size uint64) (endpoint, error) {
	if err := rt.owns(p); err != nil {
		return endpoint{}, err
	}
	all := p.host
	switch {
	case p.IsNil():
		return endpoint{}, fmt.Errorf("%w: it is nil", ErrInvalidPointer)
	case p.onVulkan():
		return endpoint{d: p.d, p: p.p}, nil
	case p.d != nil:
		var err error
		if all, err = rt.hostMemory.find(p); err != nil {
			return endpoint{}, err
		}
	}
	if p.at < 0 || uint64(p.at) > all.Size {
		return endpoint{}, fmt.Errorf("%w: %v is %d bytes from the beginning of storage of %d bytes", ErrInvalidPointer, *p, p.at, all.Size)
	}
	left := all.Size - uint64(p.at)
	if offset > left || size > left-offset {
		return endpoint{}, fmt.Errorf("%w: %d bytes from byte %d on run past the end of storage of %d bytes (%v)", ErrInvalidPointer, size, uint64(p.at)+offset, all.Size, *p)
	}
	if left > 0 {
		// At the end it would be a pointer to something else.
		all.Ptr = unsafe.Add(all.Ptr, p.at)
	}
	return endpoint{host: memory.Section{Ptr: all.Ptr, Size: left}, atEnd: left == 0 && p.at > 0}, nil
}

// use keeps a pause off until it is released.
func (d Device) use() (release func()) {
	if d.d == nil {
		return func() {}
	}
	d.d.rt.using.RLock()
	return d.d.rt.using.RUnlock
}

// runtime returns the runtime that the device is of. The zero Device is of none;
// it is what DefaultDevice returns when there is none.
func (d Device) runtime() (*Runtime, error) {
	if d.d == nil {
		return nil, fmt.Errorf("%w: the zero Device is of no runtime: Runtime.DefaultDevice returns the default device", ErrInvalidDevice)
	}
	return d.d.rt, nil
}
