// A Vulkan layer for tests. It gives every device VK_EXT_memory_budget, with
// figures of its own. Where VKOMP_TEST_CLOCK has a number every device has
// VK_EXT_calibrated_timestamps, with that number of ticks, else none. It makes one call fail: VKOMP_TEST_FAIL is the call's
// name, "=" and the VkResult. A name with "@n" fails the n-th time from 1 on that
// it is called with that setting, else each time.
//
// VKOMP_TEST_SHARING is the queue families, as in "0,2", that each buffer must be
// shared among, or "" where it must be exclusive: vkCreateBuffer fails where it is not.
//
// It knows one instance and one device at a time.
#include "vkabi.h"

#include <stdlib.h>
#include <string.h>

typedef void (*function)(void);
typedef function (*get_proc)(void *handle, const char *name);

// What the loader hands a layer in the chain of vkCreateInstance (47) and of
// vkCreateDevice (48), as vk_layer.h has it.
typedef struct link {
	struct link *next;
	get_proc instance_proc;
	get_proc device_proc; // in the chain of vkCreateDevice
} link;
typedef struct link_info {
	int32_t sType;
	const void *pNext;
	int32_t kind; // 0: links
	link *links;
} link_info;

typedef struct negotiation {
	int32_t sType;
	void *pNext;
	uint32_t version;
	get_proc instance_proc, device_proc, physical_proc;
} negotiation;

static get_proc next_instance_proc, next_device_proc;

// Looked up while an object is made: later the loader gives this layer itself.
static struct {
	int32_t (*CreateDevice)(void *, const vkoDeviceCreateInfo *, const void *, void **);
	int32_t (*EnumerateDeviceExtensionProperties)(void *, const char *, uint32_t *,
		vkoExtensionProperties *);
	void (*GetPhysicalDeviceMemoryProperties2)(void *, vkoPhysicalDeviceMemoryProperties2 *);
	void (*GetPhysicalDeviceExternalBufferProperties)(void *, const void *,
		vkoExternalBufferProperties *);
	int32_t (*CreateBuffer)(void *, const void *, const void *, vkoHandle *);
	int32_t (*CreateCommandPool)(void *, const void *, const void *, vkoHandle *);
	int32_t (*CreateSemaphore)(void *, const void *, const void *, vkoHandle *);
	int32_t (*CreateQueryPool)(void *, const void *, const void *, vkoHandle *);
	int32_t (*CreatePipelineCache)(void *, const vkoPipelineCacheCreateInfo *, const void *, vkoHandle *);
	int32_t (*CreateComputePipelines)(void *, vkoHandle, uint32_t, const void *, const void *,
		vkoHandle *);
	int32_t (*GetPipelineCacheData)(void *, vkoHandle, size_t *, void *);
	int32_t (*MergePipelineCaches)(void *, vkoHandle, uint32_t, const vkoHandle *);
	int32_t (*GetQueryPoolResults)(void *, vkoHandle, uint32_t, uint32_t, size_t, void *, uint64_t,
		uint32_t);
	int32_t (*QueueSubmit)(void *, uint32_t, const void *, vkoHandle);
	int32_t (*AllocateMemory)(void *, const void *, const void *, vkoHandle *);
	int32_t (*BindBufferMemory)(void *, vkoHandle, vkoHandle, uint64_t);
	int32_t (*MapMemory)(void *, vkoHandle, uint64_t, uint64_t, uint32_t, void **);
	int32_t (*GetMemoryHostPointerPropertiesEXT)(void *, int32_t, const void *,
		vkoMemoryHostPointerPropertiesEXT *);
	int32_t (*FlushMappedMemoryRanges)(void *, uint32_t, const vkoMappedMemoryRange *);
	int32_t (*InvalidateMappedMemoryRanges)(void *, uint32_t, const vkoMappedMemoryRange *);
} next;

#define BUDGET "VK_EXT_memory_budget"
#define CLOCK "VK_EXT_calibrated_timestamps"

static int32_t fails(const char *call)
{
	static char setting[128];
	static long calls;
	const char *which = getenv("VKOMP_TEST_FAIL");
	size_t n = strlen(call);
	if (which == NULL || strncmp(which, call, n) != 0)
		return 0;
	if (which[n] == '=')
		return atoi(which + n + 1);
	if (which[n] != '@')
		return 0;
	if (strncmp(setting, which, sizeof setting - 1) != 0) {
		strncpy(setting, which, sizeof setting - 1);
		calls = 0;
	}
	char *end;
	return ++calls == strtol(which + n + 1, &end, 10) ? atoi(end + 1) : 0;
}

