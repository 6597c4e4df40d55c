//go:build cgo

package vk

// #include <stdlib.h>
// #include "vko.h"
import "C"

import (
	"slices"
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"
)

// apiVersion12 is the least version of a usable device.
const apiVersion12 = 1<<22 | 2<<12

// PhysicalDevice is a device that an instance shows.
type PhysicalDevice struct {
	instance   *Instance
	handle     uintptr
	c          C.vko_physical
	properties Properties
	missing    []string
}

// Handle is the VkPhysicalDevice.
func (p *PhysicalDevice) Handle() uintptr { return p.handle }

// Properties describes the device.
func (p *PhysicalDevice) Properties() *Properties { return &p.properties }

// Missing names what the device lacks to be opened; empty when it is usable.
func (p *PhysicalDevice) Missing() []string { return p.missing }

// enumerate lists the devices, best first.
func (i *Instance) enumerate() ([]*PhysicalDevice, error) {
	handles := make([]C.uintptr_t, 8)
	for {
		var count C.uint32_t
		var f C.vko_fault
		if C.vko_physical_list(i.c, &handles[0], C.uint32_t(len(handles)), &count, &f) != 0 {
			return nil, faultError("Open", &f)
		}
		if int(count) < len(handles) {
			handles = handles[:count]
			break
		}
		handles = make([]C.uintptr_t, 2*len(handles))
	}
	devices := make([]*PhysicalDevice, len(handles))
	types := make([]DeviceType, len(handles))
	for k, h := range handles {
		p, err := i.describe(uintptr(h))
		if err != nil {
			return nil, err
		}
		devices[k], types[k] = p, p.properties.Type
	}
	sorted := make([]*PhysicalDevice, len(devices))
	for k, from := range bestFirst(types) {
		sorted[k] = devices[from]
	}
	return sorted, nil
}

// describe reads what there is to know about a device.
func (i *Instance) describe(h uintptr) (*PhysicalDevice, error) {
	p := &PhysicalDevice{instance: i, handle: h}
	p.readCore()
	p.readMemory()
	p.c.version = C.uint32_t(p.properties.APIVersion)
	if err := p.readExtensions(); err != nil {
		return nil, err
	}
	for _, family := range p.c.families[:p.c.family_count] {
		p.properties.QueueFamilies = append(p.properties.QueueFamilies, QueueFamily{
			Flags:              QueueFlags(family.queueFlags),
			Count:              int(family.queueCount),
			TimestampValidBits: int(family.timestampValidBits),
		})
	}
	if p.properties.APIVersion >= apiVersion12 {
		C.vko_physical_details(i.c, C.uintptr_t(h), &p.c)
		p.readDetails()
	} else {
		p.missing = append(p.missing, "Vulkan 1.2 (it has "+Version(p.properties.APIVersion)+")")
	}
	if !p.properties.Features.TimelineSemaphore {
		p.missing = append(p.missing, "timelineSemaphore")
	}
	if mainFamily(p.properties.QueueFamilies) < 0 {
		p.missing = append(p.missing, "a compute queue")
	}
	return p, nil
}

// readCore reads what Vulkan 1.0 tells.
func (p *PhysicalDevice) readCore() {
	var core vulkan.PhysicalDeviceProperties
	vulkan.GetPhysicalDeviceProperties(dispatchable[vulkan.PhysicalDevice](p.handle), &core)
	defer core.Free()
	core.Deref()
	core.Limits.Deref()
	l := &core.Limits
	q := &p.properties
	q.Name = vulkan.ToString(core.DeviceName[:])
	q.Type = DeviceType(core.DeviceType)
	q.VendorID, q.DeviceID = core.VendorID, core.DeviceID
	q.APIVersion, q.DriverVersion = core.ApiVersion, core.DriverVersion
	q.Limits = Limits{
		MaxStorageBufferRange:               l.MaxStorageBufferRange,
		MinStorageBufferOffsetAlignment:     uint64(l.MinStorageBufferOffsetAlignment),
		MaxPushConstantsSize:                l.MaxPushConstantsSize,
		MaxComputeWorkGroupCount:            l.MaxComputeWorkGroupCount,
		MaxComputeWorkGroupSize:             l.MaxComputeWorkGroupSize,
		MaxComputeWorkGroupInvocations:      l.MaxComputeWorkGroupInvocations,
		MaxMemoryAllocationCount:            l.MaxMemoryAllocationCount,
		NonCoherentAtomSize:                 uint64(l.NonCoherentAtomSize),
		TimestampPeriod:                     l.TimestampPeriod,
		MaxPerStageDescriptorStorageBuffers: l.MaxPerStageDescriptorStorageBuffers,
	}
}

