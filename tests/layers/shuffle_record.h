// What a command buffer of the program holds, as the layer keeps it: a list of
// commands that each stand alone, so that they can be recorded again in another
// order. A command that uses a pipeline names the descriptors and the push
// constants it is to find bound: snapshots of the binding calls that were in
// effect, shared by the commands between which nothing was bound.
//
//	bytes  [snapshot][snapshot][dispatch][barrier][dispatch][copy] ...
//
// All entries begin with an entry header and take a multiple of 8 bytes. A list
// refers to its snapshots by their offset, since it moves while it grows. It is
// written by the thread that records and, from vkEndCommandBuffer on, read by
// whoever submits.
#ifndef SHUFFLE_RECORD_H
#define SHUFFLE_RECORD_H

#include "shuffle_order.h"

#include <string.h>

// The calls that lists are replayed with.
typedef struct record_calls {
	PFN_vkCmdBindPipeline CmdBindPipeline;
	PFN_vkCmdBindDescriptorSets CmdBindDescriptorSets;
	PFN_vkCmdPushDescriptorSetKHR CmdPushDescriptorSetKHR;
	PFN_vkCmdPushConstants CmdPushConstants;
	PFN_vkCmdDispatch CmdDispatch;
	PFN_vkCmdDispatchBase CmdDispatchBase;
	PFN_vkCmdDispatchIndirect CmdDispatchIndirect;
	PFN_vkCmdCopyBuffer CmdCopyBuffer;
	PFN_vkCmdFillBuffer CmdFillBuffer;
	PFN_vkCmdUpdateBuffer CmdUpdateBuffer;
	PFN_vkCmdPipelineBarrier CmdPipelineBarrier;
	PFN_vkCmdPipelineBarrier2 CmdPipelineBarrier2;
} record_calls;

typedef enum entry_kind {
	ENTRY_SNAPSHOT, // of bind calls: entries of the next three kinds
	ENTRY_BIND_SETS,
	ENTRY_PUSH_SET,
	ENTRY_PUSH_CONSTANTS,
	ENTRY_DISPATCH,
	ENTRY_DISPATCH_INDIRECT,
	ENTRY_COPY,
	ENTRY_FILL,
	ENTRY_UPDATE,
	ENTRY_BARRIER,
	ENTRY_BARRIER2,
} entry_kind;

typedef struct entry {
	uint32_t kind;
	uint32_t bytes; // of the whole entry
} entry;

typedef struct entry_list {
	uint8_t *data;
	size_t size, capacity;
} entry_list;

typedef struct bind_sets {
	entry head;
	VkPipelineLayout layout;
	uint32_t first, count, dynamic, unused;
	VkDescriptorSet sets[]; // then the dynamic offsets
} bind_sets;

typedef struct push_write {
	uint32_t binding, element, count;
	VkDescriptorType type;
	uint32_t info; // the first of its descriptors, in the infos of the call
	uint32_t unused;
} push_write;

typedef struct push_set {
	entry head;
	VkPipelineLayout layout;
	uint32_t set, count;
	push_write writes[]; // then VkDescriptorBufferInfo
} push_set;

typedef struct push_constants {
	entry head;
	VkPipelineLayout layout;
	VkShaderStageFlags stages;
	uint32_t offset, size, unused;
	uint8_t values[];
} push_constants;

// Of a dispatch and of an indirect one.
typedef struct dispatch {
	entry head;
	VkPipeline pipeline;
	size_t descriptors, constants; // offsets of snapshots
	uint32_t base[3], groups[3];
	VkBuffer indirect;
	VkDeviceSize at;
} dispatch;

typedef struct copy {
	entry head;
	VkBuffer source, destination;
	uint32_t count, unused;
	VkBufferCopy regions[];
} copy;

// Of a fill and of an update, whose values follow.
typedef struct fill {
	entry head;
	VkBuffer buffer;
	VkDeviceSize offset, size;
	uint32_t value, unused;
	uint8_t values[];
} fill;

typedef struct barrier {
	entry head;
	VkPipelineStageFlags source, destination;
	VkDependencyFlags flags;
	uint32_t memory_count, buffer_count, unused;
	uint64_t barriers[]; // VkMemoryBarrier, then VkBufferMemoryBarrier
} barrier;

