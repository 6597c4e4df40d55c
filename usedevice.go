package vkomp

import (
	"fmt"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
)

// UseDevice is an item of a target data region that gives the program a pointer to
// corresponding storage: see UseDevicePtr and UseDeviceAddr.
type UseDevice struct {
	// host is the slice as HostPtr returns it.
	host DevicePtr
	// at is on the heap: see escape.
	at *DevicePtr
	// addr says that the item is the whole slice, not a pointer to its first element.
	addr bool
}

// UseDevicePtr sets *p to the device pointer that corresponds to the first element of s,
// before the body of the region runs and after the region has mapped its own slices (OpenMP
// 4.5 use_device_ptr). If that element is not present, *p is HostPtr(s). Storage that is
// present stays so during the region, which counts it (OpenMP 6.0). If it is part of a value that
// is mapped as an image (see [Mapper]), the region fails with ErrPartialOverlap.
//
// The pointer is valid while the storage is mapped. On the initial device it is HostPtr(s).
func UseDevicePtr[T any](s []T, p *DevicePtr) UseDevice {
	return useDevice(HostPtr(s), p, false)
}

// UseDeviceAddr sets *p like UseDevicePtr, but all of the slice must be present (OpenMP 5.0
// use_device_addr): otherwise the region fails with ErrNotPresent.
func UseDeviceAddr[T any](s []T, p *DevicePtr) UseDevice {
	return useDevice(HostPtr(s), p, true)
}

func useDevice(host DevicePtr, p *DevicePtr, addr bool) UseDevice {
	escape(unsafe.Pointer(p))
	return UseDevice{host: host, at: p, addr: addr}
}

// check returns an error for an invalid item.
func (u *UseDevice) check(rt *Runtime, label string) error {
	if u.at == nil {
		return fmt.Errorf("%w: %s has no DevicePtr to set", ErrInvalidArgument, label)
	}
	if err := rt.owns(&u.host); err != nil {
		return fmt.Errorf("%s: %w", label, err)
	}
	return nil
}

// item returns the item as the region maps it: it counts where it is present, and creates
// nothing.
func (u *UseDevice) item(label string) memory.Map {
	return memory.Map{Section: u.section(), Type: memory.MapAlloc, Presence: memory.IfPresent, Label: label}
}

// section returns the host storage that must be present.
func (u *UseDevice) section() memory.Section {
	if u.addr {
		return u.host.host
	}
	return memory.Section{Ptr: u.host.host.Ptr}
}

// set sets the pointers of the items, or after an error none; found says which items are present on the device.
func (r *dataRegion) set(found []bool) error {
	pointers := make([]DevicePtr, len(r.uses))
	for k := range r.uses {
		u := &r.uses[k]
		if r.scheduler == nil {
			pointers[k] = u.host
			continue
		}
		if found[k] {
			if p, ok := r.scheduler.MappedPointer(u.section()); ok {
				pointers[k] = DevicePtr{d: r.device, p: p}
				r.device.pointed(p, u.section().Ptr)
				continue
			}
			if err := r.scheduler.Lost(); err != nil {
				return fmt.Errorf("target data %q: %s: %w", r.label, useLabels.of(k), err)
			}
			// The storage has been deleted since.
		}
		if u.addr && u.host.host.Size > 0 {
			return fmt.Errorf("target data %q: %s (%v): %w", r.label, useLabels.of(k), u.host, ErrNotPresent)
		}
		pointers[k] = u.host
	}
	for k := range r.uses {
		*r.uses[k].at = pointers[k]
	}
	return nil
}
