// What the programs of test_shuffle_*.c share: a device behind the shuffling
// layer, and tapes: command buffers that a model on the host can play too.
#ifndef TEST_SHUFFLE_H
#define TEST_SHUFFLE_H

#include "program.h"
#include "test_shuffle.spv.h"

enum {
	CELL = 16,   // words that one step writes
	CELLS = 256, // of a buffer
	TAPE = 512,
	LONG_HOLD = 100 * 1000 * 1000, // microseconds: only what the host waits for leaves
};

typedef struct rig {
	program p;
	program_kernel kernels[2]; // the same twice: pipelines that have to be switched
	program_buffer data[2];
	VkDescriptorSet sets[2][2][2]; // of a kernel, by source and destination
	// With push descriptors instead of sets; NULL where there are none.
	PFN_vkCmdPushDescriptorSetKHR push;
	VkDescriptorSetLayout push_set;
	VkPipelineLayout push_layout;
	VkPipeline push_pipelines[2];
	uint32_t model[2][CELLS * CELL];
} rig;

typedef struct op {
	enum { STEP, MARK, COPY, FILL, UPDATE, BARRIER, BARRIER2 } kind;
	uint32_t source, from, destination, to; // buffers and cells
	uint32_t factor, add;
	VkPipelineStageFlags2 first, second;
} op;

typedef struct tape {
	op ops[TAPE];
	uint32_t count;
} tape;

static inline op *tape_add(tape *t, op o)
{
	if (t->count == TAPE) {
		fprintf(stderr, "a tape is full\n");
		exit(1);
	}
	t->ops[t->count] = o;
	return &t->ops[t->count++];
}

// cell of destination = cell of source * factor + add
static inline void tape_step(tape *t, uint32_t source, uint32_t from, uint32_t destination, uint32_t to,
	uint32_t factor, uint32_t add)
{
	tape_add(t, (op){ STEP, source, from, destination, to, factor, add, 0, 0 });
}

static inline void tape_copy(tape *t, uint32_t source, uint32_t from, uint32_t destination, uint32_t to)
{
	tape_add(t, (op){ COPY, source, from, destination, to, 0, 0, 0, 0 });
}

static inline void tape_fill(tape *t, uint32_t destination, uint32_t to, uint32_t value)
{
	tape_add(t, (op){ FILL, 0, 0, destination, to, 0, value, 0, 0 });
}

static inline void tape_update(tape *t, uint32_t destination, uint32_t to, uint32_t value)
{
	tape_add(t, (op){ UPDATE, 0, 0, destination, to, 0, value, 0, 0 });
}

// Appends id to the log that begins at the cell.
static inline void tape_mark(tape *t, uint32_t destination, uint32_t to, uint32_t id)
{
	tape_add(t, (op){ MARK, 0, 0, destination, to, 0, id, 0, 0 });
}

static inline void tape_barrier(tape *t, VkPipelineStageFlags first, VkPipelineStageFlags second)
{
	tape_add(t, (op){ .kind = BARRIER, .first = first, .second = second });
}

// Through vkCmdPipelineBarrier2.
static inline void tape_barrier2(tape *t, VkPipelineStageFlags2 first, VkPipelineStageFlags2 second)
{
	tape_add(t, (op){ .kind = BARRIER2, .first = first, .second = second });
}

static inline void record_kernel(rig *r, VkCommandBuffer c, const op *o)
{
	const uint32_t values[5] = { o->from * CELL, o->to * CELL, o->factor, o->add, o->kind == MARK };
	const uint32_t which = o->add & 1;
	if (r->push == NULL) {
		program_dispatch(c, &r->kernels[which], r->sets[which][o->source][o->destination], values, 1);
		return;
	}
	const VkDescriptorBufferInfo buffers[2] = {
		{ r->data[o->source].handle, 0, VK_WHOLE_SIZE },
		{ r->data[o->destination].handle, 0, VK_WHOLE_SIZE },
	};
	VkWriteDescriptorSet writes[2];
	for (uint32_t k = 0; k < 2; k++)
		writes[k] = (VkWriteDescriptorSet){
			.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
			.dstBinding = k,
			.descriptorCount = 1,
			.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
			.pBufferInfo = &buffers[k],
		};
	vkCmdBindPipeline(c, VK_PIPELINE_BIND_POINT_COMPUTE, r->push_pipelines[which]);
	// In two calls, each of which keeps what the other wrote.
	r->push(c, VK_PIPELINE_BIND_POINT_COMPUTE, r->push_layout, 0, 1, &writes[1]);
	r->push(c, VK_PIPELINE_BIND_POINT_COMPUTE, r->push_layout, 0, 1, &writes[0]);
	vkCmdPushConstants(c, r->push_layout, VK_SHADER_STAGE_COMPUTE_BIT, 8, 12, &values[2]);
	vkCmdPushConstants(c, r->push_layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 8, values);
	vkCmdDispatch(c, 1, 1, 1);
	memset(writes, 0xff, sizeof writes); // the call is over
}