func (p *PhysicalDevice) readMemory() {
	var memory vulkan.PhysicalDeviceMemoryProperties
	vulkan.GetPhysicalDeviceMemoryProperties(dispatchable[vulkan.PhysicalDevice](p.handle), &memory)
	defer memory.Free()
	memory.Deref()
	for _, t := range memory.MemoryTypes[:memory.MemoryTypeCount] {
		t.Deref()
		p.properties.MemoryTypes = append(p.properties.MemoryTypes,
			MemoryType{Heap: int(t.HeapIndex), Flags: MemoryFlags(t.PropertyFlags)})
	}
	for _, h := range memory.MemoryHeaps[:memory.MemoryHeapCount] {
		h.Deref()
		local := vulkan.MemoryHeapFlagBits(h.Flags)&vulkan.MemoryHeapDeviceLocalBit != 0
		p.properties.MemoryHeaps = append(p.properties.MemoryHeaps,
			MemoryHeap{Size: uint64(h.Size), DeviceLocal: local})
	}
}

func (p *PhysicalDevice) readExtensions() error {
	var list *C.vkoExtensionProperties
	var count C.uint32_t
	var f C.vko_fault
	if C.vko_physical_basics(p.instance.c, C.uintptr_t(p.handle), &p.c, &list, &count, &f) != 0 {
		return faultError("Open", &f)
	}
	defer C.free(unsafe.Pointer(list))
	for _, e := range unsafe.Slice(list, count) {
		p.properties.Extensions = append(p.properties.Extensions, C.GoString(&e.extensionName[0]))
	}
	slices.Sort(p.properties.Extensions)
	return nil
}

// readDetails takes over what C read from the structures of Vulkan 1.1 and later.
func (p *PhysicalDevice) readDetails() {
	q := &p.properties
	for k, b := range p.c.uuid {
		q.UUID[k] = byte(b)
	}
	q.DriverName = C.GoString(&p.c.driver_name[0])
	q.DriverInfo = C.GoString(&p.c.driver_info[0])
	q.Limits.MaxMemoryAllocationSize = uint64(p.c.max_allocation_size)
	q.Limits.MaxTimelineSemaphoreValueDifference = uint64(p.c.max_timeline_difference)
	q.Limits.MinImportedHostPointerAlignment = uint64(p.c.min_import_alignment)

	f := &p.c.features
	has := func(extension C.uint32_t) bool { return p.c.extensions&extension != 0 }
	q.Features = Features{
		TimelineSemaphore:   f.timeline_semaphore != 0,
		BufferDeviceAddress: f.buffer_device_address != 0,
		Synchronization2:    f.synchronization2 != 0,
		RobustBufferAccess:  f.robust_buffer_access != 0,
		RobustBufferAccess2: f.robust_buffer_access2 != 0,
		PushDescriptor:      has(C.VKO_EXT_PUSH_DESCRIPTOR) && p.c.max_push_descriptors >= MaxBindings,
		ExternalMemoryHost:  p.c.min_import_alignment != 0,
		MemoryBudget:        has(C.VKO_EXT_MEMORY_BUDGET),

		ShaderFloat64:                        f.shader_float64 != 0,
		ShaderInt64:                          f.shader_int64 != 0,
		ShaderInt16:                          f.shader_int16 != 0,
		ShaderInt8:                           f.shader_int8 != 0,
		ShaderFloat16:                        f.shader_float16 != 0,
		StorageBuffer8Bit:                    f.storage_buffer_8bit != 0,
		UniformAndStorageBuffer8Bit:          f.uniform_and_storage_buffer_8bit != 0,
		StoragePushConstant8:                 f.storage_push_constant_8 != 0,
		StorageBuffer16Bit:                   f.storage_buffer_16bit != 0,
		UniformAndStorageBuffer16Bit:         f.uniform_and_storage_buffer_16bit != 0,
		StoragePushConstant16:                f.storage_push_constant_16 != 0,
		VulkanMemoryModel:                    f.vulkan_memory_model != 0,
		VulkanMemoryModelDeviceScope:         f.vulkan_memory_model_device_scope != 0,
		VariablePointers:                     f.variable_pointers != 0,
		VariablePointersStorageBuffer:        f.variable_pointers_storage_buffer != 0,
		ShaderBufferInt64Atomics:             f.shader_buffer_int64_atomics != 0,
		ShaderSharedInt64Atomics:             f.shader_shared_int64_atomics != 0,
		ScalarBlockLayout:                    f.scalar_block_layout != 0,
		ShaderSubgroupExtendedTypes:          f.shader_subgroup_extended_types != 0,
		StorageBufferArrayDynamicIndexing:    f.storage_buffer_array_dynamic_indexing != 0,
		UniformBufferArrayDynamicIndexing:    f.uniform_buffer_array_dynamic_indexing != 0,
		StorageBufferArrayNonUniformIndexing: f.storage_buffer_array_non_uniform_indexing != 0,

		SubgroupSize:       uint32(p.c.subgroup_size),
		SubgroupOperations: uint32(p.c.subgroup_operations),
	}
}
