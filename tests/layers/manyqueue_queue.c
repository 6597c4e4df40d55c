#define _GNU_SOURCE
#include "manyqueue.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

typedef struct batch {
	struct batch *next;
	uint32_t wait_count, command_count, signal_count;
	VkSemaphore *waits, *signals;
	uint64_t *wait_values, *signal_values;
	VkCommandBuffer *commands;
	VkFence fence;
} batch;

struct many_queue {
	uintptr_t loader; // the dispatch pointer: a VkQueue is a pointer to this
	many_device *m;
	uint32_t family, index;
	layer_random random; // the thread's
	VkFence idle;        // vkQueueWaitIdle's
	pthread_t thread;

	pthread_mutex_t lock;
	pthread_cond_t more, fewer;
	batch *first, **last;      // under lock
	uint64_t taken, done;      // batches ever accepted, and handed over or dropped; under lock
	bool stopping;             // under lock
};

// A batch waits in slices, so that a device that is lost or destroyed ends it.
enum { SLICE = 100 * 1000 * 1000 }; // nanoseconds

static bool wait_for(many_queue *q, VkSemaphore semaphore, uint64_t value)
{
	many_device *m = q->m;
	VkSemaphoreWaitInfo info = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
		.semaphoreCount = 1,
		.pSemaphores = &semaphore,
		.pValues = &value,
	};
	while (!m->lost) {
		VkResult r = m->d->next.WaitSemaphores(m->d->handle, &info, SLICE);
		if (r == VK_SUCCESS)
			return true;
		if (r != VK_TIMEOUT) {
			layer_say("queue %u/%u: vkWaitSemaphores gave %d: the device is lost", q->family,
				q->index, r);
			m->lost = true;
			return false;
		}
		uint64_t give_up_at = m->give_up_at;
		if (give_up_at != 0 && many_now() >= give_up_at) {
			uint64_t now = 0;
			m->d->next.GetSemaphoreCounterValue(m->d->handle, semaphore, &now);
			layer_say("the device is destroyed while queue %u/%u waits for semaphore 0x%llx to "
				"become %llu; it is %llu", q->family, q->index,
				(unsigned long long)LAYER_KEY(semaphore), (unsigned long long)value,
				(unsigned long long)now);
			m->lost = true;
			return false;
		}
	}
	return false;
}

// Waits while the file exists that holds batches back.
static void stay(many_queue *q)
{
	many_device *m = q->m;
	const struct timespec t = { 0, 200 * 1000 };
	while (m->hold != NULL && access(m->hold, F_OK) == 0 && !m->lost) {
		uint64_t give_up_at = m->give_up_at;
		if (give_up_at != 0 && many_now() >= give_up_at)
			return;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
	}
}

static void delay(many_queue *q)
{
	stay(q);
	uint64_t us = layer_random_below(&q->random, q->m->delay + 1);
	if (us == 0) {
		sched_yield();
		return;
	}
	struct timespec t = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };
	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static void hand_over(many_queue *q, const batch *b)
{
	many_device *m = q->m;
	VkTimelineSemaphoreSubmitInfo values = {
		.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
		.signalSemaphoreValueCount = b->signal_count,
		.pSignalSemaphoreValues = b->signal_values,
	};
	VkSubmitInfo info = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
		.pNext = &values,
		.commandBufferCount = b->command_count,
		.pCommandBuffers = b->commands,
		.signalSemaphoreCount = b->signal_count,
		.pSignalSemaphores = b->signals,
	};
	pthread_mutex_lock(&m->lock);
	VkResult r = VK_ERROR_DEVICE_LOST;
	if (m->lose_after == 0 || m->handed_over < m->lose_after)
		r = m->d->next.QueueSubmit(m->queue, 1, &info, b->fence);
	m->handed_over++;
	pthread_mutex_unlock(&m->lock);
	if (r != VK_SUCCESS) {
		layer_say("queue %u/%u: vkQueueSubmit gave %d: the device is lost", q->family, q->index, r);
		m->lost = true;
	}
}

static void release_fence(many_device *m, VkFence fence)
{
	pthread_mutex_lock(&m->held_lock);
	layer_map_take(&m->held, LAYER_KEY(fence));
	pthread_cond_broadcast(&m->held_fewer);
	pthread_mutex_unlock(&m->held_lock);
}

