// Command pools, command buffers and what is recorded: a family runs only what its
// flags allow, and the family indices of barriers become the driver's.
#include "manyqueue.h"

#include <stdlib.h>

static VKAPI_ATTR VkResult VKAPI_CALL create_command_pool(VkDevice handle,
	const VkCommandPoolCreateInfo *info, const VkAllocationCallbacks *allocator, VkCommandPool *out)
{
	many_device *m = many_device_of(handle);
	if (info->queueFamilyIndex >= m->plan->family_count)
		layer_die("vkCreateCommandPool: there is no family %u", info->queueFamilyIndex);
	VkCommandPoolCreateInfo real = *info;
	real.queueFamilyIndex = m->family;
	VkResult r = m->d->next.CreateCommandPool(handle, &real, allocator, out);
	if (r == VK_SUCCESS) {
		many_pool *pool = layer_allocate(sizeof *pool);
		pool->family = info->queueFamilyIndex;
		layer_map_put(&m->pools, LAYER_KEY(*out), pool);
	}
	return r;
}

static bool is_of_pool(uint64_t command, void *pool, void *gone)
{
	(void)command;
	return pool == gone;
}

static VKAPI_ATTR void VKAPI_CALL destroy_command_pool(VkDevice handle, VkCommandPool pool,
	const VkAllocationCallbacks *allocator)
{
	many_device *m = many_device_of(handle);
	many_pool *gone = layer_map_take(&m->pools, LAYER_KEY(pool));
	if (gone != NULL)
		layer_map_each(&m->commands, is_of_pool, gone);
	free(gone);
	m->d->next.DestroyCommandPool(handle, pool, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL allocate_command_buffers(VkDevice handle,
	const VkCommandBufferAllocateInfo *info, VkCommandBuffer *out)
{
	many_device *m = many_device_of(handle);
	VkResult r = m->d->next.AllocateCommandBuffers(handle, info, out);
	if (r == VK_SUCCESS) {
		many_pool *pool = layer_map_get(&m->pools, LAYER_KEY(info->commandPool));
		for (uint32_t k = 0; k < info->commandBufferCount; k++)
			layer_map_put(&m->commands, LAYER_KEY(out[k]), pool);
	}
	return r;
}

static VKAPI_ATTR void VKAPI_CALL free_command_buffers(VkDevice handle, VkCommandPool pool,
	uint32_t count, const VkCommandBuffer *buffers)
{
	many_device *m = many_device_of(handle);
	for (uint32_t k = 0; k < count; k++)
		layer_map_take(&m->commands, LAYER_KEY(buffers[k]));
	m->d->next.FreeCommandBuffers(handle, pool, count, buffers);
}

static uint32_t family_of(many_device *m, VkCommandBuffer c)
{
	many_pool *pool = layer_map_get(&m->commands, LAYER_KEY(c));
	return pool != NULL ? pool->family : VK_QUEUE_FAMILY_IGNORED;
}

// Gives the device; the family of the command buffer must have one of the flags.
static layer_device *require(VkCommandBuffer c, VkQueueFlags any, const char *call)
{
	many_device *m = many_device_of(c);
	uint32_t family = family_of(m, c);
	if (family != VK_QUEUE_FAMILY_IGNORED && (many_family_flags(m, family) & any) == 0)
		layer_die("%s in a command buffer of family %u, which has none of the flags 0x%x: it has 0x%x",
			call, family, any, many_family_flags(m, family));
	return m->d;
}

static VkQueueFlags point_flags(VkPipelineBindPoint point)
{
	return point == VK_PIPELINE_BIND_POINT_GRAPHICS ? VK_QUEUE_GRAPHICS_BIT : VK_QUEUE_COMPUTE_BIT;
}

enum {
	GRAPHICS = VK_QUEUE_GRAPHICS_BIT,
	COMPUTE = VK_QUEUE_COMPUTE_BIT,
	EITHER = GRAPHICS | COMPUTE,
};

// Commands that only pass, on families that can run them.
#define PARAMETERS(...) (VkCommandBuffer c, __VA_ARGS__)
#define PASSED(...) (c, __VA_ARGS__)
#define COMMANDS(F)                                                                            \
	F(BindPipeline, point_flags(a), PARAMETERS(VkPipelineBindPoint a, VkPipeline b),       \
		PASSED(a, b))                                                                  \
	F(BindDescriptorSets, point_flags(a),                                                  \
		PARAMETERS(VkPipelineBindPoint a, VkPipelineLayout b, uint32_t e, uint32_t f,  \
			const VkDescriptorSet *g, uint32_t h, const uint32_t *i),              \
		PASSED(a, b, e, f, g, h, i))                                                   \
	F(PushDescriptorSetKHR, point_flags(a),                                                \
		PARAMETERS(VkPipelineBindPoint a, VkPipelineLayout b, uint32_t e, uint32_t f,  \
			const VkWriteDescriptorSet *g),                                        \
		PASSED(a, b, e, f, g))                                                         \
	F(PushConstants, EITHER,                                                               \
		PARAMETERS(VkPipelineLayout a, VkShaderStageFlags b, uint32_t e, uint32_t f,   \
			const void *g),                                                        \
		PASSED(a, b, e, f, g))                                                         \
	F(Dispatch, COMPUTE, PARAMETERS(uint32_t a, uint32_t b, uint32_t e), PASSED(a, b, e))  \
	F(DispatchBase, COMPUTE,                                                               \
		PARAMETERS(uint32_t a, uint32_t b, uint32_t e, uint32_t f, uint32_t g, uint32_t h), \
		PASSED(a, b, e, f, g, h))                                                      \
	F(DispatchIndirect, COMPUTE, PARAMETERS(VkBuffer a, VkDeviceSize b), PASSED(a, b))     \
	F(Draw, GRAPHICS, PARAMETERS(uint32_t a, uint32_t b, uint32_t e, uint32_t f),          \
		PASSED(a, b, e, f))                                                            \
	F(DrawIndexed, GRAPHICS,                                                               \
		PARAMETERS(uint32_t a, uint32_t b, uint32_t e, int32_t f, uint32_t g),         \
		PASSED(a, b, e, f, g))                                                         \
	F(DrawIndirect, GRAPHICS, PARAMETERS(VkBuffer a, VkDeviceSize b, uint32_t e, uint32_t f), \
		PASSED(a, b, e, f))                                                            \
	F(DrawIndexedIndirect, GRAPHICS,                                                       \
		PARAMETERS(VkBuffer a, VkDeviceSize b, uint32_t e, uint32_t f),                \
		PASSED(a, b, e, f))                                                            \
	F(BeginRenderPass, GRAPHICS, PARAMETERS(const VkRenderPassBeginInfo *a, VkSubpassContents b), \
		PASSED(a, b))                                                                  \
	F(BeginRenderPass2, GRAPHICS,                                                          \
		PARAMETERS(const VkRenderPassBeginInfo *a, const VkSubpassBeginInfo *b),       \
		PASSED(a, b))                                                                  \
	F(BeginRendering, GRAPHICS, PARAMETERS(const VkRenderingInfo *a), PASSED(a))           \
	F(BlitImage, GRAPHICS,                                                                 \
		PARAMETERS(VkImage a, VkImageLayout b, VkImage e, VkImageLayout f, uint32_t g, \
			const VkImageBlit *h, VkFilter i),                                     \
		PASSED(a, b, e, f, g, h, i))                                                   \
	F(BlitImage2, GRAPHICS, PARAMETERS(const VkBlitImageInfo2 *a), PASSED(a))              \
	F(ResolveImage, GRAPHICS,                                                              \
		PARAMETERS(VkImage a, VkImageLayout b, VkImage e, VkImageLayout f, uint32_t g, \
			const VkImageResolve *h),                                              \
		PASSED(a, b, e, f, g, h))                                                      \
	F(ResolveImage2, GRAPHICS, PARAMETERS(const VkResolveImageInfo2 *a), PASSED(a))        \
	F(ClearDepthStencilImage, GRAPHICS,                                                    \
		PARAMETERS(VkImage a, VkImageLayout b, const VkClearDepthStencilValue *e,      \
			uint32_t f, const VkImageSubresourceRange *g),                         \
		PASSED(a, b, e, f, g))                                                         \
	F(ClearColorImage, EITHER,                                                             \
		PARAMETERS(VkImage a, VkImageLayout b, const VkClearColorValue *e, uint32_t f, \
			const VkImageSubresourceRange *g),                                     \
		PASSED(a, b, e, f, g))                                                         \
	F(BeginQuery, EITHER, PARAMETERS(VkQueryPool a, uint32_t b, VkQueryControlFlags e),    \
		PASSED(a, b, e))                                                               \
	F(ResetQueryPool, EITHER, PARAMETERS(VkQueryPool a, uint32_t b, uint32_t e),           \
		PASSED(a, b, e))                                                               \
	F(CopyQueryPoolResults, EITHER,                                                        \
		PARAMETERS(VkQueryPool a, uint32_t b, uint32_t e, VkBuffer f, VkDeviceSize g,  \
			VkDeviceSize h, VkQueryResultFlags i),                                 \
		PASSED(a, b, e, f, g, h, i))                                                   \
	F(SetEvent, EITHER, PARAMETERS(VkEvent a, VkPipelineStageFlags b), PASSED(a, b))       \
	F(ResetEvent, EITHER, PARAMETERS(VkEvent a, VkPipelineStageFlags b), PASSED(a, b))     \
	F(ResetEvent2, EITHER, PARAMETERS(VkEvent a, VkPipelineStageFlags2 b), PASSED(a, b))

#define COMMAND(name, any, parameters, passed)                                                 \
	static VKAPI_ATTR void VKAPI_CALL pass_##name parameters                               \
	{                                                                                      \
		require(c, any, "vkCmd" #name)->next.Cmd##name passed;                         \
	}
COMMANDS(COMMAND)
#undef COMMAND

static uint32_t real_family(const many_device *m, uint32_t family)
{
	return family < m->plan->family_count ? m->family : family;
}

// The three below translate the members that the old and the new barriers share. A
// transfer of ownership, which is recorded twice, is two plain barriers here, and
// only the second one, the acquisition, changes the layout.
#define TRANSLATE_FAMILIES(m, barrier)                                                         \
	do {                                                                                   \
		(barrier)->srcQueueFamilyIndex = real_family(m, (barrier)->srcQueueFamilyIndex); \
		(barrier)->dstQueueFamilyIndex = real_family(m, (barrier)->dstQueueFamilyIndex); \
	} while (0)
#define KEEP_LAYOUT_ON_RELEASE(m, recording, barrier)                                          \
	do {                                                                                   \
		uint32_t from = (barrier)->srcQueueFamilyIndex, to = (barrier)->dstQueueFamilyIndex; \
		if (from == (recording) && from != to && to < (m)->plan->family_count &&       \
			(barrier)->oldLayout != VK_IMAGE_LAYOUT_UNDEFINED)                     \
			(barrier)->newLayout = (barrier)->oldLayout;                           \
	} while (0)
// A copy of the array, or NULL of an empty one.
#define COPY(array, count) copy((array), (count), sizeof *(array))

static void *copy(const void *from, uint32_t count, size_t size)
{
	if (count == 0)
		return NULL;
	char *to = layer_allocate(count * size);
	for (size_t k = 0; k < count * size; k++)
		to[k] = ((const char *)from)[k];
	return to;
}

static VkBufferMemoryBarrier *translate_buffers(many_device *m, uint32_t count,
	const VkBufferMemoryBarrier *barriers)
{
	VkBufferMemoryBarrier *real = COPY(barriers, count);
	for (uint32_t k = 0; k < count; k++)
		TRANSLATE_FAMILIES(m, &real[k]);
	return real;
}

static VkImageMemoryBarrier *translate_images(many_device *m, uint32_t recording, uint32_t count,
	const VkImageMemoryBarrier *barriers)
{
	VkImageMemoryBarrier *real = COPY(barriers, count);
	for (uint32_t k = 0; k < count; k++) {
		KEEP_LAYOUT_ON_RELEASE(m, recording, &real[k]);
		TRANSLATE_FAMILIES(m, &real[k]);
	}
	return real;
}

static VkDependencyInfo translate_dependency(many_device *m, uint32_t recording,
	const VkDependencyInfo *info)
{
	VkDependencyInfo real = *info;
	VkBufferMemoryBarrier2 *buffers =
		COPY(info->pBufferMemoryBarriers, info->bufferMemoryBarrierCount);
	for (uint32_t k = 0; k < info->bufferMemoryBarrierCount; k++)
		TRANSLATE_FAMILIES(m, &buffers[k]);
	VkImageMemoryBarrier2 *images =
		COPY(info->pImageMemoryBarriers, info->imageMemoryBarrierCount);
	for (uint32_t k = 0; k < info->imageMemoryBarrierCount; k++) {
		KEEP_LAYOUT_ON_RELEASE(m, recording, &images[k]);
		TRANSLATE_FAMILIES(m, &images[k]);
	}
	real.pBufferMemoryBarriers = buffers;
	real.pImageMemoryBarriers = images;
	return real;
}

static void free_dependency(VkDependencyInfo *real)
{
	free((void *)real->pBufferMemoryBarriers);
	free((void *)real->pImageMemoryBarriers);
}

static VKAPI_ATTR void VKAPI_CALL pipeline_barrier(VkCommandBuffer c, VkPipelineStageFlags from,
	VkPipelineStageFlags to, VkDependencyFlags flags, uint32_t memory_count,
	const VkMemoryBarrier *memory, uint32_t buffer_count, const VkBufferMemoryBarrier *buffers,
	uint32_t image_count, const VkImageMemoryBarrier *images)
{
	many_device *m = many_device_of(c);
	VkBufferMemoryBarrier *real_buffers = translate_buffers(m, buffer_count, buffers);
	VkImageMemoryBarrier *real_images = translate_images(m, family_of(m, c), image_count, images);
	m->d->next.CmdPipelineBarrier(c, from, to, flags, memory_count, memory, buffer_count,
		real_buffers, image_count, real_images);
	free(real_buffers);
	free(real_images);
}

static VKAPI_ATTR void VKAPI_CALL pipeline_barrier2(VkCommandBuffer c, const VkDependencyInfo *info)
{
	many_device *m = many_device_of(c);
	VkDependencyInfo real = translate_dependency(m, family_of(m, c), info);
	m->d->next.CmdPipelineBarrier2(c, &real);
	free_dependency(&real);
}

static VKAPI_ATTR void VKAPI_CALL wait_events(VkCommandBuffer c, uint32_t event_count,
	const VkEvent *events, VkPipelineStageFlags from, VkPipelineStageFlags to,
	uint32_t memory_count, const VkMemoryBarrier *memory, uint32_t buffer_count,
	const VkBufferMemoryBarrier *buffers, uint32_t image_count, const VkImageMemoryBarrier *images)
{
	many_device *m = many_device_of(c);
	require(c, EITHER, "vkCmdWaitEvents");
	VkBufferMemoryBarrier *real_buffers = translate_buffers(m, buffer_count, buffers);
	VkImageMemoryBarrier *real_images = translate_images(m, family_of(m, c), image_count, images);
	m->d->next.CmdWaitEvents(c, event_count, events, from, to, memory_count, memory, buffer_count,
		real_buffers, image_count, real_images);
	free(real_buffers);
	free(real_images);
}

static VKAPI_ATTR void VKAPI_CALL set_event2(VkCommandBuffer c, VkEvent event,
	const VkDependencyInfo *info)
{
	many_device *m = many_device_of(c);
	require(c, EITHER, "vkCmdSetEvent2");
	VkDependencyInfo real = translate_dependency(m, family_of(m, c), info);
	m->d->next.CmdSetEvent2(c, event, &real);
	free_dependency(&real);
}

static VKAPI_ATTR void VKAPI_CALL wait_events2(VkCommandBuffer c, uint32_t count,
	const VkEvent *events, const VkDependencyInfo *infos)
{
	many_device *m = many_device_of(c);
	require(c, EITHER, "vkCmdWaitEvents2");
	VkDependencyInfo *real = layer_allocate((count + 1) * sizeof *real);
	for (uint32_t k = 0; k < count; k++)
		real[k] = translate_dependency(m, family_of(m, c), &infos[k]);
	m->d->next.CmdWaitEvents2(c, count, events, real);
	for (uint32_t k = 0; k < count; k++)
		free_dependency(&real[k]);
	free(real);
}

static VKAPI_ATTR void VKAPI_CALL execute_commands(VkCommandBuffer c, uint32_t count,
	const VkCommandBuffer *secondaries)
{
	many_device *m = many_device_of(c);
	for (uint32_t k = 0; k < count; k++)
		if (family_of(m, secondaries[k]) != family_of(m, c))
			layer_die("vkCmdExecuteCommands: a command buffer of family %u in one of family %u",
				family_of(m, secondaries[k]), family_of(m, c));
	m->d->next.CmdExecuteCommands(c, count, secondaries);
}

const layer_intercept many_command_intercepts[] = {
	LAYER_INTERCEPT(vkCreateCommandPool, create_command_pool),
	LAYER_INTERCEPT(vkDestroyCommandPool, destroy_command_pool),
	LAYER_INTERCEPT(vkAllocateCommandBuffers, allocate_command_buffers),
	LAYER_INTERCEPT(vkFreeCommandBuffers, free_command_buffers),
#define COMMAND(name, any, parameters, passed) LAYER_INTERCEPT(vkCmd##name, pass_##name),
	COMMANDS(COMMAND)
#undef COMMAND
	LAYER_INTERCEPT(vkCmdDispatchBaseKHR, pass_DispatchBase),
	LAYER_INTERCEPT(vkCmdBeginRenderPass2KHR, pass_BeginRenderPass2),
	LAYER_INTERCEPT(vkCmdBeginRenderingKHR, pass_BeginRendering),
	LAYER_INTERCEPT(vkCmdBlitImage2KHR, pass_BlitImage2),
	LAYER_INTERCEPT(vkCmdResolveImage2KHR, pass_ResolveImage2),
	LAYER_INTERCEPT(vkCmdResetEvent2KHR, pass_ResetEvent2),
	LAYER_INTERCEPT(vkCmdPipelineBarrier, pipeline_barrier),
	LAYER_INTERCEPT(vkCmdPipelineBarrier2, pipeline_barrier2),
	LAYER_INTERCEPT(vkCmdPipelineBarrier2KHR, pipeline_barrier2),
	LAYER_INTERCEPT(vkCmdWaitEvents, wait_events),
	LAYER_INTERCEPT(vkCmdWaitEvents2, wait_events2),
	LAYER_INTERCEPT(vkCmdWaitEvents2KHR, wait_events2),
	LAYER_INTERCEPT(vkCmdSetEvent2, set_event2),
	LAYER_INTERCEPT(vkCmdSetEvent2KHR, set_event2),
	LAYER_INTERCEPT(vkCmdExecuteCommands, execute_commands),
	{ NULL, NULL },
};
