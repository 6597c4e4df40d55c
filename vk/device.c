#include "feature_chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *vko_device_resolve(const vko_instance *i, vko_device *d, const vko_physical *p)
{
	void *found;
#define REQUIRE(result, name, parameters)                                                    \
	found = i->GetDeviceProcAddr(d->handle, "vk" #name);                                 \
	if (found == NULL)                                                                   \
		return "vk" #name;                                                           \
	memcpy(&d->name, &found, sizeof found);
	VKO_DEVICE_FUNCTIONS(REQUIRE)
#undef REQUIRE
#define OPTIONAL(extension, name)                                                            \
	if (p->extensions & (extension)) {                                                   \
		found = i->GetDeviceProcAddr(d->handle, "vk" #name);                         \
		if (found == NULL)                                                           \
			return "vk" #name;                                                   \
		memcpy(&d->name, &found, sizeof found);                                      \
	}
	OPTIONAL(VKO_EXT_PUSH_DESCRIPTOR, CmdPushDescriptorSetKHR)
	OPTIONAL(VKO_EXT_EXTERNAL_MEMORY_HOST, GetMemoryHostPointerPropertiesEXT)
	OPTIONAL(VKO_EXT_EXTERNAL_MEMORY_FD, GetMemoryFdKHR)
	OPTIONAL(VKO_EXT_EXTERNAL_SEMAPHORE_FD, GetSemaphoreFdKHR)
	OPTIONAL(VKO_EXT_EXTERNAL_SEMAPHORE_FD, ImportSemaphoreFdKHR)
	OPTIONAL(VKO_EXT_CALIBRATED_TIMESTAMPS, GetCalibratedTimestampsEXT)
#undef OPTIONAL
	if (p->features.synchronization2) {
		const char *name = p->version >= VKO_API_1_3 ? "vkCmdPipelineBarrier2"
							     : "vkCmdPipelineBarrier2KHR";
		found = i->GetDeviceProcAddr(d->handle, name);
		if (found == NULL)
			return name;
		memcpy(&d->CmdPipelineBarrier2, &found, sizeof found);
	}
	return NULL;
}

// Fills in an entry of queues for each family with queues, and the families of d. The caller
// frees the priorities of the entries.
static int32_t describe_queues(const vko_physical *p, const uint32_t *counts, vko_device *d,
	vkoDeviceQueueCreateInfo *queues, float **priorities, vko_fault *fault)
{
	uint32_t most = 0;
	for (uint32_t f = 0; f < p->family_count; f++) {
		if (counts[f] > p->families[f].queueCount)
			return vko_refuse(fault, "%u queues of family %u, which has %u", counts[f], f,
				p->families[f].queueCount);
		if (counts[f] > most)
			most = counts[f];
	}
	if (most == 0)
		return vko_refuse(fault, "no queue");
	*priorities = calloc(most, sizeof **priorities);
	if (*priorities == NULL)
		return vko_fail(fault, "vkCreateDevice", VKO_ERROR_OUT_OF_HOST_MEMORY, "%u queues", most);
	for (uint32_t k = 0; k < most; k++)
		(*priorities)[k] = 1;
	for (uint32_t f = 0; f < p->family_count; f++) {
		if (counts[f] == 0)
			continue;
		queues[d->family_count] = (vkoDeviceQueueCreateInfo){
			.sType = VKO_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
			.queueFamilyIndex = f,
			.queueCount = counts[f],
			.pQueuePriorities = *priorities,
		};
		d->families[d->family_count++] = f;
	}
	return 0;
}

// Fills in a fault that names the queues the device was to have.
static void fail_create(const vko_device *d, const vkoDeviceQueueCreateInfo *queues, int32_t result,
	vko_fault *fault)
{
	char list[sizeof fault->detail] = "";
	size_t at = 0;
	for (uint32_t k = 0; k < d->family_count && at < sizeof list; k++)
		at += (size_t)snprintf(list + at, sizeof list - at, "%s%u of family %u", k == 0 ? "" : ", ",
			queues[k].queueCount, queues[k].queueFamilyIndex);
	vko_fail(fault, "vkCreateDevice", result, "queues: %s", list);
}

int32_t vko_device_create(const vko_instance *i, uintptr_t physical, const vko_physical *p,
	const uint32_t *counts, const vko_limits *limits, vko_device **out, vko_fault *fault)
{
	vkoDeviceQueueCreateInfo queues[VKO_FAMILIES_MAX];
	float *priorities;
	vko_device *d = calloc(1, sizeof *d);
	if (d == NULL)
		return vko_fail(fault, "vkCreateDevice", VKO_ERROR_OUT_OF_HOST_MEMORY, "%s", "");
	d->limits = *limits;
	if (describe_queues(p, counts, d, queues, &priorities, fault)) {
		free(d);
		return 1;
	}
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
	const vkoDeviceCreateInfo info = {
		.sType = VKO_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
		.pNext = &chain.core,
		.queueCreateInfoCount = d->family_count,
		.pQueueCreateInfos = queues,
		.enabledExtensionCount = extension_count,
		.ppEnabledExtensionNames = extensions,
	};

	int32_t r = i->CreateDevice((void *)physical, &info, NULL, &d->handle);
	free(priorities);
	if (r < 0) {
		fail_create(d, queues, r, fault);
		free(d);
		return 1;
	}
	const char *missing = vko_device_resolve(i, d, p);
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

void vko_device_free(vko_device *d)
{
	for (uint32_t k = 0; k < VKO_MERGING_CHUNKS; k++)
		free(d->mergings[k]);
	free(d);
}
