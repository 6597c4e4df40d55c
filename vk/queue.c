#include "vko.h"

#include <stdlib.h>
#include <string.h>

// A command buffer with the descriptor pool for its dispatches.
typedef struct slot {
	struct slot *next;
	void *commands;
	vkoHandle pool; // 0 until a stream demands one
	uint32_t pool_sets, pool_descriptors;
	uint64_t value; // the timeline value after which the slot can be used again
} slot;

// Semaphores and values as vkQueueSubmit takes them.
typedef struct points {
	vkoHandle *semaphores; // capacity entries each
	uint64_t *values;
	uint32_t *stages; // all commands each
	uint32_t count, capacity;
} points;

struct vko_queue {
	const vko_device *d;
	void *handle;
	vko_family family;
	vkoHandle command_pool, timeline;
	uint64_t submitted;             // the last value that a submission signals
	vkoHandle behind;               // of an adopted device: see submit; 0 until it is needed
	uint64_t behind_submitted;      // the last value of it that a submission signals
	uint64_t completed;             // the last value that recycling read
	uint32_t slots;                 // how many slots there are
	slot *idle;                     // slots that nothing uses
	slot *sample;                   // the slot of vko_queue_sample; NULL until it has run
	slot *in_flight, **in_flight_last; // slots in flight, in the order of their values
	slot *recordings;               // the slots of vko_queue_record, of which each is a recording
	void **commands;                // scratch of a submission: its command buffers
	uint32_t command_count, command_capacity;
	points waits, signals;          // scratch of a submission
};

int32_t vko_queue_create(const vko_device *d, uintptr_t queue, vko_family family,
	vkoHandle command_pool, vko_queue **out, vko_fault *fault)
{
	vko_queue *q = calloc(1, sizeof *q);
	if (q == NULL)
		return vko_fail(fault, "vkCreateSemaphore", VKO_ERROR_OUT_OF_HOST_MEMORY, "%s", "");
	q->d = d;
	q->handle = (void *)queue;
	q->family = family;
	q->command_pool = command_pool;
	q->in_flight_last = &q->in_flight;
	int32_t r = vko_semaphore_create(d, 0, &q->timeline);
	if (r < 0) {
		free(q);
		return vko_fail(fault, "vkCreateSemaphore", r, "timeline of a queue of family %u", family.index);
	}
	*out = q;
	return 0;
}

static void destroy_slots(vko_queue *q, slot *s)
{
	while (s != NULL) {
		slot *next = s->next;
		if (s->pool != 0)
			q->d->DestroyDescriptorPool(q->d->handle, s->pool, NULL);
		free(s); // its command buffer goes with the command pool
		s = next;
	}
}

static void free_points(points *p)
{
	free(p->semaphores);
	free(p->values);
	free(p->stages);
}

void vko_queue_destroy(vko_queue *q)
{
	destroy_slots(q, q->idle);
	destroy_slots(q, q->sample);
	destroy_slots(q, q->in_flight);
	destroy_slots(q, q->recordings);
	free(q->commands);
	free_points(&q->waits);
	free_points(&q->signals);
	if (q->behind != 0)
		q->d->DestroySemaphore(q->d->handle, q->behind, NULL);
	free(q);
}

vkoHandle vko_queue_timeline(const vko_queue *q) { return q->timeline; }

uint32_t vko_queue_slots(const vko_queue *q) { return q->slots; }

// Moves the slots whose work has ended to the idle ones, according to the last known value of
// the timeline or, if look is set, its current value.
static int32_t recycle_slots(vko_queue *q, int look, vko_fault *fault)
{
	const vko_device *d = q->d;
	if (look && q->in_flight != NULL && q->in_flight->value > q->completed) {
		const vko_counter now = vko_timeline_value(d, q->timeline);
		if (now.result < 0)
			return vko_fail(fault, "vkGetSemaphoreCounterValue", now.result, "queue of family %u",
				q->family.index);
		q->completed = now.value;
	}
	while (q->in_flight != NULL && q->in_flight->value <= q->completed) {
		slot *s = q->in_flight;
		q->in_flight = s->next;
		if (q->in_flight == NULL)
			q->in_flight_last = &q->in_flight;
		s->next = q->idle;
		q->idle = s;
	}
	return 0;
}

