// What a program asks of the instance and the device, answered as if the driver
// had the families of the plan; manyqueue.h has the whole picture.
#define _GNU_SOURCE
#include "manyqueue.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

many_device *many_device_of(const void *dispatchable)
{
	return layer_device_of(dispatchable)->own;
}

VkQueueFlags many_family_flags(const many_device *m, uint32_t family)
{
	return m->plan->families[family].flags & m->flags;
}

uint64_t many_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static many_plan *read_plan(void)
{
	const char *text = getenv("VKOMP_MANYQUEUE_FAMILIES");
	if (text == NULL || *text == '\0')
		text = "GCT2,CT4,T2";
	many_plan *plan = layer_allocate(sizeof *plan);
	uint32_t total = 0;
	for (const char *t = text;; t++) {
		if (plan->family_count == MANY_FAMILIES)
			layer_die("VKOMP_MANYQUEUE_FAMILIES=%s: more than %d families", text, MANY_FAMILIES);
		VkQueueFlags flags = 0;
		for (;; t++)
			if (*t == 'G')
				flags |= VK_QUEUE_GRAPHICS_BIT;
			else if (*t == 'C')
				flags |= VK_QUEUE_COMPUTE_BIT;
			else if (*t == 'T')
				flags |= VK_QUEUE_TRANSFER_BIT;
			else
				break;
		char *end;
		unsigned long count = *t >= '1' && *t <= '9' ? strtoul(t, &end, 10) : 0;
		if (flags == 0 || count == 0 || (*end != ',' && *end != '\0'))
			layer_die("VKOMP_MANYQUEUE_FAMILIES=%s: not like GCT2,CT4,T2", text);
		if (count > MANY_QUEUES || (total += (uint32_t)count) > MANY_QUEUES)
			layer_die("VKOMP_MANYQUEUE_FAMILIES=%s: more than %d queues", text, MANY_QUEUES);
		plan->families[plan->family_count].flags = flags;
		plan->families[plan->family_count++].queue_count = (uint32_t)count;
		t = end;
		if (*t == '\0')
			return plan;
	}
}

// Binary semaphores are timelines here, which are Vulkan 1.2.
static VkResult create_instance(const VkInstanceCreateInfo *info,
	const VkAllocationCallbacks *allocator, VkInstance *out, PFN_vkCreateInstance next)
{
	VkApplicationInfo application = { .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO };
	if (info->pApplicationInfo != NULL)
		application = *info->pApplicationInfo;
	if (application.apiVersion < VK_API_VERSION_1_2)
		application.apiVersion = VK_API_VERSION_1_2;
	VkInstanceCreateInfo real = *info;
	real.pApplicationInfo = &application;
	return next(&real, allocator, out);
}

static void instance_created(layer_instance *i, const VkInstanceCreateInfo *info)
{
	(void)info;
	i->own = read_plan();
}

static void instance_destroying(layer_instance *i)
{
	free(i->own);
}

// The driver's family that does most of what the plan has: its properties.
static VkQueueFamilyProperties real_family(layer_instance *i, VkPhysicalDevice physical,
	uint32_t *index)
{
	VkQueueFamilyProperties families[MANY_FAMILIES];
	uint32_t count = 0;
	// SwiftShader gives as many families as there is room for.
	i->next.GetPhysicalDeviceQueueFamilyProperties(physical, &count, NULL);
	count = count < MANY_FAMILIES ? count : MANY_FAMILIES;
	i->next.GetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
	uint32_t best = 0;
	for (uint32_t wanted = 2; wanted > 0; wanted--) {
		VkQueueFlags flags = wanted == 2 ? VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT :
			VK_QUEUE_COMPUTE_BIT;
		for (best = 0; best < count; best++)
			if ((families[best].queueFlags & flags) == flags)
				goto found;
	}
	best = 0;
found:
	// Graphics and compute imply transfer, which need not be reported then.
	if ((families[best].queueFlags & (VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT)) != 0)
		families[best].queueFlags |= VK_QUEUE_TRANSFER_BIT;
	*index = best;
	return families[best];
}

