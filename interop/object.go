package interop

import (
	"fmt"
	"strings"

	"github.com/vkomp/vkomp/internal/foreign"
)

// Types is a set of interop types.
type Types uint8

const (
	// TypeTarget gives access to the device's handles.
	TypeTarget Types = Types(foreign.TypeTarget)
	// TypeTargetSync orders foreign work with tasks, by a timeline semaphore.
	TypeTargetSync Types = Types(foreign.TypeTargetSync)
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

// Object is an interop object (omp_interop_t), a handle without fields of its own. Copies are
// the same object, and == reports whether two are. The zero Object is None.
type Object foreign.Object

// None is omp_interop_none.
var None Object

// Handles are the Vulkan handles of a device.
type Handles struct {
	// Instance, PhysicalDevice and Device are the VkInstance, the
	// VkPhysicalDevice and the VkDevice.
	Instance, PhysicalDevice, Device uintptr
	// GetInstanceProcAddr is the address of vkGetInstanceProcAddr.
	GetInstanceProcAddr uintptr
}

// String names the object, such as "interop object 3 of device 0".
func (o Object) String() string { return foreign.Object(o).String() }

// Types returns the interop types with which the object was initialised; 0 if it is None, was
// destroyed, or its device is closed.
func (o Object) Types() Types { return Types(foreign.Object(o).Types()) }

// Vulkan returns the handles of an object that has type target.
func (o Object) Vulkan() (h Handles, ok bool) {
	if o.Types()&TypeTarget == 0 {
		return Handles{}, false
	}
	return Handles(*foreign.Object(o).Handles()), true
}

// DeviceNum returns the number of the object's device.
func (o Object) DeviceNum() (number int, ok bool) {
	number, rc := o.Int(PropertyDeviceNum)
	return number, rc == RCSuccess
}

// read returns RCSuccess if o has a value for p that the getter may return.
func (o Object) read(p Property, getter RC) RC {
	switch d := o.describe(p); {
	case d == nil:
		return RCOutOfRange
	case !foreign.Object(o).Alive():
		return RCEmpty
	case d.getter != getter:
		return d.getter
	case d.needs != 0 && d.needs&o.Types() == 0:
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
		return foreign.Object(o).DeviceNum(), rc
	case PropertyQueueFamily:
		q, _ := o.Queue()
		return int(q.Family), rc
	case PropertyWaitValue:
		wait, _ := foreign.Object(o).Peek()
		return int(wait), rc
	case PropertySignalValue:
		_, signal := foreign.Object(o).Peek()
		return int(signal), rc
	}
	return 0, RCOther
}

// Ptr returns a handle or an address (omp_get_interop_ptr); 0 unless RCSuccess.
// The runtime owns it, and it is valid until the device is closed.
func (o Object) Ptr(p Property) (uintptr, RC) {
	rc := o.read(p, RCTypePtr)
	if rc != RCSuccess {
		return 0, rc
	}
	h := foreign.Object(o).Handles()
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
		s, _ := o.Semaphore()
		return uintptr(s), rc
	case PropertyQueue:
		q, _ := o.Queue()
		return q.Handle, rc
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
