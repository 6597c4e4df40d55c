package interop

import "github.com/vkomp/vkomp/internal/foreign"

// Property is omp_interop_property_t. Properties that OpenMP defines are negative; those from 0
// on are vkomp's own.
type Property int

const (
	PropertyFrID          Property = -1                 // omp_ipr_fr_id: int, a ForeignRuntime
	PropertyFrName        Property = -2                 // omp_ipr_fr_name: str
	PropertyVendor        Property = -3                 // omp_ipr_vendor: int, of the OpenMP implementation
	PropertyVendorName    Property = -4                 // omp_ipr_vendor_name: str
	PropertyDeviceNum     Property = -5                 // omp_ipr_device_num: int
	PropertyPlatform      Property = -6                 // omp_ipr_platform: ptr, the VkInstance; needs type target
	PropertyDevice        Property = -7                 // omp_ipr_device: ptr, the VkPhysicalDevice; needs type target
	PropertyDeviceContext Property = -8                 // omp_ipr_device_context: ptr, the VkDevice; needs type target
	PropertyTargetSync    Property = -9                 // omp_ipr_targetsync: ptr, the VkSemaphore, a timeline; needs type targetsync
	PropertyFirst                  = PropertyTargetSync // omp_ipr_first: the smallest of these

	// PropertyGetInstanceProcAddr is the address of the Vulkan loader's
	// vkGetInstanceProcAddr, from which every Vulkan function can be had: ptr.
	PropertyGetInstanceProcAddr Property = 0
	PropertyQueue               Property = 1 // the VkQueue for foreign work: ptr; needs type targetsync, as do all that follow
	PropertyQueueFamily         Property = 2 // its family: int
	PropertyWaitValue           Property = 3 // the value that the next foreign work waits for: int
	PropertySignalValue         Property = 4 // the value that it signals: int

	// propertyEnd is the first number that is no property.
	propertyEnd Property = 5
)

// RC is omp_interop_rc_t, the outcome of reading a property.
type RC int

const (
	RCNoValue    RC = 1  // omp_irc_no_value: valid, but there is nothing meaningful to return
	RCSuccess    RC = 0  // omp_irc_success
	RCEmpty      RC = -1 // omp_irc_empty: the object is None, was destroyed, or its device is closed
	RCOutOfRange RC = -2 // omp_irc_out_of_range: no such property
	RCTypeInt    RC = -3 // omp_irc_type_int: Int is the getter to use
	RCTypePtr    RC = -4 // omp_irc_type_ptr: Ptr is the getter to use
	RCTypeStr    RC = -5 // omp_irc_type_str: Str is the getter to use
	RCOther      RC = -6 // omp_irc_other
)

// property describes a property, which is the same for all objects.
type property struct {
	name     string
	typeDesc string
	// getter is the code that names the getter to use.
	getter RC
	// needs are the interop types of which an object must have one for the property to have a
	// value; 0 means that every object has one.
	needs Types
}

// properties begins with PropertyFirst.
var properties = [propertyEnd - PropertyFirst]property{
	PropertyTargetSync - PropertyFirst:          {"targetsync", "VkSemaphore", RCTypePtr, TypeTargetSync},
	PropertyDeviceContext - PropertyFirst:       {"device_context", "VkDevice", RCTypePtr, TypeTarget},
	PropertyDevice - PropertyFirst:              {"device", "VkPhysicalDevice", RCTypePtr, TypeTarget},
	PropertyPlatform - PropertyFirst:            {"platform", "VkInstance", RCTypePtr, TypeTarget},
	PropertyDeviceNum - PropertyFirst:           {"device_num", "int", RCTypeInt, 0},
	PropertyVendorName - PropertyFirst:          {"vendor_name", "string", RCTypeStr, 0},
	PropertyVendor - PropertyFirst:              {"vendor", "int", RCTypeInt, 0},
	PropertyFrName - PropertyFirst:              {"fr_name", "string", RCTypeStr, 0},
	PropertyFrID - PropertyFirst:                {"fr_id", "int", RCTypeInt, 0},
	PropertyGetInstanceProcAddr - PropertyFirst: {"vkGetInstanceProcAddr", "PFN_vkGetInstanceProcAddr", RCTypePtr, 0},
	PropertyQueue - PropertyFirst:               {"queue", "VkQueue", RCTypePtr, TypeTargetSync},
	PropertyQueueFamily - PropertyFirst:         {"queue_family", "uint32_t", RCTypeInt, TypeTargetSync},
	PropertyWaitValue - PropertyFirst:           {"wait_value", "uint64_t", RCTypeInt, TypeTargetSync},
	PropertySignalValue - PropertyFirst:         {"signal_value", "uint64_t", RCTypeInt, TypeTargetSync},
}

// NumProperties is the number of implementation-defined properties
// (omp_get_num_interop_properties): they are 0 to NumProperties()-1, after those
// from PropertyFirst to -1. None has 0.
func (o Object) NumProperties() int {
	if o == None {
		return 0
	}
	return int(propertyEnd)
}

// describe returns the property, nil when p is out of o's range.
func (o Object) describe(p Property) *property {
	if p < PropertyFirst || int(p) >= o.NumProperties() {
		return nil
	}
	return &properties[p-PropertyFirst]
}

// PropertyName returns the property's name (omp_get_interop_name), such as "fr_id", and "" if p
// is out of range. For None it returns the names of the negative properties too.
func (o Object) PropertyName(p Property) string {
	if d := o.describe(p); d != nil {
		return d.name
	}
	return ""
}

// PropertyTypeDesc returns a description of the property's type (omp_get_interop_type_desc), such
// as "int" or "VkDevice"; "" if p is out of range, or if the object is None, was destroyed, or its
// device is closed.
func (o Object) PropertyTypeDesc(p Property) string {
	if d := o.describe(p); d != nil && foreign.Object(o).Alive() {
		return d.typeDesc
	}
	return ""
}

// RCDesc returns a description of an outcome (omp_get_interop_rc_desc), "" for an unknown number.
func (o Object) RCDesc(rc RC) string {
	switch rc {
	case RCNoValue:
		return "the object has no value for this property: it was not initialised with an interop type that gives one"
	case RCSuccess:
		return "success"
	case RCEmpty:
		return "the object is omp_interop_none, was destroyed, or its device was closed"
	case RCOutOfRange:
		return "the property ID is out of range"
	case RCTypeInt:
		return "the property is an integer"
	case RCTypePtr:
		return "the property is a pointer"
	case RCTypeStr:
		return "the property is a string"
	case RCOther:
		return "other error"
	}
	return ""
}
