// What the host asks about batches and waits for: fences that the driver does not
// have yet, and the errors of a device that is lost.
#define _GNU_SOURCE
#include "manyqueue.h"

#include <stdlib.h>
#include <time.h>

// The waits below go in slices: what a lost device has not submitted is never
// signalled, and a wait for it must end all the same.
enum { SLICE = 100 * 1000 * 1000 }; // nanoseconds

static bool slice_of(uint64_t begin, uint64_t timeout, uint64_t *slice)
{
	uint64_t gone = many_now() - begin;
	uint64_t left = timeout > gone ? timeout - gone : 0;
	*slice = left < SLICE ? left : SLICE;
	return left > SLICE;
}

VKAPI_ATTR VkResult VKAPI_CALL many_WaitSemaphores(VkDevice handle,
	const VkSemaphoreWaitInfo *info, uint64_t timeout)
{
	many_device *m = many_device_of(handle);
	uint64_t begin = many_now(), slice;
	for (bool more = true; more;) {
		more = slice_of(begin, timeout, &slice);
		VkResult r = m->d->next.WaitSemaphores(handle, info, slice);
		if (r != VK_TIMEOUT || (!more && !m->lost))
			return r;
		if (m->lost)
			return VK_ERROR_DEVICE_LOST;
	}
	return VK_TIMEOUT;
}

// The fences that the driver may be asked about; where there are none, after a wait
// of at most the slice for one.
static uint32_t free_fences(many_device *m, uint32_t count, const VkFence *fences, bool all,
	uint64_t slice, VkFence *out)
{
	uint64_t end = many_now() + slice;
	struct timespec until = { (time_t)(end / 1000000000u), (long)(end % 1000000000u) };
	uint32_t n;
	pthread_mutex_lock(&m->held_lock);
	for (int waited = 0;; waited = pthread_cond_timedwait(&m->held_fewer, &m->held_lock, &until)) {
		n = 0;
		for (uint32_t k = 0; k < count; k++)
			if (layer_map_get(&m->held, LAYER_KEY(fences[k])) == NULL)
				out[n++] = fences[k];
		if ((all ? n == count : n > 0) || waited != 0)
			break;
	}
	pthread_mutex_unlock(&m->held_lock);
	return n;
}

VKAPI_ATTR VkResult VKAPI_CALL many_WaitForFences(VkDevice handle, uint32_t count,
	const VkFence *fences, VkBool32 all, uint64_t timeout)
{
	many_device *m = many_device_of(handle);
	VkFence *free_ones = layer_allocate((count + 1) * sizeof *free_ones);
	uint64_t begin = many_now(), slice;
	VkResult r = VK_TIMEOUT;
	for (bool more = true; more && r == VK_TIMEOUT;) {
		more = slice_of(begin, timeout, &slice);
		uint32_t n = free_fences(m, count, fences, all, slice, free_ones);
		if (n < count && (all || n == 0)) {
			r = m->lost ? VK_ERROR_DEVICE_LOST : VK_TIMEOUT;
			continue;
		}
		// One that is held may be signalled before those that are free.
		if (n < count && slice > 1000000)
			slice = 1000000, more = true;
		else if (n == count)
			more = slice_of(begin, timeout, &slice);
		r = m->d->next.WaitForFences(handle, n, free_ones, all, slice);
		if (r == VK_TIMEOUT && m->lost)
			r = VK_ERROR_DEVICE_LOST;
	}
	free(free_ones);
	return r;
}

VKAPI_ATTR VkResult VKAPI_CALL many_GetFenceStatus(VkDevice handle, VkFence fence)
{
	many_device *m = many_device_of(handle);
	if (m->lost)
		return VK_ERROR_DEVICE_LOST;
	pthread_mutex_lock(&m->held_lock);
	bool held = layer_map_get(&m->held, LAYER_KEY(fence)) != NULL;
	pthread_mutex_unlock(&m->held_lock);
	return held ? VK_NOT_READY : m->d->next.GetFenceStatus(handle, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL many_GetSemaphoreCounterValue(VkDevice handle, VkSemaphore semaphore,
	uint64_t *value)
{
	many_device *m = many_device_of(handle);
	return m->lost ? VK_ERROR_DEVICE_LOST :
		m->d->next.GetSemaphoreCounterValue(handle, semaphore, value);
}

VKAPI_ATTR VkResult VKAPI_CALL many_GetQueryPoolResults(VkDevice handle, VkQueryPool pool,
	uint32_t first, uint32_t count, size_t bytes, void *data, VkDeviceSize stride,
	VkQueryResultFlags flags)
{
	many_device *m = many_device_of(handle);
	// The driver's wait would not end for commands that it never got.
	while ((flags & VK_QUERY_RESULT_WAIT_BIT) != 0 && !m->lost) {
		VkResult r = m->d->next.GetQueryPoolResults(handle, pool, first, count, bytes, data, stride,
			flags & ~(VkQueryResultFlags)VK_QUERY_RESULT_WAIT_BIT);
		if (r != VK_NOT_READY)
			return r;
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	}
	return m->lost ? VK_ERROR_DEVICE_LOST :
		m->d->next.GetQueryPoolResults(handle, pool, first, count, bytes, data, stride, flags);
}