// Whether the buffer is shared as VKOMP_TEST_SHARING wants it.
static int32_t check_sharing(const vkoBufferCreateInfo *info)
{
	const char *want = getenv("VKOMP_TEST_SHARING");
	if (want == NULL)
		return 0;
	if (info->sharingMode == VKO_SHARING_MODE_EXCLUSIVE)
		return *want == '\0' ? 0 : -3;
	uint32_t count = 0;
	for (char *end; *want != '\0'; want = *end == ',' ? end + 1 : end, count++) {
		uint32_t family = (uint32_t)strtoul(want, &end, 10);
		if (end == want || count >= info->queueFamilyIndexCount ||
			info->pQueueFamilyIndices[count] != family)
			return -3;
	}
	return count == info->queueFamilyIndexCount ? 0 : -3;
}

static link *take_link(const void *chain, int32_t type)
{
	for (link_info *i = (link_info *)chain; i != NULL; i = (link_info *)i->pNext)
		if (i->sType == type && i->kind == 0) {
			link *l = i->links;
			i->links = l->next;
			return l;
		}
	abort();
}

static int32_t create_instance(const vkoInstanceCreateInfo *info, const void *allocator, void **out)
{
	next_instance_proc = take_link(info->pNext, 47)->instance_proc;
	int32_t (*create)(const vkoInstanceCreateInfo *, const void *, void **) =
		(void *)next_instance_proc(NULL, "vkCreateInstance");
	int32_t r = create(info, allocator, out);
	if (r != 0)
		return r;
#define LOOK_UP(name) next.name = (void *)next_instance_proc(*out, "vk" #name)
	LOOK_UP(CreateDevice);
	LOOK_UP(EnumerateDeviceExtensionProperties);
	LOOK_UP(GetPhysicalDeviceMemoryProperties2);
	LOOK_UP(GetPhysicalDeviceExternalBufferProperties);
#undef LOOK_UP
	return 0;
}

static int32_t create_device(void *physical, const vkoDeviceCreateInfo *info, const void *allocator,
	void **out)
{
	int32_t failure = fails("vkCreateDevice");
	if (failure != 0)
		return failure;
	next_device_proc = take_link(info->pNext, 48)->device_proc;
	const char *names[32];
	vkoDeviceCreateInfo without = *info;
	without.ppEnabledExtensionNames = names;
	without.enabledExtensionCount = 0;
	for (uint32_t k = 0; k < info->enabledExtensionCount; k++)
		if (strcmp(info->ppEnabledExtensionNames[k], BUDGET) != 0 &&
			strcmp(info->ppEnabledExtensionNames[k], CLOCK) != 0)
			names[without.enabledExtensionCount++] = info->ppEnabledExtensionNames[k];
	if (without.enabledExtensionCount == info->enabledExtensionCount)
		return -7; // the extension is to be enabled
	int32_t r = next.CreateDevice(physical, &without, allocator, out);
	if (r != 0)
		return r;
#define LOOK_UP(name) next.name = (void *)next_device_proc(*out, "vk" #name)
	LOOK_UP(CreateBuffer);
	LOOK_UP(CreateCommandPool);
	LOOK_UP(CreateSemaphore);
	LOOK_UP(CreateQueryPool);
	LOOK_UP(CreatePipelineCache);
	LOOK_UP(CreateComputePipelines);
	LOOK_UP(GetPipelineCacheData);
	LOOK_UP(MergePipelineCaches);
	LOOK_UP(GetQueryPoolResults);
	LOOK_UP(QueueSubmit);
	LOOK_UP(AllocateMemory);
	LOOK_UP(BindBufferMemory);
	LOOK_UP(MapMemory);
	LOOK_UP(GetMemoryHostPointerPropertiesEXT);
	LOOK_UP(FlushMappedMemoryRanges);
	LOOK_UP(InvalidateMappedMemoryRanges);
#undef LOOK_UP
	return 0;
}

static int32_t list_extensions(void *physical, const char *layer, uint32_t *count,
	vkoExtensionProperties *list)
{
	uint32_t room = *count;
	int32_t r = next.EnumerateDeviceExtensionProperties(physical, layer, count, list);
	if (r != 0 || layer != NULL)
		return r;
	if (list != NULL) {
		uint32_t kept = 0;
		for (uint32_t k = 0; k < *count; k++)
			if (strcmp(list[k].extensionName, CLOCK) != 0)
				list[kept++] = list[k];
		*count = kept;
	}
	const char *more[] = { BUDGET, CLOCK };
	for (int k = 0; k < 1 + (getenv("VKOMP_TEST_CLOCK") != NULL); k++, ++*count) {
		if (list == NULL)
			continue;
		if (*count == room)
			return 5;
		memset(&list[*count], 0, sizeof *list);
		strcpy(list[*count].extensionName, more[k]);
	}
	return 0;
}

