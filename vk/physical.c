#include "feature_chain.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const char *const vko_extension_names[VKO_EXT_COUNT] = {
	"VK_KHR_push_descriptor",
	"VK_EXT_external_memory_host",
	"VK_EXT_memory_budget",
	"VK_EXT_robustness2",
	"VK_KHR_synchronization2",
	"VK_KHR_portability_subset",
	"VK_KHR_external_memory_fd",
	"VK_KHR_external_semaphore_fd",
	"VK_EXT_calibrated_timestamps",
	"VK_EXT_pipeline_creation_feedback",
	"VK_KHR_zero_initialize_workgroup_memory",
	"VK_KHR_maintenance4",
	"VK_KHR_robustness2",
};

void vko_feature_chain_link(vko_feature_chain *c, uint32_t version, uint32_t extensions)
{
	memset(c, 0, sizeof *c);
	c->core.sType = VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
	c->v11.sType = VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
	c->v12.sType = VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
	c->robustness2.sType = VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT;
	c->synchronization2.sType = VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES;
	c->zero_initialize.sType = VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES;
	c->maintenance4.sType = VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES;
	c->core.pNext = &c->v11;
	c->v11.pNext = &c->v12;
	void **tail = &c->v12.pNext;
	if (extensions & (VKO_EXT_ROBUSTNESS2 | VKO_EXT_ROBUSTNESS2_KHR)) {
		*tail = &c->robustness2;
		tail = &c->robustness2.pNext;
	}
	if (version >= VKO_API_1_3 || (extensions & VKO_EXT_SYNCHRONIZATION2)) {
		*tail = &c->synchronization2;
		tail = &c->synchronization2.pNext;
	}
	if (version >= VKO_API_1_3 || (extensions & VKO_EXT_ZERO_INITIALIZE_WORKGROUP_MEMORY)) {
		*tail = &c->zero_initialize;
		tail = &c->zero_initialize.pNext;
	}
	if (version >= VKO_API_1_3 || (extensions & VKO_EXT_MAINTENANCE4))
		*tail = &c->maintenance4;
}

int32_t vko_physical_list(const vko_instance *i, uintptr_t *handles, uint32_t capacity,
	uint32_t *count, vko_fault *fault)
{
	void **found = calloc(capacity, sizeof *found);
	if (found == NULL)
		return vko_fail(fault, "vkEnumeratePhysicalDevices", VKO_ERROR_OUT_OF_HOST_MEMORY, "%s", "");
	*count = capacity;
	int32_t r = i->EnumeratePhysicalDevices(i->handle, count, found);
	for (uint32_t k = 0; r >= 0 && k < *count; k++)
		handles[k] = (uintptr_t)found[k];
	free(found);
	if (r < 0)
		return vko_fail(fault, "vkEnumeratePhysicalDevices", r, "%s", "");
	return 0;
}

static int32_t list_extensions(const vko_instance *i, void *device,
	vkoExtensionProperties **extensions, uint32_t *count)
{
	// The list may grow between the two calls.
	for (;;) {
		*extensions = NULL;
		*count = 0;
		int32_t r = i->EnumerateDeviceExtensionProperties(device, NULL, count, NULL);
		if (r < 0 || *count == 0)
			return r;
		*extensions = calloc(*count, sizeof **extensions);
		if (*extensions == NULL)
			return VKO_ERROR_OUT_OF_HOST_MEMORY;
		r = i->EnumerateDeviceExtensionProperties(device, NULL, count, *extensions);
		if (r == VKO_SUCCESS)
			return r;
		free(*extensions);
		*extensions = NULL;
		if (r != VKO_INCOMPLETE)
			return r;
	}
}