static void show_family(VkQueueFamilyProperties *p, const many_plan *plan, uint32_t family)
{
	p->queueFlags &= plan->families[family].flags;
	p->queueCount = plan->families[family].queue_count;
	// As some hardware has it: such a queue copies whole images alone. Of buffers it copies any bytes.
	if ((p->queueFlags & (VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT)) == 0)
		p->minImageTransferGranularity = (VkExtent3D){ 0, 0, 0 };
}

static VKAPI_ATTR void VKAPI_CALL queue_families(VkPhysicalDevice physical, uint32_t *count,
	VkQueueFamilyProperties *out)
{
	layer_instance *i = layer_instance_of(physical);
	const many_plan *plan = i->own;
	uint32_t index;
	VkQueueFamilyProperties real = real_family(i, physical, &index);
	if (out == NULL) {
		*count = plan->family_count;
		return;
	}
	if (*count > plan->family_count)
		*count = plan->family_count;
	for (uint32_t f = 0; f < *count; f++) {
		out[f] = real;
		show_family(&out[f], plan, f);
	}
}

static VKAPI_ATTR void VKAPI_CALL queue_families2(VkPhysicalDevice physical, uint32_t *count,
	VkQueueFamilyProperties2 *out)
{
	layer_instance *i = layer_instance_of(physical);
	const many_plan *plan = i->own;
	uint32_t index, real_count = 0;
	VkQueueFamilyProperties real = real_family(i, physical, &index);
	if (out == NULL) {
		*count = plan->family_count;
		return;
	}
	if (*count > plan->family_count)
		*count = plan->family_count;
	i->next.GetPhysicalDeviceQueueFamilyProperties2(physical, &real_count, NULL);
	VkQueueFamilyProperties2 *all = layer_allocate((real_count + 1) * sizeof *all);
	for (uint32_t f = 0; f < *count; f++) {
		for (uint32_t k = 0; k < real_count; k++)
			all[k] = (VkQueueFamilyProperties2){
				.sType = VK_STRUCTURE_TYPE_QUEUE_FAMILY_PROPERTIES_2,
				.pNext = k == index ? out[f].pNext : NULL,
			};
		// For the structures that extend it.
		i->next.GetPhysicalDeviceQueueFamilyProperties2(physical, &real_count, all);
		out[f].queueFamilyProperties = real;
		show_family(&out[f].queueFamilyProperties, plan, f);
	}
	free(all);
}

static VKAPI_ATTR VkResult VKAPI_CALL surface_support(VkPhysicalDevice physical, uint32_t family,
	VkSurfaceKHR surface, VkBool32 *supported)
{
	(void)physical;
	(void)family;
	(void)surface;
	*supported = VK_FALSE;
	return VK_SUCCESS;
}

// Extensions whose functions take a queue or a family of the driver, or that take a
// binary semaphore or a fence out of the layer's hands.
static bool hidden(const char *extension)
{
	static const char *const names[] = {
		"VK_KHR_swapchain", "VK_KHR_external_semaphore_fd", "VK_KHR_external_semaphore_win32",
		"VK_KHR_external_fence_fd", "VK_KHR_external_fence_win32", "VK_KHR_performance_query",
		"VK_KHR_video_queue", "VK_EXT_debug_marker", "VK_INTEL_performance_query",
		"VK_NV_device_diagnostic_checkpoints", "VK_KHR_global_priority",
		"VK_EXT_global_priority", "VK_EXT_global_priority_query", "VK_EXT_private_data",
	};
	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
		if (strcmp(extension, names[k]) == 0)
			return true;
	return false;
}

static VKAPI_ATTR VkResult VKAPI_CALL device_extensions(VkPhysicalDevice physical,
	const char *layer, uint32_t *count, VkExtensionProperties *out)
{
	layer_instance *i = layer_instance_of(physical);
	if (layer != NULL)
		return i->next.EnumerateDeviceExtensionProperties(physical, layer, count, out);
	uint32_t real_count = 0, shown = 0;
	VkResult r = i->next.EnumerateDeviceExtensionProperties(physical, NULL, &real_count, NULL);
	if (r != VK_SUCCESS)
		return r;
	VkExtensionProperties *all = layer_allocate((real_count + 1) * sizeof *all);
	r = i->next.EnumerateDeviceExtensionProperties(physical, NULL, &real_count, all);
	for (uint32_t k = 0; k < real_count && r == VK_SUCCESS; k++) {
		if (hidden(all[k].extensionName))
			continue;
		if (out != NULL && shown == *count)
			r = VK_INCOMPLETE;
		else if (out != NULL)
			out[shown] = all[k];
		shown += r == VK_SUCCESS;
	}
	free(all);
	if (r >= 0)
		*count = shown;
	return r;
}

