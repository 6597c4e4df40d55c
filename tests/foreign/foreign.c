#include "foreign.h"

#include <stdlib.h>

typedef struct requirements { // VkMemoryRequirements
	uint64_t size, alignment;
	uint32_t types;
} requirements;

struct foreign {
	void *device;
	uint64_t pool;
	int32_t(VKO_CALL *AllocateCommandBuffers)(void *, const vkoCommandBufferAllocateInfo *, void **);
	int32_t(VKO_CALL *BeginCommandBuffer)(void *, const vkoCommandBufferBeginInfo *);
	int32_t(VKO_CALL *EndCommandBuffer)(void *);
	int32_t(VKO_CALL *QueueSubmit)(void *, uint32_t, const vkoSubmitInfo *, uint64_t);
	void(VKO_CALL *CmdCopyBuffer)(void *, uint64_t, uint64_t, uint32_t, const vkoBufferCopy *);
	void(VKO_CALL *CmdPipelineBarrier)(void *, uint32_t, uint32_t, uint32_t, uint32_t,
		const vkoMemoryBarrier *, uint32_t, const void *, uint32_t, const void *);
	void(VKO_CALL *DestroyCommandPool)(void *, uint64_t, const void *);
	int32_t(VKO_CALL *CreateBuffer)(void *, const vkoBufferCreateInfo *, const void *, uint64_t *);
	void(VKO_CALL *GetBufferMemoryRequirements)(void *, uint64_t, requirements *);
	int32_t(VKO_CALL *AllocateMemory)(void *, const vkoMemoryAllocateInfo *, const void *, uint64_t *);
	int32_t(VKO_CALL *BindBufferMemory)(void *, uint64_t, uint64_t, uint64_t);
	void(VKO_CALL *DestroyBuffer)(void *, uint64_t, const void *);
	void(VKO_CALL *FreeMemory)(void *, uint64_t, const void *);
};

typedef struct pool_info { // VkCommandPoolCreateInfo
	int32_t type;
	const void *next;
	uint32_t flags, family;
} pool_info;

typedef void(VKO_CALL *any_function)(void);

foreign *foreign_open(uintptr_t get_instance_proc_addr, uintptr_t instance, uintptr_t device,
	uint32_t family)
{
	any_function(VKO_CALL *instance_function)(void *, const char *) =
		(any_function(VKO_CALL *)(void *, const char *))get_instance_proc_addr;
	any_function(VKO_CALL *device_function)(void *, const char *) =
		(any_function(VKO_CALL *)(void *, const char *))instance_function((void *)instance, "vkGetDeviceProcAddr");
	foreign *f = calloc(1, sizeof *f);
	if (f == NULL || device_function == NULL) {
		free(f);
		return NULL;
	}
	f->device = (void *)device;
	int32_t(VKO_CALL *create)(void *, const pool_info *, const void *, uint64_t *) = NULL;
	const struct {
		const char *name;
		void *to;
	} functions[] = {
		{ "vkCreateCommandPool", &create },
		{ "vkAllocateCommandBuffers", &f->AllocateCommandBuffers },
		{ "vkBeginCommandBuffer", &f->BeginCommandBuffer },
		{ "vkEndCommandBuffer", &f->EndCommandBuffer },
		{ "vkQueueSubmit", &f->QueueSubmit },
		{ "vkCmdCopyBuffer", &f->CmdCopyBuffer },
		{ "vkCmdPipelineBarrier", &f->CmdPipelineBarrier },
		{ "vkDestroyCommandPool", &f->DestroyCommandPool },
		{ "vkCreateBuffer", &f->CreateBuffer },
		{ "vkGetBufferMemoryRequirements", &f->GetBufferMemoryRequirements },
		{ "vkAllocateMemory", &f->AllocateMemory },
		{ "vkBindBufferMemory", &f->BindBufferMemory },
		{ "vkDestroyBuffer", &f->DestroyBuffer },
		{ "vkFreeMemory", &f->FreeMemory },
	};
	for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
		any_function found = device_function(f->device, functions[k].name);
		if (found == NULL) {
			free(f);
			return NULL;
		}
		*(any_function *)functions[k].to = found;
	}
	const pool_info info = { .type = 39, .family = family };
	if (create(f->device, &info, NULL, &f->pool) < 0) {
		free(f);
		return NULL;
	}
	return f;
}