static slot *new_slot(vko_queue *q, vko_fault *fault)
{
	const vko_device *d = q->d;
	slot *s = calloc(1, sizeof *s);
	int32_t r = VKO_ERROR_OUT_OF_HOST_MEMORY;
	if (s != NULL) {
		const vkoCommandBufferAllocateInfo info = {
			.sType = VKO_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
			.commandPool = q->command_pool,
			.level = VKO_COMMAND_BUFFER_LEVEL_PRIMARY,
			.commandBufferCount = 1,
		};
		r = d->AllocateCommandBuffers(d->handle, &info, &s->commands);
	}
	if (r < 0) {
		free(s);
		vko_fail(fault, "vkAllocateCommandBuffers", r, "queue of family %u", q->family.index);
		return NULL;
	}
	q->slots++;
	return s;
}

// Takes an idle slot, or makes one if all are in flight.
static slot *take_slot(vko_queue *q, vko_fault *fault)
{
	// If the timeline cannot be read, no slot in flight counts as idle, and a new one is made: the submission can still succeed.
	recycle_slots(q, q->idle == NULL, fault);
	slot *s = q->idle;
	if (s == NULL)
		return new_slot(q, fault);
	q->idle = s->next;
	return s;
}

int32_t vko_queue_trim(vko_queue *q, vko_fault *fault)
{
	const vko_device *d = q->d;
	if (recycle_slots(q, 1, fault))
		return 1;
	for (slot *s = q->idle; s != NULL; s = s->next) {
		d->FreeCommandBuffers(d->handle, q->command_pool, 1, &s->commands);
		q->slots--;
	}
	destroy_slots(q, q->idle);
	q->idle = NULL;
	d->TrimCommandPool(d->handle, q->command_pool, 0);
	return 0;
}

static void put_slot(vko_queue *q, slot *s)
{
	s->next = q->idle;
	q->idle = s;
}

// The next power of two, at least 64, so that a pool also serves larger batches.
static uint32_t pool_room(uint64_t demand)
{
	uint64_t room = 64;
	while (room < demand)
		room *= 2;
	return room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
}

static int32_t prepare_pool(const vko_device *d, slot *s, const vko_demand *demand, vko_fault *fault)
{
	int32_t r;
	if (demand->sets == 0)
		return 0;
	if (s->pool != 0 && s->pool_sets >= demand->sets && s->pool_descriptors >= demand->descriptors) {
		r = d->ResetDescriptorPool(d->handle, s->pool, 0);
		if (r < 0)
			return vko_fail(fault, "vkResetDescriptorPool", r, "%s", "");
		return 0;
	}
	if (demand->descriptors > UINT32_MAX)
		return vko_refuse(fault, "%llu descriptors in one stream",
			(unsigned long long)demand->descriptors);
	const vkoDescriptorPoolSize size = {
		.type = VKO_DESCRIPTOR_TYPE_STORAGE_BUFFER,
		.descriptorCount = pool_room(demand->descriptors),
	};
	const vkoDescriptorPoolCreateInfo info = {
		.sType = VKO_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
		.maxSets = pool_room(demand->sets),
		.poolSizeCount = 1,
		.pPoolSizes = &size,
	};
	vkoHandle pool = 0;
	r = d->CreateDescriptorPool(d->handle, &info, NULL, &pool);
	if (r < 0)
		return vko_fail(fault, "vkCreateDescriptorPool", r, "%u sets, %u descriptors", info.maxSets,
			size.descriptorCount);
	if (s->pool != 0)
		d->DestroyDescriptorPool(d->handle, s->pool, NULL);
	s->pool = pool;
	s->pool_sets = info.maxSets;
	s->pool_descriptors = size.descriptorCount;
	return 0;
}