// One barrier of a vkCmdPipelineBarrier2, each of which has scopes of its own.
typedef struct barrier2 {
	entry head;
	VkDependencyFlags flags;
	uint32_t more; // how many of the same call follow
	VkStructureType type;
	uint32_t unused;
	union {
		VkMemoryBarrier2 memory;
		VkBufferMemoryBarrier2 buffer;
	} of;
} barrier2;

static size_t whole_words(size_t bytes) { return (bytes + 7) & ~(size_t)7; }

// The new entry, zeroed up to its array; NULL: out of memory.
static void *entry_add(entry_list *l, entry_kind kind, size_t bytes)
{
	bytes = whole_words(bytes);
	if (bytes > UINT32_MAX)
		return NULL;
	if (l->capacity - l->size < bytes) {
		size_t capacity = l->capacity == 0 ? 1024 : l->capacity * 2;
		while (capacity - l->size < bytes)
			capacity *= 2;
		uint8_t *data = realloc(l->data, capacity);
		if (data == NULL)
			return NULL;
		l->data = data;
		l->capacity = capacity;
	}
	entry *e = (entry *)(l->data + l->size);
	l->size += bytes;
	e->kind = (uint32_t)kind;
	e->bytes = (uint32_t)bytes;
	return e;
}

static void entry_remove(entry_list *l, entry *e)
{
	uint8_t *at = (uint8_t *)e, *end = l->data + l->size;
	size_t bytes = e->bytes;
	memmove(at, at + bytes, (size_t)(end - at) - bytes);
	l->size -= bytes;
}

static entry *entry_at(const entry_list *l, size_t offset) { return (entry *)(l->data + offset); }

static const uint32_t *dynamic_offsets(const bind_sets *b) { return (const uint32_t *)&b->sets[b->count]; }

static const VkDescriptorBufferInfo *push_infos(const push_set *p)
{
	return (const VkDescriptorBufferInfo *)&p->writes[p->count];
}

static bool write_covered(const push_set *by, const push_write *w)
{
	for (uint32_t k = 0; k < by->count; k++) {
		const push_write *c = &by->writes[k];
		if (c->binding == w->binding && c->element <= w->element &&
			w->element + w->count <= c->element + c->count)
			return true;
	}
	return false;
}

// Whether nothing is left of an earlier binding call after a later one.
static bool entry_covered(const entry *later, const entry *earlier)
{
	if (later->kind == ENTRY_PUSH_CONSTANTS) {
		const push_constants *c = (const push_constants *)later;
		const push_constants *e = (const push_constants *)earlier;
		return c->stages == e->stages && c->offset <= e->offset &&
		       e->offset + e->size <= c->offset + c->size;
	}
	uint32_t first, end;
	if (later->kind == ENTRY_BIND_SETS) {
		first = ((const bind_sets *)later)->first;
		end = first + ((const bind_sets *)later)->count;
	} else {
		first = ((const push_set *)later)->set;
		end = first + 1;
	}
	if (earlier->kind == ENTRY_BIND_SETS) {
		const bind_sets *e = (const bind_sets *)earlier;
		return first <= e->first && e->first + e->count <= end;
	}
	const push_set *e = (const push_set *)earlier;
	if (e->set < first || e->set >= end)
		return false;
	if (later->kind == ENTRY_BIND_SETS)
		return true;
	for (uint32_t k = 0; k < e->count; k++)
		if (!write_covered((const push_set *)later, &e->writes[k]))
			return false;
	return true;
}

// Takes the entry that was added last for a later binding call than all others.
static void entry_supersede(entry_list *l, size_t added)
{
	for (size_t at = 0; at < added;) {
		entry *e = entry_at(l, at);
		uint32_t bytes = e->bytes;
		if (entry_covered(entry_at(l, added), e)) {
			entry_remove(l, e);
			added -= bytes;
		} else {
			at += bytes;
		}
	}
}

// What a program has recorded.
typedef struct recording {
	entry_list commands;
	// What is bound now, and the snapshots of it; SIZE_MAX: none since it changed.
	VkPipeline pipeline;
	entry_list descriptors, constants;
	size_t descriptors_at, constants_at;
	uint32_t count; // commands, without snapshots
} recording;

