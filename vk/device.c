#include "feature_chain.h"

#include <stdlib.h>
#include <string.h>

// Returns the name of the first function that is missing, or NULL.
static const char *resolve_device(const vko_instance *i, vko_device *d, uint32_t extensions)
{
	void *found;
#define REQUIRE(result, name, parameters)                                                    \
	found = i->GetDeviceProcAddr(d->handle, "vk" #name);                                 \
	if (found == NULL)                                                                   \
		return "vk" #name;                                                           \
	memcpy(&d->name, &found, sizeof found);
	VKO_DEVICE_FUNCTIONS(REQUIRE)
#undef REQUIRE
	if (extensions & VKO_EXT_PUSH_DESCRIPTOR) {
		found = i->GetDeviceProcAddr(d->handle, "vkCmdPushDescriptorSetKHR");
		if (found == NULL)
			return "vkCmdPushDescriptorSetKHR";
		memcpy(&d->CmdPushDescriptorSetKHR, &found, sizeof found);
	}
	if (extensions & VKO_EXT_EXTERNAL_MEMORY_HOST) {
		found = i->GetDeviceProcAddr(d->handle, "vkGetMemoryHostPointerPropertiesEXT");
		if (found == NULL)
			return "vkGetMemoryHostPointerPropertiesEXT";
		memcpy(&d->GetMemoryHostPointerPropertiesEXT, &found, sizeof found);
	}
	return NULL;
}

int32_t vko_device_create(const vko_instance *i, uintptr_t physical, const vko_physical *p,
	uint32_t family, const vko_limits *limits, vko_device **out, vko_fault *fault)
{
	vko_feature_chain chain;
	vko_feature_chain_link(&chain, p->version, p->extensions);
#define ENABLE(name, member) chain.member = p->features.name;
	VKO_FEATURES(ENABLE)
#undef ENABLE
	const char *extensions[VKO_EXT_COUNT];
	uint32_t extension_count = 0;
	for (int e = 0; e < VKO_EXT_COUNT; e++)
		if (p->extensions & 1u << e)
			extensions[extension_count++] = vko_extension_names[e];
	const float priority = 1;
	const vkoDeviceQueueCreateInfo queue = {
		.sType = VKO_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
		.queueFamilyIndex = family,
		.queueCount = 1,
		.pQueuePriorities = &priority,
	};
	const vkoDeviceCreateInfo info = {
		.sType = VKO_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
		.pNext = &chain.core,
		.queueCreateInfoCount = 1,
		.pQueueCreateInfos = &queue,
		.enabledExtensionCount = extension_count,
		.ppEnabledExtensionNames = extensions,
	};

	vko_device *d = calloc(1, sizeof *d);
	if (d == NULL)
		return vko_fail(fault, "vkCreateDevice", VKO_ERROR_OUT_OF_HOST_MEMORY, "%s", "");
	d->limits = *limits;
	int32_t r = i->CreateDevice((void *)physical, &info, NULL, &d->handle);
	if (r < 0) {
		free(d);
		return vko_fail(fault, "vkCreateDevice", r, "%s", "");
	}
	const char *missing = resolve_device(i, d, p->extensions);
	if (missing == NULL) {
		*out = d;
		return 0;
	}
	vko_fail(fault, "vkGetDeviceProcAddr", VKO_ERROR_INITIALIZATION_FAILED, "%s", missing);
	void *found = i->GetDeviceProcAddr(d->handle, "vkDestroyDevice");
	if (found != NULL) {
		memcpy(&d->DestroyDevice, &found, sizeof found);
		d->DestroyDevice(d->handle, NULL);
	}
	free(d);
	return 1;
}

void vko_device_free(vko_device *d) { free(d); }
