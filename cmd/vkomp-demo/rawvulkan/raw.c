#include "raw.h"

#include <stdlib.h>
#include <string.h>

enum {
	COMMAND_POOL_CREATE_INFO = 39, // VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO
	RESET_COMMAND_BUFFER = 2,      // VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT
	MEMORY_BARRIER_2 = 1000314000, // VK_STRUCTURE_TYPE_MEMORY_BARRIER_2
	DEPENDENCY_INFO = 1000314003,  // VK_STRUCTURE_TYPE_DEPENDENCY_INFO
	COMMANDS = 2,                  // command buffers: batches use the first
};

typedef struct pool_info { // VkCommandPoolCreateInfo
	int32_t type;
	const void *next;
	uint32_t flags, family;
} pool_info;

typedef struct memory_barrier_2 { // VkMemoryBarrier2
	int32_t type;
	const void *next;
	uint64_t from_stages, from_accesses, to_stages, to_accesses;
} memory_barrier_2;

typedef struct dependency_info { // VkDependencyInfo
	int32_t type;
	const void *next;
	uint32_t flags, memory_count;
	const memory_barrier_2 *memory;
	uint32_t buffer_count;
	const void *buffers;
	uint32_t image_count;
	const void *images;
} dependency_info;

typedef void(VKO_CALL *any_function)(void);

#define FUNCTIONS(F)                                                                         \
	F(int32_t, CreateCommandPool, (void *, const pool_info *, const void *, vkoHandle *)) \
	F(void, DestroyCommandPool, (void *, vkoHandle, const void *))                       \
	F(int32_t, AllocateCommandBuffers, (void *, const vkoCommandBufferAllocateInfo *,    \
		void **))                                                                    \
	F(int32_t, BeginCommandBuffer, (void *, const vkoCommandBufferBeginInfo *))          \
	F(int32_t, EndCommandBuffer, (void *))                                               \
	F(int32_t, CreateDescriptorPool, (void *, const vkoDescriptorPoolCreateInfo *,       \
		const void *, vkoHandle *))                                                  \
	F(void, DestroyDescriptorPool, (void *, vkoHandle, const void *))                    \
	F(int32_t, ResetDescriptorPool, (void *, vkoHandle, uint32_t))                       \
	F(int32_t, AllocateDescriptorSets, (void *, const vkoDescriptorSetAllocateInfo *,    \
		vkoHandle *))                                                                \
	F(void, UpdateDescriptorSets, (void *, uint32_t, const vkoWriteDescriptorSet *,      \
		uint32_t, const void *))                                                     \
	F(void, CmdBindPipeline, (void *, int32_t, vkoHandle))                               \
	F(void, CmdBindDescriptorSets, (void *, int32_t, vkoHandle, uint32_t, uint32_t,      \
		const vkoHandle *, uint32_t, const uint32_t *))                              \
	F(void, CmdPushConstants, (void *, vkoHandle, uint32_t, uint32_t, uint32_t,          \
		const void *))                                                               \
	F(void, CmdDispatch, (void *, uint32_t, uint32_t, uint32_t))                         \
	F(void, CmdPipelineBarrier, (void *, uint32_t, uint32_t, uint32_t, uint32_t,         \
		const vkoMemoryBarrier *, uint32_t, const void *, uint32_t, const void *))   \
	F(void, CmdCopyBuffer, (void *, vkoHandle, vkoHandle, uint32_t,                      \
		const vkoBufferCopy *))                                                      \
	F(void, CmdFillBuffer, (void *, vkoHandle, uint64_t, uint64_t, uint32_t))            \
	F(int32_t, QueueSubmit, (void *, uint32_t, const vkoSubmitInfo *, vkoHandle))        \
	F(int32_t, QueueWaitIdle, (void *))                                                  \
	F(int32_t, WaitSemaphores, (void *, const vkoSemaphoreWaitInfo *, uint64_t))

struct raw {
	void *device, *queue;
	vkoHandle semaphore;
	uint64_t submitted; // the value that the last submission signals
	vkoHandle command_pool;
	void *commands[COMMANDS];
	vkoHandle descriptor_pool; // 0 with push descriptors, and before raw_reserve
	uint32_t reserved;         // launches that it has room for
#define POINTER(result, name, parameters) result(VKO_CALL *name) parameters;
	FUNCTIONS(POINTER)
#undef POINTER
	// NULL if the device has no push descriptors.
	void(VKO_CALL *CmdPushDescriptorSetKHR)(void *, int32_t, vkoHandle, uint32_t, uint32_t,
		const vkoWriteDescriptorSet *);
	// NULL if the device has no synchronization2.
	void(VKO_CALL *CmdPipelineBarrier2)(void *, const dependency_info *);
};

