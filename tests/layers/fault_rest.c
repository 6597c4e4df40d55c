// What keeps and signals the values of timeline semaphores that fault_rest.h speaks of.
#define _GNU_SOURCE
#include "fault_rest.h"

#include <stdlib.h>
#include <time.h>

// A value that a submission waits for or signals.
typedef struct operation {
	uint64_t value;
	VkQueue waiting; // NULL for a signal
} operation;

typedef struct timeline {
	VkSemaphore handle;
	size_t count, room;
	operation *operations;
} timeline;

static void free_timeline(timeline *t)
{
	if (t == NULL)
		return;
	free(t->operations);
	free(t);
}

static bool free_each(uint64_t key, void *value, void *context)
{
	(void)key, (void)context;
	free_timeline(value);
	return true;
}

void rest_free(rest *r)
{
	layer_map_each(&r->timelines, free_each, NULL);
	layer_map_free(&r->timelines);
}

void rest_created(rest *r, const VkSemaphoreCreateInfo *info, VkSemaphore semaphore)
{
	const VkSemaphoreTypeCreateInfo *type =
		layer_chained(info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
	if (type == NULL || type->semaphoreType != VK_SEMAPHORE_TYPE_TIMELINE)
		return;
	timeline *t = layer_allocate(sizeof *t);
	t->handle = semaphore;
	layer_map_put(&r->timelines, LAYER_KEY(semaphore), t);
}

void rest_forget(rest *r, VkSemaphore semaphore)
{
	pthread_mutex_lock(&r->lock);
	free_timeline(layer_map_take(&r->timelines, LAYER_KEY(semaphore)));
	pthread_mutex_unlock(&r->lock);
}

// Removes what is over, and makes room for one more.
static void make_room(layer_device *d, timeline *t)
{
	uint64_t now = 0;
	(void)d->next.GetSemaphoreCounterValue(d->handle, t->handle, &now);
	size_t kept = 0;
	for (size_t k = 0; k < t->count; k++)
		if (t->operations[k].value > now)
			t->operations[kept++] = t->operations[k];
	t->count = kept;
	if (2 * kept < t->room)
		return;
	t->room = 2 * t->room + 16;
	t->operations = realloc(t->operations, t->room * sizeof *t->operations);
	if (t->operations == NULL)
		layer_die("no memory for what a semaphore is waited for");
}

static void add(layer_device *d, rest *r, VkSemaphore semaphore, uint64_t value, VkQueue waiting)
{
	timeline *t = layer_map_get(&r->timelines, LAYER_KEY(semaphore));
	if (t == NULL)
		return;
	if (t->count == t->room)
		make_room(d, t);
	t->operations[t->count++] = (operation){ value, waiting };
}

void rest_submitted(layer_device *d, rest *r, VkQueue queue, uint32_t count,
	const VkSubmitInfo *infos)
{
	for (const VkSubmitInfo *info = infos; info < infos + count; info++) {
		const VkTimelineSemaphoreSubmitInfo *values =
			layer_chained(info->pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
		if (values == NULL)
			continue; // it has binary semaphores at most
		for (uint32_t k = 0; k < info->waitSemaphoreCount && k < values->waitSemaphoreValueCount; k++)
			add(d, r, info->pWaitSemaphores[k], values->pWaitSemaphoreValues[k], queue);
		for (uint32_t k = 0; k < info->signalSemaphoreCount && k < values->signalSemaphoreValueCount; k++)
			add(d, r, info->pSignalSemaphores[k], values->pSignalSemaphoreValues[k], NULL);
	}
}

void rest_submitted2(layer_device *d, rest *r, VkQueue queue, uint32_t count,
	const VkSubmitInfo2 *infos)
{
	for (const VkSubmitInfo2 *info = infos; info < infos + count; info++) {
		for (uint32_t k = 0; k < info->waitSemaphoreInfoCount; k++)
			add(d, r, info->pWaitSemaphoreInfos[k].semaphore, info->pWaitSemaphoreInfos[k].value, queue);
		for (uint32_t k = 0; k < info->signalSemaphoreInfoCount; k++)
			add(d, r, info->pSignalSemaphoreInfos[k].semaphore, info->pSignalSemaphoreInfos[k].value, NULL);
	}
}

static VkResult signal_value(layer_device *d, VkSemaphore semaphore, uint64_t value)
{
	VkSemaphoreSignalInfo info = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
		.semaphore = semaphore,
		.value = value,
	};
	return d->next.SignalSemaphore(d->handle, &info);
}

VkResult rest_signal(layer_device *d, rest *r, const VkSemaphoreSignalInfo *info,
	const atomic_bool *lost)
{
	pthread_mutex_lock(&r->lock);
	uint64_t now = 0;
	VkResult result = VK_SUCCESS;
	if (atomic_load(lost))
		(void)d->next.GetSemaphoreCounterValue(d->handle, info->semaphore, &now);
	if (now < info->value)
		result = d->next.SignalSemaphore(d->handle, info);
	pthread_mutex_unlock(&r->lock);
	return result;
}

// One look at all semaphores.
typedef struct look {
	layer_device *d;
	VkQueue queue; // whose waits count, NULL for all
	bool lost;
	bool waited, failed;
} look;

static bool look_at(uint64_t key, void *value, void *context)
{
	(void)key;
	timeline *t = value;
	look *l = context;
	uint64_t now, signalled = UINT64_MAX;
	if (l->d->next.GetSemaphoreCounterValue(l->d->handle, t->handle, &now) != VK_SUCCESS) {
		l->failed = true;
		return false;
	}
	const operation *end = t->operations + t->count;
	for (const operation *o = t->operations; o < end; o++)
		if (o->waiting == NULL && o->value > now && o->value < signalled)
			signalled = o->value;
	uint64_t by_nobody = now;
	for (const operation *o = t->operations; o < end; o++)
		if (o->waiting != NULL && o->value > by_nobody && o->value < signalled)
			by_nobody = o->value;
	if (l->lost && by_nobody > now && signal_value(l->d, t->handle, by_nobody) == VK_SUCCESS)
		now = by_nobody;
	for (const operation *o = t->operations; o < end; o++)
		if (o->waiting != NULL && o->value > now)
			l->waited |= l->queue == NULL || o->waiting == l->queue;
	return false;
}

void rest_await(layer_device *d, rest *r, VkQueue queue, const atomic_bool *lost)
{
	for (;;) {
		bool is = atomic_load(lost);
		look l = { .d = d, .queue = is ? NULL : queue, .lost = is };
		pthread_mutex_lock(&r->lock);
		layer_map_each(&r->timelines, look_at, &l);
		pthread_mutex_unlock(&r->lock);
		// A semaphore that cannot be asked about is of a device that the driver itself has lost.
		if (!l.waited || l.failed)
			return;
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	}
}
