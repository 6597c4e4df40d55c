package vk

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestErrorNamesCallResultAndSubject(t *testing.T) {
	err := check("vkAllocateMemory", ErrorOutOfDeviceMemory, "%d bytes", 64)
	if got, want := err.Error(), "vk: vkAllocateMemory: VK_ERROR_OUT_OF_DEVICE_MEMORY: 64 bytes"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	err = &Error{Op: "vkQueueSubmit", Result: -12345}
	if got, want := err.Error(), "vk: vkQueueSubmit: VkResult(-12345)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestOnlyNegativeResultsAreErrors(t *testing.T) {
	for _, r := range []Result{Success, NotReady, Timeout, Incomplete} {
		if err := check("vkWaitSemaphores", r, ""); err != nil {
			t.Errorf("%v: %v", r, err)
		}
	}
}

func TestResultsMatchTheirSentinel(t *testing.T) {
	others := theirSentinel{}
	sentinels := []error{ErrUnsupported, ErrDeviceLost, ErrOutOfMemory, ErrOutOfHostMemory, ErrOutOfDeviceMemory, others, ErrInvalid, ErrClosed, ErrBusy}
	for r := range resultNames {
		var want []error
		switch r {
		case ErrorDeviceLost:
			want = []error{ErrDeviceLost}
		case ErrorOutOfHostMemory:
			want = []error{ErrOutOfMemory, ErrOutOfHostMemory, others}
		case ErrorOutOfDeviceMemory:
			want = []error{ErrOutOfMemory, ErrOutOfDeviceMemory, others}
		case ErrorMemoryMap, ErrorOutOfPoolMemory, ErrorFragmentedPool, ErrorFragmentation, ErrorTooManyObjects:
			want = []error{ErrOutOfMemory, others}
		case ErrorLayerNotPresent, ErrorExtensionNotPresent, ErrorFeatureNotPresent, ErrorIncompatibleDriver, ErrorFormatNotSupported, ErrorInvalidExternalHandle:
			want = []error{ErrUnsupported}
		}
		err := fmt.Errorf("wrapped: %w", &Error{Op: "vkCall", Result: r})
		for _, s := range sentinels {
			if errors.Is(err, s) != slices.Contains(want, s) {
				t.Errorf("%v matches %v: %v", r, s, errors.Is(err, s))
			}
		}
	}
}

// theirSentinel is an out-of-memory sentinel of another package.
type theirSentinel struct{}

func (theirSentinel) Error() string { return "out of memory" }
func (theirSentinel) OutOfMemory()  {}

func TestKindsOfMemoryAreToldApart(t *testing.T) {
	for _, kind := range []error{ErrOutOfHostMemory, ErrOutOfDeviceMemory} {
		if !errors.Is(kind, ErrOutOfMemory) || !errors.Is(kind, theirSentinel{}) || errors.Is(ErrOutOfMemory, kind) {
			t.Errorf("%v and %v", kind, ErrOutOfMemory)
		}
	}
	if errors.Is(ErrOutOfHostMemory, ErrOutOfDeviceMemory) || errors.Is(ErrOutOfDeviceMemory, ErrOutOfHostMemory) {
		t.Error("host and device are one")
	}
}

func TestResultNamesAreVulkans(t *testing.T) {
	seen := map[string]Result{}
	for r, name := range resultNames {
		if other, ok := seen[name]; ok {
			t.Errorf("%d and %d are both %s", r, other, name)
		}
		seen[name] = r
		if !strings.HasPrefix(name, "VK_") || (r < 0) != strings.HasPrefix(name, "VK_ERROR_") {
			t.Errorf("%d is called %s", r, name)
		}
	}
}

func TestFlagsAndTypesAreReadable(t *testing.T) {
	for _, c := range []struct {
		value fmt.Stringer
		want  string
	}{
		{MemoryFlags(0), "none"},
		{MemoryDeviceLocal | MemoryHostCached, "device-local|host-cached"},
		{MemoryFlags(1 << 30), "bit30"},
		{QueueCompute | QueueTransfer, "compute|transfer"},
		{QueueFlags(1<<4 | 1), "graphics|bit4"},
		{DeviceDiscrete, "discrete"}, {DeviceIntegrated, "integrated"}, {DeviceVirtual, "virtual"},
		{DeviceSoftware, "software"}, {DeviceOther, "other"}, {DeviceType(9), "DeviceType(9)"},
	} {
		if got := c.value.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got := Version(1<<22 | 3<<12 | 230); got != "1.3.230" {
		t.Errorf("version %q", got)
	}
}