// Returns whether a call has failed, which it notes.
static int failed(raw_fault *fault, const char *call, int32_t result)
{
	if (result >= 0)
		return 0;
	*fault = (raw_fault){ .call = call, .result = result };
	return 1;
}

static int resolve(raw *r, any_function(VKO_CALL *function)(void *, const char *),
	uint32_t push_descriptors, uint32_t synchronization2, raw_fault *fault)
{
	any_function found;
#define RESOLVE(result, name, parameters)                                                    \
	found = function(r->device, "vk" #name);                                             \
	if (found == NULL)                                                                   \
		return !failed(fault, "vk" #name, VKO_ERROR_INITIALIZATION_FAILED);          \
	r->name = (result(VKO_CALL *) parameters)found;
	FUNCTIONS(RESOLVE)
#define OPTIONAL(wanted, result, name, parameters)                                           \
	if (wanted) {                                                                        \
		RESOLVE(result, name, parameters)                                            \
	}
	OPTIONAL(push_descriptors, void, CmdPushDescriptorSetKHR,
		(void *, int32_t, vkoHandle, uint32_t, uint32_t, const vkoWriteDescriptorSet *))
	OPTIONAL(synchronization2, void, CmdPipelineBarrier2, (void *, const dependency_info *))
#undef OPTIONAL
#undef RESOLVE
	return 1;
}

// Like failed, for a call between the begin of a recording and the end of the wait for it. After it has failed nothing
// is in flight, also if the device is lost. A wait that fails for want of memory may succeed later; there is an end to
// trying, for drivers that always fail.
static int stopped(raw *r, raw_fault *fault, const char *call, int32_t result)
{
	if (!failed(fault, call, result))
		return 0;
	for (int tries = 0; tries < 1000; tries++) {
		result = r->QueueWaitIdle(r->queue);
		if (result == VKO_SUCCESS || result == VKO_ERROR_DEVICE_LOST)
			break;
	}
	return 1;
}

static int wait_for(raw *r, uint64_t value, raw_fault *fault)
{
	const vkoSemaphoreWaitInfo info = {
		.sType = VKO_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
		.semaphoreCount = 1,
		.pSemaphores = &r->semaphore,
		.pValues = &value,
	};
	return !stopped(r, fault, "vkWaitSemaphores", r->WaitSemaphores(r->device, &info, UINT64_MAX));
}

raw *raw_open(uintptr_t get_instance_proc_addr, uintptr_t instance, uintptr_t device,
	uintptr_t queue, uint32_t family, vkoHandle semaphore, uint32_t push_descriptors,
	uint32_t synchronization2, raw_fault *fault)
{
	any_function(VKO_CALL *instance_function)(void *, const char *) =
		(any_function(VKO_CALL *)(void *, const char *))get_instance_proc_addr;
	any_function(VKO_CALL *device_function)(void *, const char *) =
		(any_function(VKO_CALL *)(void *, const char *))instance_function((void *)instance,
			"vkGetDeviceProcAddr");
	if (device_function == NULL) {
		failed(fault, "vkGetDeviceProcAddr", VKO_ERROR_INITIALIZATION_FAILED);
		return NULL;
	}
	raw *r = calloc(1, sizeof *r);
	if (r == NULL) {
		failed(fault, "vkCreateCommandPool", VKO_ERROR_OUT_OF_HOST_MEMORY);
		return NULL;
	}
	r->device = (void *)device;
	r->queue = (void *)queue;
	r->semaphore = semaphore;
	if (!resolve(r, device_function, push_descriptors, synchronization2, fault)) {
		free(r);
		return NULL;
	}
	const pool_info info = {
		.type = COMMAND_POOL_CREATE_INFO,
		.flags = RESET_COMMAND_BUFFER,
		.family = family,
	};
	if (failed(fault, "vkCreateCommandPool",
		    r->CreateCommandPool(r->device, &info, NULL, &r->command_pool))) {
		free(r);
		return NULL;
	}
	const vkoCommandBufferAllocateInfo allocate = {
		.sType = VKO_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
		.commandPool = r->command_pool,
		.level = VKO_COMMAND_BUFFER_LEVEL_PRIMARY,
		.commandBufferCount = COMMANDS,
	};
	if (failed(fault, "vkAllocateCommandBuffers",
		    r->AllocateCommandBuffers(r->device, &allocate, r->commands))) {
		raw_close(r);
		return NULL;
	}
	return r;
}

void raw_close(raw *r)
{
	if (r->descriptor_pool != 0)
		r->DestroyDescriptorPool(r->device, r->descriptor_pool, NULL);
	r->DestroyCommandPool(r->device, r->command_pool, NULL);
	free(r);
}

void raw_reserve(raw *r, uint32_t launches, raw_fault *fault)
{
	if (r->CmdPushDescriptorSetKHR != NULL || launches <= r->reserved)
		return;
	if (r->descriptor_pool != 0)
		r->DestroyDescriptorPool(r->device, r->descriptor_pool, NULL);
	r->descriptor_pool = 0;
	r->reserved = 0;
	const vkoDescriptorPoolSize size = {
		.type = VKO_DESCRIPTOR_TYPE_STORAGE_BUFFER,
		.descriptorCount = launches * RAW_BUFFERS,
	};
	const vkoDescriptorPoolCreateInfo info = {
		.sType = VKO_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
		.maxSets = launches,
		.poolSizeCount = 1,
		.pPoolSizes = &size,
	};
	if (!failed(fault, "vkCreateDescriptorPool",
		    r->CreateDescriptorPool(r->device, &info, NULL, &r->descriptor_pool)))
		r->reserved = launches;
}

static int begin(raw *r, void *commands, uint32_t usage, raw_fault *fault)
{
	const vkoCommandBufferBeginInfo info = {
		.sType = VKO_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
		.flags = usage,
	};
	return !stopped(r, fault, "vkBeginCommandBuffer", r->BeginCommandBuffer(commands, &info));
}

// Makes those writes of the stages visible to later accesses of theirs and of more stages. Where a
// driver has vkCmdPipelineBarrier2, vkCmdPipelineBarrier often is a detour to it.
static void barrier(raw *r, void *commands, uint32_t stages, uint32_t writes, uint32_t more_stages,
	uint32_t accesses)
{
	if (r->CmdPipelineBarrier2 != NULL) {
		const memory_barrier_2 memory = {
			.type = MEMORY_BARRIER_2,
			.from_stages = stages,
			.from_accesses = writes,
			.to_stages = stages | more_stages,
			.to_accesses = writes | accesses,
		};
		const dependency_info info = {
			.type = DEPENDENCY_INFO,
			.memory_count = 1,
			.memory = &memory,
		};
		r->CmdPipelineBarrier2(commands, &info);
		return;
	}
	const vkoMemoryBarrier memory = {
		.sType = VKO_STRUCTURE_TYPE_MEMORY_BARRIER,
		.srcAccessMask = writes,
		.dstAccessMask = writes | accesses,
	};
	r->CmdPipelineBarrier(commands, stages, stages | more_stages, 0, 1, &memory, 0, NULL, 0, NULL);
}

// Ends a command buffer with a barrier behind which the host, and the next submission, see
// everything.
static int end(raw *r, void *commands, raw_fault *fault)
{
	barrier(r, commands, VKO_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VKO_PIPELINE_STAGE_TRANSFER_BIT,
		VKO_ACCESS_SHADER_WRITE_BIT | VKO_ACCESS_TRANSFER_WRITE_BIT, VKO_PIPELINE_STAGE_HOST_BIT,
		VKO_ACCESS_SHADER_READ_BIT | VKO_ACCESS_TRANSFER_READ_BIT | VKO_ACCESS_HOST_READ_BIT);
	return !stopped(r, fault, "vkEndCommandBuffer", r->EndCommandBuffer(commands));
}

static int submit(raw *r, void *commands, raw_fault *fault)
{
	const uint64_t value = r->submitted + 1;
	const vkoTimelineSemaphoreSubmitInfo values = {
		.sType = VKO_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
		.signalSemaphoreValueCount = 1,
		.pSignalSemaphoreValues = &value,
	};
	const vkoSubmitInfo info = {
		.sType = VKO_STRUCTURE_TYPE_SUBMIT_INFO,
		.pNext = &values,
		.commandBufferCount = 1,
		.pCommandBuffers = &commands,
		.signalSemaphoreCount = 1,
		.pSignalSemaphores = &r->semaphore,
	};
	if (stopped(r, fault, "vkQueueSubmit", r->QueueSubmit(r->queue, 1, &info, 0)))
		return 0;
	r->submitted = value;
	return 1;
}

static int submit_and_wait(raw *r, void *commands, raw_fault *fault)
{
	return submit(r, commands, fault) && wait_for(r, r->submitted, fault);
}

static int bind_buffers(raw *r, void *commands, const raw_kernel *kernel, const raw_launch *launch,
	raw_fault *fault)
{
	vkoHandle set = 0;
	if (r->CmdPushDescriptorSetKHR == NULL) {
		const vkoDescriptorSetAllocateInfo info = {
			.sType = VKO_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
			.descriptorPool = r->descriptor_pool,
			.descriptorSetCount = 1,
			.pSetLayouts = &kernel->set_layout,
		};
		if (stopped(r, fault, "vkAllocateDescriptorSets",
			    r->AllocateDescriptorSets(r->device, &info, &set)))
			return 0;
	}
	vkoWriteDescriptorSet writes[RAW_BUFFERS];
	for (uint32_t b = 0; b < kernel->buffers; b++)
		writes[b] = (vkoWriteDescriptorSet){
			.sType = VKO_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
			.dstSet = set,
			.dstBinding = b,
			.descriptorCount = 1,
			.descriptorType = VKO_DESCRIPTOR_TYPE_STORAGE_BUFFER,
			.pBufferInfo = &launch->buffers[b],
		};
	if (r->CmdPushDescriptorSetKHR != NULL) {
		r->CmdPushDescriptorSetKHR(commands, VKO_PIPELINE_BIND_POINT_COMPUTE, kernel->layout, 0,
			kernel->buffers, writes);
		return 1;
	}
	r->UpdateDescriptorSets(r->device, kernel->buffers, writes, 0, NULL);
	r->CmdBindDescriptorSets(commands, VKO_PIPELINE_BIND_POINT_COMPUTE, kernel->layout, 0, 1, &set, 0,
		NULL);
	return 1;
}

// Records launches into the first command buffer, which nothing uses. A command buffer that is left
// after a fault is begun anew by the next recording.
static int record(raw *r, const raw_kernel *kernels, const raw_launch *launches, uint32_t count,
	uint32_t usage, raw_fault *fault)
{
	void *commands = r->commands[0];
	if (r->descriptor_pool != 0 && stopped(r, fault, "vkResetDescriptorPool",
					       r->ResetDescriptorPool(r->device, r->descriptor_pool, 0)))
		return 0;
	if (!begin(r, commands, usage, fault))
		return 0;
	vkoHandle bound = 0;
	for (uint32_t i = 0; i < count; i++) {
		const raw_launch *launch = &launches[i];
		const raw_kernel *kernel = &kernels[launch->kernel];
		if (kernel->pipeline != bound) {
			r->CmdBindPipeline(commands, VKO_PIPELINE_BIND_POINT_COMPUTE, kernel->pipeline);
			bound = kernel->pipeline;
		}
		if (kernel->buffers > 0 && !bind_buffers(r, commands, kernel, launch, fault))
			return 0;
		if (kernel->push_bytes > 0)
			r->CmdPushConstants(commands, kernel->layout, VKO_SHADER_STAGE_COMPUTE_BIT, 0,
				kernel->push_bytes, launch->push);
		r->CmdDispatch(commands, launch->groups, 1, 1);
		// The last one is followed by the barrier at the end.
		if (launch->barrier && i + 1 < count)
			barrier(r, commands, VKO_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
				VKO_ACCESS_SHADER_WRITE_BIT, 0, VKO_ACCESS_SHADER_READ_BIT);
	}
	return end(r, commands, fault);
}

void raw_record(raw *r, const raw_kernel *kernels, const raw_launch *launches, uint32_t count,
	raw_fault *fault)
{
	record(r, kernels, launches, count, VKO_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, fault);
}

void raw_prepare(raw *r, const raw_kernel *kernels, const raw_launch *launches, uint32_t count,
	raw_fault *fault)
{
	record(r, kernels, launches, count, 0, fault);
}

void raw_replay(raw *r, raw_fault *fault) { submit_and_wait(r, r->commands[0], fault); }

void raw_run(raw *r, const raw_kernel *kernels, const raw_launch *launches, uint32_t count,
	raw_fault *fault)
{
	if (record(r, kernels, launches, count, VKO_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, fault))
		submit_and_wait(r, r->commands[0], fault);
}

void raw_run_each(raw *r, const raw_kernel *kernels, const raw_launch *launches, uint32_t count,
	raw_fault *fault)
{
	for (uint32_t i = 0; i < count; i++)
		if (!record(r, kernels, launches + i, 1, VKO_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
			    fault) ||
			!submit_and_wait(r, r->commands[0], fault))
			return;
}

// Records a copy of size bytes from byte from_at to byte to_at.
static int record_copy(raw *r, void *commands, vkoHandle from, uint64_t from_at, vkoHandle to,
	uint64_t to_at, uint64_t size, raw_fault *fault)
{
	const vkoBufferCopy region = { .srcOffset = from_at, .dstOffset = to_at, .size = size };
	if (!begin(r, commands, VKO_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, fault))
		return 0;
	r->CmdCopyBuffer(commands, from, to, 1, &region);
	return end(r, commands, fault);
}

void raw_copy(raw *r, vkoHandle from, vkoHandle to, uint64_t size, raw_fault *fault)
{
	if (record_copy(r, r->commands[0], from, 0, to, 0, size, fault))
		submit_and_wait(r, r->commands[0], fault);
}

void raw_fill(raw *r, vkoHandle buffer, uint64_t size, uint32_t value, raw_fault *fault)
{
	if (!begin(r, r->commands[0], VKO_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, fault))
		return;
	r->CmdFillBuffer(r->commands[0], buffer, 0, size, value);
	if (end(r, r->commands[0], fault))
		submit_and_wait(r, r->commands[0], fault);
}

// The compiler does not know what it calls, so it makes every one of equal copies.
static void *(*volatile move)(void *, const void *, size_t) = memcpy;

static uint64_t lesser(uint64_t a, uint64_t b) { return a < b ? a : b; }

// Copies once through staging, of which the device reads one half while the host fills the other.
static int stage_in(raw *r, vkoHandle to, const char *from, uint64_t size, raw_buffer staging,
	uint64_t half, raw_fault *fault)
{
	const uint64_t first = r->submitted + 1;
	for (uint64_t at = 0, piece = 0; at < size; at += half, piece++) {
		const uint64_t bytes = lesser(half, size - at), side = piece % 2;
		// Of this half the piece before the last one was the last user.
		if (piece >= 2 && !wait_for(r, first + piece - 2, fault))
			return 0;
		move((char *)staging.host + side * half, from + at, bytes);
		if (!record_copy(r, r->commands[side], staging.buffer, side * half, to, at, bytes, fault) ||
			!submit(r, r->commands[side], fault))
			return 0;
	}
	return wait_for(r, r->submitted, fault);
}

// Copies once through staging, of which the device fills one half while the host empties the other.
static int stage_out(raw *r, char *to, vkoHandle from, uint64_t size, raw_buffer staging,
	uint64_t half, raw_fault *fault)
{
	const uint64_t first = r->submitted + 1, pieces = (size + half - 1) / half;
	for (uint64_t piece = 0; piece <= pieces; piece++) {
		const uint64_t side = piece % 2, at = piece * half;
		if (piece < pieces &&
			(!record_copy(r, r->commands[side], from, at, staging.buffer, side * half,
				 lesser(half, size - at), fault) ||
				!submit(r, r->commands[side], fault)))
			return 0;
		if (piece > 0) {
			const uint64_t before = at - half;
			if (!wait_for(r, first + piece - 1, fault))
				return 0;
			move(to + before, (char *)staging.host + (1 - side) * half,
				lesser(half, size - before));
		}
	}
	return 1;
}

void raw_copy_in(raw *r, raw_buffer to, const void *from, uint64_t size, uint32_t times,
	raw_buffer staging, uint64_t half, raw_fault *fault)
{
	for (uint32_t i = 0; i < times; i++)
		if (to.host != NULL)
			move(to.host, from, size);
		else if (!stage_in(r, to.buffer, from, size, staging, half, fault))
			return;
}

void raw_copy_out(raw *r, void *to, raw_buffer from, uint64_t size, uint32_t times,
	raw_buffer staging, uint64_t half, raw_fault *fault)
{
	for (uint32_t i = 0; i < times; i++)
		if (from.host != NULL)
			move(to, from.host, size);
		else if (!stage_out(r, to, from.buffer, size, staging, half, fault))
			return;
}