static inline void tape_record(rig *r, const tape *t, VkCommandBuffer c)
{
	const VkDeviceSize bytes = CELL * sizeof(uint32_t);
	const VkAccessFlags all = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
	for (uint32_t k = 0; k < t->count; k++) {
		const op *o = &t->ops[k];
		switch (o->kind) {
		case STEP:
		case MARK:
			record_kernel(r, c, o);
			break;
		case COPY: {
			const VkBufferCopy region = { o->from * bytes, o->to * bytes, bytes };
			vkCmdCopyBuffer(c, r->data[o->source].handle, r->data[o->destination].handle, 1, &region);
			break;
		}
		case FILL:
			vkCmdFillBuffer(c, r->data[o->destination].handle, o->to * bytes, bytes, o->add);
			break;
		case UPDATE: {
			uint32_t values[CELL];
			for (int m = 0; m < CELL; m++)
				values[m] = o->add;
			vkCmdUpdateBuffer(c, r->data[o->destination].handle, o->to * bytes, bytes, values);
			break;
		}
		case BARRIER: {
			const VkMemoryBarrier b = { VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, all, all };
			vkCmdPipelineBarrier(c, (VkPipelineStageFlags)o->first, (VkPipelineStageFlags)o->second,
				0, 1, &b, 0, NULL, 0, NULL);
			break;
		}
		case BARRIER2: {
			const VkMemoryBarrier2 b = { VK_STRUCTURE_TYPE_MEMORY_BARRIER_2, NULL, o->first, all,
				o->second, all };
			const VkDependencyInfo info = {
				.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
				.memoryBarrierCount = 1,
				.pMemoryBarriers = &b,
			};
			r->p.CmdPipelineBarrier2(c, &info);
			break;
		}
		}
	}
}

static inline VkCommandBuffer tape_commands(rig *r, const tape *t)
{
	VkCommandBuffer c = program_begin(&r->p, &r->p.queues[0]);
	tape_record(r, t, c);
	program_end(c);
	return c;
}

static inline void tape_play(rig *r, const tape *t)
{
	for (uint32_t k = 0; k < t->count; k++) {
		const op *o = &t->ops[k];
		uint32_t *to = &r->model[o->destination][o->to * CELL];
		const uint32_t *from = &r->model[o->source][o->from * CELL];
		for (int m = 0; m < CELL; m++)
			switch (o->kind) {
			case STEP:
				to[m] = from[m] * o->factor + o->add;
				break;
			case COPY:
				to[m] = from[m];
				break;
			case FILL:
			case UPDATE:
				to[m] = o->add;
				break;
			default:
				break;
			}
		if (o->kind == MARK)
			to[1 + to[0]++] = o->add;
	}
}

static inline void rig_clear(rig *r)
{
	for (int k = 0; k < 2; k++)
		memset(r->data[k].words, 0, sizeof r->model[k]);
	memset(r->model, 0, sizeof r->model);
}

static inline bool rig_agrees(const rig *r)
{
	return memcmp(r->data[0].words, r->model[0], sizeof r->model[0]) == 0 &&
	       memcmp(r->data[1].words, r->model[1], sizeof r->model[1]) == 0;
}

