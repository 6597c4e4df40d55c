// VK_LAYER_VKOMP_shuffle: a driver that executes in order, made to behave as
// badly as Vulkan allows. Commands do not go to the driver when the program
// records them: the layer keeps them (shuffle_record.h), and when they have been
// submitted it records them into command buffers of its own, in a random order
// that only barriers, semaphores and fences restrict (shuffle_order.h).
//
//	vkQueueSubmit ->  held: W C C S  C C S  W C S F     per queue, in order
//	                       |  a timer, a wait of the host, or too many
//	                       v
//	driver        <-  C C W C S C C S W C S F           one vkQueueSubmit
//
// A submission is held for a random time so that later ones of its queue mix with
// it. What keeps that free of deadlock: a held submission leaves with the timer at
// the latest, whatever anybody waits for; and waits (W), signals (S) and fences
// (F) of a queue reach the driver in the order in which the program gave them, so
// that nothing is put behind a wait that the wait could need. Waits for a
// timeline's value that is reached already hold nothing back, and go first.
//
//	VKOMP_SHUFFLE_SEED     default 1
//	VKOMP_SHUFFLE_HOLD_US  bound of the time a submission is held; default 300;
//	                       0: every vkQueueSubmit is shuffled by itself
//
// A command buffer with a command that the layer does not know is handed over as
// it is, and ordered after all that is before it and before all that comes after.
#define _GNU_SOURCE
#include "layer.h"

#include "other.h"
#include "shuffle_order.h"
#include "shuffle_record.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum {
	MAX_HELD_COMMANDS = 1 << 18,
	MAX_HELD_ITEMS = 1 << 12,
	MAX_HOLD_US = 1000 * 1000 * 1000,
	WAIT_SLICE_NS = 100 * 1000 * 1000, // after which a waiter looks for a lost device
};

typedef struct device device;

typedef struct command_buffer {
	VkCommandBuffer handle;
	VkCommandPool pool;
	device *of;
	bool secondary;
	bool through; // the driver's own command buffer holds the commands
	VkCommandBufferUsageFlags usage;
	VkResult failed; // what vkEndCommandBuffer is to return
	recording kept;
} command_buffer;

typedef struct semaphore_use {
	VkSemaphore semaphore;
	uint64_t value;
	VkPipelineStageFlags2 stages;
} semaphore_use;

// A part of a submission that is held.
typedef struct held {
	enum { HELD_WAIT, HELD_COMMANDS, HELD_SIGNAL, HELD_FENCE } kind;
	semaphore_use use;
	command_buffer *commands;
	VkFence fence;
} held;

// Command buffers of the layer, for what leaves at one time.
typedef struct slot {
	struct slot *next;
	VkCommandPool pool;
	VkFence fence; // signalled when all of them have executed
	VkCommandBuffer *buffers;
	uint32_t count, capacity, used;
} slot;

// What one VkSubmitInfo is made of: the ends of its part of each array.
typedef struct batch {
	uint32_t waits, buffers, signals;
	VkFence fence; // after the batch
} batch;

// A vector; room is in elements.
#define VECTOR(type) struct { type *at; uint32_t count, room; }
#define VECTOR_PUSH(v) (vector_grow((void **)&(v)->at, &(v)->room, (v)->count, sizeof *(v)->at), \
	&(v)->at[(v)->count++])

typedef struct queue {
	device *of;
	VkQueue handle;
	uint32_t family;
	struct queue *next;
	pthread_t thread;
	pthread_mutex_t lock; // of all that follows, and of calls of the handle
	pthread_cond_t wake;
	bool stop;
	struct timespec deadline; // of what is held
	VECTOR(held) held;
	uint64_t held_commands;
	bool modern; // a vkQueueSubmit2 is held
	bool timed;  // a submission with timeline values is held
	uint64_t bound; // of the time a submission is held, in microseconds
	uint64_t random;
	order order;
	slot *idle, *flying, **flying_last; // flying: in order of submission
	// While something leaves.
	VECTOR(batch) batches;
	VECTOR(semaphore_use) waits;
	VECTOR(semaphore_use) signals;
	VECTOR(VkCommandBuffer) buffers;
	slot *into;
	VkCommandBuffer open; // VK_NULL_HANDLE: none is being recorded
	replay writing;
	VkResult failed;
} queue;

struct device {
	layer_device *d;
	record_calls calls;
	PFN_vkQueuePresentKHR QueuePresentKHR;
	PFN_vkGetSemaphoreFdKHR GetSemaphoreFdKHR;
	PFN_vkGetFenceFdKHR GetFenceFdKHR;
	_Atomic(PFN_vkVoidFunction) others[OTHER_COMMAND_COUNT];
	layer_map timelines; // semaphores; the value is the device
	atomic_bool lost;
	pthread_mutex_t lock;
	queue *queues;
	// Pipeline layouts that the program has destroyed. Recorded commands may
	// outlive theirs, but the layer needs them when it records again.
	VECTOR(VkPipelineLayout) layouts;
};

static layer_map queues, command_buffers;
// Counts command buffers that have gone, so that threads forget the last one that
// they found.
static atomic_ullong command_buffers_gone;

static void vector_grow(void **array, uint32_t *room, uint32_t count, size_t size)
{
	if (!order_grow(array, room, count, size))
		layer_die("out of memory");
}

static device *device_of(const void *dispatchable) { return layer_device_of(dispatchable)->own; }

static queue *queue_of(VkQueue handle)
{
	queue *q = layer_map_get(&queues, LAYER_KEY(handle));
	if (q == NULL)
		layer_die("a call for a queue that vkGetDeviceQueue did not give");
	return q;
}

static command_buffer *commands_of(VkCommandBuffer handle)
{
	static _Thread_local struct {
		VkCommandBuffer handle;
		command_buffer *found;
		unsigned long long gone;
	} last;
	unsigned long long gone = atomic_load_explicit(&command_buffers_gone, memory_order_acquire);
	if (last.handle == handle && last.gone == gone)
		return last.found;
	command_buffer *c = layer_map_get(&command_buffers, LAYER_KEY(handle));
	if (c == NULL)
		layer_die("a call for a command buffer that was not allocated through the layer");
	last.handle = handle;
	last.found = c;
	last.gone = gone;
	return c;
}

// Recording

static VkResult begin_below(command_buffer *c, const VkCommandBufferBeginInfo *info)
{
	c->through = true;
	return c->of->d->next.BeginCommandBuffer(c->handle, info);
}

// Hands the command buffer to the driver, for a command that the layer does not
// keep.
static void let_through(command_buffer *c)
{
	if (c->through)
		return;
	const VkCommandBufferBeginInfo info = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
		.flags = c->usage,
	};
	VkResult r = begin_below(c, &info);
	if (r != VK_SUCCESS)
		layer_die("vkBeginCommandBuffer: VkResult %d", r);
	replay_all(&c->of->calls, &c->kept, c->handle);
	recording_reset(&c->kept);
}