// The program's queues must be in the plan.
static VkResult check_queues(const many_plan *plan, const VkDeviceCreateInfo *info)
{
	bool seen[MANY_FAMILIES] = { false };
	for (uint32_t k = 0; k < info->queueCreateInfoCount; k++) {
		const VkDeviceQueueCreateInfo *q = &info->pQueueCreateInfos[k];
		uint32_t f = q->queueFamilyIndex;
		if (f >= plan->family_count || seen[f] || q->queueCount > plan->families[f].queue_count)
			layer_die("vkCreateDevice: no %u queues of family %u, or asked for twice",
				q->queueCount, f);
		if (q->flags != 0)
			return VK_ERROR_FEATURE_NOT_PRESENT;
		seen[f] = true;
	}
	return VK_SUCCESS;
}

static VkResult create_device(layer_instance *i, VkPhysicalDevice physical,
	const VkDeviceCreateInfo *info, const VkAllocationCallbacks *allocator, VkDevice *out,
	PFN_vkCreateDevice next)
{
	VkResult r = check_queues(i->own, info);
	if (r != VK_SUCCESS)
		return r;
	for (uint32_t k = 0; k < info->enabledExtensionCount; k++)
		if (hidden(info->ppEnabledExtensionNames[k]))
			return VK_ERROR_EXTENSION_NOT_PRESENT;
	static const float priority = 1;
	VkDeviceQueueCreateInfo queue = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
		.queueCount = 1,
		.pQueuePriorities = &priority,
	};
	real_family(i, physical, &queue.queueFamilyIndex);
	VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
		.pNext = (void *)info->pNext,
		.timelineSemaphore = VK_TRUE,
	};
	VkDeviceCreateInfo real = *info;
	real.queueCreateInfoCount = 1;
	real.pQueueCreateInfos = &queue;
	// Where the program's own structure says no, it says yes for the time of the call:
	// a chain may not hold two of them.
	VkBool32 *asked = NULL, before = VK_TRUE;
	VkPhysicalDeviceVulkan12Features *v12 = (void *)layer_chained(info->pNext,
		VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
	VkPhysicalDeviceTimelineSemaphoreFeatures *own = (void *)layer_chained(info->pNext,
		VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES);
	if (v12 != NULL)
		asked = &v12->timelineSemaphore;
	else if (own != NULL)
		asked = &own->timelineSemaphore;
	else
		real.pNext = &timeline;
	if (asked != NULL) {
		before = *asked;
		*asked = VK_TRUE;
	}
	r = next(physical, &real, allocator, out);
	if (asked != NULL)
		*asked = before;
	return r;
}

static void stop_queues(many_device *m)
{
	for (uint32_t k = 0; k < m->queue_count; k++)
		many_queue_stop(m->queues[k]);
	for (uint32_t k = 0; k < m->queue_count; k++)
		many_queue_free(m->queues[k]);
	m->queue_count = 0;
}

static bool free_value(uint64_t key, void *value, void *context)
{
	(void)key;
	(void)context;
	free(value);
	return false;
}