// A device with push descriptors, where there are any; its one queue is the first.
static inline void open_with_push(program *p, const program *first)
{
	static const char *const extensions[] = { VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME };
	static const float priority = 0;
	*p = (program){ .physical = first->physical, .family_count = 1, .queue_count = 1 };
	VkExtensionProperties all[512];
	uint32_t count = 512, push = 0;
	MUST(vkEnumerateDeviceExtensionProperties(p->physical, NULL, &count, all));
	for (uint32_t k = 0; k < count; k++)
		push |= strcmp(all[k].extensionName, extensions[0]) == 0;
	VkPhysicalDeviceVulkan13Features features13 = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
		.synchronization2 = VK_TRUE,
	};
	VkPhysicalDeviceVulkan12Features features12 = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
		.pNext = &features13,
		.timelineSemaphore = VK_TRUE,
	};
	const VkDeviceQueueCreateInfo queue = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
		.queueCount = 1,
		.pQueuePriorities = &priority,
	};
	const VkDeviceCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
		.pNext = &features12,
		.queueCreateInfoCount = 1,
		.pQueueCreateInfos = &queue,
		.enabledExtensionCount = push,
		.ppEnabledExtensionNames = extensions,
	};
	MUST(vkCreateDevice(p->physical, &info, NULL, &p->device));
	p->CmdPipelineBarrier2 =
		(PFN_vkCmdPipelineBarrier2)vkGetDeviceProcAddr(p->device, "vkCmdPipelineBarrier2");
	p->QueueSubmit2 = (PFN_vkQueueSubmit2)vkGetDeviceProcAddr(p->device, "vkQueueSubmit2");
	const VkCommandPoolCreateInfo pool = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
		.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
	};
	vkGetDeviceQueue(p->device, 0, 0, &p->queues[0].handle);
	MUST(vkCreateCommandPool(p->device, &pool, NULL, &p->queues[0].pool));
}

static inline void rig_push(rig *r)
{
	r->push = (PFN_vkCmdPushDescriptorSetKHR)vkGetDeviceProcAddr(r->p.device,
		"vkCmdPushDescriptorSetKHR");
	if (r->push == NULL)
		return;
	VkDescriptorSetLayoutBinding bindings[2];
	for (uint32_t k = 0; k < 2; k++)
		bindings[k] = (VkDescriptorSetLayoutBinding){ k, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
			VK_SHADER_STAGE_COMPUTE_BIT, NULL };
	const VkDescriptorSetLayoutCreateInfo set = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
		.flags = VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR,
		.bindingCount = 2,
		.pBindings = bindings,
	};
	MUST(vkCreateDescriptorSetLayout(r->p.device, &set, NULL, &r->push_set));
	const VkPushConstantRange range = { VK_SHADER_STAGE_COMPUTE_BIT, 0, 20 };
	const VkPipelineLayoutCreateInfo layout = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
		.setLayoutCount = 1,
		.pSetLayouts = &r->push_set,
		.pushConstantRangeCount = 1,
		.pPushConstantRanges = &range,
	};
	MUST(vkCreatePipelineLayout(r->p.device, &layout, NULL, &r->push_layout));
	for (int k = 0; k < 2; k++) {
		const VkComputePipelineCreateInfo pipeline = {
			.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
			.stage = {
				.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
				.stage = VK_SHADER_STAGE_COMPUTE_BIT,
				.module = r->kernels[0].module,
				.pName = "main",
			},
			.layout = r->push_layout,
		};
		MUST(vkCreateComputePipelines(r->p.device, VK_NULL_HANDLE, 1, &pipeline, NULL,
			&r->push_pipelines[k]));
	}
}

// A device of its own for a seed. push: with push descriptors, where there are any.
static inline void rig_open(rig *r, const program *first, uint64_t seed, uint64_t hold, bool push)
{
	*r = (rig){ 0 };
	program_environment("VKOMP_SHUFFLE_SEED", seed);
	program_environment("VKOMP_SHUFFLE_HOLD_US", hold);
	if (push)
		open_with_push(&r->p, first);
	else
		program_open_again(&r->p, first);
	for (int k = 0; k < 2; k++) {
		r->data[k] = program_buffer_make(&r->p, sizeof r->model[k]);
		r->kernels[k] = program_kernel_make(&r->p, spirv_test_shuffle, sizeof spirv_test_shuffle, 2, 20, 4);
	}
	for (int k = 0; k < 8; k++) {
		const program_buffer *const buffers[] = { &r->data[k >> 1 & 1], &r->data[k & 1] };
		r->sets[k >> 2][k >> 1 & 1][k & 1] = program_set(&r->p, &r->kernels[k >> 2], buffers);
	}
	if (push)
		rig_push(r);
}

static inline void rig_close(rig *r)
{
	MUST(vkDeviceWaitIdle(r->p.device));
	for (int k = 0; k < 2; k++) {
		vkDestroyPipeline(r->p.device, r->push_pipelines[k], NULL);
		program_kernel_free(&r->p, &r->kernels[k]);
		program_buffer_free(&r->p, &r->data[k]);
	}
	vkDestroyPipelineLayout(r->p.device, r->push_layout, NULL);
	vkDestroyDescriptorSetLayout(r->p.device, r->push_set, NULL);
	program_close(&r->p);
}

#endif
