// What the layers' test programs share: an instance with the layers that they
// name, a device with every queue there is, buffers in mapped memory, recording
// and timelines. Each call that fails ends the program with its name.
#ifndef VKOMP_PROGRAM_H
#define VKOMP_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vulkan/vulkan.h>

enum { PROGRAM_QUEUES = 32 };

typedef struct program_queue {
	VkQueue handle;
	uint32_t family, index;
	VkQueueFlags flags;
	VkCommandPool pool; // of its family, for this queue alone
} program_queue;

typedef struct program {
	VkInstance instance;
	VkPhysicalDevice physical;
	VkDevice device;
	uint32_t family_count;
	uint32_t families[PROGRAM_QUEUES]; // 0, 1, 2, ...: for VkBufferCreateInfo
	uint32_t queue_count;
	program_queue queues[PROGRAM_QUEUES];
	VkDebugUtilsMessengerEXT messenger;
	uint32_t messages; // warnings and errors of the validation layer, all printed
	PFN_vkCmdPipelineBarrier2 CmdPipelineBarrier2;
	PFN_vkQueueSubmit2 QueueSubmit2;
} program;

// layers: names, the first nearest to the program, and then NULL. The device is
// the first one, with timelineSemaphore and synchronization2. With
// VK_LAYER_KHRONOS_validation its messages are counted.
void program_open(program *p, const char *const *layers);
// Another device on the same instance, physical device and with the same queues.
void program_open_again(program *p, const program *first);
void program_close(program *p); // destroys the device, and its instance where p opened it

typedef struct program_buffer {
	VkBuffer handle;
	VkDeviceMemory memory;
	uint32_t *words; // mapped, coherent
	VkDeviceSize bytes;
} program_buffer;

// For transfers and storage, shared by all families, zeroed.
program_buffer program_buffer_make(program *p, VkDeviceSize bytes);
void program_buffer_free(program *p, program_buffer *b);

VkSemaphore program_timeline(program *p);
VkSemaphore program_binary(program *p);
uint64_t program_value(program *p, VkSemaphore timeline);
// False if the value is not reached within so many nanoseconds.
bool program_reaches(program *p, VkSemaphore timeline, uint64_t value, uint64_t nanoseconds);
VkFence program_fence(program *p);

// A primary command buffer of the queue's pool, begun.
VkCommandBuffer program_begin(program *p, program_queue *q);
void program_end(VkCommandBuffer c);
// A memory barrier from everything to everything.
void program_barrier(VkCommandBuffer c);

// A semaphore and a value; the value is ignored for a binary semaphore.
typedef struct program_point {
	VkSemaphore semaphore;
	uint64_t value;
} program_point;
// One batch through vkQueueSubmit; c and fence may be VK_NULL_HANDLE.
VkResult program_submit(program_queue *q, VkCommandBuffer c, uint32_t wait_count,
	const program_point *waits, uint32_t signal_count, const program_point *signals, VkFence fence);

// A compute pipeline with storage buffers at bindings 0 to binding_count-1 of set
// 0, and push constants.
typedef struct program_kernel {
	VkDescriptorSetLayout set_layout;
	VkPipelineLayout layout;
	VkShaderModule module;
	VkPipeline pipeline;
	VkDescriptorPool pool;
	uint32_t binding_count, push_bytes;
} program_kernel;
// set_count: how many sets can be made.
program_kernel program_kernel_make(program *p, const uint32_t *code, size_t bytes,
	uint32_t binding_count, uint32_t push_bytes, uint32_t set_count);
void program_kernel_free(program *p, program_kernel *k);
// A set with the kernel's bindings to whole buffers.
VkDescriptorSet program_set(program *p, program_kernel *k, const program_buffer *const *buffers);
void program_dispatch(VkCommandBuffer c, program_kernel *k, VkDescriptorSet set, const void *push,
	uint32_t groups);

// Checks are counted; program_result prints the count and is main's result.
void program_check(bool ok, const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
#define CHECK(condition, ...) program_check((condition), __FILE__, __LINE__, __VA_ARGS__)
int program_result(const char *name);

void program_must(VkResult r, const char *call);
#define MUST(call) program_must((call), #call)

// A seeded stream of numbers.
uint64_t program_random(uint64_t *state);
uint32_t program_below(uint64_t *state, uint32_t n);

void program_environment(const char *name, uint64_t value); // sets it for this process

#endif
