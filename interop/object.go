package interop

import (
	"fmt"
	"strings"
	"sync/atomic"
)

// Types is a set of interop types.
type Types uint8

const (
	// TypeTarget gives access to the device's handles.
	TypeTarget Types = 1 << iota
	// TypeTargetSync orders foreign tasks with OpenMP's, through a timeline
	// semaphore.
	TypeTargetSync
)

// String lists the types as an init clause does, such as "target,targetsync".
func (t Types) String() string {
	var names []string
	if t&TypeTarget != 0 {
		names = append(names, "target")
	}
	if t&TypeTargetSync != 0 {
		names = append(names, "targetsync")
	}
	if rest := t &^ (TypeTarget | TypeTargetSync); rest != 0 {
		names = append(names, fmt.Sprintf("Types(%#x)", uint8(rest)))
	}
	return strings.Join(names, ",")
}

// Object is an interop object (omp_interop_t). Copies are the same object, and
// == tells whether two are. The zero Object is None.
type Object struct{ state *state }

// None is omp_interop_none.
var None Object

// state is what the copies of an object share.
type state struct {
	device *Device
	types  Types
	// number counts the device's objects.
	number    int
	destroyed atomic.Bool
	// stream is nil without targetsync.
	stream *stream
}

// String names the object, such as "interop object 3 of device 0".
func (o Object) String() string {
	if o == None {
		return "interop object none"
	}
	return fmt.Sprintf("interop object %d of device %d", o.state.number, o.state.device.Number)
}

// alive reports whether o is neither None, nor destroyed, nor its device closed.
func (o Object) alive() bool {
	return o.state != nil && !o.state.destroyed.Load() && !o.state.device.closed.Load()
}

// Types are the interop types that the object was initialised with; 0 when it
// is None or is no more.
func (o Object) Types() Types {
	if !o.alive() {
		return 0
	}
	return o.state.types
}

// Vulkan returns the handles of an object that has type target.
func (o Object) Vulkan() (h Handles, ok bool) {
	if o.Types()&TypeTarget == 0 {
		return Handles{}, false
	}
	return o.state.device.Handles, true
}

// DeviceNum returns the number of the object's device.
func (o Object) DeviceNum() (number int, ok bool) {
	number, rc := o.Int(PropertyDeviceNum)
	return number, rc == RCSuccess
}

// read says whether o has a value for p that the getter may return.
func (o Object) read(p Property, getter RC) RC {
	switch d := o.describe(p); {
	case d == nil:
		return RCOutOfRange
	case !o.alive():
		return RCEmpty
	case d.getter != getter:
		return d.getter
	case d.needs != 0 && d.needs&o.state.types == 0:
		return RCNoValue
	}
	return RCSuccess
}

// Int returns an integer property (omp_get_interop_int); 0 unless RCSuccess.
func (o Object) Int(p Property) (int, RC) {
	rc := o.read(p, RCTypeInt)
	if rc != RCSuccess {
		return 0, rc
	}
	switch p {
	case PropertyFrID:
		return int(ForeignRuntimeVulkan), rc
	case PropertyVendor:
		return Vendor, rc
	case PropertyDeviceNum:
		return o.state.device.Number, rc
	case PropertyQueueFamily:
		return int(o.state.stream.queue.Family()), rc
	case PropertyWaitValue:
		wait, _ := o.state.stream.peek()
		return int(wait), rc
	case PropertySignalValue:
		_, signal := o.state.stream.peek()
		return int(signal), rc
	}
	return 0, RCOther
}

// Ptr returns a handle or an address (omp_get_interop_ptr); 0 unless RCSuccess.
// It is valid until the runtime closes the device, and not the caller's to
// destroy.
func (o Object) Ptr(p Property) (uintptr, RC) {
	rc := o.read(p, RCTypePtr)
	if rc != RCSuccess {
		return 0, rc
	}
	h := &o.state.device.Handles
	switch p {
	case PropertyPlatform:
		return h.Instance, rc
	case PropertyDevice:
		return h.PhysicalDevice, rc
	case PropertyDeviceContext:
		return h.Device, rc
	case PropertyGetInstanceProcAddr:
		return h.GetInstanceProcAddr, rc
	case PropertyTargetSync:
		return uintptr(o.state.stream.semaphore), rc
	case PropertyQueue:
		return o.state.stream.queue.Handle(), rc
	}
	return 0, RCOther
}

// Str returns a string property (omp_get_interop_str); "" unless RCSuccess.
func (o Object) Str(p Property) (string, RC) {
	rc := o.read(p, RCTypeStr)
	if rc != RCSuccess {
		return "", rc
	}
	switch p {
	case PropertyFrName:
		return ForeignRuntimeVulkan.String(), rc
	case PropertyVendorName:
		return VendorName, rc
	}
	return "", RCOther
}