void foreign_close(foreign *f)
{
	f->DestroyCommandPool(f->device, f->pool, NULL);
	free(f);
}

uintptr_t foreign_copy(foreign *f, uint64_t from, uint64_t from_offset, uint64_t to,
	uint64_t to_offset, uint64_t size)
{
	const vkoCommandBufferAllocateInfo info = {
		.sType = VKO_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
		.commandPool = f->pool,
		.commandBufferCount = 1,
	};
	void *commands = NULL;
	if (f->AllocateCommandBuffers(f->device, &info, &commands) < 0)
		return 0;
	const vkoCommandBufferBeginInfo begin = {
		.sType = VKO_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
		.flags = 4, // VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT
	};
	if (f->BeginCommandBuffer(commands, &begin) < 0)
		return 0;
	// Orders the copies of one queue among each other, which would otherwise be unordered.
	const vkoMemoryBarrier transfers = {
		.sType = VKO_STRUCTURE_TYPE_MEMORY_BARRIER,
		.srcAccessMask = 0x1800, // VK_ACCESS_TRANSFER_READ_BIT | _WRITE_BIT
		.dstAccessMask = 0x1800,
	};
	f->CmdPipelineBarrier(commands, 0x1000, 0x1000, 0, 1, &transfers, 0, NULL, 0, NULL);
	const vkoBufferCopy region = { .srcOffset = from_offset, .dstOffset = to_offset, .size = size };
	f->CmdCopyBuffer(commands, from, to, 1, &region);
	if (f->EndCommandBuffer(commands) < 0)
		return 0;
	return (uintptr_t)commands;
}

int32_t foreign_submit(foreign *f, uintptr_t queue, uintptr_t commands, uint64_t semaphore,
	uint64_t wait, uint64_t signal)
{
	const uint32_t all = 0x10000; // VK_PIPELINE_STAGE_ALL_COMMANDS_BIT
	const vkoTimelineSemaphoreSubmitInfo values = {
		.sType = VKO_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
		.waitSemaphoreValueCount = wait != 0,
		.pWaitSemaphoreValues = &wait,
		.signalSemaphoreValueCount = signal != 0,
		.pSignalSemaphoreValues = &signal,
	};
	void *buffers = (void *)commands;
	const vkoSubmitInfo info = {
		.sType = VKO_STRUCTURE_TYPE_SUBMIT_INFO,
		.pNext = semaphore != 0 ? &values : NULL,
		.waitSemaphoreCount = wait != 0,
		.pWaitSemaphores = &semaphore,
		.pWaitDstStageMask = &all,
		.commandBufferCount = commands != 0,
		.pCommandBuffers = &buffers,
		.signalSemaphoreCount = signal != 0,
		.pSignalSemaphores = &semaphore,
	};
	return f->QueueSubmit((void *)queue, 1, &info, 0);
}

int32_t foreign_buffer(foreign *f, uint64_t size, uint64_t *buffer, uint64_t *memory)
{
	const vkoBufferCreateInfo info = {
		.sType = VKO_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
		.size = size,
		.usage = 0x23, // VK_BUFFER_USAGE_TRANSFER_SRC_BIT | _TRANSFER_DST_BIT | _STORAGE_BUFFER_BIT
	};
	int32_t r = f->CreateBuffer(f->device, &info, NULL, buffer);
	if (r < 0)
		return r;
	requirements needs = { 0 };
	f->GetBufferMemoryRequirements(f->device, *buffer, &needs);
	uint32_t type = 0;
	while (type < 31 && (needs.types >> type & 1) == 0)
		type++;
	const vkoMemoryAllocateInfo allocate = {
		.sType = VKO_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
		.allocationSize = needs.size,
		.memoryTypeIndex = type,
	};
	r = f->AllocateMemory(f->device, &allocate, NULL, memory);
	if (r >= 0) {
		r = f->BindBufferMemory(f->device, *buffer, *memory, 0);
		if (r >= 0)
			return r;
		f->FreeMemory(f->device, *memory, NULL);
	}
	f->DestroyBuffer(f->device, *buffer, NULL);
	return r;
}

void foreign_buffer_free(foreign *f, uint64_t buffer, uint64_t memory)
{
	f->DestroyBuffer(f->device, buffer, NULL);
	f->FreeMemory(f->device, memory, NULL);
}
