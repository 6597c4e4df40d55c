package vkomp

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/vkomp/vkomp/vk"
)

// Adoption describes the VkDevice of an application that has one already, for
// Options.Adopt. Vulkan cannot be asked what a device was made with, so the application says
// it: by CreateInfo, by Extensions and Features, or by both together. Features that vkomp
// needs and that are missing are an ErrUnsupported that names them all; a handle that is
// missing is ErrInvalidArgument.
type Adoption struct {
	// Instance, PhysicalDevice and Device are the VkInstance, VkPhysicalDevice and VkDevice.
	Instance, PhysicalDevice, Device uintptr

	// GetInstanceProcAddr is the address of the vkGetInstanceProcAddr that the
	// instance was made with; 0: that of the Vulkan loader which Open finds.
	GetInstanceProcAddr uintptr

	// APIVersion is VkApplicationInfo.apiVersion of the instance: major<<22 | minor<<12 |
	// patch. Where the device has a higher one, this holds.
	APIVersion uint32

	// CreateInfo points to the VkDeviceCreateInfo that the device was made with. Its
	// extensions, pEnabledFeatures and pNext chain are read during Open; nil: none.
	CreateInfo unsafe.Pointer

	// Extensions has the names of device extensions that are enabled. Those that vkomp has
	// no use for may be left out.
	Extensions []string
	// Features has the features that are enabled.
	Features AdoptedFeatures

	// Queues are those that vkomp may submit to. One or more must compute; of the others
	// those are used that can transfer and do not draw.
	Queues []AdoptedQueue

	// Families are those of further queues which the application uses memory of vkomp's
	// with: it is shared among them and the families of Queues.
	Families []uint32
}

// AdoptedQueue is a queue of an Adoption.
type AdoptedQueue struct {
	// Handle is the VkQueue, Family its queue family.
	Handle uintptr
	Family uint32
	// Locker is held whenever vkomp is in a call that uses the VkQueue. The application
	// holds it when it is. Several queues may have one.
	Locker sync.Locker
}

// AdoptedFeatures are the features of Vulkan that vkomp and its kernels use, by Vulkan's
// names, as they are enabled on an adopted device. TimelineSemaphore has to be.
type AdoptedFeatures struct {
	TimelineSemaphore   bool
	BufferDeviceAddress bool
	Synchronization2    bool
	RobustBufferAccess  bool
	RobustBufferAccess2 bool
	HostQueryReset      bool

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
}

// adoptDevice has the application's device for the one non-host device.
func (rt *Runtime) adoptDevice(a *Adoption) error {
	instance, err := vk.Adopt(a.description())
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

// description is the adoption as vk takes it.
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
		},
	}
	for _, q := range a.Queues {
		d.Queues = append(d.Queues, vk.AdoptedQueue(q))
	}
	return d
}
