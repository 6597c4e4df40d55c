// How the queues of a device that the fault layer has lost come to rest. The driver has not lost
// it: there, a submission waits for a value of a timeline semaphore for ever if its signal was
// refused, or if the program signals nothing for a device that it knows to be lost. The layer
// signals such values itself before it lets a wait for an idle queue through:
//
//	accepted    wait 1, signal 2 | wait 2, signal 5 | wait 4
//	signalled   1, and 2 and 5 follow
//
// A value is signalled if a submission waits for it, and no submission that the driver has accepted
// and that has not ended signals it or a lower one. So values only grow. A semaphore that
// is shared through a file descriptor is left to those who share it.
#ifndef VKOMP_FAULT_REST_H
#define VKOMP_FAULT_REST_H

#include "layer.h"

#include <stdatomic.h>

// What the submissions of a device wait for and signal.
typedef struct rest {
	// It is held while something is submitted or signalled, and by that while the device is found
	// to be lost or not.
	pthread_mutex_t lock;
	layer_map timelines; // VkSemaphore -> timeline
} rest;

void rest_free(rest *r);
void rest_created(rest *r, const VkSemaphoreCreateInfo *info, VkSemaphore semaphore);
// Nothing is known of the semaphore any more: it is destroyed or shared.
void rest_forget(rest *r, VkSemaphore semaphore);
// The driver has accepted a submission; the lock is held.
void rest_submitted(layer_device *d, rest *r, VkQueue queue, uint32_t count,
	const VkSubmitInfo *infos);
void rest_submitted2(layer_device *d, rest *r, VkQueue queue, uint32_t count,
	const VkSubmitInfo2 *infos);
// The program's signal, which the driver does not get if rest_await has signalled the value.
VkResult rest_signal(layer_device *d, rest *r, const VkSemaphoreSignalInfo *info,
	const atomic_bool *lost);
// Waits until no submission to the queue, or to any if it is NULL or the device is lost, waits
// for a value.
void rest_await(layer_device *d, rest *r, VkQueue queue, const atomic_bool *lost);

#endif
