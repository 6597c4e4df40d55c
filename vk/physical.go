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

// apiVersion12 is the lowest version of a usable device.
const apiVersion12 = 1<<22 | 2<<12

// PhysicalDevice is a physical device of an instance.
type PhysicalDevice struct {
	instance   *Instance
	handle     uintptr
	c          C.vko_physical
	properties Properties
	missing    []string
	adopted    *adopted // nil if Open creates the VkDevice
}

// Handle returns the VkPhysicalDevice.
func (p *PhysicalDevice) Handle() uintptr { return p.handle }

// Properties returns the description of the device.
func (p *PhysicalDevice) Properties() *Properties { return &p.properties }

// Missing names what the device lacks to be opened; it is empty for a usable device.
func (p *PhysicalDevice) Missing() []string { return p.missing }

// enumerate returns the devices, best first.
func (i *Instance) enumerate() ([]*PhysicalDevice, error) {
	handles, err := i.physicalHandles()
	if err != nil {
		return nil, err
	}
	devices := make([]*PhysicalDevice, len(handles))
	types := make([]DeviceType, len(handles))
	for k, h := range handles {
		p, err := i.describe(h, nil)
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

// physicalHandles returns the instance's VkPhysicalDevices.
func (i *Instance) physicalHandles() ([]uintptr, error) {
	handles := make([]uintptr, 8)
	for {
		var count C.uint32_t
		var f C.vko_fault
		if C.vko_physical_list(i.c, (*C.uintptr_t)(unsafe.Pointer(&handles[0])), C.uint32_t(len(handles)), &count, &f) != 0 {
			return nil, faultError("Open", &f)
		}
		if int(count) < len(handles) {
			return handles[:count], nil
		}
		handles = make([]uintptr, 2*len(handles))
	}
}

// describe queries the properties of a device, restricted to what it was created with if
// it is adopted.
func (i *Instance) describe(h uintptr, a *adopted) (*PhysicalDevice, error) {
	p := &PhysicalDevice{instance: i, handle: h, adopted: a}
	p.readCore()
	p.readMemory()
	if p.properties.Adopted = a != nil; a != nil {
		p.properties.APIVersion = min(p.properties.APIVersion, a.APIVersion)
	}
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
	if a != nil {
		if err := a.checkFamilies(p.properties.QueueFamilies); err != nil {
			return nil, err
		}
	}
	if p.properties.APIVersion >= apiVersion12 {
		read := func() { C.vko_physical_features(i.c, C.uintptr_t(h), &p.c) }
		if a == nil {
			read()
		} else if err := a.restrict(p, read); err != nil {
			return nil, err
		}
		C.vko_physical_details(i.c, C.uintptr_t(h), &p.c)
		p.readDetails()
	} else {
		p.missing = append(p.missing, "Vulkan 1.2 (it has "+Version(p.properties.APIVersion)+")")
	}
	if !p.properties.Features.TimelineSemaphore {
		p.missing = append(p.missing, "timelineSemaphore")
	}
	if a != nil && a.Robust && !p.properties.Features.RobustBufferAccess {
		p.missing = append(p.missing, "robustBufferAccess")
	}
	if !slices.ContainsFunc(p.queueFamilies(), computes) {
		p.missing = append(p.missing, "a compute queue")
	}
	return p, nil
}

// queueFamilies returns the device's families, counting the queues that can be opened.
func (p *PhysicalDevice) queueFamilies() []QueueFamily {
	if p.adopted != nil {
		return p.adopted.queueFamilies(p.properties.QueueFamilies)
	}
	return p.properties.QueueFamilies
}

// readCore reads the properties of Vulkan 1.0.
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
	q.PipelineCacheUUID = core.PipelineCacheUUID
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
		MaxComputeSharedMemorySize:          l.MaxComputeSharedMemorySize,
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

// readDetails takes over what the C code read from structures of Vulkan 1.1 and later.
func (p *PhysicalDevice) readDetails() {
	q := &p.properties
	for k, b := range p.c.uuid {
		q.UUID[k] = byte(b)
	}
	q.DriverName = C.GoString(&p.c.driver_name[0])
	q.DriverInfo = C.GoString(&p.c.driver_info[0])
	q.Limits.MaxMemoryAllocationSize = uint64(p.c.max_allocation_size)
	q.Limits.MinImportedHostPointerAlignment = uint64(p.c.min_import_alignment)

	has := func(extension C.uint32_t) bool { return p.c.extensions&extension != 0 }
	q.Features = Features{
		PushDescriptor:     has(C.VKO_EXT_PUSH_DESCRIPTOR) && p.c.max_push_descriptors >= MaxBindings,
		ExternalMemoryHost: p.c.min_import_alignment != 0,
		MemoryBudget:       has(C.VKO_EXT_MEMORY_BUDGET),
		ExternalMemoryFd:   p.c.memory_fd != 0,
		ExternalTimelineFd: p.c.timeline_fd != 0,
		ExternalBinaryFd:   p.c.binary_fd != 0,

		CalibratedTimestamps:     has(C.VKO_EXT_CALIBRATED_TIMESTAMPS),
		PipelineCreationFeedback: q.APIVersion >= C.VKO_API_1_3 || has(C.VKO_EXT_PIPELINE_CREATION_FEEDBACK),

		SubgroupSize:       uint32(p.c.subgroup_size),
		SubgroupOperations: uint32(p.c.subgroup_operations),
	}
	for _, f := range q.Features.fields(&p.c.features) {
		*f.enabled = *f.c != 0
	}
}

// feature relates a Vulkan feature to its fields in Go and in C.
type feature struct {
	name    string // Vulkan's name
	enabled *bool
	c       *C.uint32_t
}

func (f *Features) fields(c *C.vko_features) []feature {
	return []feature{
		{"timelineSemaphore", &f.TimelineSemaphore, &c.timeline_semaphore},
		{"hostQueryReset", &f.HostQueryReset, &c.host_query_reset},
		{"bufferDeviceAddress", &f.BufferDeviceAddress, &c.buffer_device_address},
		{"synchronization2", &f.Synchronization2, &c.synchronization2},
		{"robustBufferAccess", &f.RobustBufferAccess, &c.robust_buffer_access},
		{"robustBufferAccess2", &f.RobustBufferAccess2, &c.robust_buffer_access2},
		{"shaderFloat64", &f.ShaderFloat64, &c.shader_float64},
		{"shaderInt64", &f.ShaderInt64, &c.shader_int64},
		{"shaderInt16", &f.ShaderInt16, &c.shader_int16},
		{"shaderInt8", &f.ShaderInt8, &c.shader_int8},
		{"shaderFloat16", &f.ShaderFloat16, &c.shader_float16},
		{"storageBuffer8BitAccess", &f.StorageBuffer8Bit, &c.storage_buffer_8bit},
		{"uniformAndStorageBuffer8BitAccess", &f.UniformAndStorageBuffer8Bit, &c.uniform_and_storage_buffer_8bit},
		{"storagePushConstant8", &f.StoragePushConstant8, &c.storage_push_constant_8},
		{"storageBuffer16BitAccess", &f.StorageBuffer16Bit, &c.storage_buffer_16bit},
		{"uniformAndStorageBuffer16BitAccess", &f.UniformAndStorageBuffer16Bit, &c.uniform_and_storage_buffer_16bit},
		{"storagePushConstant16", &f.StoragePushConstant16, &c.storage_push_constant_16},
		{"vulkanMemoryModel", &f.VulkanMemoryModel, &c.vulkan_memory_model},
		{"vulkanMemoryModelDeviceScope", &f.VulkanMemoryModelDeviceScope, &c.vulkan_memory_model_device_scope},
		{"variablePointers", &f.VariablePointers, &c.variable_pointers},
		{"variablePointersStorageBuffer", &f.VariablePointersStorageBuffer, &c.variable_pointers_storage_buffer},
		{"shaderBufferInt64Atomics", &f.ShaderBufferInt64Atomics, &c.shader_buffer_int64_atomics},
		{"shaderSharedInt64Atomics", &f.ShaderSharedInt64Atomics, &c.shader_shared_int64_atomics},
		{"scalarBlockLayout", &f.ScalarBlockLayout, &c.scalar_block_layout},
		{"shaderSubgroupExtendedTypes", &f.ShaderSubgroupExtendedTypes, &c.shader_subgroup_extended_types},
		{"shaderStorageBufferArrayDynamicIndexing", &f.StorageBufferArrayDynamicIndexing, &c.storage_buffer_array_dynamic_indexing},
		{"shaderUniformBufferArrayDynamicIndexing", &f.UniformBufferArrayDynamicIndexing, &c.uniform_buffer_array_dynamic_indexing},
		{"shaderStorageBufferArrayNonUniformIndexing", &f.StorageBufferArrayNonUniformIndexing, &c.storage_buffer_array_non_uniform_indexing},
		{"subgroupBroadcastDynamicId", &f.SubgroupBroadcastDynamicID, &c.subgroup_broadcast_dynamic_id},
		{"shaderZeroInitializeWorkgroupMemory", &f.ShaderZeroInitializeWorkgroupMemory, &c.shader_zero_initialize_workgroup_memory},
		{"maintenance4", &f.Maintenance4, &c.maintenance4},
	}
}