static void memory_properties(void *physical, vkoPhysicalDeviceMemoryProperties2 *properties)
{
	vkoPhysicalDeviceMemoryBudgetPropertiesEXT *budget = properties->pNext;
	properties->pNext = NULL;
	next.GetPhysicalDeviceMemoryProperties2(physical, properties);
	properties->pNext = budget;
	if (budget == NULL ||
		budget->sType != VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT)
		return;
	for (uint64_t k = 0; k < 16; k++) {
		budget->heapBudget[k] = (k + 1) << 33;
		budget->heapUsage[k] = (k + 1) << 3;
	}
}

static void external_buffer(void *physical, const void *info, vkoExternalBufferProperties *properties)
{
	next.GetPhysicalDeviceExternalBufferProperties(physical, info, properties);
	int32_t features = fails("externalMemoryFeatures");
	if (features != 0)
		properties->externalMemoryProperties.externalMemoryFeatures = (uint32_t)features;
}

static int32_t time_domains(void *physical, uint32_t *count, int32_t *domains)
{
	(void)physical;
	domains[0] = fails("timeDomain") != 0 ? 1 : VKO_TIME_DOMAIN_DEVICE_EXT;
	*count = 1;
	return 0;
}

static int32_t calibrated_timestamps(void *d, uint32_t count, const vkoCalibratedTimestampInfoEXT *infos,
	uint64_t *ticks, uint64_t *deviation)
{
	(void)d;
	if (count != 1 || infos->sType != VKO_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT ||
		infos->timeDomain != VKO_TIME_DOMAIN_DEVICE_EXT)
		return -13;
	*ticks = strtoull(getenv("VKOMP_TEST_CLOCK"), NULL, 0);
	*deviation = 1;
	return fails("vkGetCalibratedTimestampsEXT");
}

static int32_t create_query_pool(void *d, const void *info, const void *allocator, vkoHandle *out)
{
	int32_t failure = fails("vkCreateQueryPool");
	return failure != 0 ? failure : next.CreateQueryPool(d, info, allocator, out);
}

static int32_t create_pipeline_cache(void *d, const vkoPipelineCacheCreateInfo *info, const void *allocator,
	vkoHandle *out)
{
	int32_t failure = fails("vkCreatePipelineCache");
	if (failure == 0 && info->initialDataSize == 0)
		failure = fails("emptyPipelineCache");
	return failure != 0 ? failure : next.CreatePipelineCache(d, info, allocator, out);
}

static int32_t create_compute_pipelines(void *d, vkoHandle cache, uint32_t count, const void *infos,
	const void *allocator, vkoHandle *out)
{
	int32_t failure = cache == 0 ? fails("pipelineWithoutCache") : 0;
	return failure != 0 ? failure : next.CreateComputePipelines(d, cache, count, infos, allocator, out);
}

static int32_t pipeline_cache_data(void *d, vkoHandle cache, size_t *size, void *data)
{
	int32_t failure = fails("vkGetPipelineCacheData");
	return failure != 0 ? failure : next.GetPipelineCacheData(d, cache, size, data);
}

static int32_t merge_pipeline_caches(void *d, vkoHandle into, uint32_t count, const vkoHandle *from)
{
	int32_t failure = fails("vkMergePipelineCaches");
	return failure != 0 ? failure : next.MergePipelineCaches(d, into, count, from);
}

static int32_t query_results(void *d, vkoHandle pool, uint32_t first, uint32_t count, size_t bytes,
	void *data, uint64_t stride, uint32_t flags)
{
	int32_t failure = fails("vkGetQueryPoolResults");
	return failure != 0 ? failure :
		next.GetQueryPoolResults(d, pool, first, count, bytes, data, stride, flags);
}

static int32_t create_command_pool(void *d, const void *info, const void *allocator, vkoHandle *out)
{
	int32_t failure = fails("vkCreateCommandPool");
	return failure != 0 ? failure : next.CreateCommandPool(d, info, allocator, out);
}

static int32_t create_semaphore(void *d, const void *info, const void *allocator, vkoHandle *out)
{
	int32_t failure = fails("vkCreateSemaphore");
	return failure != 0 ? failure : next.CreateSemaphore(d, info, allocator, out);
}

static int32_t queue_submit(void *q, uint32_t count, const void *infos, vkoHandle fence)
{
	int32_t failure = fails("vkQueueSubmit");
	return failure != 0 ? failure : next.QueueSubmit(q, count, infos, fence);
}

static int32_t create_buffer(void *d, const void *info, const void *allocator, vkoHandle *out)
{
	int32_t failure = fails("vkCreateBuffer");
	if (failure == 0)
		failure = check_sharing(info);
	return failure != 0 ? failure : next.CreateBuffer(d, info, allocator, out);
}

static int32_t allocate_memory(void *d, const void *info, const void *allocator, vkoHandle *out)
{
	int32_t failure = fails("vkAllocateMemory");
	return failure != 0 ? failure : next.AllocateMemory(d, info, allocator, out);
}