int32_t vko_physical_basics(const vko_instance *i, uintptr_t device, vko_physical *p,
	vkoExtensionProperties **extensions, uint32_t *extension_count, vko_fault *fault)
{
	// SwiftShader fills in as many as it is asked for, although it has one.
	i->GetPhysicalDeviceQueueFamilyProperties((void *)device, &p->family_count, NULL);
	if (p->family_count > VKO_FAMILIES_MAX)
		p->family_count = VKO_FAMILIES_MAX;
	i->GetPhysicalDeviceQueueFamilyProperties((void *)device, &p->family_count, p->families);
	int32_t r = list_extensions(i, (void *)device, extensions, extension_count);
	if (r < 0)
		return vko_fail(fault, "vkEnumerateDeviceExtensionProperties", r, "%s", "");
	p->extensions = 0;
	for (uint32_t k = 0; k < *extension_count; k++)
		for (int e = 0; e < VKO_EXT_COUNT; e++)
			if (strncmp((*extensions)[k].extensionName, vko_extension_names[e],
				    VKO_MAX_EXTENSION_NAME_SIZE) == 0)
				p->extensions |= 1u << e;
	if (p->version >= VKO_API_1_3)
		p->extensions &= ~VKO_EXT_IN_1_3;
	return 0;
}

// What a block's memory supports with handles of a type: a device with the extension may still be
// unable to import for some usages.
static uint32_t block_features(const vko_instance *i, void *device, uint32_t addressable, uint32_t type)
{
	const vkoPhysicalDeviceExternalBufferInfo info = {
		.sType = VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
		.usage = vko_block_usage(addressable),
		.handleType = type,
	};
	vkoExternalBufferProperties properties = {
		.sType = VKO_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES,
	};
	i->GetPhysicalDeviceExternalBufferProperties(device, &info, &properties);
	return properties.externalMemoryProperties.externalMemoryFeatures;
}

// Whether it is supported, for memory that is allocated like that of other blocks.
static uint32_t allows(uint32_t features, uint32_t wanted)
{
	return (features & (wanted | VKO_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT)) == wanted;
}

static uint32_t can_import_block(const vko_instance *i, void *device, uint32_t addressable, int32_t driver)
{
	const uint32_t features = block_features(i, device, addressable,
		VKO_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT);
	// SwiftShader can import, but only answers for other types of handles.
	if (features == 0 && driver == VKO_DRIVER_ID_GOOGLE_SWIFTSHADER)
		return 1;
	return allows(features, VKO_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT);
}

static uint32_t can_pass_block(const vko_instance *i, void *device, uint32_t addressable)
{
	return allows(block_features(i, device, addressable, VKO_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT),
		VKO_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VKO_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT);
}

static uint32_t can_pass_semaphore(const vko_instance *i, void *device, int32_t semaphore_type)
{
	const vkoSemaphoreTypeCreateInfo type = {
		.sType = VKO_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
		.semaphoreType = semaphore_type,
	};
	const vkoPhysicalDeviceExternalSemaphoreInfo info = {
		.sType = VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO,
		.pNext = &type,
		.handleType = VKO_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
	};
	vkoExternalSemaphoreProperties properties = {
		.sType = VKO_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES,
	};
	i->GetPhysicalDeviceExternalSemaphoreProperties(device, &info, &properties);
	const uint32_t both = VKO_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT |
		VKO_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT;
	return (properties.externalSemaphoreFeatures & both) == both;
}

// Whether vkGetCalibratedTimestampsEXT, which the device has, can read the device's clock.
static bool reads_device_clock(const vko_instance *i, void *device)
{
	int32_t(VKO_CALL *domains)(void *, uint32_t *, int32_t *);
	void *found = i->GetInstanceProcAddr(i->handle, "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT");
	int32_t list[32];
	uint32_t count = sizeof list / sizeof list[0];
	if (found == NULL)
		return false;
	memcpy(&domains, &found, sizeof found);
	if (domains(device, &count, list) < 0)
		return false;
	for (uint32_t k = 0; k < count; k++)
		if (list[k] == VKO_TIME_DOMAIN_DEVICE_EXT)
			return true;
	return false;
}

void vko_physical_features(const vko_instance *i, uintptr_t device, vko_physical *p)
{
	vko_feature_chain chain;
	vko_feature_chain_link(&chain, p->version, p->extensions);
	i->GetPhysicalDeviceFeatures2((void *)device, &chain.core);
#define READ(name, member) p->features.name = chain.member;
	VKO_FEATURES(READ)
#undef READ
}