static VKAPI_ATTR VkResult VKAPI_CALL allocate_command_buffers(VkDevice handle,
	const VkCommandBufferAllocateInfo *info, VkCommandBuffer *out)
{
	device *d = device_of(handle);
	VkResult r = d->d->next.AllocateCommandBuffers(handle, info, out);
	if (r != VK_SUCCESS)
		return r;
	for (uint32_t k = 0; k < info->commandBufferCount; k++) {
		command_buffer *c = layer_allocate(sizeof *c);
		c->handle = out[k];
		c->pool = info->commandPool;
		c->of = d;
		c->secondary = info->level == VK_COMMAND_BUFFER_LEVEL_SECONDARY;
		recording_reset(&c->kept);
		layer_map_put(&command_buffers, LAYER_KEY(out[k]), c);
	}
	return VK_SUCCESS;
}

static void forget_commands(command_buffer *c)
{
	recording_free(&c->kept);
	free(c);
}

static VKAPI_ATTR void VKAPI_CALL free_command_buffers(VkDevice handle, VkCommandPool pool,
	uint32_t count, const VkCommandBuffer *buffers)
{
	for (uint32_t k = 0; k < count; k++)
		if (buffers[k] != VK_NULL_HANDLE)
			forget_commands(layer_map_take(&command_buffers, LAYER_KEY(buffers[k])));
	atomic_fetch_add(&command_buffers_gone, 1);
	device_of(handle)->d->next.FreeCommandBuffers(handle, pool, count, buffers);
}

typedef struct pool_of {
	device *of;
	VkCommandPool pool; // VK_NULL_HANDLE: all of the device
	bool gone;          // else reset
} pool_of;

static bool each_of_pool(uint64_t key, void *value, void *context)
{
	(void)key;
	command_buffer *c = value;
	const pool_of *p = context;
	if (c->of != p->of || (p->pool != VK_NULL_HANDLE && c->pool != p->pool))
		return false;
	if (p->gone) {
		forget_commands(c);
		return true;
	}
	recording_reset(&c->kept);
	c->through = false;
	return false;
}

