#include "feature_chain.h"

#include <stdlib.h>
#include <string.h>

// The positions of the VKO_FEATURES in the structures that enable them.
static const struct {
	int32_t type; // the structure's sType
	size_t from, to; // in the structure, in vko_features
} enabling[] = {
#define FEATURE(type, structure, member, name)                                               \
	{ VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_##type, offsetof(vkoPhysicalDevice##structure, member), \
		offsetof(vko_features, name) }
#define CORE(member, name) FEATURE(FEATURES_2, Features2, features.member, name)
	CORE(robustBufferAccess, robust_buffer_access),
	CORE(shaderUniformBufferArrayDynamicIndexing, uniform_buffer_array_dynamic_indexing),
	CORE(shaderStorageBufferArrayDynamicIndexing, storage_buffer_array_dynamic_indexing),
	CORE(shaderFloat64, shader_float64),
	CORE(shaderInt64, shader_int64),
	CORE(shaderInt16, shader_int16),
#define CORE_1_1(type, structure, member, name)                                              \
	FEATURE(VULKAN_1_1_FEATURES, Vulkan11Features, member, name),                        \
		FEATURE(type, structure, member, name)
	CORE_1_1(16BIT_STORAGE_FEATURES, 16BitStorageFeatures, storageBuffer16BitAccess,
		storage_buffer_16bit),
	CORE_1_1(16BIT_STORAGE_FEATURES, 16BitStorageFeatures, uniformAndStorageBuffer16BitAccess,
		uniform_and_storage_buffer_16bit),
	CORE_1_1(16BIT_STORAGE_FEATURES, 16BitStorageFeatures, storagePushConstant16,
		storage_push_constant_16),
	CORE_1_1(VARIABLE_POINTERS_FEATURES, VariablePointersFeatures, variablePointersStorageBuffer,
		variable_pointers_storage_buffer),
	CORE_1_1(VARIABLE_POINTERS_FEATURES, VariablePointersFeatures, variablePointers,
		variable_pointers),
#define CORE_1_2(type, structure, member, name)                                              \
	FEATURE(VULKAN_1_2_FEATURES, Vulkan12Features, member, name),                        \
		FEATURE(type, structure, member, name)
	CORE_1_2(8BIT_STORAGE_FEATURES, 8BitStorageFeatures, storageBuffer8BitAccess,
		storage_buffer_8bit),
	CORE_1_2(8BIT_STORAGE_FEATURES, 8BitStorageFeatures, uniformAndStorageBuffer8BitAccess,
		uniform_and_storage_buffer_8bit),
	CORE_1_2(8BIT_STORAGE_FEATURES, 8BitStorageFeatures, storagePushConstant8,
		storage_push_constant_8),
	CORE_1_2(SHADER_ATOMIC_INT64_FEATURES, ShaderAtomicInt64Features, shaderBufferInt64Atomics,
		shader_buffer_int64_atomics),
	CORE_1_2(SHADER_ATOMIC_INT64_FEATURES, ShaderAtomicInt64Features, shaderSharedInt64Atomics,
		shader_shared_int64_atomics),
	CORE_1_2(SHADER_FLOAT16_INT8_FEATURES, ShaderFloat16Int8Features, shaderFloat16, shader_float16),
	CORE_1_2(SHADER_FLOAT16_INT8_FEATURES, ShaderFloat16Int8Features, shaderInt8, shader_int8),
	CORE_1_2(DESCRIPTOR_INDEXING_FEATURES, DescriptorIndexingFeatures,
		shaderStorageBufferArrayNonUniformIndexing, storage_buffer_array_non_uniform_indexing),
	CORE_1_2(SCALAR_BLOCK_LAYOUT_FEATURES, ScalarBlockLayoutFeatures, scalarBlockLayout,
		scalar_block_layout),
	CORE_1_2(SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES, ShaderSubgroupExtendedTypesFeatures,
		shaderSubgroupExtendedTypes, shader_subgroup_extended_types),
	CORE_1_2(HOST_QUERY_RESET_FEATURES, HostQueryResetFeatures, hostQueryReset, host_query_reset),
	CORE_1_2(TIMELINE_SEMAPHORE_FEATURES, TimelineSemaphoreFeatures, timelineSemaphore,
		timeline_semaphore),
	CORE_1_2(BUFFER_DEVICE_ADDRESS_FEATURES, BufferDeviceAddressFeatures, bufferDeviceAddress,
		buffer_device_address),
	CORE_1_2(VULKAN_MEMORY_MODEL_FEATURES, VulkanMemoryModelFeatures, vulkanMemoryModel,
		vulkan_memory_model),
	CORE_1_2(VULKAN_MEMORY_MODEL_FEATURES, VulkanMemoryModelFeatures, vulkanMemoryModelDeviceScope,
		vulkan_memory_model_device_scope),
	FEATURE(VULKAN_1_2_FEATURES, Vulkan12Features, subgroupBroadcastDynamicId,
		subgroup_broadcast_dynamic_id),
	FEATURE(VULKAN_1_3_FEATURES, Vulkan13Features, shaderZeroInitializeWorkgroupMemory,
		shader_zero_initialize_workgroup_memory),
	FEATURE(ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES, ZeroInitializeWorkgroupMemoryFeatures,
		shaderZeroInitializeWorkgroupMemory, shader_zero_initialize_workgroup_memory),
	FEATURE(VULKAN_1_3_FEATURES, Vulkan13Features, maintenance4, maintenance4),
	FEATURE(MAINTENANCE_4_FEATURES, Maintenance4Features, maintenance4, maintenance4),
	FEATURE(VULKAN_1_3_FEATURES, Vulkan13Features, synchronization2, synchronization2),
	FEATURE(SYNCHRONIZATION_2_FEATURES, Synchronization2Features, synchronization2,
		synchronization2),
	FEATURE(ROBUSTNESS_2_FEATURES_EXT, Robustness2FeaturesEXT, robustBufferAccess2,
		robust_buffer_access2),
};

