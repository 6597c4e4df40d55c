#include "vko.h"

int32_t vko_semaphore_create(const vko_device *d, uint64_t initial, vkoHandle *out)
{
	const vkoSemaphoreTypeCreateInfo type = {
		.sType = VKO_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
		.semaphoreType = VKO_SEMAPHORE_TYPE_TIMELINE,
		.initialValue = initial,
	};
	const vkoSemaphoreCreateInfo info = {
		.sType = VKO_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
		.pNext = &type,
	};
	return d->CreateSemaphore(d->handle, &info, NULL, out);
}

int32_t vko_semaphore_value(const vko_device *d, vkoHandle semaphore, uint64_t *value)
{
	return d->GetSemaphoreCounterValue(d->handle, semaphore, value);
}

int32_t vko_timeline_value(const vko_device *d, vkoHandle timeline, uint64_t *value)
{
	int32_t r = vko_semaphore_value(d, timeline, value);
	return r == VKO_SUCCESS && *value == UINT64_MAX ? VKO_ERROR_DEVICE_LOST : r;
}

int32_t vko_semaphore_wait(const vko_device *d, vkoHandle semaphore, uint64_t value,
	uint64_t nanoseconds)
{
	const vkoSemaphoreWaitInfo info = {
		.sType = VKO_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
		.semaphoreCount = 1,
		.pSemaphores = &semaphore,
		.pValues = &value,
	};
	return d->WaitSemaphores(d->handle, &info, nanoseconds);
}

int32_t vko_semaphore_signal(const vko_device *d, vkoHandle semaphore, uint64_t value)
{
	const vkoSemaphoreSignalInfo info = {
		.sType = VKO_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
		.semaphore = semaphore,
		.value = value,
	};
	return d->SignalSemaphore(d->handle, &info);
}