// Makes room for count points; kind names them.
static int32_t grow_points(points *p, uint32_t count, const char *kind, vko_fault *fault)
{
	if (count <= p->capacity)
		return 0;
	points more = {
		.semaphores = calloc(count, sizeof *more.semaphores),
		.values = calloc(count, sizeof *more.values),
		.stages = calloc(count, sizeof *more.stages),
		.capacity = count,
	};
	if (more.semaphores == NULL || more.values == NULL || more.stages == NULL) {
		free_points(&more);
		return vko_fail(fault, "vkQueueSubmit", VKO_ERROR_OUT_OF_HOST_MEMORY, "%u %s", count, kind);
	}
	for (uint32_t k = 0; k < count; k++)
		more.stages[k] = VKO_PIPELINE_STAGE_ALL_COMMANDS_BIT;
	free_points(p);
	*p = more;
	return 0;
}

static int32_t prepare_waits(vko_queue *q, const uint64_t *waits, uint32_t count, vko_fault *fault)
{
	if (grow_points(&q->waits, count, "waits", fault))
		return 1;
	q->waits.count = count;
	for (uint32_t k = 0; k < count; k++) {
		vkoHandle semaphore = waits[2 * k];
		uint64_t value = waits[2 * k + 1];
		if (semaphore == 0)
			return vko_refuse(fault, "wait %u names no semaphore", k);
		if (semaphore == q->timeline && value > q->submitted)
			return vko_refuse(fault,
				"wait %u is for value %llu of the queue's own timeline, which only signals up to %llu: "
				"it would never end", k, (unsigned long long)value,
				(unsigned long long)q->submitted);
		q->waits.semaphores[k] = semaphore;
		q->waits.values[k] = value;
	}
	return 0;
}

// Called after prepare_waits. The queue's own semaphore, unless it is 0, comes last: drivers
// raise them in order, and code that has waited for it may destroy the others.
static int32_t prepare_signals(vko_queue *q, const uint64_t *signals, uint32_t count, vkoHandle own,
	uint64_t own_value, vko_fault *fault)
{
	points *p = &q->signals;
	if (count == UINT32_MAX)
		return vko_refuse(fault, "%u signals", count);
	if (grow_points(p, count + 1, "signals", fault))
		return 1;
	p->count = 0;
	for (uint32_t k = 0; k < count; k++) {
		vkoHandle semaphore = signals[2 * k];
		uint64_t value = signals[2 * k + 1];
		if (semaphore == 0)
			return vko_refuse(fault, "signal %u names no semaphore", k);
		if (semaphore == q->timeline)
			return vko_refuse(fault, "signal %u is of the queue's own timeline", k);
		for (uint32_t j = 0; j < k; j++)
			if (signals[2 * j] == semaphore)
				return vko_refuse(fault, "signals %u and %u are of one semaphore", j, k);
		for (uint32_t j = 0; j < q->waits.count; j++)
			if (q->waits.semaphores[j] == semaphore && q->waits.values[j] >= value)
				return vko_refuse(fault,
					"signal %u is of value %llu and wait %u for value %llu of one semaphore: "
					"it would never end, or go backwards", k, (unsigned long long)value,
					j, (unsigned long long)q->waits.values[j]);
		p->semaphores[p->count] = semaphore;
		p->values[p->count++] = value;
	}
	if (own != 0) {
		p->semaphores[p->count] = own;
		p->values[p->count++] = own_value;
	}
	return 0;
}