static int32_t bind_buffer(void *d, vkoHandle buffer, vkoHandle memory, uint64_t offset)
{
	int32_t failure = fails("vkBindBufferMemory");
	return failure != 0 ? failure : next.BindBufferMemory(d, buffer, memory, offset);
}

static int32_t map_memory(void *d, vkoHandle memory, uint64_t offset, uint64_t size, uint32_t flags,
	void **out)
{
	int32_t failure = fails("vkMapMemory");
	return failure != 0 ? failure : next.MapMemory(d, memory, offset, size, flags, out);
}

static int32_t host_pointer(void *d, int32_t type, const void *host,
	vkoMemoryHostPointerPropertiesEXT *properties)
{
	int32_t failure = fails("vkGetMemoryHostPointerPropertiesEXT");
	if (failure != 0)
		return failure;
	int32_t r = next.GetMemoryHostPointerPropertiesEXT(d, type, host, properties);
	if (fails("memoryTypeBits") != 0)
		properties->memoryTypeBits = 0;
	return r;
}

// Validation does not look for empty ranges.
static int32_t check_ranges(uint32_t count, const vkoMappedMemoryRange *ranges)
{
	for (uint32_t k = 0; k < count; k++)
		if (ranges[k].size == 0)
			return -13;
	return count == 0 ? -13 : 0;
}

static int32_t flush(void *d, uint32_t count, const vkoMappedMemoryRange *ranges)
{
	int32_t failure = fails("vkFlushMappedMemoryRanges");
	if (failure == 0)
		failure = check_ranges(count, ranges);
	return failure != 0 ? failure : next.FlushMappedMemoryRanges(d, count, ranges);
}

static int32_t invalidate(void *d, uint32_t count, const vkoMappedMemoryRange *ranges)
{
	int32_t failure = fails("vkInvalidateMappedMemoryRanges");
	if (failure == 0)
		failure = check_ranges(count, ranges);
	return failure != 0 ? failure : next.InvalidateMappedMemoryRanges(d, count, ranges);
}

static function device_proc(void *d, const char *name)
{
	static const struct {
		const char *name;
		function own;
	} calls[] = {
		{ "vkCreateBuffer", (function)create_buffer },
		{ "vkCreateCommandPool", (function)create_command_pool },
		{ "vkCreateSemaphore", (function)create_semaphore },
		{ "vkCreateQueryPool", (function)create_query_pool },
		{ "vkCreatePipelineCache", (function)create_pipeline_cache },
		{ "vkCreateComputePipelines", (function)create_compute_pipelines },
		{ "vkGetPipelineCacheData", (function)pipeline_cache_data },
		{ "vkMergePipelineCaches", (function)merge_pipeline_caches },
		{ "vkGetQueryPoolResults", (function)query_results },
		{ "vkGetCalibratedTimestampsEXT", (function)calibrated_timestamps },
		{ "vkQueueSubmit", (function)queue_submit },
		{ "vkAllocateMemory", (function)allocate_memory },
		{ "vkBindBufferMemory", (function)bind_buffer },
		{ "vkMapMemory", (function)map_memory },
		{ "vkGetMemoryHostPointerPropertiesEXT", (function)host_pointer },
		{ "vkFlushMappedMemoryRanges", (function)flush },
		{ "vkInvalidateMappedMemoryRanges", (function)invalidate },
		{ "vkGetDeviceProcAddr", (function)device_proc },
	};
	for (size_t k = 0; k < sizeof calls / sizeof calls[0]; k++)
		if (strcmp(name, calls[k].name) == 0)
			return calls[k].own;
	return next_device_proc(d, name);
}

static function instance_proc(void *i, const char *name)
{
	static const struct {
		const char *name;
		function own;
	} calls[] = {
		{ "vkGetInstanceProcAddr", (function)instance_proc },
		{ "vkGetDeviceProcAddr", (function)device_proc },
		{ "vkCreateInstance", (function)create_instance },
		{ "vkCreateDevice", (function)create_device },
		{ "vkEnumerateDeviceExtensionProperties", (function)list_extensions },
		{ "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT", (function)time_domains },
		{ "vkGetPhysicalDeviceMemoryProperties2", (function)memory_properties },
		{ "vkGetPhysicalDeviceExternalBufferProperties", (function)external_buffer },
	};
	for (size_t k = 0; k < sizeof calls / sizeof calls[0]; k++)
		if (strcmp(name, calls[k].name) == 0)
			return calls[k].own;
	return next_instance_proc(i, name);
}

int32_t vkNegotiateLoaderLayerInterfaceVersion(negotiation *n)
{
	n->version = 2;
	n->instance_proc = (get_proc)instance_proc;
	n->device_proc = (get_proc)device_proc;
	n->physical_proc = NULL;
	return 0;
}