static VkResult device_created(layer_device *d, const VkDeviceCreateInfo *info)
{
	if (d->next.WaitSemaphores == NULL) {
		layer_say("the driver has no vkWaitSemaphores");
		return VK_ERROR_INITIALIZATION_FAILED;
	}
	many_device *m = layer_allocate(sizeof *m);
	m->d = d;
	m->plan = d->instance->own;
	m->flags = real_family(d->instance, d->physical, &m->family).queueFlags;
	m->delay = layer_environment("VKOMP_MANYQUEUE_DELAY_US", 200);
	const char *hold = getenv("VKOMP_MANYQUEUE_HOLD");
	if (hold != NULL && *hold != '\0')
		m->hold = strcpy(layer_allocate(strlen(hold) + 1), hold);
	m->lose_after = layer_environment("VKOMP_MANYQUEUE_LOSE", 0);
	pthread_mutex_init(&m->lock, NULL);
	pthread_mutex_init(&m->held_lock, NULL);
	pthread_condattr_t clock;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&m->held_fewer, &clock);
	pthread_condattr_destroy(&clock);
	d->next.GetDeviceQueue(d->handle, m->family, 0, &m->queue);
	layer_adopt(d, m->queue);
	uint64_t seed = layer_environment("VKOMP_MANYQUEUE_SEED", 0);
	for (uint32_t k = 0; k < info->queueCreateInfoCount; k++)
		for (uint32_t i = 0; i < info->pQueueCreateInfos[k].queueCount; i++) {
			many_queue *q =
				many_queue_start(m, info->pQueueCreateInfos[k].queueFamilyIndex, i, seed);
			if (q == NULL) {
				stop_queues(m);
				pthread_mutex_destroy(&m->lock);
				free(m->hold);
				free(m);
				return VK_ERROR_OUT_OF_HOST_MEMORY;
			}
			m->queues[m->queue_count++] = q;
		}
	d->own = m;
	return VK_SUCCESS;
}

static void device_destroying(layer_device *d)
{
	many_device *m = d->own;
	m->give_up_at = many_now() + 2000000000u;
	stop_queues(m);
	d->next.DeviceWaitIdle(d->handle);
	layer_map_each(&m->pools, free_value, NULL);
	layer_map_each(&m->binaries, free_value, NULL);
	layer_map_free(&m->pools);
	layer_map_free(&m->commands);
	layer_map_free(&m->binaries);
	layer_map_free(&m->held);
	pthread_mutex_destroy(&m->lock);
	pthread_mutex_destroy(&m->held_lock);
	pthread_cond_destroy(&m->held_fewer);
	free(m->hold);
	free(m);
}

static VKAPI_ATTR void VKAPI_CALL get_queue(VkDevice handle, uint32_t family, uint32_t index,
	VkQueue *out)
{
	many_device *m = many_device_of(handle);
	*out = VK_NULL_HANDLE;
	for (uint32_t k = 0; k < m->queue_count; k++)
		if (many_queue_is(m->queues[k], family, index))
			*out = (VkQueue)m->queues[k];
}

