// VK_LAYER_VKOMP_fault: makes chosen calls fail. A call is chosen by its command and
// its number, counted from 1 for each instance and over all of its devices and threads:
//
//	VKOMP_FAULT          what fails, as in "vkQueueSubmit@3=-4,vkWaitSemaphores@1+2=-1":
//	                     the third submission is VK_ERROR_DEVICE_LOST, the first two
//	                     waits are VK_ERROR_OUT_OF_HOST_MEMORY. Without "+k" one call
//	                     fails; with a bare "+" each from that number on does.
//	VKOMP_FAULT_CONTROL  a file of CONTROL_BYTES bytes, all 0 at first, which program and
//	                     layer share (see control): a test chooses calls while the
//	                     program runs, and sees which there were. VKOMP_FAULT is not
//	                     looked at then.
//
// Both are read by vkCreateInstance. A failing call does not reach the driver and returns
// VK_NULL_HANDLE instead of handles.
//
// VK_ERROR_DEVICE_LOST is permanent: each later command of the same VkDevice that may
// return it does, unless its call was chosen to fail with another result, and waits that
// have begun end with it. As on a real device, work that was submitted before may go on,
// including that of a vkQueueSubmit that returned the loss. Only vkDeviceWaitIdle and
// vkQueueWaitIdle, which return the loss too, wait until the driver is idle. For this the layer
// signals what submissions wait for and nobody signals any more: see fault_rest.h.
#define _GNU_SOURCE
#include "fault_rest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// Commands that can fail.
#define COMMANDS(F)                                                                            \
	F(CreateInstance)                                                                      \
	F(EnumeratePhysicalDevices)                                                            \
	F(EnumerateDeviceExtensionProperties)                                                  \
	F(CreateDevice)                                                                        \
	F(QueueSubmit)                                                                         \
	F(QueueSubmit2)                                                                        \
	F(QueueWaitIdle)                                                                       \
	F(DeviceWaitIdle)                                                                      \
	F(CreateSemaphore)                                                                     \
	F(GetSemaphoreCounterValue)                                                            \
	F(WaitSemaphores)                                                                      \
	F(SignalSemaphore)                                                                     \
	F(GetSemaphoreFdKHR)                                                                   \
	F(ImportSemaphoreFdKHR)                                                                \
	F(CreateFence)                                                                         \
	F(ResetFences)                                                                         \
	F(GetFenceStatus)                                                                      \
	F(WaitForFences)                                                                       \
	F(CreateQueryPool)                                                                     \
	F(GetQueryPoolResults)                                                                 \
	F(GetCalibratedTimestampsEXT)                                                          \
	F(AllocateMemory)                                                                      \
	F(MapMemory)                                                                           \
	F(FlushMappedMemoryRanges)                                                             \
	F(InvalidateMappedMemoryRanges)                                                        \
	F(GetMemoryHostPointerPropertiesEXT)                                                   \
	F(GetMemoryFdKHR)                                                                      \
	F(CreateBuffer)                                                                        \
	F(BindBufferMemory)                                                                    \
	F(CreateShaderModule)                                                                  \
	F(CreateComputePipelines)                                                              \
	F(CreatePipelineCache)                                                                 \
	F(GetPipelineCacheData)                                                                \
	F(MergePipelineCaches)                                                                 \
	F(CreatePipelineLayout)                                                                \
	F(CreateDescriptorSetLayout)                                                           \
	F(CreateDescriptorPool)                                                                \
	F(ResetDescriptorPool)                                                                 \
	F(AllocateDescriptorSets)                                                              \
	F(CreateCommandPool)                                                                   \
	F(ResetCommandPool)                                                                    \
	F(AllocateCommandBuffers)                                                              \
	F(BeginCommandBuffer)                                                                  \
	F(EndCommandBuffer)                                                                    \
	F(ResetCommandBuffer)

enum command {
#define COMMAND(name) COMMAND_##name,
	COMMANDS(COMMAND)
#undef COMMAND
	COMMAND_COUNT
};

static const char *const command_names[] = {
#define COMMAND(name) "vk" #name,
	COMMANDS(COMMAND)
#undef COMMAND
};