static void recording_reset(recording *r)
{
	r->commands.size = r->descriptors.size = r->constants.size = 0;
	r->descriptors_at = r->constants_at = SIZE_MAX;
	r->pipeline = VK_NULL_HANDLE;
	r->count = 0;
}

static void recording_free(recording *r)
{
	free(r->commands.data);
	free(r->descriptors.data);
	free(r->constants.data);
	*r = (recording){ 0 };
}

static bool record_bind_sets(recording *r, VkPipelineLayout layout, uint32_t first, uint32_t count,
	const VkDescriptorSet *sets, uint32_t dynamic, const uint32_t *offsets)
{
	size_t at = r->descriptors.size;
	bind_sets *b = entry_add(&r->descriptors, ENTRY_BIND_SETS,
		sizeof *b + sizeof *sets * count + sizeof *offsets * dynamic);
	if (b == NULL)
		return false;
	b->layout = layout;
	b->first = first;
	b->count = count;
	b->dynamic = dynamic;
	memcpy(b->sets, sets, sizeof *sets * count);
	if (dynamic > 0)
		memcpy(&b->sets[count], offsets, sizeof *offsets * dynamic);
	entry_supersede(&r->descriptors, at);
	r->descriptors_at = SIZE_MAX;
	return true;
}

enum { MAX_PUSH_WRITES = 64 };

// Whether writes are few, and hold nothing but buffers.
static bool writes_of_buffers(uint32_t count, const VkWriteDescriptorSet *writes)
{
	if (count > MAX_PUSH_WRITES)
		return false;
	for (uint32_t k = 0; k < count; k++)
		if (writes[k].pNext != NULL ||
			(writes[k].descriptorType != VK_DESCRIPTOR_TYPE_STORAGE_BUFFER &&
				writes[k].descriptorType != VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER))
			return false;
	return true;
}

static bool record_push_set(recording *r, VkPipelineLayout layout, uint32_t set, uint32_t count,
	const VkWriteDescriptorSet *writes)
{
	uint32_t infos = 0;
	for (uint32_t k = 0; k < count; k++)
		infos += writes[k].descriptorCount;
	size_t at = r->descriptors.size;
	push_set *p = entry_add(&r->descriptors, ENTRY_PUSH_SET,
		sizeof *p + sizeof p->writes[0] * count + sizeof(VkDescriptorBufferInfo) * infos);
	if (p == NULL)
		return false;
	p->layout = layout;
	p->set = set;
	p->count = count;
	infos = 0;
	VkDescriptorBufferInfo *to = (VkDescriptorBufferInfo *)&p->writes[count];
	for (uint32_t k = 0; k < count; k++) {
		p->writes[k] = (push_write){
			.binding = writes[k].dstBinding,
			.element = writes[k].dstArrayElement,
			.count = writes[k].descriptorCount,
			.type = writes[k].descriptorType,
			.info = infos,
		};
		memcpy(&to[infos], writes[k].pBufferInfo, sizeof *to * writes[k].descriptorCount);
		infos += writes[k].descriptorCount;
	}
	entry_supersede(&r->descriptors, at);
	r->descriptors_at = SIZE_MAX;
	return true;
}

static bool record_push_constants(recording *r, VkPipelineLayout layout, VkShaderStageFlags stages,
	uint32_t offset, uint32_t size, const void *values)
{
	size_t at = r->constants.size;
	push_constants *p = entry_add(&r->constants, ENTRY_PUSH_CONSTANTS, sizeof *p + size);
	if (p == NULL)
		return false;
	p->layout = layout;
	p->stages = stages;
	p->offset = offset;
	p->size = size;
	memcpy(p->values, values, size);
	entry_supersede(&r->constants, at);
	r->constants_at = SIZE_MAX;
	return true;
}

static bool record_snapshot(recording *r, const entry_list *of, size_t *at)
{
	if (*at != SIZE_MAX)
		return true;
	size_t offset = r->commands.size;
	entry *e = entry_add(&r->commands, ENTRY_SNAPSHOT, sizeof *e + of->size);
	if (e == NULL)
		return false;
	if (of->size > 0)
		memcpy(e + 1, of->data, of->size);
	*at = offset;
	return true;
}