static VKAPI_ATTR void VKAPI_CALL destroy_command_pool(VkDevice handle, VkCommandPool pool,
	const VkAllocationCallbacks *allocator)
{
	device *d = device_of(handle);
	if (pool != VK_NULL_HANDLE) {
		pool_of p = { .of = d, .pool = pool, .gone = true };
		layer_map_each(&command_buffers, each_of_pool, &p);
		atomic_fetch_add(&command_buffers_gone, 1);
	}
	d->d->next.DestroyCommandPool(handle, pool, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL reset_command_pool(VkDevice handle, VkCommandPool pool,
	VkCommandPoolResetFlags flags)
{
	device *d = device_of(handle);
	VkResult r = d->d->next.ResetCommandPool(handle, pool, flags);
	if (r == VK_SUCCESS) {
		pool_of p = { .of = d, .pool = pool };
		layer_map_each(&command_buffers, each_of_pool, &p);
	}
	return r;
}

static VKAPI_ATTR VkResult VKAPI_CALL begin_command_buffer(VkCommandBuffer handle,
	const VkCommandBufferBeginInfo *info)
{
	command_buffer *c = commands_of(handle);
	recording_reset(&c->kept);
	c->through = false;
	c->failed = VK_SUCCESS;
	c->usage = info->flags;
	return c->secondary || info->pNext != NULL ? begin_below(c, info) : VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL end_command_buffer(VkCommandBuffer handle)
{
	command_buffer *c = commands_of(handle);
	return c->through ? c->of->d->next.EndCommandBuffer(handle) : c->failed;
}

static VKAPI_ATTR VkResult VKAPI_CALL reset_command_buffer(VkCommandBuffer handle,
	VkCommandBufferResetFlags flags)
{
	command_buffer *c = commands_of(handle);
	recording_reset(&c->kept);
	c->through = false;
	return c->of->d->next.ResetCommandBuffer(handle, flags);
}

static void kept(command_buffer *c, bool yes)
{
	if (!yes)
		c->failed = VK_ERROR_OUT_OF_HOST_MEMORY;
}

static VKAPI_ATTR void VKAPI_CALL cmd_bind_pipeline(VkCommandBuffer handle, VkPipelineBindPoint point,
	VkPipeline pipeline)
{
	command_buffer *c = commands_of(handle);
	if (point != VK_PIPELINE_BIND_POINT_COMPUTE)
		let_through(c);
	if (c->through)
		c->of->calls.CmdBindPipeline(handle, point, pipeline);
	else
		c->kept.pipeline = pipeline;
}

static VKAPI_ATTR void VKAPI_CALL cmd_bind_descriptor_sets(VkCommandBuffer handle,
	VkPipelineBindPoint point, VkPipelineLayout layout, uint32_t first, uint32_t count,
	const VkDescriptorSet *sets, uint32_t dynamic, const uint32_t *offsets)
{
	command_buffer *c = commands_of(handle);
	if (point != VK_PIPELINE_BIND_POINT_COMPUTE)
		let_through(c);
	if (c->through)
		c->of->calls.CmdBindDescriptorSets(handle, point, layout, first, count, sets, dynamic,
			offsets);
	else
		kept(c, record_bind_sets(&c->kept, layout, first, count, sets, dynamic, offsets));
}

static VKAPI_ATTR void VKAPI_CALL cmd_push_descriptor_set(VkCommandBuffer handle,
	VkPipelineBindPoint point, VkPipelineLayout layout, uint32_t set, uint32_t count,
	const VkWriteDescriptorSet *writes)
{
	command_buffer *c = commands_of(handle);
	if (point != VK_PIPELINE_BIND_POINT_COMPUTE || !writes_of_buffers(count, writes))
		let_through(c);
	if (c->through)
		c->of->calls.CmdPushDescriptorSetKHR(handle, point, layout, set, count, writes);
	else
		kept(c, record_push_set(&c->kept, layout, set, count, writes));
}

static VKAPI_ATTR void VKAPI_CALL cmd_push_constants(VkCommandBuffer handle, VkPipelineLayout layout,
	VkShaderStageFlags stages, uint32_t offset, uint32_t size, const void *values)
{
	command_buffer *c = commands_of(handle);
	if (c->through)
		c->of->calls.CmdPushConstants(handle, layout, stages, offset, size, values);
	else
		kept(c, record_push_constants(&c->kept, layout, stages, offset, size, values));
}

static VKAPI_ATTR void VKAPI_CALL cmd_dispatch_base(VkCommandBuffer handle, uint32_t base_x,
	uint32_t base_y, uint32_t base_z, uint32_t x, uint32_t y, uint32_t z)
{
	command_buffer *c = commands_of(handle);
	const dispatch d = { .base = { base_x, base_y, base_z }, .groups = { x, y, z } };
	if (c->through)
		c->of->calls.CmdDispatchBase(handle, base_x, base_y, base_z, x, y, z);
	else
		kept(c, record_dispatch(&c->kept, ENTRY_DISPATCH, &d));
}

static VKAPI_ATTR void VKAPI_CALL cmd_dispatch(VkCommandBuffer handle, uint32_t x, uint32_t y, uint32_t z)
{
	command_buffer *c = commands_of(handle);
	const dispatch d = { .groups = { x, y, z } };
	if (c->through)
		c->of->calls.CmdDispatch(handle, x, y, z);
	else
		kept(c, record_dispatch(&c->kept, ENTRY_DISPATCH, &d));
}

static VKAPI_ATTR void VKAPI_CALL cmd_dispatch_indirect(VkCommandBuffer handle, VkBuffer buffer,
	VkDeviceSize offset)
{
	command_buffer *c = commands_of(handle);
	const dispatch d = { .indirect = buffer, .at = offset };
	if (c->through)
		c->of->calls.CmdDispatchIndirect(handle, buffer, offset);
	else
		kept(c, record_dispatch(&c->kept, ENTRY_DISPATCH_INDIRECT, &d));
}

static VKAPI_ATTR void VKAPI_CALL cmd_copy_buffer(VkCommandBuffer handle, VkBuffer source,
	VkBuffer destination, uint32_t count, const VkBufferCopy *regions)
{
	command_buffer *c = commands_of(handle);
	if (c->through) {
		c->of->calls.CmdCopyBuffer(handle, source, destination, count, regions);
		return;
	}
	copy *added = record_copy(&c->kept, source, destination, count);
	kept(c, added != NULL);
	if (added != NULL)
		memcpy(added->regions, regions, sizeof *regions * count);
}

static VKAPI_ATTR void VKAPI_CALL cmd_copy_buffer2(VkCommandBuffer handle, const VkCopyBufferInfo2 *info)
{
	command_buffer *c = commands_of(handle);
	if (info->pNext != NULL)
		let_through(c);
	if (c->through) {
		c->of->d->next.CmdCopyBuffer2(handle, info);
		return;
	}
	copy *added = record_copy(&c->kept, info->srcBuffer, info->dstBuffer, info->regionCount);
	kept(c, added != NULL);
	for (uint32_t k = 0; added != NULL && k < info->regionCount; k++)
		added->regions[k] = (VkBufferCopy){
			.srcOffset = info->pRegions[k].srcOffset,
			.dstOffset = info->pRegions[k].dstOffset,
			.size = info->pRegions[k].size,
		};
}

static VKAPI_ATTR void VKAPI_CALL cmd_fill_buffer(VkCommandBuffer handle, VkBuffer buffer,
	VkDeviceSize offset, VkDeviceSize size, uint32_t value)
{
	command_buffer *c = commands_of(handle);
	if (c->through)
		c->of->calls.CmdFillBuffer(handle, buffer, offset, size, value);
	else
		kept(c, record_fill(&c->kept, buffer, offset, size, value, NULL));
}

static VKAPI_ATTR void VKAPI_CALL cmd_update_buffer(VkCommandBuffer handle, VkBuffer buffer,
	VkDeviceSize offset, VkDeviceSize size, const void *values)
{
	command_buffer *c = commands_of(handle);
	if (c->through)
		c->of->calls.CmdUpdateBuffer(handle, buffer, offset, size, values);
	else
		kept(c, record_fill(&c->kept, buffer, offset, size, 0, values));
}

static VKAPI_ATTR void VKAPI_CALL cmd_pipeline_barrier(VkCommandBuffer handle,
	VkPipelineStageFlags source, VkPipelineStageFlags destination, VkDependencyFlags flags,
	uint32_t memory_count, const VkMemoryBarrier *memory, uint32_t buffer_count,
	const VkBufferMemoryBarrier *buffers, uint32_t image_count, const VkImageMemoryBarrier *images)
{
	command_buffer *c = commands_of(handle);
	bool plain = image_count == 0;
	for (uint32_t k = 0; k < memory_count; k++)
		plain &= memory[k].pNext == NULL;
	for (uint32_t k = 0; k < buffer_count; k++)
		plain &= buffers[k].pNext == NULL;
	if (!plain)
		let_through(c);
	if (c->through)
		c->of->calls.CmdPipelineBarrier(handle, source, destination, flags, memory_count, memory,
			buffer_count, buffers, image_count, images);
	else
		kept(c, record_barrier(&c->kept, source, destination, flags, memory_count, memory,
			buffer_count, buffers));
}

static VKAPI_ATTR void VKAPI_CALL cmd_pipeline_barrier2(VkCommandBuffer handle,
	const VkDependencyInfo *info)
{
	command_buffer *c = commands_of(handle);
	bool plain = info->pNext == NULL && info->imageMemoryBarrierCount == 0;
	for (uint32_t k = 0; k < info->memoryBarrierCount; k++)
		plain &= info->pMemoryBarriers[k].pNext == NULL;
	for (uint32_t k = 0; k < info->bufferMemoryBarrierCount; k++)
		plain &= info->pBufferMemoryBarriers[k].pNext == NULL;
	if (!plain)
		let_through(c);
	if (c->through)
		c->of->calls.CmdPipelineBarrier2(handle, info);
	else
		kept(c, record_barrier2(&c->kept, info));
}

// A command buffer that has such a command is handed to the driver as it was recorded, and stands in the
// order of its queue as a wall.
static PFN_vkVoidFunction other_below(VkCommandBuffer handle, uint32_t number, const char *name)
{
	command_buffer *c = commands_of(handle);
	let_through(c);
	PFN_vkVoidFunction f = atomic_load(&c->of->others[number]);
	if (f == NULL) {
		f = c->of->d->get(c->of->d->handle, name);
		atomic_store(&c->of->others[number], f);
	}
	return f;
}

OTHER_COMMANDS(OTHER_PASS)

// Labels would name other commands than the program's.
static VKAPI_ATTR void VKAPI_CALL cmd_label(VkCommandBuffer handle, const VkDebugUtilsLabelEXT *label)
{
	(void)handle, (void)label;
}
static VKAPI_ATTR void VKAPI_CALL cmd_end_label(VkCommandBuffer handle) { (void)handle; }
static VKAPI_ATTR void VKAPI_CALL cmd_marker(VkCommandBuffer handle, const VkDebugMarkerMarkerInfoEXT *info)
{
	(void)handle, (void)info;
}
static VKAPI_ATTR void VKAPI_CALL queue_label(VkQueue handle, const VkDebugUtilsLabelEXT *label)
{
	(void)handle, (void)label;
}
static VKAPI_ATTR void VKAPI_CALL queue_end_label(VkQueue handle) { (void)handle; }

static VKAPI_ATTR void VKAPI_CALL destroy_pipeline_layout(VkDevice handle, VkPipelineLayout layout,
	const VkAllocationCallbacks *allocator)
{
	(void)allocator;
	device *d = device_of(handle);
	if (layout == VK_NULL_HANDLE)
		return;
	pthread_mutex_lock(&d->lock);
	*VECTOR_PUSH(&d->layouts) = layout;
	pthread_mutex_unlock(&d->lock);
}

// Leaving

// A slot that nothing in flight uses. The queue is locked.
static slot *take_slot(queue *q)
{
	const layer_device *d = q->of->d;
	while (q->flying != NULL && d->next.GetFenceStatus(d->handle, q->flying->fence) == VK_SUCCESS) {
		slot *s = q->flying;
		q->flying = s->next;
		if (q->flying == NULL)
			q->flying_last = &q->flying;
		s->next = q->idle;
		q->idle = s;
	}
	slot *s = q->idle;
	if (s != NULL) {
		q->idle = s->next;
		if (d->next.ResetFences(d->handle, 1, &s->fence) != VK_SUCCESS ||
			d->next.ResetCommandPool(d->handle, s->pool, 0) != VK_SUCCESS)
			layer_die("out of device memory");
		s->used = 0;
		return s;
	}
	s = layer_allocate(sizeof *s);
	const VkCommandPoolCreateInfo pool = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
		.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
		.queueFamilyIndex = q->family,
	};
	const VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
	if (d->next.CreateCommandPool(d->handle, &pool, NULL, &s->pool) != VK_SUCCESS ||
		d->next.CreateFence(d->handle, &fence, NULL, &s->fence) != VK_SUCCESS)
		layer_die("out of device memory");
	return s;
}

static void free_slots(const layer_device *d, slot *s)
{
	while (s != NULL) {
		slot *next = s->next;
		d->next.DestroyCommandPool(d->handle, s->pool, NULL);
		d->next.DestroyFence(d->handle, s->fence, NULL);
		free(s->buffers);
		free(s);
		s = next;
	}
}

static void open_buffer(queue *q)
{
	const layer_device *d = q->of->d;
	if (q->into == NULL)
		q->into = take_slot(q);
	slot *s = q->into;
	if (s->used == s->count) {
		vector_grow((void **)&s->buffers, &s->capacity, s->count, sizeof *s->buffers);
		const VkCommandBufferAllocateInfo info = {
			.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
			.commandPool = s->pool,
			.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
			.commandBufferCount = 1,
		};
		if (d->next.AllocateCommandBuffers(d->handle, &info, &s->buffers[s->count]) != VK_SUCCESS)
			layer_die("out of device memory");
		layer_adopt(q->of->d, s->buffers[s->count++]);
	}
	q->open = s->buffers[s->used++];
	const VkCommandBufferBeginInfo info = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
		.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
	};
	if (d->next.BeginCommandBuffer(q->open, &info) != VK_SUCCESS)
		layer_die("out of device memory");
	q->writing = (replay){ .calls = &q->of->calls, .to = q->open };
}

static void close_buffer(queue *q)
{
	if (q->open == VK_NULL_HANDLE)
		return;
	if (q->of->d->next.EndCommandBuffer(q->open) != VK_SUCCESS)
		layer_die("out of device memory");
	*VECTOR_PUSH(&q->buffers) = q->open;
	q->open = VK_NULL_HANDLE;
}

// The end of each array's part in front of a batch.
static batch batch_before(const queue *q, uint32_t k)
{
	return k > 0 ? q->batches.at[k - 1] : (batch){ 0 };
}

// Ends the batch that is being put together, unless it is empty and needs no
// fence.
static void close_batch(queue *q, VkFence fence)
{
	close_buffer(q);
	const batch last = batch_before(q, q->batches.count);
	if (fence == VK_NULL_HANDLE && last.waits == q->waits.count &&
		last.buffers == q->buffers.count && last.signals == q->signals.count)
		return;
	*VECTOR_PUSH(&q->batches) = (batch){
		.waits = q->waits.count,
		.buffers = q->buffers.count,
		.signals = q->signals.count,
		.fence = fence,
	};
}

static bool batch_signals(const queue *q)
{
	return q->signals.count > batch_before(q, q->batches.count).signals;
}

static bool batch_executes(const queue *q)
{
	return q->open != VK_NULL_HANDLE ||
	       q->buffers.count > batch_before(q, q->batches.count).buffers;
}

// The use of the semaphore among those from first on, or NULL.
static semaphore_use *find_use(semaphore_use *uses, uint32_t first, uint32_t count, VkSemaphore semaphore)
{
	for (uint32_t k = first; k < count; k++)
		if (uses[k].semaphore == semaphore)
			return &uses[k];
	return NULL;
}

// A batch waits for a semaphore once, for the greatest value.
static void emit_wait(queue *q, const semaphore_use *use)
{
	semaphore_use *same = find_use(q->waits.at, batch_before(q, q->batches.count).waits,
		q->waits.count, use->semaphore);
	if (same == NULL) {
		*VECTOR_PUSH(&q->waits) = *use;
		return;
	}
	same->value = same->value > use->value ? same->value : use->value;
	same->stages |= use->stages;
}

// A batch signals a semaphore once, and none where it waits: lavapipe looks at the
// timelines that a batch waited for once more after it has signalled, when the
// program may have destroyed them.
static void emit_signal(queue *q, const semaphore_use *use)
{
	close_buffer(q);
	if (q->waits.count > batch_before(q, q->batches.count).waits || find_use(q->signals.at,
		batch_before(q, q->batches.count).signals, q->signals.count, use->semaphore) != NULL)
		close_batch(q, VK_NULL_HANDLE);
	*VECTOR_PUSH(&q->signals) = *use;
}

// One step of the order that was drawn.
static void emit(void *context, const void *what, const void *of)
{
	queue *q = context;
	if (of != NULL) {
		if (batch_signals(q))
			close_batch(q, VK_NULL_HANDLE);
		if (q->open == VK_NULL_HANDLE)
			open_buffer(q);
		replay_command(&q->writing, of, what);
		return;
	}
	const held *h = what;
	switch (h->kind) {
	case HELD_WAIT:
		if (batch_signals(q) || batch_executes(q))
			close_batch(q, VK_NULL_HANDLE);
		emit_wait(q, &h->use);
		break;
	case HELD_COMMANDS:
		if (batch_signals(q))
			close_batch(q, VK_NULL_HANDLE);
		close_buffer(q);
		*VECTOR_PUSH(&q->buffers) = h->commands->handle;
		break;
	case HELD_SIGNAL:
		emit_signal(q, &h->use);
		break;
	case HELD_FENCE:
		close_batch(q, h->fence);
		break;
	}
}

// The batches from first to end in one call.
static VkResult submit_batches(queue *q, uint32_t first, uint32_t end, VkFence fence)
{
	const batch from = batch_before(q, first), to = batch_before(q, end);
	const uint32_t count = end - first, waits = to.waits - from.waits;
	const uint32_t uses = waits + to.signals - from.signals;
	VkSubmitInfo *infos = layer_allocate((count + 1) * sizeof *infos);
	VkTimelineSemaphoreSubmitInfo *values = layer_allocate((count + 1) * sizeof *values);
	VkSemaphore *semaphores = layer_allocate((uses + 1) * sizeof *semaphores);
	uint64_t *numbers = layer_allocate((uses + 1) * sizeof *numbers);
	VkPipelineStageFlags *stages = layer_allocate((waits + 1) * sizeof *stages);
	for (uint32_t k = 0; k < uses; k++) {
		const semaphore_use *u = k < waits ? &q->waits.at[from.waits + k]
						   : &q->signals.at[from.signals + k - waits];
		semaphores[k] = u->semaphore;
		numbers[k] = u->value;
		if (k < waits)
			stages[k] = (VkPipelineStageFlags)u->stages;
	}
	for (uint32_t k = 0; k < count; k++) {
		const batch a = batch_before(q, first + k), b = q->batches.at[first + k];
		const uint32_t wait = a.waits - from.waits, signal = waits + a.signals - from.signals;
		values[k] = (VkTimelineSemaphoreSubmitInfo){
			.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
			.waitSemaphoreValueCount = b.waits - a.waits,
			.pWaitSemaphoreValues = numbers + wait,
			.signalSemaphoreValueCount = b.signals - a.signals,
			.pSignalSemaphoreValues = numbers + signal,
		};
		infos[k] = (VkSubmitInfo){
			.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
			.pNext = q->timed ? &values[k] : NULL,
			.waitSemaphoreCount = b.waits - a.waits,
			.pWaitSemaphores = semaphores + wait,
			.pWaitDstStageMask = stages + wait,
			.commandBufferCount = b.buffers - a.buffers,
			.pCommandBuffers = q->buffers.at + a.buffers,
			.signalSemaphoreCount = b.signals - a.signals,
			.pSignalSemaphores = semaphores + signal,
		};
	}
	VkResult r = q->of->d->next.QueueSubmit(q->handle, count, infos, fence);
	free(infos);
	free(values);
	free(semaphores);
	free(numbers);
	free(stages);
	return r;
}

static VkSemaphoreSubmitInfo *semaphore_infos(const semaphore_use *uses, uint32_t from, uint32_t to)
{
	VkSemaphoreSubmitInfo *infos = layer_allocate((to - from + 1) * sizeof *infos);
	for (uint32_t k = from; k < to; k++)
		infos[k - from] = (VkSemaphoreSubmitInfo){
			.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
			.semaphore = uses[k].semaphore,
			.value = uses[k].value,
			.stageMask = uses[k].stages,
		};
	return infos;
}

// As submit_batches, where a mask may need the width of synchronization2.
static VkResult submit_batches2(queue *q, uint32_t first, uint32_t end, VkFence fence)
{
	const batch from = batch_before(q, first), to = batch_before(q, end);
	const uint32_t count = end - first, buffer_count = to.buffers - from.buffers;
	VkSubmitInfo2 *infos = layer_allocate((count + 1) * sizeof *infos);
	VkSemaphoreSubmitInfo *waits = semaphore_infos(q->waits.at, from.waits, to.waits);
	VkSemaphoreSubmitInfo *signals = semaphore_infos(q->signals.at, from.signals, to.signals);
	VkCommandBufferSubmitInfo *buffers = layer_allocate((buffer_count + 1) * sizeof *buffers);
	for (uint32_t k = 0; k < buffer_count; k++)
		buffers[k] = (VkCommandBufferSubmitInfo){
			.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO,
			.commandBuffer = q->buffers.at[from.buffers + k],
		};
	for (uint32_t k = 0; k < count; k++) {
		const batch a = batch_before(q, first + k), b = q->batches.at[first + k];
		infos[k] = (VkSubmitInfo2){
			.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
			.waitSemaphoreInfoCount = b.waits - a.waits,
			.pWaitSemaphoreInfos = waits + (a.waits - from.waits),
			.commandBufferInfoCount = b.buffers - a.buffers,
			.pCommandBufferInfos = buffers + (a.buffers - from.buffers),
			.signalSemaphoreInfoCount = b.signals - a.signals,
			.pSignalSemaphoreInfos = signals + (a.signals - from.signals),
		};
	}
	VkResult r = q->of->d->next.QueueSubmit2(q->handle, count, infos, fence);
	free(infos);
	free(waits);
	free(signals);
	free(buffers);
	return r;
}

// Submits all batches: as few calls as the fences among them allow. The fence of a
// call is that of all before it. It gets a call of its own: lavapipe may signal the
// fence of a batch before it is done with the timelines that the same batch
// signals, which the program may then destroy.
static VkResult submit_all(queue *q)
{
	VkResult (*submit)(queue *, uint32_t, uint32_t, VkFence) =
		q->modern ? submit_batches2 : submit_batches;
	VkResult r = VK_SUCCESS;
	uint32_t first = 0;
	for (uint32_t k = 0; k < q->batches.count && r == VK_SUCCESS; k++)
		if (q->batches.at[k].fence != VK_NULL_HANDLE) {
			r = submit(q, first, k + 1, VK_NULL_HANDLE);
			if (r == VK_SUCCESS)
				r = submit(q, k + 1, k + 1, q->batches.at[k].fence);
			first = k + 1;
		}
	if (r == VK_SUCCESS && (first < q->batches.count || q->into != NULL))
		r = submit(q, first, q->batches.count, q->into != NULL ? q->into->fence : VK_NULL_HANDLE);
	return r;
}

// Whether a wait would hold nothing back.
static bool reached(const queue *q, const semaphore_use *wait)
{
	const layer_device *d = q->of->d;
	uint64_t value;
	return layer_map_get(&q->of->timelines, LAYER_KEY(wait->semaphore)) != NULL &&
	       d->next.GetSemaphoreCounterValue(d->handle, wait->semaphore, &value) == VK_SUCCESS &&
	       value >= wait->value;
}

static void order_held(queue *q)
{
	order *o = &q->order;
	for (uint32_t k = 0; k < q->held.count; k++) {
		const held *h = &q->held.at[k];
		switch (h->kind) {
		case HELD_WAIT:
			if (reached(q, &h->use))
				emit_wait(q, &h->use);
			else
				order_wait(o, second_scope(h->use.stages), h, NULL);
			break;
		case HELD_COMMANDS:
			if (h->commands->through)
				order_wall(o, h, NULL);
			else
				order_recording(o, &h->commands->kept);
			break;
		case HELD_SIGNAL: {
			uint32_t first = first_scope(h->use.stages);
			if ((first & STAGE_ALL_COMMANDS) == STAGE_ALL_COMMANDS)
				first = STAGE_ANY;
			order_signal(o, first, h, NULL);
			break;
		}
		case HELD_FENCE:
			order_signal(o, STAGE_ANY, h, NULL);
			break;
		}
	}
}

// Hands all that is held to the driver. The queue is locked. Nothing of the
// program's is looked at once the driver has the first batch: what has executed
// may be gone.
static VkResult leave(queue *q)
{
	if (q->held.count == 0)
		return VK_SUCCESS;
	q->batches.count = q->waits.count = q->signals.count = q->buffers.count = 0;
	q->into = NULL;
	order_held(q);
	// Even choice half of the time; the others find what it seldom does.
	order_manner manner = (order_manner)random_below(&q->random, 2 * (ORDER_MANNERS - 1));
	if (manner >= ORDER_MANNERS)
		manner = ORDER_EVEN;
	if (!order_walk(&q->order, manner, &q->random, emit, q))
		layer_die("out of memory");
	close_batch(q, VK_NULL_HANDLE);
	VkResult r = submit_all(q);
	q->held.count = 0;
	q->held_commands = 0;
	q->modern = q->timed = false;
	if (q->into != NULL) {
		q->into->next = NULL;
		*q->flying_last = q->into;
		q->flying_last = &q->into->next;
	}
	if (r != VK_SUCCESS)
		atomic_store(&q->of->lost, true);
	return r;
}

static bool before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static void *timer(void *context)
{
	queue *q = context;
	pthread_mutex_lock(&q->lock);
	while (!q->stop) {
		struct timespec now;
		if (q->held.count == 0) {
			pthread_cond_wait(&q->wake, &q->lock);
			continue;
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (before(&now, &q->deadline))
			pthread_cond_timedwait(&q->wake, &q->lock, &q->deadline);
		else
			leave(q);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

// After something was added to what is held. The queue is locked.
static VkResult hold(queue *q, bool first)
{
	if (q->bound == 0 || q->held_commands >= MAX_HELD_COMMANDS || q->held.count >= MAX_HELD_ITEMS)
		return leave(q);
	if (first && q->held.count > 0) {
		uint64_t us = random_below(&q->random, (uint32_t)q->bound + 1);
		clock_gettime(CLOCK_MONOTONIC, &q->deadline);
		q->deadline.tv_sec += (time_t)(us / 1000000);
		q->deadline.tv_nsec += (long)(us % 1000000 * 1000);
		if (q->deadline.tv_nsec >= 1000000000) {
			q->deadline.tv_sec++;
			q->deadline.tv_nsec -= 1000000000;
		}
		pthread_cond_signal(&q->wake);
	}
	return VK_SUCCESS;
}

// Submission

static void hold_use(queue *q, int kind, VkSemaphore semaphore, uint64_t value,
	VkPipelineStageFlags2 stages)
{
	held *h = VECTOR_PUSH(&q->held);
	*h = (held){ .use = { .semaphore = semaphore, .value = value, .stages = stages } };
	h->kind = kind;
}

static void hold_commands(queue *q, VkCommandBuffer handle)
{
	command_buffer *c = commands_of(handle);
	*VECTOR_PUSH(&q->held) = (held){ .kind = HELD_COMMANDS, .commands = c };
	q->held_commands += c->kept.count;
}

static void hold_fence(queue *q, VkFence fence)
{
	if (fence != VK_NULL_HANDLE)
		*VECTOR_PUSH(&q->held) = (held){ .kind = HELD_FENCE, .fence = fence };
}

// What a submission may carry that the layer understands.
static bool understood(const void *chain)
{
	for (const VkBaseInStructure *s = chain; s != NULL; s = s->pNext)
		if (s->sType != VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO) {
			layer_say("a submission with a structure of type %d is refused", s->sType);
			return false;
		}
	return true;
}

static void hold_submission(queue *q, const VkSubmitInfo *s)
{
	const VkTimelineSemaphoreSubmitInfo *t =
		layer_chained(s->pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
	q->timed |= t != NULL;
	for (uint32_t k = 0; k < s->waitSemaphoreCount; k++)
		hold_use(q, HELD_WAIT, s->pWaitSemaphores[k],
			t != NULL && k < t->waitSemaphoreValueCount ? t->pWaitSemaphoreValues[k] : 0,
			s->pWaitDstStageMask[k]);
	for (uint32_t k = 0; k < s->commandBufferCount; k++)
		hold_commands(q, s->pCommandBuffers[k]);
	for (uint32_t k = 0; k < s->signalSemaphoreCount; k++)
		hold_use(q, HELD_SIGNAL, s->pSignalSemaphores[k],
			t != NULL && k < t->signalSemaphoreValueCount ? t->pSignalSemaphoreValues[k] : 0,
			VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT);
}

static VKAPI_ATTR VkResult VKAPI_CALL queue_submit(VkQueue handle, uint32_t count,
	const VkSubmitInfo *infos, VkFence fence)
{
	queue *q = queue_of(handle);
	for (uint32_t k = 0; k < count; k++)
		if (!understood(infos[k].pNext))
			return VK_ERROR_UNKNOWN;
	if (atomic_load(&q->of->lost))
		return VK_ERROR_DEVICE_LOST;
	pthread_mutex_lock(&q->lock);
	bool first = q->held.count == 0;
	for (uint32_t k = 0; k < count; k++)
		hold_submission(q, &infos[k]);
	hold_fence(q, fence);
	VkResult r = hold(q, first);
	pthread_mutex_unlock(&q->lock);
	return r;
}

static VKAPI_ATTR VkResult VKAPI_CALL queue_submit2(VkQueue handle, uint32_t count,
	const VkSubmitInfo2 *infos, VkFence fence)
{
	queue *q = queue_of(handle);
	for (uint32_t k = 0; k < count; k++)
		if (!understood(infos[k].pNext))
			return VK_ERROR_UNKNOWN;
	if (atomic_load(&q->of->lost))
		return VK_ERROR_DEVICE_LOST;
	pthread_mutex_lock(&q->lock);
	bool first = q->held.count == 0;
	for (uint32_t k = 0; k < count; k++) {
		const VkSubmitInfo2 *s = &infos[k];
		for (uint32_t m = 0; m < s->waitSemaphoreInfoCount; m++)
			hold_use(q, HELD_WAIT, s->pWaitSemaphoreInfos[m].semaphore,
				s->pWaitSemaphoreInfos[m].value, s->pWaitSemaphoreInfos[m].stageMask);
		for (uint32_t m = 0; m < s->commandBufferInfoCount; m++)
			hold_commands(q, s->pCommandBufferInfos[m].commandBuffer);
		for (uint32_t m = 0; m < s->signalSemaphoreInfoCount; m++)
			hold_use(q, HELD_SIGNAL, s->pSignalSemaphoreInfos[m].semaphore,
				s->pSignalSemaphoreInfos[m].value, s->pSignalSemaphoreInfos[m].stageMask);
	}
	hold_fence(q, fence);
	q->modern |= q->held.count > 0;
	VkResult r = hold(q, first);
	pthread_mutex_unlock(&q->lock);
	return r;
}

// Lets what the device's queues hold leave: all of it, or, where the host waits
// for something and the timers will see to it anyway, that of some queues.
static void release(device *d, bool all)
{
	pthread_mutex_lock(&d->lock);
	queue *q = d->queues;
	pthread_mutex_unlock(&d->lock);
	for (; q != NULL; q = q->next) {
		pthread_mutex_lock(&q->lock);
		if (all || random_below(&q->random, 2) == 0)
			leave(q);
		pthread_mutex_unlock(&q->lock);
	}
}

static VKAPI_ATTR VkResult VKAPI_CALL queue_wait_idle(VkQueue handle)
{
	queue *q = queue_of(handle);
	release(q->of, true);
	// Nobody submits meanwhile, the timer neither: nothing is held.
	return atomic_load(&q->of->lost) ? VK_ERROR_DEVICE_LOST : q->of->d->next.QueueWaitIdle(handle);
}

static VKAPI_ATTR VkResult VKAPI_CALL device_wait_idle(VkDevice handle)
{
	device *d = device_of(handle);
	release(d, true);
	return atomic_load(&d->lost) ? VK_ERROR_DEVICE_LOST : d->d->next.DeviceWaitIdle(handle);
}

// Whether one of the fences has not left yet. The driver may not be asked about a
// fence while the timer submits it.
static bool any_held(device *d, uint32_t count, const VkFence *fences)
{
	bool found = false;
	pthread_mutex_lock(&d->lock);
	queue *q = d->queues;
	pthread_mutex_unlock(&d->lock);
	for (; q != NULL && !found; q = q->next) {
		pthread_mutex_lock(&q->lock);
		for (uint32_t k = 0; k < q->held.count && !found; k++)
			for (uint32_t f = 0; q->held.at[k].kind == HELD_FENCE && f < count; f++)
				found |= q->held.at[k].fence == fences[f];
		pthread_mutex_unlock(&q->lock);
	}
	return found;
}

static VKAPI_ATTR VkResult VKAPI_CALL get_fence_status(VkDevice handle, VkFence fence)
{
	device *d = device_of(handle);
	if (atomic_load(&d->lost))
		return VK_ERROR_DEVICE_LOST;
	return any_held(d, 1, &fence) ? VK_NOT_READY : d->d->next.GetFenceStatus(handle, fence);
}

// Waits in slices: what is waited for may have been lost on its way to the driver.
static VKAPI_ATTR VkResult VKAPI_CALL wait_for_fences(VkDevice handle, uint32_t count,
	const VkFence *fences, VkBool32 all, uint64_t timeout)
{
	device *d = device_of(handle);
	if (timeout > 0)
		release(d, true);
	else if (any_held(d, count, fences))
		return VK_TIMEOUT;
	for (;;) {
		if (atomic_load(&d->lost))
			return VK_ERROR_DEVICE_LOST;
		uint64_t slice = timeout < WAIT_SLICE_NS ? timeout : WAIT_SLICE_NS;
		VkResult r = d->d->next.WaitForFences(handle, count, fences, all, slice);
		timeout -= timeout == UINT64_MAX ? 0 : slice;
		if (r != VK_TIMEOUT || timeout == 0)
			return r;
	}
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_semaphores(VkDevice handle, const VkSemaphoreWaitInfo *info,
	uint64_t timeout)
{
	device *d = device_of(handle);
	if (timeout > 0)
		release(d, false);
	for (;;) {
		if (atomic_load(&d->lost))
			return VK_ERROR_DEVICE_LOST;
		uint64_t slice = timeout < WAIT_SLICE_NS ? timeout : WAIT_SLICE_NS;
		VkResult r = d->d->next.WaitSemaphores(handle, info, slice);
		timeout -= timeout == UINT64_MAX ? 0 : slice;
		if (r != VK_TIMEOUT || timeout == 0)
			return r;
	}
}

static VKAPI_ATTR VkResult VKAPI_CALL queue_bind_sparse(VkQueue handle, uint32_t count,
	const VkBindSparseInfo *infos, VkFence fence)
{
	queue *q = queue_of(handle);
	release(q->of, true);
	pthread_mutex_lock(&q->lock);
	VkResult r = q->of->d->next.QueueBindSparse(handle, count, infos, fence);
	pthread_mutex_unlock(&q->lock);
	return r;
}

static VKAPI_ATTR VkResult VKAPI_CALL queue_present(VkQueue handle, const VkPresentInfoKHR *info)
{
	queue *q = queue_of(handle);
	release(q->of, true);
	pthread_mutex_lock(&q->lock);
	VkResult r = q->of->QueuePresentKHR(handle, info);
	pthread_mutex_unlock(&q->lock);
	return r;
}

// The payload is taken as the driver has it.
static VKAPI_ATTR VkResult VKAPI_CALL get_semaphore_fd(VkDevice handle,
	const VkSemaphoreGetFdInfoKHR *info, int *fd)
{
	device *d = device_of(handle);
	release(d, true);
	return d->GetSemaphoreFdKHR(handle, info, fd);
}

static VKAPI_ATTR VkResult VKAPI_CALL get_fence_fd(VkDevice handle, const VkFenceGetFdInfoKHR *info, int *fd)
{
	device *d = device_of(handle);
	release(d, true);
	return d->GetFenceFdKHR(handle, info, fd);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_semaphore(VkDevice handle, const VkSemaphoreCreateInfo *info,
	const VkAllocationCallbacks *allocator, VkSemaphore *out)
{
	device *d = device_of(handle);
	VkResult r = d->d->next.CreateSemaphore(handle, info, allocator, out);
	const VkSemaphoreTypeCreateInfo *type =
		layer_chained(info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
	if (r == VK_SUCCESS && type != NULL && type->semaphoreType == VK_SEMAPHORE_TYPE_TIMELINE)
		layer_map_put(&d->timelines, LAYER_KEY(*out), d);
	return r;
}

static VKAPI_ATTR void VKAPI_CALL destroy_semaphore(VkDevice handle, VkSemaphore semaphore,
	const VkAllocationCallbacks *allocator)
{
	device *d = device_of(handle);
	if (semaphore != VK_NULL_HANDLE)
		layer_map_take(&d->timelines, LAYER_KEY(semaphore));
	d->d->next.DestroySemaphore(handle, semaphore, allocator);
}

// Devices

static void add_queue(device *d, VkQueue handle, uint32_t family)
{
	pthread_mutex_lock(&d->lock);
	if (handle == VK_NULL_HANDLE || layer_map_get(&queues, LAYER_KEY(handle)) != NULL) {
		pthread_mutex_unlock(&d->lock);
		return;
	}
	uint64_t number = 0;
	for (queue *q = d->queues; q != NULL; q = q->next)
		number++;
	queue *q = layer_allocate(sizeof *q);
	q->of = d;
	q->handle = handle;
	q->family = family;
	q->flying_last = &q->flying;
	q->bound = layer_environment("VKOMP_SHUFFLE_HOLD_US", 300);
	if (q->bound > MAX_HOLD_US)
		layer_die("VKOMP_SHUFFLE_HOLD_US is above %d", MAX_HOLD_US);
	q->random = layer_random_of(layer_environment("VKOMP_SHUFFLE_SEED", 1), d->d->number, number).state;
	order_reset(&q->order);
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&q->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (pthread_create(&q->thread, NULL, timer, q) != 0)
		layer_die("no thread for a queue's timer");
	q->next = d->queues;
	d->queues = q;
	layer_map_put(&queues, LAYER_KEY(handle), q);
	pthread_mutex_unlock(&d->lock);
}

static VKAPI_ATTR void VKAPI_CALL get_device_queue(VkDevice handle, uint32_t family, uint32_t index,
	VkQueue *out)
{
	device *d = device_of(handle);
	d->d->next.GetDeviceQueue(handle, family, index, out);
	add_queue(d, *out, family);
}

static VKAPI_ATTR void VKAPI_CALL get_device_queue2(VkDevice handle, const VkDeviceQueueInfo2 *info,
	VkQueue *out)
{
	device *d = device_of(handle);
	d->d->next.GetDeviceQueue2(handle, info, out);
	add_queue(d, *out, info->queueFamilyIndex);
}

static VkResult device_created(layer_device *l, const VkDeviceCreateInfo *info)
{
	(void)info;
	device *d = layer_allocate(sizeof *d);
	d->d = l;
	pthread_mutex_init(&d->lock, NULL);
#define TAKE(name) d->calls.name = l->next.name
	TAKE(CmdBindPipeline);
	TAKE(CmdBindDescriptorSets);
	TAKE(CmdPushDescriptorSetKHR);
	TAKE(CmdPushConstants);
	TAKE(CmdDispatch);
	TAKE(CmdDispatchBase);
	TAKE(CmdDispatchIndirect);
	TAKE(CmdCopyBuffer);
	TAKE(CmdFillBuffer);
	TAKE(CmdUpdateBuffer);
	TAKE(CmdPipelineBarrier);
	TAKE(CmdPipelineBarrier2);
#undef TAKE
	d->QueuePresentKHR = (PFN_vkQueuePresentKHR)l->get(l->handle, "vkQueuePresentKHR");
	d->GetSemaphoreFdKHR = (PFN_vkGetSemaphoreFdKHR)l->get(l->handle, "vkGetSemaphoreFdKHR");
	d->GetFenceFdKHR = (PFN_vkGetFenceFdKHR)l->get(l->handle, "vkGetFenceFdKHR");
	l->own = d;
	return VK_SUCCESS;
}

static void free_queue(queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->stop = true;
	pthread_cond_signal(&q->wake);
	pthread_mutex_unlock(&q->lock);
	pthread_join(q->thread, NULL);
	layer_map_take(&queues, LAYER_KEY(q->handle));
	free_slots(q->of->d, q->idle);
	free_slots(q->of->d, q->flying);
	order_free(&q->order);
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->wake);
	free(q->held.at);
	free(q->batches.at);
	free(q->waits.at);
	free(q->signals.at);
	free(q->buffers.at);
	free(q);
}

static void device_destroying(layer_device *l)
{
	device *d = l->own;
	// The fences of the slots come after the last that the program waited for.
	release(d, true);
	l->next.DeviceWaitIdle(l->handle);
	for (queue *q = d->queues, *next; q != NULL; q = next) {
		next = q->next;
		free_queue(q);
	}
	pool_of all = { .of = d, .gone = true };
	layer_map_each(&command_buffers, each_of_pool, &all);
	atomic_fetch_add(&command_buffers_gone, 1);
	for (uint32_t k = 0; k < d->layouts.count; k++)
		l->next.DestroyPipelineLayout(l->handle, d->layouts.at[k], NULL);
	free(d->layouts.at);
	layer_map_free(&d->timelines);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

static const layer_intercept intercepts[] = {
	LAYER_INTERCEPT(vkGetDeviceQueue, get_device_queue),
	LAYER_INTERCEPT(vkGetDeviceQueue2, get_device_queue2),
	LAYER_INTERCEPT(vkAllocateCommandBuffers, allocate_command_buffers),
	LAYER_INTERCEPT(vkFreeCommandBuffers, free_command_buffers),
	LAYER_INTERCEPT(vkDestroyCommandPool, destroy_command_pool),
	LAYER_INTERCEPT(vkResetCommandPool, reset_command_pool),
	LAYER_INTERCEPT(vkBeginCommandBuffer, begin_command_buffer),
	LAYER_INTERCEPT(vkEndCommandBuffer, end_command_buffer),
	LAYER_INTERCEPT(vkResetCommandBuffer, reset_command_buffer),
	LAYER_INTERCEPT(vkCmdBindPipeline, cmd_bind_pipeline),
	LAYER_INTERCEPT(vkCmdBindDescriptorSets, cmd_bind_descriptor_sets),
	LAYER_INTERCEPT(vkCmdPushDescriptorSetKHR, cmd_push_descriptor_set),
	{ "vkCmdPushDescriptorSet", (PFN_vkVoidFunction)cmd_push_descriptor_set },
	LAYER_INTERCEPT(vkCmdPushConstants, cmd_push_constants),
	LAYER_INTERCEPT(vkCmdDispatch, cmd_dispatch),
	LAYER_INTERCEPT(vkCmdDispatchBase, cmd_dispatch_base),
	LAYER_INTERCEPT(vkCmdDispatchBaseKHR, cmd_dispatch_base),
	LAYER_INTERCEPT(vkCmdDispatchIndirect, cmd_dispatch_indirect),
	LAYER_INTERCEPT(vkCmdCopyBuffer, cmd_copy_buffer),
	LAYER_INTERCEPT(vkCmdCopyBuffer2, cmd_copy_buffer2),
	LAYER_INTERCEPT(vkCmdCopyBuffer2KHR, cmd_copy_buffer2),
	LAYER_INTERCEPT(vkCmdFillBuffer, cmd_fill_buffer),
	LAYER_INTERCEPT(vkCmdUpdateBuffer, cmd_update_buffer),
	LAYER_INTERCEPT(vkCmdPipelineBarrier, cmd_pipeline_barrier),
	LAYER_INTERCEPT(vkCmdPipelineBarrier2, cmd_pipeline_barrier2),
	LAYER_INTERCEPT(vkCmdPipelineBarrier2KHR, cmd_pipeline_barrier2),
	OTHER_COMMANDS(OTHER_INTERCEPT)
	LAYER_INTERCEPT(vkCmdBeginDebugUtilsLabelEXT, cmd_label),
	LAYER_INTERCEPT(vkCmdInsertDebugUtilsLabelEXT, cmd_label),
	LAYER_INTERCEPT(vkCmdEndDebugUtilsLabelEXT, cmd_end_label),
	LAYER_INTERCEPT(vkCmdDebugMarkerBeginEXT, cmd_marker),
	LAYER_INTERCEPT(vkCmdDebugMarkerInsertEXT, cmd_marker),
	LAYER_INTERCEPT(vkCmdDebugMarkerEndEXT, cmd_end_label),
	LAYER_INTERCEPT(vkQueueBeginDebugUtilsLabelEXT, queue_label),
	LAYER_INTERCEPT(vkQueueInsertDebugUtilsLabelEXT, queue_label),
	LAYER_INTERCEPT(vkQueueEndDebugUtilsLabelEXT, queue_end_label),
	LAYER_INTERCEPT(vkDestroyPipelineLayout, destroy_pipeline_layout),
	LAYER_INTERCEPT(vkQueueSubmit, queue_submit),
	LAYER_INTERCEPT(vkQueueSubmit2, queue_submit2),
	LAYER_INTERCEPT(vkQueueSubmit2KHR, queue_submit2),
	LAYER_INTERCEPT(vkQueueBindSparse, queue_bind_sparse),
	LAYER_INTERCEPT(vkQueuePresentKHR, queue_present),
	LAYER_INTERCEPT(vkQueueWaitIdle, queue_wait_idle),
	LAYER_INTERCEPT(vkDeviceWaitIdle, device_wait_idle),
	LAYER_INTERCEPT(vkGetFenceStatus, get_fence_status),
	LAYER_INTERCEPT(vkWaitForFences, wait_for_fences),
	LAYER_INTERCEPT(vkWaitSemaphores, wait_semaphores),
	LAYER_INTERCEPT(vkWaitSemaphoresKHR, wait_semaphores),
	LAYER_INTERCEPT(vkGetSemaphoreFdKHR, get_semaphore_fd),
	LAYER_INTERCEPT(vkGetFenceFdKHR, get_fence_fd),
	LAYER_INTERCEPT(vkCreateSemaphore, create_semaphore),
	LAYER_INTERCEPT(vkDestroySemaphore, destroy_semaphore),
};

const layer_hooks layer_this = {
	.name = "VK_LAYER_VKOMP_shuffle",
	LAYER_INTERCEPTS(intercepts),
	.device_created = device_created,
	.device_destroying = device_destroying,
};
