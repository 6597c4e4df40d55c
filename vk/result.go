package vk

import (
	"errors"
	"fmt"
)

// Conditions that errors of this package match with errors.Is.
var (
	// ErrUnsupported says that there is no Vulkan, that the device, the driver or this
	// build lacks something, or that the driver cannot use the memory given.
	ErrUnsupported = errors.New("vk: unsupported")

	// ErrDeviceLost says that the device is lost. Its objects can only be destroyed.
	ErrDeviceLost = errors.New("vk: device lost")

	// ErrOutOfMemory says that the driver is out of host memory, device memory, pool
	// memory, address space for mappings, or allocations. Such an error also matches any
	// other sentinel that has a method OutOfMemory, such as memory.ErrOutOfMemory.
	ErrOutOfMemory error = outOfMemory{}
	// ErrOutOfHostMemory is an ErrOutOfMemory for VK_ERROR_OUT_OF_HOST_MEMORY.
	ErrOutOfHostMemory error = &memoryKind{"out of host memory"}
	// ErrOutOfDeviceMemory is an ErrOutOfMemory for VK_ERROR_OUT_OF_DEVICE_MEMORY.
	ErrOutOfDeviceMemory error = &memoryKind{"out of device memory"}

	// ErrInvalid says that an argument breaks the contract of the call; nothing was done.
	ErrInvalid = errors.New("vk: invalid argument")

	// ErrClosed says that the instance or device is closed.
	ErrClosed = errors.New("vk: closed")

	// ErrBusy says that the instance cannot be closed while its devices are open, or that a device was closed and
	// some of its objects had not been destroyed.
	ErrBusy = errors.New("vk: busy")
)

// outOfMemory is the type of ErrOutOfMemory.
type outOfMemory struct{}

func (outOfMemory) Error() string { return "vk: out of memory" }

// OutOfMemory marks the error, so that it matches the sentinels of other packages that
// have this method.
func (outOfMemory) OutOfMemory() {}

// Is reports whether target is an out-of-memory error of any package.
func (outOfMemory) Is(target error) bool { return isOutOfMemory(target) }

// memoryKind is the type of ErrOutOfHostMemory and ErrOutOfDeviceMemory.
type memoryKind struct{ text string }

func (k *memoryKind) Error() string { return k.text }

// Is reports whether target is an out-of-memory error of any package.
func (*memoryKind) Is(target error) bool { return isOutOfMemory(target) }

// isOutOfMemory reports whether an error is an out-of-memory sentinel of any kind and
// package.
func isOutOfMemory(sentinel error) bool {
	_, is := sentinel.(interface{ OutOfMemory() })
	return is
}

// Result is a VkResult. Errors are negative.
type Result int32

// The results that this package distinguishes, with Vulkan's values.
const (
	Success                    Result = 0           // VK_SUCCESS
	NotReady                   Result = 1           // VK_NOT_READY
	Timeout                    Result = 2           // VK_TIMEOUT
	Incomplete                 Result = 5           // VK_INCOMPLETE
	ErrorOutOfHostMemory       Result = -1          // VK_ERROR_OUT_OF_HOST_MEMORY
	ErrorOutOfDeviceMemory     Result = -2          // VK_ERROR_OUT_OF_DEVICE_MEMORY
	ErrorInitialization        Result = -3          // VK_ERROR_INITIALIZATION_FAILED
	ErrorDeviceLost            Result = -4          // VK_ERROR_DEVICE_LOST
	ErrorMemoryMap             Result = -5          // VK_ERROR_MEMORY_MAP_FAILED
	ErrorLayerNotPresent       Result = -6          // VK_ERROR_LAYER_NOT_PRESENT
	ErrorExtensionNotPresent   Result = -7          // VK_ERROR_EXTENSION_NOT_PRESENT
	ErrorFeatureNotPresent     Result = -8          // VK_ERROR_FEATURE_NOT_PRESENT
	ErrorIncompatibleDriver    Result = -9          // VK_ERROR_INCOMPATIBLE_DRIVER
	ErrorTooManyObjects        Result = -10         // VK_ERROR_TOO_MANY_OBJECTS
	ErrorFormatNotSupported    Result = -11         // VK_ERROR_FORMAT_NOT_SUPPORTED
	ErrorFragmentedPool        Result = -12         // VK_ERROR_FRAGMENTED_POOL
	ErrorUnknown               Result = -13         // VK_ERROR_UNKNOWN
	ErrorOutOfPoolMemory       Result = -1000069000 // VK_ERROR_OUT_OF_POOL_MEMORY
	ErrorInvalidExternalHandle Result = -1000072003 // VK_ERROR_INVALID_EXTERNAL_HANDLE
	ErrorFragmentation         Result = -1000161000 // VK_ERROR_FRAGMENTATION
)

