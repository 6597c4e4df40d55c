// The many-queue layer: shows a driver's one queue as several families of several
// queues, each with a FIFO and a thread of its own, which nothing but semaphores
// holds together.
//
//	vkQueueSubmit(queue 1/0)  -> [batch][batch] -> thread: waits, random delay --.
//	vkQueueSubmit(queue 1/1)  -> [batch]        -> thread: waits, random delay --+-> lock -> the driver's queue
//	vkQueueSubmit(queue 2/0)  -> [batch][batch] -> thread: waits, random delay --'
//
// A batch at the head of its FIFO waits on the host until its semaphores have
// their values, is delayed, and then goes to the driver without waits and with its
// signals. So the driver, which runs things in the order it gets them, gets them in
// an order that only the semaphores constrain: a program that forgets a wait sees
// its batches swapped. Batches of one queue begin in submission order.
//
// Waits hold back the whole batch, whatever their stage masks say, and signals
// follow the whole batch. A binary semaphore is a timeline below this layer, whose
// value is the number of its signals.
//
//	VKOMP_MANYQUEUE_FAMILIES  GCT2,CT4,T2: letters are Graphics, Compute and Transfer,
//	                          then the number of queues; what the driver's family
//	                          cannot do is left out of the flags
//	VKOMP_MANYQUEUE_SEED      of the delays (0)
//	VKOMP_MANYQUEUE_DELAY_US  upper bound of the delay before each batch, microseconds
//	                          (200); 0: the thread yields and goes on
//	VKOMP_MANYQUEUE_HOLD      the path of a file: no batch begins while it exists, so that what a
//	                          program submits does not depend on how fast the driver is
//	VKOMP_MANYQUEUE_LOSE      so many batches reach the driver, then the device is
//	                          lost (0: never)
//
// Read when the instance (families) and the device (the others) are created.
//
// What a family cannot run ends the program with a line on stderr: commands that
// need compute or graphics in a pool of a family without, and a command buffer of
// one family submitted to another. A wait for a value that nobody signals hangs,
// as on hardware; only vkDestroyDevice gives up, after two seconds. An error of the
// driver on a late submission loses the device. Sparse binding, protected queues,
// presentation, and extensions that take a queue, or an external semaphore or
// fence, are not offered.
#ifndef VKOMP_MANYQUEUE_H
#define VKOMP_MANYQUEUE_H

#include "layer.h"

#include <stdatomic.h>

enum { MANY_FAMILIES = 16, MANY_QUEUES = 64 };

typedef struct many_plan {
	uint32_t family_count;
	struct {
		VkQueueFlags flags;
		uint32_t queue_count;
	} families[MANY_FAMILIES];
} many_plan;

// A command pool; shared by nothing, freed with the pool.
typedef struct many_pool {
	uint32_t family;
} many_pool;

// The value that the semaphore's latest signal gives it.
typedef struct many_binary {
	_Atomic(uint64_t) value;
} many_binary;

typedef struct many_queue many_queue;

typedef struct many_device {
	layer_device *d;
	const many_plan *plan; // the instance's
	VkQueueFlags flags;    // of the driver's family
	uint32_t family;       // the driver's
	VkQueue queue;         // the driver's; used under lock
	pthread_mutex_t lock;
	uint64_t handed_over, lose_after; // batches; under lock
	uint64_t delay;                   // microseconds
	char *hold;                       // path, NULL for none

	atomic_bool lost;
	_Atomic(uint64_t) give_up_at; // monotonic nanoseconds; 0: never

	uint32_t queue_count;
	many_queue *queues[MANY_QUEUES];

	layer_map pools;    // VkCommandPool -> many_pool
	layer_map commands; // VkCommandBuffer -> its many_pool
	layer_map binaries; // VkSemaphore -> many_binary; timelines are not in it

	// Fences of batches that the driver does not have yet, and which it is not asked
	// about therefore: a submission needs its fence to itself. The value is any.
	layer_map held;
	pthread_mutex_t held_lock;  // around changes of held that somebody may wait for
	pthread_cond_t held_fewer; // monotonic clock
} many_device;

// manyqueue.c

many_device *many_device_of(const void *dispatchable);
VkQueueFlags many_family_flags(const many_device *m, uint32_t family);
uint64_t many_now(void); // monotonic nanoseconds

// manyqueue_queue.c: virtual queues and what is submitted to them.

// NULL where there is no thread or memory for it.
many_queue *many_queue_start(many_device *m, uint32_t family, uint32_t index, uint64_t seed);
// Lets the queue run empty, or give up, and ends its thread. All queues are told to
// stop before the first one is freed.
void many_queue_stop(many_queue *q);
void many_queue_free(many_queue *q);
bool many_queue_is(const many_queue *q, uint32_t family, uint32_t index);

VKAPI_ATTR VkResult VKAPI_CALL many_QueueSubmit(VkQueue, uint32_t, const VkSubmitInfo *, VkFence);
VKAPI_ATTR VkResult VKAPI_CALL many_QueueSubmit2(VkQueue, uint32_t, const VkSubmitInfo2 *, VkFence);
VKAPI_ATTR VkResult VKAPI_CALL many_QueueWaitIdle(VkQueue);
VKAPI_ATTR VkResult VKAPI_CALL many_DeviceWaitIdle(VkDevice);

// manyqueue_wait.c: what the host asks about it.

VKAPI_ATTR VkResult VKAPI_CALL many_WaitSemaphores(VkDevice, const VkSemaphoreWaitInfo *, uint64_t);
VKAPI_ATTR VkResult VKAPI_CALL many_GetSemaphoreCounterValue(VkDevice, VkSemaphore, uint64_t *);
VKAPI_ATTR VkResult VKAPI_CALL many_WaitForFences(VkDevice, uint32_t, const VkFence *, VkBool32,
	uint64_t);
VKAPI_ATTR VkResult VKAPI_CALL many_GetFenceStatus(VkDevice, VkFence);
VKAPI_ATTR VkResult VKAPI_CALL many_GetQueryPoolResults(VkDevice, VkQueryPool, uint32_t, uint32_t,
	size_t, void *, VkDeviceSize, VkQueryResultFlags);

// manyqueue_commands.c: what is recorded; families checked and translated.

extern const layer_intercept many_command_intercepts[]; // the last one has no name

#endif