// The layout of the file VKOMP_FAULT_CONTROL, in the machine's byte order. An entry belongs to
// the command in its name, and is free while the name is empty; the layer adds entries for its
// commands that have none. To choose calls while the program runs, set until to 0, then from and
// result, then until.
typedef struct entry {
	char name[48];              // ended by a zero
	_Atomic uint64_t calls;     // so far
	_Atomic uint64_t from, until; // calls from, from+1, ..., until-1 fail
	_Atomic uint64_t failed;    // how many were made to fail
	_Atomic int64_t result;     // the VkResult
} entry;

enum { ENTRIES = 64, CONTROL_BYTES = 64 + ENTRIES * sizeof(entry) };

typedef struct control {
	_Atomic uint64_t instances; // how many were made
	uint64_t reserved[7];
	entry entries[ENTRIES];
} control;
_Static_assert(sizeof(entry) == 88 && sizeof(control) == CONTROL_BYTES, "the tests know the layout");
_Static_assert((int)COMMAND_COUNT <= ENTRIES, "an entry for each command");

typedef struct faults {
	control *control;
	entry *commands[COMMAND_COUNT];
} faults;

// The faults of the instance that this thread is creating.
static _Thread_local faults *created;

static control *open_control(void)
{
	const char *path = getenv("VKOMP_FAULT_CONTROL");
	if (path == NULL || *path == '\0') {
		void *own = mmap(NULL, CONTROL_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (own == MAP_FAILED)
			layer_die("no memory for %zu bytes", (size_t)CONTROL_BYTES);
		return own;
	}
	int file = open(path, O_RDWR | O_CLOEXEC);
	struct stat status;
	if (file < 0 || fstat(file, &status) < 0 || status.st_size != CONTROL_BYTES)
		layer_die("VKOMP_FAULT_CONTROL=%s: not a file of %zu bytes", path, (size_t)CONTROL_BYTES);
	void *at = mmap(NULL, CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (at == MAP_FAILED)
		layer_die("VKOMP_FAULT_CONTROL=%s: %s", path, strerror(errno));
	close(file);
	return at;
}

static entry *find_entry(control *c, const char *name)
{
	for (size_t k = 0; k < ENTRIES; k++) {
		entry *e = &c->entries[k];
		if (e->name[0] == '\0')
			strncpy(e->name, name, sizeof e->name - 1);
		if (strcmp(e->name, name) == 0)
			return e;
	}
	layer_die("no entry is left for %s", name);
}

static bool known(const char *name)
{
	for (size_t k = 0; k < COMMAND_COUNT; k++)
		if (strcmp(command_names[k], name) == 0)
			return true;
	return false;
}

// Parses VKOMP_FAULT.
static void choose(control *c, const char *text)
{
	for (const char *t = text; *t != '\0';) {
		char name[48], *end;
		size_t n = strcspn(t, "@");
		if (n >= sizeof name || t[n] != '@')
			layer_die("VKOMP_FAULT=%s: not like vkQueueSubmit@3+1=-4", text);
		memcpy(name, t, n);
		name[n] = '\0';
		if (!known(name))
			layer_die("VKOMP_FAULT=%s: %s is not among the layer's commands", text, name);
		uint64_t from = strtoull(t + n + 1, &end, 10), count = 1;
		if (*end == '+') {
			count = end[1] == '=' ? UINT64_MAX - from : strtoull(end + 1, &end, 10);
			end += *end == '+';
		}
		long result = *end == '=' ? strtol(end + 1, &end, 10) : 0;
		if (from == 0 || count == 0 || result == 0 || (*end != ',' && *end != '\0'))
			layer_die("VKOMP_FAULT=%s: not like vkQueueSubmit@3+1=-4", text);
		entry *e = find_entry(c, name);
		e->from = from;
		e->until = from + count;
		e->result = result;
		t = end + (*end == ',');
	}
}

static faults *open_faults(void)
{
	faults *f = layer_allocate(sizeof *f);
	f->control = open_control();
	const char *path = getenv("VKOMP_FAULT_CONTROL"), *text = getenv("VKOMP_FAULT");
	if ((path == NULL || *path == '\0') && text != NULL)
		choose(f->control, text);
	for (size_t k = 0; k < ENTRIES && f->control->entries[k].name[0] != '\0'; k++)
		if (!known(f->control->entries[k].name))
			layer_die("%s is not among the layer's commands", f->control->entries[k].name);
	for (size_t k = 0; k < COMMAND_COUNT; k++)
		f->commands[k] = find_entry(f->control, command_names[k]);
	atomic_fetch_add(&f->control->instances, 1);
	return f;
}

static void close_faults(faults *f)
{
	munmap(f->control, CONTROL_BYTES);
	free(f);
}

// Whether this call of a command fails, and with which result.
static bool chosen(const faults *f, enum command command, VkResult *result)
{
	entry *e = f->commands[command];
	uint64_t call = atomic_fetch_add(&e->calls, 1) + 1;
	uint64_t until = atomic_load(&e->until), from = atomic_load(&e->from);
	if (call < from || call >= until)
		return false;
	*result = (VkResult)atomic_load(&e->result);
	atomic_fetch_add(&e->failed, 1);
	return true;
}

typedef struct device {
	const faults *faults;
	atomic_bool lost;
	rest rest;
} device;

static bool lost(const layer_device *d) { return atomic_load(&((device *)d->own)->lost); }

static bool fails(const layer_device *d, enum command command, VkResult *result)
{
	device *own = d->own;
	if (!chosen(own->faults, command, result))
		return false;
	if (*result == VK_ERROR_DEVICE_LOST)
		atomic_store(&own->lost, true);
	return true;
}

// Like fails, for a command that a lost device refuses.
static bool refuses(const layer_device *d, enum command command, VkResult *result)
{
	bool was = lost(d), fault = fails(d, command, result);
	if (was && !fault)
		*result = VK_ERROR_DEVICE_LOST;
	return was || fault;
}

static VkResult create_instance(const VkInstanceCreateInfo *info,
	const VkAllocationCallbacks *allocator, VkInstance *out, PFN_vkCreateInstance next)
{
	created = open_faults();
	VkResult r;
	if (!chosen(created, COMMAND_CreateInstance, &r))
		r = next(info, allocator, out);
	else
		*out = VK_NULL_HANDLE;
	if (r != VK_SUCCESS)
		close_faults(created);
	return r;
}

static void instance_created(layer_instance *i, const VkInstanceCreateInfo *info)
{
	(void)info;
	i->own = created;
}

static void instance_destroying(layer_instance *i) { close_faults(i->own); }

static VkResult create_device(layer_instance *i, VkPhysicalDevice physical,
	const VkDeviceCreateInfo *info, const VkAllocationCallbacks *allocator, VkDevice *out,
	PFN_vkCreateDevice next)
{
	VkResult r;
	if (!chosen(i->own, COMMAND_CreateDevice, &r))
		return next(physical, info, allocator, out);
	*out = VK_NULL_HANDLE;
	return r;
}

static VkResult device_created(layer_device *d, const VkDeviceCreateInfo *info)
{
	(void)info;
	device *own = layer_allocate(sizeof *own);
	own->faults = d->instance->own;
	d->own = own;
	return VK_SUCCESS;
}

static void device_destroying(layer_device *d)
{
	device *own = d->own;
	rest_free(&own->rest);
	free(own);
}

static VKAPI_ATTR VkResult VKAPI_CALL list_devices(VkInstance of, uint32_t *count,
	VkPhysicalDevice *devices)
{
	layer_instance *i = layer_instance_of(of);
	VkResult r;
	if (!chosen(i->own, COMMAND_EnumeratePhysicalDevices, &r))
		return i->next.EnumeratePhysicalDevices(of, count, devices);
	*count = 0; // the loader takes what is there for devices, whatever the result
	return r;
}

static VKAPI_ATTR VkResult VKAPI_CALL list_extensions(VkPhysicalDevice of, const char *layer,
	uint32_t *count, VkExtensionProperties *extensions)
{
	layer_instance *i = layer_instance_of(of);
	VkResult r;
	return chosen(i->own, COMMAND_EnumerateDeviceExtensionProperties, &r) ? r :
		i->next.EnumerateDeviceExtensionProperties(of, layer, count, extensions);
}

// A command whose first parameter, of, is an object of the device. test is fails, or refuses
// for a command that returns the loss of a device; failed is executed on failure.
#define CALL(name, test, parameters, arguments, failed)                                        \
	static VKAPI_ATTR VkResult VKAPI_CALL call_##name parameters                           \
	{                                                                                      \
		layer_device *d = layer_device_of(of);                                         \
		VkResult r;                                                                    \
		if (!test(d, COMMAND_##name, &r))                                              \
			return d->next.name arguments;                                         \
		failed;                                                                        \
		return r;                                                                      \
	}
// A command that creates an object.
#define MAKES(name, information, object)                                                       \
	CALL(name, fails, (VkDevice of, const information *info,                               \
		const VkAllocationCallbacks *allocator, object *out),                          \
		(of, info, allocator, out), *out = VK_NULL_HANDLE)
// A command that creates several objects.
#define MAKES_ALL(n)                                                                           \
	for (uint32_t k = 0; k < (n); k++)                                                     \
		out[k] = VK_NULL_HANDLE

MAKES(CreateFence, VkFenceCreateInfo, VkFence)
MAKES(CreateQueryPool, VkQueryPoolCreateInfo, VkQueryPool)
MAKES(AllocateMemory, VkMemoryAllocateInfo, VkDeviceMemory)
MAKES(CreateBuffer, VkBufferCreateInfo, VkBuffer)
MAKES(CreateShaderModule, VkShaderModuleCreateInfo, VkShaderModule)
MAKES(CreatePipelineLayout, VkPipelineLayoutCreateInfo, VkPipelineLayout)
MAKES(CreateDescriptorSetLayout, VkDescriptorSetLayoutCreateInfo, VkDescriptorSetLayout)
MAKES(CreateDescriptorPool, VkDescriptorPoolCreateInfo, VkDescriptorPool)
MAKES(CreateCommandPool, VkCommandPoolCreateInfo, VkCommandPool)
MAKES(CreatePipelineCache, VkPipelineCacheCreateInfo, VkPipelineCache)
CALL(GetPipelineCacheData, fails, (VkDevice of, VkPipelineCache cache, size_t *size, void *data),
	(of, cache, size, data),)
CALL(MergePipelineCaches, fails, (VkDevice of, VkPipelineCache into, uint32_t count,
	const VkPipelineCache *from), (of, into, count, from),)
CALL(CreateComputePipelines, fails, (VkDevice of, VkPipelineCache cache, uint32_t count,
	const VkComputePipelineCreateInfo *infos, const VkAllocationCallbacks *allocator,
	VkPipeline *out), (of, cache, count, infos, allocator, out), MAKES_ALL(count))
CALL(AllocateDescriptorSets, fails, (VkDevice of, const VkDescriptorSetAllocateInfo *info,
	VkDescriptorSet *out), (of, info, out), MAKES_ALL(info->descriptorSetCount))
CALL(AllocateCommandBuffers, fails, (VkDevice of, const VkCommandBufferAllocateInfo *info,
	VkCommandBuffer *out), (of, info, out), MAKES_ALL(info->commandBufferCount))
CALL(GetMemoryFdKHR, fails, (VkDevice of, const VkMemoryGetFdInfoKHR *info, int *fd),
	(of, info, fd),)
CALL(GetMemoryHostPointerPropertiesEXT, fails, (VkDevice of,
	VkExternalMemoryHandleTypeFlagBits type, const void *host,
	VkMemoryHostPointerPropertiesEXT *properties), (of, type, host, properties),)
CALL(GetCalibratedTimestampsEXT, fails, (VkDevice of, uint32_t count,
	const VkCalibratedTimestampInfoEXT *infos, uint64_t *ticks, uint64_t *deviation),
	(of, count, infos, ticks, deviation),)
CALL(ResetFences, fails, (VkDevice of, uint32_t count, const VkFence *fences),
	(of, count, fences),)
CALL(MapMemory, fails, (VkDevice of, VkDeviceMemory memory, VkDeviceSize offset,
	VkDeviceSize size, VkMemoryMapFlags flags, void **at),
	(of, memory, offset, size, flags, at),)
CALL(FlushMappedMemoryRanges, fails, (VkDevice of, uint32_t count,
	const VkMappedMemoryRange *ranges), (of, count, ranges),)
CALL(InvalidateMappedMemoryRanges, fails, (VkDevice of, uint32_t count,
	const VkMappedMemoryRange *ranges), (of, count, ranges),)
CALL(BindBufferMemory, fails, (VkDevice of, VkBuffer buffer, VkDeviceMemory memory,
	VkDeviceSize offset), (of, buffer, memory, offset),)
CALL(ResetDescriptorPool, fails, (VkDevice of, VkDescriptorPool pool,
	VkDescriptorPoolResetFlags flags), (of, pool, flags),)
CALL(ResetCommandPool, fails, (VkDevice of, VkCommandPool pool, VkCommandPoolResetFlags flags),
	(of, pool, flags),)
CALL(BeginCommandBuffer, fails, (VkCommandBuffer of, const VkCommandBufferBeginInfo *info),
	(of, info),)
CALL(EndCommandBuffer, fails, (VkCommandBuffer of), (of),)
CALL(ResetCommandBuffer, fails, (VkCommandBuffer of, VkCommandBufferResetFlags flags),
	(of, flags),)
CALL(GetSemaphoreCounterValue, refuses, (VkDevice of, VkSemaphore semaphore, uint64_t *value),
	(of, semaphore, value),)
CALL(GetFenceStatus, refuses, (VkDevice of, VkFence fence), (of, fence),)
CALL(GetQueryPoolResults, refuses, (VkDevice of, VkQueryPool pool, uint32_t first,
	uint32_t count, size_t bytes, void *data, VkDeviceSize stride, VkQueryResultFlags flags),
	(of, pool, first, count, bytes, data, stride, flags),)

// A submission that returns the loss may still run. Whether the device is lost, and what is submitted
// to it, is found out under one lock, so that nothing is submitted after a look at all that was.
#define SUBMITS(name, information, record)                                                     \
	static VKAPI_ATTR VkResult VKAPI_CALL call_##name(VkQueue of, uint32_t count,          \
		const information *infos, VkFence fence)                                       \
	{                                                                                      \
		layer_device *d = layer_device_of(of);                                         \
		rest *all = &((device *)d->own)->rest;                                         \
		pthread_mutex_lock(&all->lock);                                                \
		bool was = lost(d);                                                            \
		VkResult failure = VK_SUCCESS, r = VK_SUCCESS;                                 \
		bool refused = refuses(d, COMMAND_##name, &failure);                           \
		if (!refused || (failure == VK_ERROR_DEVICE_LOST && !was)) {                   \
			r = d->next.name(of, count, infos, fence);                             \
			if (r == VK_SUCCESS)                                                   \
				record(d, all, of, count, infos);                              \
		}                                                                              \
		pthread_mutex_unlock(&all->lock);                                              \
		return refused ? failure : r;                                                  \
	}
SUBMITS(QueueSubmit, VkSubmitInfo, rest_submitted)
SUBMITS(QueueSubmit2, VkSubmitInfo2, rest_submitted2)

static VKAPI_ATTR VkResult VKAPI_CALL call_CreateSemaphore(VkDevice of,
	const VkSemaphoreCreateInfo *info, const VkAllocationCallbacks *allocator, VkSemaphore *out)
{
	layer_device *d = layer_device_of(of);
	VkResult r;
	if (fails(d, COMMAND_CreateSemaphore, &r)) {
		*out = VK_NULL_HANDLE;
		return r;
	}
	r = d->next.CreateSemaphore(of, info, allocator, out);
	if (r == VK_SUCCESS)
		rest_created(&((device *)d->own)->rest, info, *out);
	return r;
}

static VKAPI_ATTR void VKAPI_CALL call_DestroySemaphore(VkDevice of, VkSemaphore semaphore,
	const VkAllocationCallbacks *allocator)
{
	layer_device *d = layer_device_of(of);
	rest_forget(&((device *)d->own)->rest, semaphore);
	d->next.DestroySemaphore(of, semaphore, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL call_SignalSemaphore(VkDevice of,
	const VkSemaphoreSignalInfo *info)
{
	layer_device *d = layer_device_of(of);
	device *own = d->own;
	VkResult r;
	return fails(d, COMMAND_SignalSemaphore, &r) ? r : rest_signal(d, &own->rest, info, &own->lost);
}

static VKAPI_ATTR VkResult VKAPI_CALL call_GetSemaphoreFdKHR(VkDevice of,
	const VkSemaphoreGetFdInfoKHR *info, int *fd)
{
	layer_device *d = layer_device_of(of);
	VkResult r;
	if (fails(d, COMMAND_GetSemaphoreFdKHR, &r))
		return r;
	rest_forget(&((device *)d->own)->rest, info->semaphore);
	return d->next.GetSemaphoreFdKHR(of, info, fd);
}

static VKAPI_ATTR VkResult VKAPI_CALL call_ImportSemaphoreFdKHR(VkDevice of,
	const VkImportSemaphoreFdInfoKHR *info)
{
	layer_device *d = layer_device_of(of);
	VkResult r;
	if (fails(d, COMMAND_ImportSemaphoreFdKHR, &r))
		return r;
	rest_forget(&((device *)d->own)->rest, info->semaphore);
	return d->next.ImportSemaphoreFdKHR(of, info);
}

// These wait until the driver is idle even if the device is lost.
#define IDLES(name, object, queue)                                                             \
	static VKAPI_ATTR VkResult VKAPI_CALL call_##name(object of)                           \
	{                                                                                      \
		layer_device *d = layer_device_of(of);                                         \
		device *own = d->own;                                                          \
		VkResult r;                                                                    \
		if (fails(d, COMMAND_##name, &r) && r != VK_ERROR_DEVICE_LOST)                 \
			return lost(d) ? VK_ERROR_DEVICE_LOST : r;                             \
		rest_await(d, &own->rest, queue, &own->lost);                                  \
		r = d->next.name(of);                                                          \
		return lost(d) ? VK_ERROR_DEVICE_LOST : r;                                     \
	}
IDLES(DeviceWaitIdle, VkDevice, NULL)
IDLES(QueueWaitIdle, VkQueue, of)

// How long a wait continues after a loss, in nanoseconds.
enum { STEP = 2000000 };

// A wait in steps, the last of which is ended by a loss.
#define WAIT(d, timeout, call)                                                                 \
	for (uint64_t left = (timeout);;) {                                                    \
		uint64_t step = left < STEP ? left : STEP;                                     \
		VkResult r = (call);                                                           \
		if (lost(d))                                                                   \
			return VK_ERROR_DEVICE_LOST;                                           \
		if (r != VK_TIMEOUT || step == left)                                           \
			return r;                                                              \
		if (left != UINT64_MAX)                                                        \
			left -= step;                                                          \
	}

static VKAPI_ATTR VkResult VKAPI_CALL call_WaitSemaphores(VkDevice of,
	const VkSemaphoreWaitInfo *info, uint64_t timeout)
{
	layer_device *d = layer_device_of(of);
	VkResult failure;
	if (refuses(d, COMMAND_WaitSemaphores, &failure))
		return failure;
	WAIT(d, timeout, d->next.WaitSemaphores(of, info, step))
}

static VKAPI_ATTR VkResult VKAPI_CALL call_WaitForFences(VkDevice of, uint32_t count,
	const VkFence *fences, VkBool32 all, uint64_t timeout)
{
	layer_device *d = layer_device_of(of);
	VkResult failure;
	if (refuses(d, COMMAND_WaitForFences, &failure))
		return failure;
	WAIT(d, timeout, d->next.WaitForFences(of, count, fences, all, step))
}

static const layer_intercept intercepts[] = {
	LAYER_INTERCEPT(vkEnumeratePhysicalDevices, list_devices),
	LAYER_INTERCEPT(vkEnumerateDeviceExtensionProperties, list_extensions),
	LAYER_INTERCEPT(vkQueueSubmit, call_QueueSubmit),
	LAYER_INTERCEPT(vkQueueSubmit2, call_QueueSubmit2),
	LAYER_INTERCEPT(vkQueueSubmit2KHR, call_QueueSubmit2),
	LAYER_INTERCEPT(vkQueueWaitIdle, call_QueueWaitIdle),
	LAYER_INTERCEPT(vkDeviceWaitIdle, call_DeviceWaitIdle),
	LAYER_INTERCEPT(vkCreateSemaphore, call_CreateSemaphore),
	LAYER_INTERCEPT(vkDestroySemaphore, call_DestroySemaphore),
	LAYER_INTERCEPT(vkGetSemaphoreCounterValue, call_GetSemaphoreCounterValue),
	LAYER_INTERCEPT(vkGetSemaphoreCounterValueKHR, call_GetSemaphoreCounterValue),
	LAYER_INTERCEPT(vkWaitSemaphores, call_WaitSemaphores),
	LAYER_INTERCEPT(vkWaitSemaphoresKHR, call_WaitSemaphores),
	LAYER_INTERCEPT(vkSignalSemaphore, call_SignalSemaphore),
	LAYER_INTERCEPT(vkSignalSemaphoreKHR, call_SignalSemaphore),
	LAYER_INTERCEPT(vkGetSemaphoreFdKHR, call_GetSemaphoreFdKHR),
	LAYER_INTERCEPT(vkImportSemaphoreFdKHR, call_ImportSemaphoreFdKHR),
	LAYER_INTERCEPT(vkCreateFence, call_CreateFence),
	LAYER_INTERCEPT(vkResetFences, call_ResetFences),
	LAYER_INTERCEPT(vkGetFenceStatus, call_GetFenceStatus),
	LAYER_INTERCEPT(vkWaitForFences, call_WaitForFences),
	LAYER_INTERCEPT(vkCreateQueryPool, call_CreateQueryPool),
	LAYER_INTERCEPT(vkGetQueryPoolResults, call_GetQueryPoolResults),
	LAYER_INTERCEPT(vkGetCalibratedTimestampsEXT, call_GetCalibratedTimestampsEXT),
	LAYER_INTERCEPT(vkAllocateMemory, call_AllocateMemory),
	LAYER_INTERCEPT(vkMapMemory, call_MapMemory),
	LAYER_INTERCEPT(vkFlushMappedMemoryRanges, call_FlushMappedMemoryRanges),
	LAYER_INTERCEPT(vkInvalidateMappedMemoryRanges, call_InvalidateMappedMemoryRanges),
	LAYER_INTERCEPT(vkGetMemoryHostPointerPropertiesEXT, call_GetMemoryHostPointerPropertiesEXT),
	LAYER_INTERCEPT(vkGetMemoryFdKHR, call_GetMemoryFdKHR),
	LAYER_INTERCEPT(vkCreateBuffer, call_CreateBuffer),
	LAYER_INTERCEPT(vkBindBufferMemory, call_BindBufferMemory),
	LAYER_INTERCEPT(vkCreateShaderModule, call_CreateShaderModule),
	LAYER_INTERCEPT(vkCreateComputePipelines, call_CreateComputePipelines),
	LAYER_INTERCEPT(vkCreatePipelineCache, call_CreatePipelineCache),
	LAYER_INTERCEPT(vkGetPipelineCacheData, call_GetPipelineCacheData),
	LAYER_INTERCEPT(vkMergePipelineCaches, call_MergePipelineCaches),
	LAYER_INTERCEPT(vkCreatePipelineLayout, call_CreatePipelineLayout),
	LAYER_INTERCEPT(vkCreateDescriptorSetLayout, call_CreateDescriptorSetLayout),
	LAYER_INTERCEPT(vkCreateDescriptorPool, call_CreateDescriptorPool),
	LAYER_INTERCEPT(vkResetDescriptorPool, call_ResetDescriptorPool),
	LAYER_INTERCEPT(vkAllocateDescriptorSets, call_AllocateDescriptorSets),
	LAYER_INTERCEPT(vkCreateCommandPool, call_CreateCommandPool),
	LAYER_INTERCEPT(vkResetCommandPool, call_ResetCommandPool),
	LAYER_INTERCEPT(vkAllocateCommandBuffers, call_AllocateCommandBuffers),
	LAYER_INTERCEPT(vkBeginCommandBuffer, call_BeginCommandBuffer),
	LAYER_INTERCEPT(vkEndCommandBuffer, call_EndCommandBuffer),
	LAYER_INTERCEPT(vkResetCommandBuffer, call_ResetCommandBuffer),
};

const layer_hooks layer_this = {
	.name = "VK_LAYER_VKOMP_fault",
	LAYER_INTERCEPTS(intercepts),
	.create_instance = create_instance,
	.create_device = create_device,
	.instance_created = instance_created,
	.device_created = device_created,
	.device_destroying = device_destroying,
	.instance_destroying = instance_destroying,
};