// d gives all but what is bound.
static bool record_dispatch(recording *r, entry_kind kind, const dispatch *d)
{
	if (!record_snapshot(r, &r->descriptors, &r->descriptors_at) ||
		!record_snapshot(r, &r->constants, &r->constants_at))
		return false;
	dispatch *added = entry_add(&r->commands, kind, sizeof *added);
	if (added == NULL)
		return false;
	const entry head = added->head;
	*added = *d;
	added->head = head;
	added->pipeline = r->pipeline;
	added->descriptors = r->descriptors_at;
	added->constants = r->constants_at;
	r->count++;
	return true;
}

static copy *record_copy(recording *r, VkBuffer source, VkBuffer destination, uint32_t count)
{
	copy *c = entry_add(&r->commands, ENTRY_COPY, sizeof *c + sizeof c->regions[0] * count);
	if (c == NULL)
		return NULL;
	c->source = source;
	c->destination = destination;
	c->count = count;
	r->count++;
	return c;
}

static bool record_fill(recording *r, VkBuffer buffer, VkDeviceSize offset, VkDeviceSize size,
	uint32_t value, const void *values)
{
	size_t bytes = values != NULL ? size : 0;
	fill *f = entry_add(&r->commands, values != NULL ? ENTRY_UPDATE : ENTRY_FILL, sizeof *f + bytes);
	if (f == NULL)
		return false;
	f->buffer = buffer;
	f->offset = offset;
	f->size = size;
	f->value = value;
	if (bytes > 0)
		memcpy(f->values, values, bytes);
	r->count++;
	return true;
}

static bool record_barrier(recording *r, VkPipelineStageFlags source, VkPipelineStageFlags destination,
	VkDependencyFlags flags, uint32_t memory_count, const VkMemoryBarrier *memory,
	uint32_t buffer_count, const VkBufferMemoryBarrier *buffers)
{
	barrier *b = entry_add(&r->commands, ENTRY_BARRIER,
		sizeof *b + sizeof *memory * memory_count + sizeof *buffers * buffer_count);
	if (b == NULL)
		return false;
	b->source = source;
	b->destination = destination;
	b->flags = flags;
	b->memory_count = memory_count;
	b->buffer_count = buffer_count;
	VkMemoryBarrier *to = (VkMemoryBarrier *)b->barriers;
	if (memory_count > 0)
		memcpy(to, memory, sizeof *memory * memory_count);
	if (buffer_count > 0)
		memcpy(to + memory_count, buffers, sizeof *buffers * buffer_count);
	r->count++;
	return true;
}

static bool record_barrier2(recording *r, const VkDependencyInfo *info)
{
	const uint32_t memory = info->memoryBarrierCount;
	const uint32_t count = memory + info->bufferMemoryBarrierCount;
	for (uint32_t k = 0; k < count; k++) {
		barrier2 *b = entry_add(&r->commands, ENTRY_BARRIER2, sizeof *b);
		if (b == NULL)
			return false;
		b->flags = info->dependencyFlags;
		b->more = count - 1 - k;
		if (k < memory)
			b->of.memory = info->pMemoryBarriers[k];
		else
			b->of.buffer = info->pBufferMemoryBarriers[k - memory];
		b->type = b->of.memory.sType; // both begin with it
		r->count++;
	}
	return true;
}

// What a command buffer that is being written has bound.
typedef struct replay {
	const record_calls *calls;
	VkCommandBuffer to;
	VkPipeline pipeline;
	const entry *descriptors, *constants; // the snapshots in effect
} replay;

static void replay_push_set(const replay *to, const push_set *p)
{
	VkWriteDescriptorSet writes[MAX_PUSH_WRITES];
	for (uint32_t k = 0; k < p->count; k++)
		writes[k] = (VkWriteDescriptorSet){
			.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
			.dstBinding = p->writes[k].binding,
			.dstArrayElement = p->writes[k].element,
			.descriptorCount = p->writes[k].count,
			.descriptorType = p->writes[k].type,
			.pBufferInfo = push_infos(p) + p->writes[k].info,
		};
	to->calls->CmdPushDescriptorSetKHR(to->to, VK_PIPELINE_BIND_POINT_COMPUTE, p->layout, p->set,
		p->count, writes);
}