// An adopted device cannot be waited for as a whole, and drivers (Mesa's) may use the semaphores
// for which a batch waits even after they have raised those that it signals. So a second, empty
// batch is submitted after a batch that waits or that does not signal the timeline: when behind
// reaches its value, nothing uses the first batch any more.
static int32_t submit(vko_queue *q, uint32_t count, void *const *commands, uint64_t signal,
	vko_fault *fault)
{
	const int followed = q->d->adopted && (q->waits.count > 0 || signal == 0);
	if (followed && q->behind == 0) {
		int32_t r = vko_semaphore_create(q->d, 0, &q->behind);
		if (r < 0)
			return vko_fail(fault, "vkCreateSemaphore", r, "queue of family %u", q->family.index);
	}
	const uint64_t behind_value = q->behind_submitted + 1;
	const vkoTimelineSemaphoreSubmitInfo behind_values = {
		.sType = VKO_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
		.signalSemaphoreValueCount = 1,
		.pSignalSemaphoreValues = &behind_value,
	};
	const vkoTimelineSemaphoreSubmitInfo values = {
		.sType = VKO_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
		.waitSemaphoreValueCount = q->waits.count,
		.pWaitSemaphoreValues = q->waits.values,
		.signalSemaphoreValueCount = q->signals.count,
		.pSignalSemaphoreValues = q->signals.values,
	};
	const vkoSubmitInfo info[2] = { {
		.sType = VKO_STRUCTURE_TYPE_SUBMIT_INFO,
		.pNext = &values,
		.waitSemaphoreCount = q->waits.count,
		.pWaitSemaphores = q->waits.semaphores,
		.pWaitDstStageMask = q->waits.stages,
		.commandBufferCount = count,
		.pCommandBuffers = commands,
		.signalSemaphoreCount = q->signals.count,
		.pSignalSemaphores = q->signals.semaphores,
	}, {
		.sType = VKO_STRUCTURE_TYPE_SUBMIT_INFO,
		.pNext = &behind_values,
		.signalSemaphoreCount = 1,
		.pSignalSemaphores = &q->behind,
	} };
	int32_t r = q->d->QueueSubmit(q->handle, followed ? 2 : 1, info, 0);
	if (r < 0)
		return vko_fail(fault, "vkQueueSubmit", r, "queue of family %u, signal %llu",
			q->family.index, (unsigned long long)signal);
	if (signal != 0)
		q->submitted = signal;
	if (followed)
		q->behind_submitted = behind_value;
	return 0;
}

int32_t vko_queue_order(vko_queue *q, const uint64_t *waits, uint32_t wait_count,
	const uint64_t *signals, uint32_t signal_count, vko_fault *fault)
{
	return prepare_waits(q, waits, wait_count, fault) ||
		prepare_signals(q, signals, signal_count, 0, 0, fault) ||
		submit(q, 0, NULL, 0, fault);
}

static slot **find_recording(vko_queue *q, uint64_t recording)
{
	slot **s = &q->recordings;
	while (*s != NULL && (uint64_t)(uintptr_t)*s != recording)
		s = &(*s)->next;
	return s;
}

int32_t vko_queue_record(vko_queue *q, const uint64_t *words, uint64_t count, uint64_t *recording,
	vko_fault *fault)
{
	const vko_device *d = q->d;
	vko_demand demand;
	uint64_t nested;
	if (vko_scan(d, q->family, words, count, &demand, fault))
		return 1;
	if (vko_before_execution(words, count, &nested) < count)
		return vko_refuse(fault, "%s", "a recording that executes a recording");
	slot *s = new_slot(q, fault);
	if (s == NULL)
		return 1;
	if (prepare_pool(d, s, &demand, fault) ||
		vko_record(d, s->commands, s->pool, VKO_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, words,
			count, fault)) {
		put_slot(q, s);
		return 1;
	}
	s->next = q->recordings;
	q->recordings = s;
	*recording = (uint64_t)(uintptr_t)s;
	return 0;
}

int32_t vko_queue_forget(vko_queue *q, uint64_t recording)
{
	slot **at = find_recording(q, recording);
	slot *s = *at;
	if (s == NULL)
		return 1;
	*at = s->next;
	s->next = NULL;
	q->d->FreeCommandBuffers(q->d->handle, q->command_pool, 1, &s->commands);
	q->slots--;
	destroy_slots(q, s);
	return 0;
}