static void *run(void *argument)
{
	many_queue *q = argument;
	prctl(PR_SET_TIMERSLACK, 1ul); // delays of microseconds, not of the default 50
	pthread_mutex_lock(&q->lock);
	for (;;) {
		while (q->first == NULL && !q->stopping)
			pthread_cond_wait(&q->more, &q->lock);
		batch *b = q->first;
		if (b == NULL)
			break;
		q->first = b->next;
		if (q->first == NULL)
			q->last = &q->first;
		pthread_mutex_unlock(&q->lock);

		bool ready = true;
		for (uint32_t k = 0; k < b->wait_count && ready; k++)
			ready = wait_for(q, b->waits[k], b->wait_values[k]);
		if (ready)
			delay(q);
		if (ready && !q->m->lost)
			hand_over(q, b);
		if (b->fence != VK_NULL_HANDLE)
			release_fence(q->m, b->fence);
		free(b);

		pthread_mutex_lock(&q->lock);
		q->done++;
		pthread_cond_broadcast(&q->fewer);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

many_queue *many_queue_start(many_device *m, uint32_t family, uint32_t index, uint64_t seed)
{
	many_queue *q = layer_allocate(sizeof *q);
	q->m = m;
	q->family = family;
	q->index = index;
	q->random = layer_random_of(seed, m->d->number, (uint64_t)family << 32 | index);
	q->last = &q->first;
	layer_adopt(m->d, q);
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->more, NULL);
	pthread_cond_init(&q->fewer, NULL);
	VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
	if (m->d->next.CreateFence(m->d->handle, &fence, NULL, &q->idle) != VK_SUCCESS) {
		free(q);
		return NULL;
	}
	// The program's signals are for its own threads.
	sigset_t all, before;
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(&q->thread, NULL, run, q);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed != 0) {
		m->d->next.DestroyFence(m->d->handle, q->idle, NULL);
		free(q);
		return NULL;
	}
	return q;
}

void many_queue_stop(many_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->stopping = true;
	pthread_cond_signal(&q->more);
	pthread_mutex_unlock(&q->lock);
}