// Makes the binding calls from begin to end.
static void replay_bindings(const replay *to, const entry *begin, const entry *end)
{
	for (const entry *e = begin; e < end; e = (const entry *)((const uint8_t *)e + e->bytes))
		switch (e->kind) {
		case ENTRY_BIND_SETS: {
			const bind_sets *b = (const bind_sets *)e;
			to->calls->CmdBindDescriptorSets(to->to, VK_PIPELINE_BIND_POINT_COMPUTE, b->layout,
				b->first, b->count, b->sets, b->dynamic, dynamic_offsets(b));
			break;
		}
		case ENTRY_PUSH_SET:
			replay_push_set(to, (const push_set *)e);
			break;
		case ENTRY_PUSH_CONSTANTS: {
			const push_constants *p = (const push_constants *)e;
			to->calls->CmdPushConstants(to->to, p->layout, p->stages, p->offset, p->size, p->values);
			break;
		}
		}
}

static void replay_snapshot(const replay *to, const entry *e)
{
	replay_bindings(to, e + 1, (const entry *)((const uint8_t *)e + e->bytes));
}

static void replay_dispatch(replay *to, const recording *r, const dispatch *d)
{
	const entry *descriptors = entry_at(&r->commands, d->descriptors);
	const entry *constants = entry_at(&r->commands, d->constants);
	const bool other = to->pipeline != d->pipeline; // perhaps with an incompatible layout
	if (other)
		to->calls->CmdBindPipeline(to->to, VK_PIPELINE_BIND_POINT_COMPUTE, d->pipeline);
	if (other || to->descriptors != descriptors)
		replay_snapshot(to, descriptors);
	if (other || to->constants != constants)
		replay_snapshot(to, constants);
	to->pipeline = d->pipeline;
	to->descriptors = descriptors;
	to->constants = constants;
	if (d->head.kind == ENTRY_DISPATCH_INDIRECT)
		to->calls->CmdDispatchIndirect(to->to, d->indirect, d->at);
	else if ((d->base[0] | d->base[1] | d->base[2]) == 0)
		to->calls->CmdDispatch(to->to, d->groups[0], d->groups[1], d->groups[2]);
	else
		to->calls->CmdDispatchBase(to->to, d->base[0], d->base[1], d->base[2], d->groups[0],
			d->groups[1], d->groups[2]);
}

static void replay_command(replay *to, const recording *r, const entry *e)
{
	switch (e->kind) {
	case ENTRY_DISPATCH:
	case ENTRY_DISPATCH_INDIRECT:
		replay_dispatch(to, r, (const dispatch *)e);
		break;
	case ENTRY_COPY: {
		const copy *c = (const copy *)e;
		to->calls->CmdCopyBuffer(to->to, c->source, c->destination, c->count, c->regions);
		break;
	}
	case ENTRY_FILL: {
		const fill *f = (const fill *)e;
		to->calls->CmdFillBuffer(to->to, f->buffer, f->offset, f->size, f->value);
		break;
	}
	case ENTRY_UPDATE: {
		const fill *f = (const fill *)e;
		to->calls->CmdUpdateBuffer(to->to, f->buffer, f->offset, f->size, f->values);
		break;
	}
	case ENTRY_BARRIER: {
		const barrier *b = (const barrier *)e;
		const VkMemoryBarrier *memory = (const VkMemoryBarrier *)b->barriers;
		to->calls->CmdPipelineBarrier(to->to, b->source, b->destination, b->flags,
			b->memory_count, memory, b->buffer_count,
			(const VkBufferMemoryBarrier *)(memory + b->memory_count), 0, NULL);
		break;
	}
	case ENTRY_BARRIER2: {
		const barrier2 *b = (const barrier2 *)e;
		const bool memory = b->type == VK_STRUCTURE_TYPE_MEMORY_BARRIER_2;
		const VkDependencyInfo info = {
			.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
			.dependencyFlags = b->flags,
			.memoryBarrierCount = memory,
			.pMemoryBarriers = &b->of.memory,
			.bufferMemoryBarrierCount = !memory,
			.pBufferMemoryBarriers = &b->of.buffer,
		};
		to->calls->CmdPipelineBarrier2(to->to, &info);
		break;
	}
	}
}

// The first command of a list; NULL: none.
static const entry *command_next(const recording *r, const entry *after)
{
	const uint8_t *at = after == NULL ? r->commands.data : (const uint8_t *)after + after->bytes;
	const uint8_t *end = r->commands.data + r->commands.size;
	while (at < end && ((const entry *)at)->kind == ENTRY_SNAPSHOT)
		at += ((const entry *)at)->bytes;
	return at < end ? (const entry *)at : NULL;
}

