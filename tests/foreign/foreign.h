// Vulkan code outside of vkomp: what an application's own code would do with the handles of an
// interop object.
#ifndef VKOMP_FOREIGN_H
#define VKOMP_FOREIGN_H

#include "../../vk/vkabi.h"

typedef struct foreign foreign;

// NULL when a function is missing or a call fails.
foreign *foreign_open(uintptr_t get_instance_proc_addr, uintptr_t instance, uintptr_t device,
	uint32_t family);
// Nothing may be in flight.
void foreign_close(foreign *f);
// Records a copy of size bytes, which may be submitted any number of times, and returns the
// VkCommandBuffer; 0 on an error.
uintptr_t foreign_copy(foreign *f, uint64_t from, uint64_t from_offset, uint64_t to,
	uint64_t to_offset, uint64_t size);
// Creates a buffer for storage and transfers, exclusive to one family at a time, with memory of
// the first possible type. Returns a VkResult.
int32_t foreign_buffer(foreign *f, uint64_t size, uint64_t *buffer, uint64_t *memory);
void foreign_buffer_free(foreign *f, uint64_t buffer, uint64_t memory);
// Submits commands (0 means none) to a VkQueue. If semaphore, a timeline, is given, they wait for
// its value wait (0 means none) and signal its value signal (0 means none). Returns a VkResult.
int32_t foreign_submit(foreign *f, uintptr_t queue, uintptr_t commands, uint64_t semaphore,
	uint64_t wait, uint64_t signal);

#endif