void many_queue_free(many_queue *q)
{
	pthread_join(q->thread, NULL);
	q->m->d->next.DestroyFence(q->m->d->handle, q->idle, NULL);
	pthread_cond_destroy(&q->more);
	pthread_cond_destroy(&q->fewer);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

bool many_queue_is(const many_queue *q, uint32_t family, uint32_t index)
{
	return q->family == family && q->index == index;
}

static many_queue *queue_of(VkQueue handle)
{
	return (many_queue *)handle;
}

// A batch with room for so much, in one piece of memory.
static batch *batch_make(uint32_t waits, uint32_t commands, uint32_t signals)
{
	batch *b = calloc(1, sizeof *b + (waits + signals) * (sizeof(VkSemaphore) + sizeof(uint64_t)) +
		commands * sizeof(VkCommandBuffer));
	if (b == NULL)
		return NULL;
	b->wait_values = (uint64_t *)(b + 1);
	b->signal_values = b->wait_values + waits;
	b->waits = (VkSemaphore *)(b->signal_values + signals);
	b->signals = b->waits + waits;
	b->commands = (VkCommandBuffer *)(b->signals + signals);
	return b;
}

static void add_wait(many_device *m, batch *b, VkSemaphore semaphore, uint64_t value)
{
	many_binary *binary = layer_map_get(&m->binaries, LAYER_KEY(semaphore));
	b->waits[b->wait_count] = semaphore;
	b->wait_values[b->wait_count++] = binary != NULL ? binary->value : value;
}

static void add_signal(many_device *m, batch *b, VkSemaphore semaphore, uint64_t value)
{
	many_binary *binary = layer_map_get(&m->binaries, LAYER_KEY(semaphore));
	b->signals[b->signal_count] = semaphore;
	b->signal_values[b->signal_count++] = binary != NULL ? ++binary->value : value;
}

static void add_command(many_queue *q, batch *b, VkCommandBuffer c)
{
	many_pool *pool = layer_map_get(&q->m->commands, LAYER_KEY(c));
	if (pool != NULL && pool->family != q->family)
		layer_die("a command buffer of family %u is submitted to queue %u/%u", pool->family,
			q->family, q->index);
	b->commands[b->command_count++] = c;
}

static void free_batches(batch *b)
{
	while (b != NULL) {
		batch *next = b->next;
		free(b);
		b = next;
	}
}

// Appends a list of batches, of which fence follows the last.
static VkResult enqueue(many_queue *q, batch *first, VkFence fence)
{
	if (q->m->lost) {
		free_batches(first);
		return VK_ERROR_DEVICE_LOST;
	}
	if (first == NULL) {
		if (fence == VK_NULL_HANDLE)
			return VK_SUCCESS;
		if ((first = batch_make(0, 0, 0)) == NULL)
			return VK_ERROR_OUT_OF_HOST_MEMORY;
	}
	uint64_t count = 1;
	batch *last = first;
	for (; last->next != NULL; last = last->next)
		count++;
	last->fence = fence;
	if (fence != VK_NULL_HANDLE)
		layer_map_put(&q->m->held, LAYER_KEY(fence), last);
	pthread_mutex_lock(&q->lock);
	*q->last = first;
	q->last = &last->next;
	q->taken += count;
	pthread_cond_signal(&q->more);
	pthread_mutex_unlock(&q->lock);
	return VK_SUCCESS;
}

static void check_chain(const void *chain)
{
	for (const VkBaseInStructure *s = chain; s != NULL; s = s->pNext)
		if (s->sType != VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO &&
			s->sType != VK_STRUCTURE_TYPE_DEVICE_GROUP_SUBMIT_INFO)
			layer_die("a submission is extended by a structure of type %d", s->sType);
}

VKAPI_ATTR VkResult VKAPI_CALL many_QueueSubmit(VkQueue handle, uint32_t count,
	const VkSubmitInfo *infos, VkFence fence)
{
	many_queue *q = queue_of(handle);
	batch *first = NULL, **last = &first;
	for (uint32_t k = 0; k < count; k++) {
		const VkSubmitInfo *info = &infos[k];
		check_chain(info->pNext);
		const VkTimelineSemaphoreSubmitInfo *values =
			layer_chained(info->pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
		batch *b = batch_make(info->waitSemaphoreCount, info->commandBufferCount,
			info->signalSemaphoreCount);
		if (b == NULL) {
			free_batches(first);
			return VK_ERROR_OUT_OF_HOST_MEMORY;
		}
		for (uint32_t i = 0; i < info->waitSemaphoreCount; i++)
			add_wait(q->m, b, info->pWaitSemaphores[i],
				values != NULL && i < values->waitSemaphoreValueCount ?
					values->pWaitSemaphoreValues[i] : 0);
		for (uint32_t i = 0; i < info->commandBufferCount; i++)
			add_command(q, b, info->pCommandBuffers[i]);
		for (uint32_t i = 0; i < info->signalSemaphoreCount; i++)
			add_signal(q->m, b, info->pSignalSemaphores[i],
				values != NULL && i < values->signalSemaphoreValueCount ?
					values->pSignalSemaphoreValues[i] : 0);
		*last = b;
		last = &b->next;
	}
	return enqueue(q, first, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL many_QueueSubmit2(VkQueue handle, uint32_t count,
	const VkSubmitInfo2 *infos, VkFence fence)
{
	many_queue *q = queue_of(handle);
	batch *first = NULL, **last = &first;
	for (uint32_t k = 0; k < count; k++) {
		const VkSubmitInfo2 *info = &infos[k];
		check_chain(info->pNext);
		batch *b = batch_make(info->waitSemaphoreInfoCount, info->commandBufferInfoCount,
			info->signalSemaphoreInfoCount);
		if (b == NULL) {
			free_batches(first);
			return VK_ERROR_OUT_OF_HOST_MEMORY;
		}
		for (uint32_t i = 0; i < info->waitSemaphoreInfoCount; i++)
			add_wait(q->m, b, info->pWaitSemaphoreInfos[i].semaphore,
				info->pWaitSemaphoreInfos[i].value);
		for (uint32_t i = 0; i < info->commandBufferInfoCount; i++)
			add_command(q, b, info->pCommandBufferInfos[i].commandBuffer);
		for (uint32_t i = 0; i < info->signalSemaphoreInfoCount; i++)
			add_signal(q->m, b, info->pSignalSemaphoreInfos[i].semaphore,
				info->pSignalSemaphoreInfos[i].value);
		*last = b;
		last = &b->next;
	}
	return enqueue(q, first, fence);
}

// Waits until what the queue has been given is with the driver.
static void drain(many_queue *q)
{
	pthread_mutex_lock(&q->lock);
	uint64_t taken = q->taken;
	while (q->done < taken)
		pthread_cond_wait(&q->fewer, &q->lock);
	pthread_mutex_unlock(&q->lock);
}

// Other queues go on meanwhile: the driver's queue is not held for the wait.
VKAPI_ATTR VkResult VKAPI_CALL many_QueueWaitIdle(VkQueue handle)
{
	many_queue *q = queue_of(handle);
	many_device *m = q->m;
	drain(q);
	if (m->lost)
		return VK_ERROR_DEVICE_LOST;
	pthread_mutex_lock(&m->lock);
	VkResult r = m->d->next.QueueSubmit(m->queue, 0, NULL, q->idle);
	pthread_mutex_unlock(&m->lock);
	if (r == VK_SUCCESS)
		r = m->d->next.WaitForFences(m->d->handle, 1, &q->idle, VK_TRUE, UINT64_MAX);
	if (r == VK_SUCCESS)
		r = m->d->next.ResetFences(m->d->handle, 1, &q->idle);
	return r;
}

VKAPI_ATTR VkResult VKAPI_CALL many_DeviceWaitIdle(VkDevice handle)
{
	many_device *m = many_device_of(handle);
	for (uint32_t k = 0; k < m->queue_count; k++)
		drain(m->queues[k]);
	if (m->lost)
		return VK_ERROR_DEVICE_LOST;
	pthread_mutex_lock(&m->lock);
	VkResult r = m->d->next.DeviceWaitIdle(handle);
	pthread_mutex_unlock(&m->lock);
	return r;
}
