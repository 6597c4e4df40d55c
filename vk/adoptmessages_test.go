//go:build cgo

package vk

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"
)

// heard counts the messages of all applications: vulkan-go calls the first function that it got for all of them.
var heard atomic.Int64

// hearingApplication makes an instance with the validation layer whose messages go to a Go function of the
// application's, as vulkan-go has them, and a device with one queue of family 0. It returns their description.
func hearingApplication(t *testing.T) Adoption {
	t.Helper()
	if _, err := loadVulkan(0); err != nil {
		t.Fatal(err)
	}
	does := func(call string, r vulkan.Result) {
		t.Helper()
		if r != vulkan.Success {
			t.Fatalf("%s: %v", call, Result(r))
		}
	}
	var instance vulkan.Instance
	does("vkCreateInstance", vulkan.CreateInstance(&vulkan.InstanceCreateInfo{
		SType:             vulkan.StructureTypeInstanceCreateInfo,
		PApplicationInfo:  &vulkan.ApplicationInfo{SType: vulkan.StructureTypeApplicationInfo, ApiVersion: apiVersion13},
		EnabledLayerCount: 1, PpEnabledLayerNames: []string{"VK_LAYER_KHRONOS_validation\x00"},
		EnabledExtensionCount: 1, PpEnabledExtensionNames: []string{"VK_EXT_debug_report\x00"},
	}, nil, &instance))
	t.Cleanup(func() { vulkan.DestroyInstance(instance, nil) })
	// The functions of extensions are those of an instance that has them.
	if err := vulkan.InitInstance(instance); err != nil {
		t.Fatal(err)
	}
	var messenger vulkan.DebugReportCallback
	does("vkCreateDebugReportCallbackEXT", vulkan.CreateDebugReportCallback(instance, &vulkan.DebugReportCallbackCreateInfo{
		SType: vulkan.StructureTypeDebugReportCallbackCreateInfo,
		Flags: vulkan.DebugReportFlags(vulkan.DebugReportErrorBit),
		PfnCallback: func(vulkan.DebugReportFlags, vulkan.DebugReportObjectType, uint64, uint, int32, string, string, unsafe.Pointer) vulkan.Bool32 {
			heard.Add(1)
			return vulkan.True // the layer does not pass the call on
		},
	}, nil, &messenger))
	t.Cleanup(func() { vulkan.DestroyDebugReportCallback(instance, messenger, nil) })

	devices, count := make([]vulkan.PhysicalDevice, 1), uint32(1)
	vulkan.EnumeratePhysicalDevices(instance, &count, devices)
	timelines := &featureStructure{sType: 1000207000}
	timelines.on[0] = 1
	var pins runtime.Pinner
	pins.Pin(timelines)
	defer pins.Unpin()
	var device vulkan.Device
	does("vkCreateDevice", vulkan.CreateDevice(devices[0], &vulkan.DeviceCreateInfo{
		SType: vulkan.StructureTypeDeviceCreateInfo, PNext: unsafe.Pointer(timelines), QueueCreateInfoCount: 1,
		PQueueCreateInfos: []vulkan.DeviceQueueCreateInfo{{
			SType: vulkan.StructureTypeDeviceQueueCreateInfo, QueueCount: 1, PQueuePriorities: []float32{1},
		}},
	}, nil, &device))
	t.Cleanup(func() { vulkan.DestroyDevice(device, nil) })
	var queue vulkan.Queue
	vulkan.GetDeviceQueue(device, 0, 0, &queue)
	return Adoption{
		Instance: address(instance), PhysicalDevice: address(devices[0]), Device: address(device), APIVersion: apiVersion13,
		Features: Features{TimelineSemaphore: true}, Queues: []AdoptedQueue{{address(queue), 0, new(sync.Mutex)}},
	}
}

// Drivers and layers call an application's messengers inside any call.
func TestMessengersOfAnApplicationMayBeInGo(t *testing.T) {
	a := hearingApplication(t)
	d := adopt(t, a, DeviceOptions{})
	q := d.Queues()[0]
	b, _ := newBlock(t, d, 64)
	// Each call is invalid in a way that only the layer finds.
	var beyond Stream
	beyond.Fill(b.Buffer, 1<<20, 4, 0)
	past := []SemaphoreValue{{newTimeline(t, d, 7), 3}}
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"Submit", func() error { return q.Submit(&beyond, nil, nil, 1) }},
		{"Record", func() error {
			r, err := q.Record(&beyond)
			q.Forget(r)
			return err
		}},
		{"Order", func() error { return q.Order(nil, past) }},
	} {
		before := heard.Load()
		t.Logf("%s: %v", c.name, c.call())
		if heard.Load() == before {
			t.Errorf("%s: the application heard nothing", c.name)
		}
	}
	_ = q.Submit(nil, nil, nil, 2)
	wait(t, q, 2)
}