var resultNames = map[Result]string{
	0:           "VK_SUCCESS",
	1:           "VK_NOT_READY",
	2:           "VK_TIMEOUT",
	3:           "VK_EVENT_SET",
	4:           "VK_EVENT_RESET",
	5:           "VK_INCOMPLETE",
	-1:          "VK_ERROR_OUT_OF_HOST_MEMORY",
	-2:          "VK_ERROR_OUT_OF_DEVICE_MEMORY",
	-3:          "VK_ERROR_INITIALIZATION_FAILED",
	-4:          "VK_ERROR_DEVICE_LOST",
	-5:          "VK_ERROR_MEMORY_MAP_FAILED",
	-6:          "VK_ERROR_LAYER_NOT_PRESENT",
	-7:          "VK_ERROR_EXTENSION_NOT_PRESENT",
	-8:          "VK_ERROR_FEATURE_NOT_PRESENT",
	-9:          "VK_ERROR_INCOMPATIBLE_DRIVER",
	-10:         "VK_ERROR_TOO_MANY_OBJECTS",
	-11:         "VK_ERROR_FORMAT_NOT_SUPPORTED",
	-12:         "VK_ERROR_FRAGMENTED_POOL",
	-13:         "VK_ERROR_UNKNOWN",
	-1000069000: "VK_ERROR_OUT_OF_POOL_MEMORY",
	-1000072003: "VK_ERROR_INVALID_EXTERNAL_HANDLE",
	-1000161000: "VK_ERROR_FRAGMENTATION",
	-1000257000: "VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS",
	1000297000:  "VK_PIPELINE_COMPILE_REQUIRED",
	-1000000000: "VK_ERROR_SURFACE_LOST_KHR",
	-1000000001: "VK_ERROR_NATIVE_WINDOW_IN_USE_KHR",
	1000001003:  "VK_SUBOPTIMAL_KHR",
	-1000001004: "VK_ERROR_OUT_OF_DATE_KHR",
	-1000003001: "VK_ERROR_INCOMPATIBLE_DISPLAY_KHR",
	-1000011001: "VK_ERROR_VALIDATION_FAILED_EXT",
	-1000012000: "VK_ERROR_INVALID_SHADER_NV",
	-1000023000: "VK_ERROR_IMAGE_USAGE_NOT_SUPPORTED_KHR",
	-1000023001: "VK_ERROR_VIDEO_PICTURE_LAYOUT_NOT_SUPPORTED_KHR",
	-1000023002: "VK_ERROR_VIDEO_PROFILE_OPERATION_NOT_SUPPORTED_KHR",
	-1000023003: "VK_ERROR_VIDEO_PROFILE_FORMAT_NOT_SUPPORTED_KHR",
	-1000023004: "VK_ERROR_VIDEO_PROFILE_CODEC_NOT_SUPPORTED_KHR",
	-1000023005: "VK_ERROR_VIDEO_STD_VERSION_NOT_SUPPORTED_KHR",
	-1000158000: "VK_ERROR_INVALID_DRM_FORMAT_MODIFIER_PLANE_LAYOUT_EXT",
	-1000174001: "VK_ERROR_NOT_PERMITTED_KHR",
	-1000255000: "VK_ERROR_FULL_SCREEN_EXCLUSIVE_MODE_LOST_EXT",
	1000268000:  "VK_THREAD_IDLE_KHR",
	1000268001:  "VK_THREAD_DONE_KHR",
	1000268002:  "VK_OPERATION_DEFERRED_KHR",
	1000268003:  "VK_OPERATION_NOT_DEFERRED_KHR",
	-1000338000: "VK_ERROR_COMPRESSION_EXHAUSTED_EXT",
	1000482000:  "VK_INCOMPATIBLE_SHADER_BINARY_EXT",
}

// String returns the result's Vulkan name.
func (r Result) String() string {
	if n, ok := resultNames[r]; ok {
		return n
	}
	return fmt.Sprintf("VkResult(%d)", int32(r))
}

// matches reports whether the result is a case of one of the sentinels.
func (r Result) matches(target error) bool {
	switch r {
	case ErrorDeviceLost:
		return target == ErrDeviceLost
	case ErrorOutOfHostMemory:
		return target == ErrOutOfHostMemory || isOutOfMemory(target)
	case ErrorOutOfDeviceMemory:
		return target == ErrOutOfDeviceMemory || isOutOfMemory(target)
	case ErrorOutOfPoolMemory, ErrorFragmentedPool, ErrorFragmentation, ErrorTooManyObjects, ErrorMemoryMap:
		return isOutOfMemory(target)
	case ErrorLayerNotPresent, ErrorExtensionNotPresent, ErrorFeatureNotPresent,
		ErrorIncompatibleDriver, ErrorFormatNotSupported, ErrorInvalidExternalHandle:
		return target == ErrUnsupported
	}
	return false
}

// Error is the failure of a Vulkan call.
type Error struct {
	Op     string // the call, such as "vkCreateDevice"
	Result Result // never Success
	Detail string // the object or arguments concerned; may be empty
}

// Error formats the error, for example
// "vk: vkAllocateMemory: VK_ERROR_OUT_OF_DEVICE_MEMORY: 4096 bytes of memory type 0".
func (e *Error) Error() string {
	s := "vk: " + e.Op + ": " + e.Result.String()
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Is reports whether the result is a case of the sentinel target.
func (e *Error) Is(target error) bool { return e.Result.matches(target) }

// check turns the result of a call into an error; detail is formatted only on failure.
func check(op string, r Result, detail string, args ...any) error {
	if r >= 0 {
		return nil
	}
	return &Error{Op: op, Result: r, Detail: fmt.Sprintf(detail, args...)}
}

// invalid returns the error for an argument that breaks the contract of a call.
func invalid(op, detail string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrInvalid, op, fmt.Sprintf(detail, args...))
}
