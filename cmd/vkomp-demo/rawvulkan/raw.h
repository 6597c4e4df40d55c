// The measured half of package rawvulkan.
#ifndef VKOMP_RAW_H
#define VKOMP_RAW_H

#include "../../../vk/vkabi.h"

enum { RAW_BUFFERS = 4, RAW_PUSH = 4 };

// The first call of Vulkan that failed, and its VkResult.
typedef struct raw_fault {
	const char *call; // static; NULL: none
	int32_t result;
} raw_fault;

typedef struct raw_kernel {
	vkoHandle pipeline, layout, set_layout;
	uint32_t buffers, push_bytes;
} raw_kernel;

// A dispatch of groups × 1 × 1 workgroups.
typedef struct raw_launch {
	uint32_t kernel; // index
	uint32_t groups;
	uint32_t barrier; // whether one follows
	uint32_t reserved;
	uint32_t push[RAW_PUSH];
	vkoDescriptorBufferInfo buffers[RAW_BUFFERS];
} raw_launch;

// A buffer, and where the host has its bytes: NULL if it has not.
typedef struct raw_buffer {
	vkoHandle buffer;
	void *host;
} raw_buffer;

typedef struct raw raw;

// semaphore is a timeline of value 0. push_descriptors and synchronization2 say what the
// device has. NULL after a fault.
raw *raw_open(uintptr_t get_instance_proc_addr, uintptr_t instance, uintptr_t device,
	uintptr_t queue, uint32_t family, vkoHandle semaphore, uint32_t push_descriptors,
	uint32_t synchronization2, raw_fault *fault);
void raw_close(raw *r);

// Makes room for the descriptors of batches of so many launches; does nothing with push
// descriptors.
void raw_reserve(raw *r, uint32_t launches, raw_fault *fault);

// These wait until the device has done what they say, except raw_record, which submits nothing.
// After a fault nothing is in flight either.
void raw_record(raw *r, const raw_kernel *kernels, const raw_launch *launches, uint32_t count,
	raw_fault *fault);
// raw_prepare is raw_record for several submissions, each of which is a raw_replay. Nothing else is
// recorded before the last of them.
void raw_prepare(raw *r, const raw_kernel *kernels, const raw_launch *launches, uint32_t count,
	raw_fault *fault);
void raw_replay(raw *r, raw_fault *fault);
void raw_run(raw *r, const raw_kernel *kernels, const raw_launch *launches, uint32_t count,
	raw_fault *fault);
void raw_run_each(raw *r, const raw_kernel *kernels, const raw_launch *launches, uint32_t count,
	raw_fault *fault);
void raw_copy(raw *r, vkoHandle from, vkoHandle to, uint64_t size, raw_fault *fault);
void raw_fill(raw *r, vkoHandle buffer, uint64_t size, uint32_t value, raw_fault *fault);
// Copies between the host and a buffer, so many times. If the host does not have the buffer's
// bytes, they pass through the two halves of staging, half bytes each, while the host works on one
// and the device on the other.
void raw_copy_in(raw *r, raw_buffer to, const void *from, uint64_t size, uint32_t times,
	raw_buffer staging, uint64_t half, raw_fault *fault);
void raw_copy_out(raw *r, void *to, raw_buffer from, uint64_t size, uint32_t times,
	raw_buffer staging, uint64_t half, raw_fault *fault);

#endif
