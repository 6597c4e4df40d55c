package vkomp

import (
	"fmt"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
)

// UseDevice is an item of a target data region that gives the program a pointer to
// corresponding storage: see UseDevicePtr and UseDeviceAddr.
type UseDevice struct {
	// host is the slice as HostPtr has it.
	host DevicePtr
	// at is on the heap: see escape.
	at *DevicePtr
	// addr: the item is all of the slice, not a pointer to its first element.
	addr bool
}

// UseDevicePtr sets *p to the device pointer that corresponds to the first element
// of s, before the body of the region runs (OpenMP 4.5 use_device_ptr). Where that
// element is not present *p is HostPtr(s): the pointer keeps its value. The region's
// own maps come first. What is present stays so for the region, which counts as a
// holder (OpenMP 6.0).
//
// The pointer is good while the storage is mapped. On the initial device it is
// HostPtr(s).
func UseDevicePtr[T any](s []T, p *DevicePtr) UseDevice {
	return useDevice(HostPtr(s), p, false)
}

// UseDeviceAddr sets *p as UseDevicePtr does, for a slice all of which is present
// (OpenMP 5.0 use_device_addr). Where it is not the region fails with ErrNotPresent.
func UseDeviceAddr[T any](s []T, p *DevicePtr) UseDevice {
	return useDevice(HostPtr(s), p, true)
}

func useDevice(host DevicePtr, p *DevicePtr, addr bool) UseDevice {
	escape(unsafe.Pointer(p))
	return UseDevice{host: host, at: p, addr: addr}
}

// check refuses an item that is none.
func (u *UseDevice) check(rt *Runtime, label string) error {
	if u.at == nil {
		return fmt.Errorf("%w: %s has no DevicePtr to set", ErrInvalidArgument, label)
	}
	if err := rt.owns(&u.host); err != nil {
		return fmt.Errorf("%s: %w", label, err)
	}
	return nil
}

// item returns what the region maps for the item: it counts where it is present, and
// creates nothing.
func (u *UseDevice) item(label string) memory.Map {
	return memory.Map{Section: u.section(), Type: memory.MapAlloc, Presence: memory.IfPresent, Label: label}
}

// section is the host storage that has to be present.
func (u *UseDevice) section() memory.Section {
	if u.addr {
		return u.host.host
	}
	return memory.Section{Ptr: u.host.host.Ptr}
}

// set sets the pointers of the items; found says which are present on the device.
func (r *dataRegion) set(found []bool) error {
	for k := range r.uses {
		u := &r.uses[k]
		if r.device == nil {
			*u.at = u.host
			continue
		}
		if found[k] {
			if p, ok := r.device.MappedPointer(u.section()); ok {
				*u.at = DevicePtr{d: r.of, p: p}
				r.rt.race.points(r.of, p, u.section().Ptr)
				continue
			}
			if err := r.device.Lost(); err != nil {
				return fmt.Errorf("target data %q: %s: %w", r.label, useLabels.of(k), err)
			}
			// Deleted since.
		}
		if u.addr && u.host.host.Size > 0 {
			return fmt.Errorf("target data %q: %s (%v): %w", r.label, useLabels.of(k), u.host, ErrNotPresent)
		}
		*u.at = u.host
	}
	return nil
}
