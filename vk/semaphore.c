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

vko_counter vko_semaphore_value(const vko_device *d, vkoHandle semaphore)
{
	vko_counter now = { 0 };
	now.result = d->GetSemaphoreCounterValue(d->handle, semaphore, &now.value);
	return now;
}

vko_counter vko_timeline_value(const vko_device *d, vkoHandle timeline)
{
	vko_counter now = vko_semaphore_value(d, timeline);
	if (now.result == VKO_SUCCESS && now.value == UINT64_MAX)
		now.result = VKO_ERROR_DEVICE_LOST;
	return now;
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
