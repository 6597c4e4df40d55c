package vk

import (
	"errors"
	"fmt"
)

// Conditions that errors of this package match through errors.Is.
var (
	// ErrUnsupported: there is no Vulkan here, or the device, the driver or this
	// build lacks what was asked for, or the driver cannot use the memory given.
	ErrUnsupported = errors.New("vk: unsupported")

	// ErrDeviceLost: the device is gone. Every object of it can only be destroyed.
	ErrDeviceLost = errors.New("vk: device lost")

	// ErrOutOfMemory: the driver is out of host memory, device memory, pool memory,
	// address space to map memory in, or of allocations. Such an error matches every
	// other sentinel too that has a method OutOfMemory, as memory.ErrOutOfMemory does.
	ErrOutOfMemory error = outOfMemory{}
	// ErrOutOfHostMemory and ErrOutOfDeviceMemory: the driver says that it is that
	// kind of memory (VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY). Who
	// matches one of them matches ErrOutOfMemory.
	ErrOutOfHostMemory   error = &memoryKind{"out of host memory"}
	ErrOutOfDeviceMemory error = &memoryKind{"out of device memory"}

	// ErrInvalid: an argument breaks the contract of the call; nothing was done.
	ErrInvalid = errors.New("vk: invalid argument")

	// ErrClosed: the instance or device is closed.
	ErrClosed = errors.New("vk: closed")

	// ErrBusy: the instance cannot be closed while devices of it are open.
	ErrBusy = errors.New("vk: busy")
)

// outOfMemory is the type of ErrOutOfMemory.
type outOfMemory struct{}

func (outOfMemory) Error() string { return "vk: out of memory" }

// OutOfMemory makes the errors of other packages that are out of memory match.
func (outOfMemory) OutOfMemory() {}

// Is matches the sentinels of all packages for being out of memory.
func (outOfMemory) Is(target error) bool { return isOutOfMemory(target) }

// memoryKind is what memory there is none of.
type memoryKind struct{ text string }

func (k *memoryKind) Error() string { return k.text }

// Is matches what ErrOutOfMemory does.
func (*memoryKind) Is(target error) bool { return isOutOfMemory(target) }

// isOutOfMemory says whether an error is a sentinel for being out of memory, of whatever
// kind and package.
func isOutOfMemory(sentinel error) bool {
	_, is := sentinel.(interface{ OutOfMemory() })
	return is
}

// Result is a VkResult. Errors are negative.
type Result int32

// The results that the package itself tells apart.
const (
	Success                    Result = 0
	NotReady                   Result = 1
	Timeout                    Result = 2
	Incomplete                 Result = 5
	ErrorOutOfHostMemory       Result = -1
	ErrorOutOfDeviceMemory     Result = -2
	ErrorInitialization        Result = -3
	ErrorDeviceLost            Result = -4
	ErrorMemoryMap             Result = -5
	ErrorLayerNotPresent       Result = -6
	ErrorExtensionNotPresent   Result = -7
	ErrorFeatureNotPresent     Result = -8
	ErrorIncompatibleDriver    Result = -9
	ErrorTooManyObjects        Result = -10
	ErrorFormatNotSupported    Result = -11
	ErrorFragmentedPool        Result = -12
	ErrorUnknown               Result = -13
	ErrorOutOfPoolMemory       Result = -1000069000
	ErrorInvalidExternalHandle Result = -1000072003
	ErrorFragmentation         Result = -1000161000
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

// String gives the result's Vulkan name.
func (r Result) String() string {
	if n, ok := resultNames[r]; ok {
		return n
	}
	return fmt.Sprintf("VkResult(%d)", int32(r))
}

// matches says whether the result is an instance of one of the sentinels.
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

// Error is a Vulkan call that failed.
type Error struct {
	Op     string // the call, such as "vkCreateDevice"
	Result Result
	Detail string // what it was about; may be empty
}

// Error reads "vk: vkAllocateMemory: VK_ERROR_OUT_OF_DEVICE_MEMORY: 4096 bytes of memory type 0".
func (e *Error) Error() string {
	s := "vk: " + e.Op + ": " + e.Result.String()
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Is matches the sentinel that the result is an instance of.
func (e *Error) Is(target error) bool { return e.Result.matches(target) }

// check turns the result of a call into an error; detail is formatted only for a failure.
func check(op string, r Result, detail string, args ...any) error {
	if r >= 0 {
		return nil
	}
	return &Error{Op: op, Result: r, Detail: fmt.Sprintf(detail, args...)}
}

// invalid reports an argument that breaks the contract of a call.
func invalid(op, detail string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrInvalid, op, fmt.Sprintf(detail, args...))
}