// The common beginning of the structures in a chain.
typedef struct any_structure {
	int32_t sType;
	const struct any_structure *pNext;
} any_structure;

// structure points skip bytes before the beginning of a structure of that type.
static void read_features(int32_t type, const void *structure, size_t skip, vko_features *features)
{
	for (size_t k = 0; k < sizeof enabling / sizeof enabling[0]; k++) {
		if (enabling[k].type != type)
			continue;
		uint32_t on;
		memcpy(&on, (const char *)structure + enabling[k].from - skip, sizeof on);
		if (on)
			memcpy((char *)features + enabling[k].to, &(uint32_t){ 1 }, sizeof on);
	}
}

uint32_t vko_extension_bit(const char *name)
{
	for (int e = 0; e < VKO_EXT_COUNT; e++)
		if (strcmp(name, vko_extension_names[e]) == 0)
			return 1u << e;
	return 0;
}

const char *vko_extension_name(uint32_t bit)
{
	for (int e = 0; e < VKO_EXT_COUNT; e++)
		if (bit == 1u << e)
			return vko_extension_names[e];
	return "";
}

void vko_read_create_info(const vkoDeviceCreateInfo *info, uint32_t *extensions, vko_features *features)
{
	for (uint32_t k = 0; k < info->enabledExtensionCount; k++)
		*extensions |= vko_extension_bit(info->ppEnabledExtensionNames[k]);
	if (info->pEnabledFeatures != NULL)
		read_features(VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, info->pEnabledFeatures,
			offsetof(vkoPhysicalDeviceFeatures2, features), features);
	for (const any_structure *s = info->pNext; s != NULL; s = s->pNext)
		read_features(s->sType, s, 0, features);
}

int32_t vko_instance_adopt(uintptr_t get_instance_proc_addr, uintptr_t handle, vko_instance **out,
	vko_fault *fault)
{
	vko_instance *i = calloc(1, sizeof *i);
	if (i == NULL)
		return vko_fail(fault, "vkGetInstanceProcAddr", VKO_ERROR_OUT_OF_HOST_MEMORY, "%s", "");
	memcpy(&i->GetInstanceProcAddr, &get_instance_proc_addr, sizeof i->GetInstanceProcAddr);
	i->handle = (void *)handle;
	const char *missing = vko_instance_resolve(i, 0);
	if (missing != NULL) {
		free(i);
		return vko_fail(fault, "vkGetInstanceProcAddr", VKO_ERROR_INITIALIZATION_FAILED,
			"the instance has no %s", missing);
	}
	*out = i;
	return 0;
}

int32_t vko_device_adopt(const vko_instance *i, uintptr_t handle, const vko_physical *p,
	const uint32_t *families, const vko_limits *limits, vko_device **out, vko_fault *fault)
{
	vko_device *d = calloc(1, sizeof *d);
	if (d == NULL)
		return vko_fail(fault, "vkGetDeviceProcAddr", VKO_ERROR_OUT_OF_HOST_MEMORY, "%s", "");
	d->handle = (void *)handle;
	d->limits = *limits;
	d->adopted = 1;
	for (uint32_t f = 0; f < p->family_count; f++)
		if (families[f] != 0)
			d->families[d->family_count++] = f;
	const char *missing = vko_device_resolve(i, d, p);
	if (missing != NULL) {
		free(d);
		return vko_fail(fault, "vkGetDeviceProcAddr", VKO_ERROR_INITIALIZATION_FAILED, "%s", missing);
	}
	*out = d;
	return 0;
}