static int32_t add_commands(vko_queue *q, void *commands, vko_fault *fault)
{
	if (q->command_count == q->command_capacity) {
		const uint32_t capacity = q->command_capacity * 2 + 4;
		void **more = realloc(q->commands, capacity * sizeof *more);
		if (more == NULL)
			return vko_fail(fault, "vkQueueSubmit", VKO_ERROR_OUT_OF_HOST_MEMORY,
				"%u command buffers", capacity);
		q->commands = more;
		q->command_capacity = capacity;
	}
	q->commands[q->command_count++] = commands;
	return 0;
}

// Lists the command buffers of a stream that vko_scan passed: those of the recordings that it executes,
// and of slots for what is between them, which go to *taken.
static int32_t prepare_commands(vko_queue *q, const uint64_t *words, uint64_t count,
	const vko_demand *demand, slot **taken, vko_fault *fault)
{
	q->command_count = 0;
	while (count > 0) {
		uint64_t recording;
		const uint64_t n = vko_before_execution(words, count, &recording);
		if (n > 0) {
			slot *s = take_slot(q, fault);
			if (s == NULL)
				return 1;
			s->next = *taken;
			*taken = s;
			// The demand is that of the whole stream, so that pools are reused.
			if (prepare_pool(q->d, s, demand, fault) ||
				vko_record(q->d, s->commands, s->pool,
					VKO_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, words, n, fault) ||
				add_commands(q, s->commands, fault))
				return 1;
		}
		words += n;
		count -= n;
		if (count == 0)
			break;
		slot *s = *find_recording(q, recording);
		if (s == NULL)
			return vko_refuse(fault, "execute: recording %llu is none of this queue",
				(unsigned long long)recording);
		if (add_commands(q, s->commands, fault))
			return 1;
		words += VKO_EXECUTION_WORDS;
		count -= VKO_EXECUTION_WORDS;
	}
	return 0;
}

int32_t vko_queue_submit(vko_queue *q, const uint64_t *words, uint64_t count,
	const uint64_t *waits, uint32_t wait_count, const uint64_t *signals, uint32_t signal_count,
	uint64_t signal, vko_fault *fault)
{
	if (signal <= q->submitted)
		return vko_refuse(fault, "signal %llu is not above %llu, which is submitted",
			(unsigned long long)signal, (unsigned long long)q->submitted);
	if (prepare_waits(q, waits, wait_count, fault) ||
		prepare_signals(q, signals, signal_count, q->timeline, signal, fault))
		return 1;
	if (count == 0)
		return submit(q, 0, NULL, signal, fault);
	vko_demand demand;
	if (vko_scan(q->d, q->family, words, count, &demand, fault))
		return 1;
	slot *taken = NULL;
	const int32_t failed = prepare_commands(q, words, count, &demand, &taken, fault) ||
		submit(q, q->command_count, q->commands, signal, fault);
	while (taken != NULL) {
		slot *s = taken;
		taken = s->next;
		if (failed) {
			put_slot(q, s);
			continue;
		}
		s->value = signal;
		s->next = NULL;
		*q->in_flight_last = s;
		q->in_flight_last = &s->next;
	}
	return failed;
}

int32_t vko_queue_sample(vko_queue *q, const uint64_t *words, uint64_t count, vkoHandle semaphore,
	uint64_t value, vko_fault *fault)
{
	vko_demand demand;
	if (prepare_waits(q, NULL, 0, fault) ||
		prepare_signals(q, NULL, 0, semaphore, value, fault) ||
		vko_scan(q->d, q->family, words, count, &demand, fault))
		return 1;
	if (q->sample == NULL) {
		q->sample = take_slot(q, fault);
		if (q->sample == NULL)
			return 1;
		q->sample->next = NULL;
	}
	return vko_record(q->d, q->sample->commands, 0, VKO_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
		       words, count, fault) ||
		submit(q, 1, &q->sample->commands, 0, fault);
}

int32_t vko_queue_finish(const vko_queue *q)
{
	int32_t r = vko_semaphore_wait(q->d, q->timeline, q->submitted, UINT64_MAX);
	if (r == VKO_SUCCESS && q->behind != 0)
		r = vko_semaphore_wait(q->d, q->behind, q->behind_submitted, UINT64_MAX);
	return r;
}
