package interop

import (
	"fmt"
	"sync/atomic"
)

// Handles are what a device is to Vulkan.
type Handles struct {
	// Instance, PhysicalDevice and Device are the VkInstance, the
	// VkPhysicalDevice and the VkDevice.
	Instance, PhysicalDevice, Device uintptr
	// GetInstanceProcAddr is the address of vkGetInstanceProcAddr.
	GetInstanceProcAddr uintptr
}

// Device makes the objects of one open device. The runtime has one for each
// device, and closes it before the handles become invalid. It is safe for
// concurrent use.
type Device struct {
	number  int
	handles Handles
	closed  atomic.Bool
}

// NewDevice returns a Device for the device of that number and those handles.
func NewDevice(number int, h Handles) *Device { return &Device{number: number, handles: h} }

// CheckInit refuses, with ErrInvalid, what OpenMP does not allow in an init
// clause.
func CheckInit(types Types, prefer []Preference) error {
	if types == 0 {
		return fmt.Errorf("%w: init without an interop type: want target", ErrInvalid)
	}
	if types&^(TypeTarget|TypeTargetSync) != 0 {
		return fmt.Errorf("%w: no interop type is %v", ErrInvalid, types)
	}
	for i, p := range prefer {
		if err := p.check(); err != nil {
			return fmt.Errorf("prefer_type item %d: %w", i, err)
		}
	}
	return nil
}

// Init returns a new object of the types: None when it cannot be initialised,
// which is when types has targetsync or d is closed. There is no choice of
// foreign runtimes, it is Vulkan's always.
func (d *Device) Init(types Types) Object {
	if types != TypeTarget || d.closed.Load() {
		return None
	}
	return Object{&state{device: d, types: types}}
}

// Owns reports whether o is an object of d, or was before it was destroyed.
func (d *Device) Owns(o Object) bool { return o.state != nil && o.state.device == d }

// Destroy ends o, which d owns, with all its copies. A second time is ErrInvalid.
func (d *Device) Destroy(o Object) error {
	if !d.Owns(o) {
		return fmt.Errorf("%w: the object is none of device %d", ErrInvalid, d.number)
	}
	if o.state.destroyed.Swap(true) {
		return fmt.Errorf("%w: the object of device %d was destroyed before", ErrInvalid, d.number)
	}
	return nil
}

// Close makes all objects of d stale.
func (d *Device) Close() { d.closed.Store(true) }
