// vgpu takes the device for its own: it destroys it, waits for all of its queues, and
// submits without a lock. Its binding therefore gets these functions instead of the
// loader's. They differ only on threads that run vgpu's code, and there only for the
// device that was adopted: vkomp's binding has the same names in C, and the linker makes
// one table of both.

#include "hook.h"

#include <stddef.h>
#include <string.h>

#include "_cgo_export.h"

typedef void (*function)(void);
typedef function (*get_instance_proc_addr)(void *instance, const char *name);
typedef int32_t (*queue_submit)(void *queue, uint32_t count, const void *submits, uint64_t fence);
typedef int32_t (*wait_idle)(void *handle);
typedef void (*destroy)(void *handle, const void *allocator);
typedef int32_t (*create_fence)(void *device, const void *info, const void *allocator, uint64_t *fence);
typedef int32_t (*wait_for_fences)(void *device, uint32_t count, const uint64_t *fences, uint32_t all, uint64_t timeout);
typedef void (*destroy_fence)(void *device, uint64_t fence, const void *allocator);

// Set once, by vkvgpu_install; the loader's functions serve every instance.
static get_instance_proc_addr loader_get;
static queue_submit loader_queue_submit;
static wait_idle loader_queue_wait_idle, loader_device_wait_idle;
static destroy loader_destroy_device, loader_destroy_instance;
static create_fence loader_create_fence;
static wait_for_fences loader_wait_for_fences;
static destroy_fence loader_destroy_fence;

static _Thread_local vkvgpu_device current;

vkvgpu_device vkvgpu_enter(vkvgpu_device d)
{
	vkvgpu_device before = current;
	current = d;
	return before;
}

uintptr_t vkvgpu_thread(void)
{
	return (uintptr_t)&current;
}

// A VkQueue is externally synchronised (Vulkan 1.3 §3.6), and vkomp may submit to it too.
static int32_t hook_queue_submit(void *queue, uint32_t count, const void *submits, uint64_t fence)
{
	if (!current.handle || queue != current.queue)
		return loader_queue_submit(queue, count, submits, fence);
	vkvgpuLock(current.handle);
	int32_t result = loader_queue_submit(queue, count, submits, fence);
	vkvgpuUnlock(current.handle);
	return result;
}

// Waiting with the lock held would keep the scheduler, and constructs with it, from
// submitting for as long: a fence behind what was submitted is the same wait (Vulkan 1.3
// §7.8).
static int32_t hook_queue_wait_idle(void *queue)
{
	if (!current.handle || queue != current.queue)
		return loader_queue_wait_idle(queue);
	// VkFenceCreateInfo, whose type is 8.
	const struct {
		uint32_t type;
		const void *next;
		uint32_t flags;
	} info = { .type = 8 };
	uint64_t fence;
	int32_t result = loader_create_fence(current.device, &info, NULL, &fence);
	if (result)
		return result;
	result = hook_queue_submit(queue, 0, NULL, fence);
	if (!result)
		result = loader_wait_for_fences(current.device, 1, &fence, 1, UINT64_MAX);
	loader_destroy_fence(current.device, fence, NULL);
	return result;
}

// vkDeviceWaitIdle needs the lock of every queue. What vgpu wants to know of is on its own.
static int32_t hook_device_wait_idle(void *device)
{
	if (!current.handle || device != current.device)
		return loader_device_wait_idle(device);
	return hook_queue_wait_idle(current.queue);
}

static void hook_destroy_device(void *device, const void *allocator)
{
	if (!current.handle || device != current.device)
		loader_destroy_device(device, allocator);
}

static void hook_destroy_instance(void *instance, const void *allocator)
{
	if (!current.handle || instance != current.instance)
		loader_destroy_instance(instance, allocator);
}

static const struct {
	const char *name;
	function hook;
} hooks[] = {
	{"vkQueueSubmit", (function)hook_queue_submit},
	{"vkQueueWaitIdle", (function)hook_queue_wait_idle},
	{"vkDeviceWaitIdle", (function)hook_device_wait_idle},
	{"vkDestroyDevice", (function)hook_destroy_device},
	{"vkDestroyInstance", (function)hook_destroy_instance},
};

static function hook_get_instance_proc_addr(void *instance, const char *name)
{
	for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++)
		if (strcmp(name, hooks[i].name) == 0)
			return hooks[i].hook;
	return loader_get(instance, name);
}

void *vkvgpu_install(void *get, void *instance)
{
	loader_get = (get_instance_proc_addr)get;
	loader_queue_submit = (queue_submit)loader_get(instance, "vkQueueSubmit");
	loader_queue_wait_idle = (wait_idle)loader_get(instance, "vkQueueWaitIdle");
	loader_device_wait_idle = (wait_idle)loader_get(instance, "vkDeviceWaitIdle");
	loader_create_fence = (create_fence)loader_get(instance, "vkCreateFence");
	loader_wait_for_fences = (wait_for_fences)loader_get(instance, "vkWaitForFences");
	loader_destroy_fence = (destroy_fence)loader_get(instance, "vkDestroyFence");
	loader_destroy_device = (destroy)loader_get(instance, "vkDestroyDevice");
	loader_destroy_instance = (destroy)loader_get(instance, "vkDestroyInstance");
	if (!loader_queue_submit || !loader_queue_wait_idle || !loader_device_wait_idle || !loader_create_fence ||
	    !loader_wait_for_fences || !loader_destroy_fence || !loader_destroy_device || !loader_destroy_instance)
		return NULL;
	return (void *)hook_get_instance_proc_addr;
}

// VkSubmitInfo, declared here so that a build needs no Vulkan headers.
typedef struct {
	uint32_t type; // VK_STRUCTURE_TYPE_SUBMIT_INFO, which is 4
	const void *next;
	uint32_t wait_count;
	const uint64_t *wait_semaphores;
	const uint32_t *wait_stages;
	uint32_t command_buffer_count;
	void *const *command_buffers;
	uint32_t signal_count;
	const uint64_t *signal_semaphores;
} submit_info;

int32_t vkvgpu_submit(void *queue, void *commands)
{
	const submit_info info = { .type = 4, .command_buffer_count = 1, .command_buffers = &commands };
	return loader_queue_submit(queue, 1, &info, 0);
}