// All of a recording in its own order, and then what it has bound at the end.
static void replay_all(const record_calls *calls, const recording *r, VkCommandBuffer into)
{
	replay to = { .calls = calls, .to = into };
	for (const entry *e = command_next(r, NULL); e != NULL; e = command_next(r, e))
		replay_command(&to, r, e);
	if (r->pipeline != VK_NULL_HANDLE)
		calls->CmdBindPipeline(into, VK_PIPELINE_BIND_POINT_COMPUTE, r->pipeline);
	replay_bindings(&to, (const entry *)r->descriptors.data,
		(const entry *)(r->descriptors.data + r->descriptors.size));
	replay_bindings(&to, (const entry *)r->constants.data,
		(const entry *)(r->constants.data + r->constants.size));
}

// The scopes of a barrier of vkCmdPipelineBarrier2. False: it hands a buffer to
// another queue family.
static bool barrier2_scopes(const barrier2 *b, uint32_t *first, uint32_t *second)
{
	const bool memory = b->type == VK_STRUCTURE_TYPE_MEMORY_BARRIER_2;
	*first = first_scope(memory ? b->of.memory.srcStageMask : b->of.buffer.srcStageMask);
	*second = second_scope(memory ? b->of.memory.dstStageMask : b->of.buffer.dstStageMask);
	return memory || b->of.buffer.srcQueueFamilyIndex == b->of.buffer.dstQueueFamilyIndex;
}

// Adds all barriers of one call: they do not chain among themselves. Gives the
// last one.
static const entry *order_barriers2(order *o, const recording *r, const entry *e)
{
	uint32_t first, second, node = o->node_count;
	const order_front front = o->front;
	const entry *last = e;
	bool within = true;
	for (const entry *at = e;; at = command_next(r, at)) {
		within &= barrier2_scopes((const barrier2 *)at, &first, &second);
		last = at;
		if (((const barrier2 *)at)->more == 0)
			break;
	}
	for (const entry *at = e;; at = command_next(r, at)) {
		barrier2_scopes((const barrier2 *)at, &first, &second);
		if (within)
			order_barrier_after(o, first, at, r);
		else
			order_wall(o, at, r);
		if (at == last)
			break;
	}
	for (const entry *at = e; within; at = command_next(r, at), node++) {
		barrier2_scopes((const barrier2 *)at, &first, &second);
		order_barrier_before(o, node, first, second, &front);
		if (at == last)
			break;
	}
	return last;
}

static void order_barrier1(order *o, const recording *r, const entry *e)
{
	const barrier *b = (const barrier *)e;
	const VkBufferMemoryBarrier *buffers = (const VkBufferMemoryBarrier *)
		((const VkMemoryBarrier *)b->barriers + b->memory_count);
	for (uint32_t k = 0; k < b->buffer_count; k++)
		if (buffers[k].srcQueueFamilyIndex != buffers[k].dstQueueFamilyIndex) {
			order_wall(o, e, r);
			return;
		}
	order_barrier(o, first_scope(b->source), second_scope(b->destination), e, r);
}

// Adds all commands. Fills and updates count as copies too: the specification
// leaves open which of the two stages of synchronization2 they belong to.
static void order_recording(order *o, const recording *r)
{
	for (const entry *e = command_next(r, NULL); e != NULL; e = command_next(r, e))
		switch (e->kind) {
		case ENTRY_DISPATCH:
			order_command(o, STAGE_COMPUTE, e, r);
			break;
		case ENTRY_DISPATCH_INDIRECT:
			order_command(o, STAGE_COMPUTE | STAGE_INDIRECT, e, r);
			break;
		case ENTRY_COPY:
			order_command(o, STAGE_COPY, e, r);
			break;
		case ENTRY_FILL:
		case ENTRY_UPDATE:
			order_command(o, STAGE_COPY | STAGE_CLEAR, e, r);
			break;
		case ENTRY_BARRIER:
			order_barrier1(o, r, e);
			break;
		case ENTRY_BARRIER2:
			e = order_barriers2(o, r, e);
			break;
		}
}

#endif