void vko_physical_details(const vko_instance *i, uintptr_t device, vko_physical *p)
{
	vkoPhysicalDeviceExternalMemoryHostPropertiesEXT host = {
		.sType = VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT,
	};
	vkoPhysicalDevicePushDescriptorPropertiesKHR push = {
		.sType = VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR,
	};
	vkoPhysicalDeviceMaintenance4Properties maintenance4 = {
		.sType = VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES,
		.maxBufferSize = UINT64_MAX,
	};
	vkoPhysicalDeviceVulkan12Properties v12 = {
		.sType = VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES,
	};
	vkoPhysicalDeviceVulkan11Properties v11 = {
		.sType = VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES,
		.pNext = &v12,
	};
	vkoPhysicalDeviceProperties2 properties = {
		.sType = VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
		.pNext = &v11,
	};
	void **tail = &v12.pNext;
	if (p->extensions & VKO_EXT_PUSH_DESCRIPTOR) {
		*tail = &push;
		tail = &push.pNext;
	}
	if (p->version >= VKO_API_1_3 || (p->extensions & VKO_EXT_MAINTENANCE4)) {
		*tail = &maintenance4;
		tail = &maintenance4.pNext;
	}
	if (p->extensions & VKO_EXT_EXTERNAL_MEMORY_HOST)
		*tail = &host;
	i->GetPhysicalDeviceProperties2((void *)device, &properties);
	memcpy(p->uuid, v11.deviceUUID, sizeof p->uuid);
	p->subgroup_size = v11.subgroupSize;
	if (v11.subgroupSupportedStages & VKO_SHADER_STAGE_COMPUTE_BIT)
		p->subgroup_operations = v11.subgroupSupportedOperations;
	// Each allocation has a buffer of its size.
	p->max_allocation_size = v11.maxMemoryAllocationSize < maintenance4.maxBufferSize ?
		v11.maxMemoryAllocationSize : maintenance4.maxBufferSize;
	memcpy(p->driver_name, v12.driverName, sizeof p->driver_name);
	memcpy(p->driver_info, v12.driverInfo, sizeof p->driver_info);
	p->max_push_descriptors = push.maxPushDescriptors;
	if ((p->extensions & VKO_EXT_EXTERNAL_MEMORY_HOST) &&
		can_import_block(i, (void *)device, p->features.buffer_device_address, v12.driverID))
		p->min_import_alignment = host.minImportedHostPointerAlignment;
	if (p->extensions & VKO_EXT_EXTERNAL_MEMORY_FD)
		p->memory_fd = can_pass_block(i, (void *)device, p->features.buffer_device_address);
	if (p->extensions & VKO_EXT_EXTERNAL_SEMAPHORE_FD) {
		p->timeline_fd = can_pass_semaphore(i, (void *)device, VKO_SEMAPHORE_TYPE_TIMELINE);
		p->binary_fd = can_pass_semaphore(i, (void *)device, VKO_SEMAPHORE_TYPE_BINARY);
	}
	if ((p->extensions & VKO_EXT_CALIBRATED_TIMESTAMPS) && !reads_device_clock(i, (void *)device))
		p->extensions &= ~(uint32_t)VKO_EXT_CALIBRATED_TIMESTAMPS;
}

void vko_memory_budget(const vko_instance *i, uintptr_t device, uint64_t *budget, uint64_t *usage)
{
	vkoPhysicalDeviceMemoryBudgetPropertiesEXT heaps = {
		.sType = VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT,
	};
	vkoPhysicalDeviceMemoryProperties2 properties = {
		.sType = VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
		.pNext = &heaps,
	};
	i->GetPhysicalDeviceMemoryProperties2((void *)device, &properties);
	memcpy(budget, heaps.heapBudget, sizeof heaps.heapBudget);
	memcpy(usage, heaps.heapUsage, sizeof heaps.heapUsage);
}
