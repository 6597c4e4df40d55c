package vkomp

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/vkomp/vkomp/vk"
)

// Adoption describes a VkDevice that the application has created already, for Options.Adopt.
// Vulkan has no query for what a device was created with, so the application says it: by
// CreateInfo, by Extensions and Features, or by both together. If features that vkomp needs
// are missing, robustBufferAccess for Options.Robust among them, Open returns an
// ErrUnsupported that names them all; a missing handle is ErrInvalidArgument.
type Adoption struct {
	// Instance, PhysicalDevice and Device are the VkInstance, VkPhysicalDevice and VkDevice.
	Instance, PhysicalDevice, Device uintptr

	// GetInstanceProcAddr is the address of the vkGetInstanceProcAddr that the
	// instance was created with; 0 means that of the Vulkan loader which Open finds.
	GetInstanceProcAddr uintptr

	// APIVersion is VkApplicationInfo.apiVersion of the instance: major<<22 | minor<<12 |
	// patch. It limits the version of the device.
	APIVersion uint32

	// CreateInfo points to the VkDeviceCreateInfo of the device. Its extensions,
	// pEnabledFeatures and pNext chain are read during Open. It may be nil.
	CreateInfo unsafe.Pointer

	// Extensions lists the device extensions that are enabled. Those that vkomp does not
	// use may be left out.
	Extensions []string
	// Features says which features are enabled. A kernel that needs another one is ErrUnsupported:
	// the device was adopted without it.
	Features AdoptedFeatures

	// Queues are the queues that vkomp may submit to. At least one must support compute.
	// Of the others vkomp uses those that support transfers and not graphics. vkomp chooses
	// among them as among the queues of a device of its own: see Options.ComputeQueues. The
	// application may submit to them, too, but for those of Options.InteropQueues.
	Queues []AdoptedQueue

	// Families are further queue families on which the application uses memory of vkomp:
	// it is shared among them and the families of Queues.
	Families []uint32
}

// AdoptedQueue is a queue of an Adoption.
type AdoptedQueue struct {
	// Handle is the VkQueue, Family its queue family.
	Handle uintptr
	Family uint32
	// Locker must be held by anyone who is in a call that uses the VkQueue: by vkomp and by
	// the application. Several queues may have the same one.
	Locker sync.Locker
}

// AdoptedFeatures are the Vulkan features that vkomp and its kernels use, as they are
// enabled on an adopted device. TimelineSemaphore is required.
type AdoptedFeatures struct {
	// The fields have the names of Vulkan's features.
	TimelineSemaphore   bool
	BufferDeviceAddress bool
	Synchronization2    bool
	RobustBufferAccess  bool
	RobustBufferAccess2 bool
	HostQueryReset      bool

	// Features that kernels may use.
	ShaderFloat64                        bool
	ShaderInt64                          bool
	ShaderInt16                          bool
	ShaderInt8                           bool
	ShaderFloat16                        bool
	StorageBuffer8Bit                    bool
	UniformAndStorageBuffer8Bit          bool
	StoragePushConstant8                 bool
	StorageBuffer16Bit                   bool
	UniformAndStorageBuffer16Bit         bool
	StoragePushConstant16                bool
	VulkanMemoryModel                    bool
	VulkanMemoryModelDeviceScope         bool
	VariablePointers                     bool
	VariablePointersStorageBuffer        bool
	ShaderBufferInt64Atomics             bool
	ShaderSharedInt64Atomics             bool
	ScalarBlockLayout                    bool
	ShaderSubgroupExtendedTypes          bool
	StorageBufferArrayDynamicIndexing    bool
	UniformBufferArrayDynamicIndexing    bool
	StorageBufferArrayNonUniformIndexing bool
	SubgroupBroadcastDynamicID           bool
	ShaderZeroInitializeWorkgroupMemory  bool
	Maintenance4                         bool
}

// adoptDevice makes the application's device the only non-host device.
func (rt *Runtime) adoptDevice(a *Adoption) error {
	description := a.description()
	description.Robust = rt.options.Robust
	instance, err := vk.Adopt(description)
	if errors.Is(err, vk.ErrInvalid) {
		err = fmt.Errorf("%w: %w", ErrInvalidArgument, err)
	}
	if err != nil {
		return fmt.Errorf("adopt a device: %w", err)
	}
	rt.instance = instance
	for _, p := range instance.PhysicalDevices() {
		rt.devices = append(rt.devices, &device{rt: rt, physical: p})
	}
	return nil
}

// description converts the adoption to that of package vk.
func (a *Adoption) description() vk.Adoption {
	f := a.Features
	d := vk.Adoption{
		Instance: a.Instance, PhysicalDevice: a.PhysicalDevice, Device: a.Device, GetInstanceProcAddr: a.GetInstanceProcAddr,
		APIVersion: a.APIVersion, CreateInfo: a.CreateInfo, Extensions: a.Extensions, Families: a.Families,
		Features: vk.Features{
			TimelineSemaphore:   f.TimelineSemaphore,
			BufferDeviceAddress: f.BufferDeviceAddress,
			Synchronization2:    f.Synchronization2,
			RobustBufferAccess:  f.RobustBufferAccess,
			RobustBufferAccess2: f.RobustBufferAccess2,
			HostQueryReset:      f.HostQueryReset,

			ShaderFloat64:                        f.ShaderFloat64,
			ShaderInt64:                          f.ShaderInt64,
			ShaderInt16:                          f.ShaderInt16,
			ShaderInt8:                           f.ShaderInt8,
			ShaderFloat16:                        f.ShaderFloat16,
			StorageBuffer8Bit:                    f.StorageBuffer8Bit,
			UniformAndStorageBuffer8Bit:          f.UniformAndStorageBuffer8Bit,
			StoragePushConstant8:                 f.StoragePushConstant8,
			StorageBuffer16Bit:                   f.StorageBuffer16Bit,
			UniformAndStorageBuffer16Bit:         f.UniformAndStorageBuffer16Bit,
			StoragePushConstant16:                f.StoragePushConstant16,
			VulkanMemoryModel:                    f.VulkanMemoryModel,
			VulkanMemoryModelDeviceScope:         f.VulkanMemoryModelDeviceScope,
			VariablePointers:                     f.VariablePointers,
			VariablePointersStorageBuffer:        f.VariablePointersStorageBuffer,
			ShaderBufferInt64Atomics:             f.ShaderBufferInt64Atomics,
			ShaderSharedInt64Atomics:             f.ShaderSharedInt64Atomics,
			ScalarBlockLayout:                    f.ScalarBlockLayout,
			ShaderSubgroupExtendedTypes:          f.ShaderSubgroupExtendedTypes,
			StorageBufferArrayDynamicIndexing:    f.StorageBufferArrayDynamicIndexing,
			UniformBufferArrayDynamicIndexing:    f.UniformBufferArrayDynamicIndexing,
			StorageBufferArrayNonUniformIndexing: f.StorageBufferArrayNonUniformIndexing,
			SubgroupBroadcastDynamicID:           f.SubgroupBroadcastDynamicID,
			ShaderZeroInitializeWorkgroupMemory:  f.ShaderZeroInitializeWorkgroupMemory,
			Maintenance4:                         f.Maintenance4,
		},
	}
	for _, q := range a.Queues {
		d.Queues = append(d.Queues, vk.AdoptedQueue(q))
	}
	return d
}