static VKAPI_ATTR void VKAPI_CALL get_queue2(VkDevice handle, const VkDeviceQueueInfo2 *info,
	VkQueue *out)
{
	*out = VK_NULL_HANDLE;
	if (info->flags == 0)
		get_queue(handle, info->queueFamilyIndex, info->queueIndex, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL bind_sparse(VkQueue queue, uint32_t count,
	const VkBindSparseInfo *infos, VkFence fence)
{
	(void)queue;
	(void)count;
	(void)infos;
	(void)fence;
	layer_say("vkQueueBindSparse: no family has VK_QUEUE_SPARSE_BINDING_BIT");
	return VK_ERROR_FEATURE_NOT_PRESENT;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_semaphore(VkDevice handle,
	const VkSemaphoreCreateInfo *info, const VkAllocationCallbacks *allocator, VkSemaphore *out)
{
	many_device *m = many_device_of(handle);
	const VkSemaphoreTypeCreateInfo *type =
		layer_chained(info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
	if (type != NULL && type->semaphoreType == VK_SEMAPHORE_TYPE_TIMELINE)
		return m->d->next.CreateSemaphore(handle, info, allocator, out);
	VkSemaphoreTypeCreateInfo timeline = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
		.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
	};
	VkSemaphoreCreateInfo real = *info;
	real.pNext = &timeline;
	VkResult r = m->d->next.CreateSemaphore(handle, &real, allocator, out);
	if (r == VK_SUCCESS)
		layer_map_put(&m->binaries, LAYER_KEY(*out), layer_allocate(sizeof(many_binary)));
	return r;
}

static VKAPI_ATTR void VKAPI_CALL destroy_semaphore(VkDevice handle, VkSemaphore semaphore,
	const VkAllocationCallbacks *allocator)
{
	many_device *m = many_device_of(handle);
	free(layer_map_take(&m->binaries, LAYER_KEY(semaphore)));
	m->d->next.DestroySemaphore(handle, semaphore, allocator);
}

// All families are the driver's one: shared by several is exclusive to it.
static VkBufferCreateInfo real_buffer(const VkBufferCreateInfo *info)
{
	VkBufferCreateInfo real = *info;
	real.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
	real.queueFamilyIndexCount = 0;
	real.pQueueFamilyIndices = NULL;
	return real;
}

static VkImageCreateInfo real_image(const VkImageCreateInfo *info)
{
	VkImageCreateInfo real = *info;
	real.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
	real.queueFamilyIndexCount = 0;
	real.pQueueFamilyIndices = NULL;
	return real;
}

static void check_sharing(many_device *m, VkSharingMode mode, uint32_t count, const uint32_t *families)
{
	for (uint32_t k = 0; mode == VK_SHARING_MODE_CONCURRENT && k < count; k++)
		if (families[k] >= m->plan->family_count)
			layer_die("shared with family %u, which is not there", families[k]);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_buffer(VkDevice handle, const VkBufferCreateInfo *info,
	const VkAllocationCallbacks *allocator, VkBuffer *out)
{
	many_device *m = many_device_of(handle);
	check_sharing(m, info->sharingMode, info->queueFamilyIndexCount, info->pQueueFamilyIndices);
	VkBufferCreateInfo real = real_buffer(info);
	return m->d->next.CreateBuffer(handle, &real, allocator, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_image(VkDevice handle, const VkImageCreateInfo *info,
	const VkAllocationCallbacks *allocator, VkImage *out)
{
	many_device *m = many_device_of(handle);
	check_sharing(m, info->sharingMode, info->queueFamilyIndexCount, info->pQueueFamilyIndices);
	VkImageCreateInfo real = real_image(info);
	return m->d->next.CreateImage(handle, &real, allocator, out);
}

static VKAPI_ATTR void VKAPI_CALL buffer_needs(VkDevice handle,
	const VkDeviceBufferMemoryRequirements *info, VkMemoryRequirements2 *out)
{
	VkBufferCreateInfo real = real_buffer(info->pCreateInfo);
	VkDeviceBufferMemoryRequirements asked = *info;
	asked.pCreateInfo = &real;
	layer_device_of(handle)->next.GetDeviceBufferMemoryRequirements(handle, &asked, out);
}

static VKAPI_ATTR void VKAPI_CALL image_needs(VkDevice handle,
	const VkDeviceImageMemoryRequirements *info, VkMemoryRequirements2 *out)
{
	VkImageCreateInfo real = real_image(info->pCreateInfo);
	VkDeviceImageMemoryRequirements asked = *info;
	asked.pCreateInfo = &real;
	layer_device_of(handle)->next.GetDeviceImageMemoryRequirements(handle, &asked, out);
}

// The driver would take the layer's queue for one of its own objects.
static VKAPI_ATTR VkResult VKAPI_CALL name_object(VkDevice handle,
	const VkDebugUtilsObjectNameInfoEXT *info)
{
	return info->objectType == VK_OBJECT_TYPE_QUEUE ? VK_SUCCESS :
		layer_device_of(handle)->next.SetDebugUtilsObjectNameEXT(handle, info);
}

static VKAPI_ATTR VkResult VKAPI_CALL tag_object(VkDevice handle,
	const VkDebugUtilsObjectTagInfoEXT *info)
{
	return info->objectType == VK_OBJECT_TYPE_QUEUE ? VK_SUCCESS :
		layer_device_of(handle)->next.SetDebugUtilsObjectTagEXT(handle, info);
}

static VKAPI_ATTR void VKAPI_CALL queue_label(VkQueue queue, const VkDebugUtilsLabelEXT *label)
{
	(void)queue;
	(void)label;
}

static VKAPI_ATTR void VKAPI_CALL end_queue_label(VkQueue queue)
{
	(void)queue;
}

static VKAPI_ATTR VkResult VKAPI_CALL set_private(VkDevice handle, VkObjectType type,
	uint64_t object, VkPrivateDataSlot slot, uint64_t data)
{
	if (type == VK_OBJECT_TYPE_QUEUE)
		layer_die("vkSetPrivateData for a queue");
	return layer_device_of(handle)->next.SetPrivateData(handle, type, object, slot, data);
}

static VKAPI_ATTR void VKAPI_CALL get_private(VkDevice handle, VkObjectType type, uint64_t object,
	VkPrivateDataSlot slot, uint64_t *data)
{
	if (type == VK_OBJECT_TYPE_QUEUE)
		*data = 0;
	else
		layer_device_of(handle)->next.GetPrivateData(handle, type, object, slot, data);
}

static const layer_intercept intercepts[] = {
	LAYER_INTERCEPT(vkGetPhysicalDeviceQueueFamilyProperties, queue_families),
	LAYER_INTERCEPT(vkGetPhysicalDeviceQueueFamilyProperties2, queue_families2),
	LAYER_INTERCEPT(vkGetPhysicalDeviceQueueFamilyProperties2KHR, queue_families2),
	LAYER_INTERCEPT(vkGetPhysicalDeviceSurfaceSupportKHR, surface_support),
	LAYER_INTERCEPT(vkEnumerateDeviceExtensionProperties, device_extensions),
	LAYER_INTERCEPT(vkGetDeviceQueue, get_queue),
	LAYER_INTERCEPT(vkGetDeviceQueue2, get_queue2),
	LAYER_INTERCEPT(vkQueueSubmit, many_QueueSubmit),
	LAYER_INTERCEPT(vkQueueSubmit2, many_QueueSubmit2),
	LAYER_INTERCEPT(vkQueueSubmit2KHR, many_QueueSubmit2),
	LAYER_INTERCEPT(vkQueueBindSparse, bind_sparse),
	LAYER_INTERCEPT(vkQueueWaitIdle, many_QueueWaitIdle),
	LAYER_INTERCEPT(vkDeviceWaitIdle, many_DeviceWaitIdle),
	LAYER_INTERCEPT(vkCreateSemaphore, create_semaphore),
	LAYER_INTERCEPT(vkDestroySemaphore, destroy_semaphore),
	LAYER_INTERCEPT(vkWaitSemaphores, many_WaitSemaphores),
	LAYER_INTERCEPT(vkWaitSemaphoresKHR, many_WaitSemaphores),
	LAYER_INTERCEPT(vkGetSemaphoreCounterValue, many_GetSemaphoreCounterValue),
	LAYER_INTERCEPT(vkGetSemaphoreCounterValueKHR, many_GetSemaphoreCounterValue),
	LAYER_INTERCEPT(vkWaitForFences, many_WaitForFences),
	LAYER_INTERCEPT(vkGetFenceStatus, many_GetFenceStatus),
	LAYER_INTERCEPT(vkGetQueryPoolResults, many_GetQueryPoolResults),
	LAYER_INTERCEPT(vkCreateBuffer, create_buffer),
	LAYER_INTERCEPT(vkCreateImage, create_image),
	LAYER_INTERCEPT(vkGetDeviceBufferMemoryRequirements, buffer_needs),
	LAYER_INTERCEPT(vkGetDeviceBufferMemoryRequirementsKHR, buffer_needs),
	LAYER_INTERCEPT(vkGetDeviceImageMemoryRequirements, image_needs),
	LAYER_INTERCEPT(vkGetDeviceImageMemoryRequirementsKHR, image_needs),
	LAYER_INTERCEPT(vkSetDebugUtilsObjectNameEXT, name_object),
	LAYER_INTERCEPT(vkSetDebugUtilsObjectTagEXT, tag_object),
	LAYER_INTERCEPT(vkQueueBeginDebugUtilsLabelEXT, queue_label),
	LAYER_INTERCEPT(vkQueueInsertDebugUtilsLabelEXT, queue_label),
	LAYER_INTERCEPT(vkQueueEndDebugUtilsLabelEXT, end_queue_label),
	LAYER_INTERCEPT(vkSetPrivateData, set_private),
	LAYER_INTERCEPT(vkGetPrivateData, get_private),
};

const layer_hooks layer_this = {
	.name = "VK_LAYER_VKOMP_manyqueue",
	LAYER_INTERCEPTS(intercepts),
	.more_intercepts = many_command_intercepts,
	.create_instance = create_instance,
	.create_device = create_device,
	.instance_created = instance_created,
	.device_created = device_created,
	.device_destroying = device_destroying,
	.instance_destroying = instance_destroying,
};
