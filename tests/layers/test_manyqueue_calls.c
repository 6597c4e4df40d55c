// The calls that the many-queue layer answers itself: families and queues, fences,
// binary semaphores, waits before their signals, idling, ownership, the end of a
// device that hangs or is lost, and what ends the program. All that is legal runs
// with the validation layer above, which sees what the program does, and much of it
// again with that layer below, where it sees what the many-queue layer makes of it;
// it must have nothing to say.
#define _GNU_SOURCE
#include "program.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const plain[] = { "VK_LAYER_VKOMP_manyqueue", NULL };
static const char *const validated[] = {
	"VK_LAYER_KHRONOS_validation", "VK_LAYER_VKOMP_manyqueue", NULL,
};
static const char *const validated_below[] = {
	"VK_LAYER_VKOMP_manyqueue", "VK_LAYER_KHRONOS_validation", NULL,
};

#define FOREVER 30000000000u // nanoseconds: far more than anything here takes

static void signal_from_host(program *p, VkSemaphore timeline, uint64_t value)
{
	VkSemaphoreSignalInfo info = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
		.semaphore = timeline,
		.value = value,
	};
	MUST(vkSignalSemaphore(p->device, &info));
}

// A batch that writes one word, followed by a barrier.
static VkCommandBuffer fill(program *p, program_queue *q, program_buffer *b, uint32_t word,
	uint32_t value)
{
	VkCommandBuffer c = program_begin(p, q);
	vkCmdFillBuffer(c, b->handle, 4 * word, 4, value);
	program_barrier(c);
	program_end(c);
	return c;
}

static program_queue *queue_at(program *p, uint32_t family, uint32_t index)
{
	for (uint32_t k = 0; k < p->queue_count; k++)
		if (p->queues[k].family == family && p->queues[k].index == index)
			return &p->queues[k];
	CHECK(false, "no queue %u/%u", family, index);
	exit(program_result("test_manyqueue_calls"));
}

static void families_are_those_of_the_plan(program *p)
{
	static const struct {
		VkQueueFlags flags;
		uint32_t count;
	} want[] = {
		{ VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, 2 },
		{ VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, 4 },
		{ VK_QUEUE_TRANSFER_BIT, 2 },
	};
	VkQueueFamilyProperties first[8];
	VkQueueFamilyProperties2 second[8];
	for (uint32_t k = 0; k < 8; k++)
		second[k] = (VkQueueFamilyProperties2){ .sType = VK_STRUCTURE_TYPE_QUEUE_FAMILY_PROPERTIES_2 };
	uint32_t n1 = 8, n2 = 8, few = 2;
	vkGetPhysicalDeviceQueueFamilyProperties(p->physical, &n1, first);
	vkGetPhysicalDeviceQueueFamilyProperties2(p->physical, &n2, second);
	CHECK(n1 == 3 && n2 == 3, "%u and %u families", n1, n2);
	for (uint32_t f = 0; f < 3; f++) {
		CHECK(first[f].queueFlags == want[f].flags && first[f].queueCount == want[f].count,
			"family %u: flags 0x%x, %u queues", f, first[f].queueFlags, first[f].queueCount);
		CHECK(memcmp(&first[f], &second[f].queueFamilyProperties, sizeof first[f]) == 0,
			"family %u: the two calls disagree", f);
		CHECK(first[f].timestampValidBits > 0, "family %u has no timestamps", f);
		bool whole = first[f].minImageTransferGranularity.width == 0;
		CHECK(whole == ((want[f].flags & (VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT)) == 0),
			"family %u copies %s images", f, whole ? "whole" : "parts of");
	}
	vkGetPhysicalDeviceQueueFamilyProperties(p->physical, &few, first);
	CHECK(few == 2, "room for 2 families, and %u given", few);

	CHECK(p->queue_count == 8, "%u queues", p->queue_count);
	for (uint32_t k = 0; k < p->queue_count; k++) {
		VkDeviceQueueInfo2 info = {
			.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_INFO_2,
			.queueFamilyIndex = p->queues[k].family,
			.queueIndex = p->queues[k].index,
		};
		VkQueue again;
		vkGetDeviceQueue2(p->device, &info, &again);
		CHECK(again == p->queues[k].handle, "queue %u has two handles", k);
		for (uint32_t i = 0; i < k; i++)
			CHECK(p->queues[i].handle != p->queues[k].handle, "queues %u and %u are one", i, k);
	}
}

static bool shows_extension(program *p, const char *name)
{
	VkExtensionProperties list[512];
	uint32_t count = 512;
	MUST(vkEnumerateDeviceExtensionProperties(p->physical, NULL, &count, list));
	CHECK(count > 10, "only %u extensions", count);
	for (uint32_t k = 0; k < count; k++)
		if (strcmp(list[k].extensionName, name) == 0)
			return true;
	return false;
}

static void extensions_that_take_queues_are_hidden(program *p)
{
	CHECK(shows_extension(p, "VK_KHR_external_memory_fd"), "an extension is missing");
	CHECK(!shows_extension(p, "VK_KHR_swapchain"), "VK_KHR_swapchain is shown");
	VkExtensionProperties one;
	uint32_t count = 1;
	VkResult r = vkEnumerateDeviceExtensionProperties(p->physical, NULL, &count, &one);
	CHECK(r == VK_INCOMPLETE && count == 1, "room for one extension: %d, %u given", r, count);
}

static void queues_take_names_and_labels(program *p)
{
	PFN_vkSetDebugUtilsObjectNameEXT name = (PFN_vkSetDebugUtilsObjectNameEXT)
		vkGetDeviceProcAddr(p->device, "vkSetDebugUtilsObjectNameEXT");
	PFN_vkQueueBeginDebugUtilsLabelEXT begin = (PFN_vkQueueBeginDebugUtilsLabelEXT)
		vkGetDeviceProcAddr(p->device, "vkQueueBeginDebugUtilsLabelEXT");
	PFN_vkQueueEndDebugUtilsLabelEXT end = (PFN_vkQueueEndDebugUtilsLabelEXT)
		vkGetDeviceProcAddr(p->device, "vkQueueEndDebugUtilsLabelEXT");
	VkDebugUtilsObjectNameInfoEXT info = {
		.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
		.objectType = VK_OBJECT_TYPE_QUEUE,
		.objectHandle = (uint64_t)(uintptr_t)p->queues[0].handle,
		.pObjectName = "the first queue",
	};
	VkDebugUtilsLabelEXT label = {
		.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT,
		.pLabelName = "a label",
	};
	MUST(name(p->device, &info));
	begin(p->queues[0].handle, &label);
	end(p->queues[0].handle);
	MUST(vkQueueWaitIdle(p->queues[0].handle));
}

static void a_fence_follows_its_batch_and_all_before(program *p)
{
	program_buffer b = program_buffer_make(p, 64);
	VkSemaphore gate = program_timeline(p);
	VkFence f = program_fence(p), empty = program_fence(p);
	program_queue *q = queue_at(p, 1, 1);
	MUST(program_submit(q, fill(p, q, &b, 0, 7), 1, &(program_point){ gate, 1 }, 0, NULL, f));
	MUST(vkQueueSubmit(q->handle, 0, NULL, empty));
	CHECK(vkGetFenceStatus(p->device, f) == VK_NOT_READY, "the fence passed a closed gate");
	CHECK(vkGetFenceStatus(p->device, empty) == VK_NOT_READY, "the empty submission passed");
	CHECK(vkWaitForFences(p->device, 1, &f, VK_TRUE, 1000000) == VK_TIMEOUT, "no timeout");
	CHECK(b.words[0] == 0, "the batch passed a closed gate");
	VkFence other = program_fence(p);
	MUST(vkQueueSubmit(queue_at(p, 0, 0)->handle, 0, NULL, other));
	CHECK(vkWaitForFences(p->device, 2, (VkFence[]){ f, other }, VK_FALSE, FOREVER) == VK_SUCCESS,
		"a fence that is held back hides another one");
	CHECK(vkGetFenceStatus(p->device, other) == VK_SUCCESS, "neither fence is signalled");
	vkDestroyFence(p->device, other, NULL);
	signal_from_host(p, gate, 1);
	CHECK(vkWaitForFences(p->device, 2, (VkFence[]){ f, empty }, VK_TRUE, FOREVER) == VK_SUCCESS,
		"the fences are not signalled");
	CHECK(b.words[0] == 7, "the fence came before its batch");
	CHECK(vkGetFenceStatus(p->device, f) == VK_SUCCESS, "the fence is lost");
	MUST(vkResetFences(p->device, 1, &f));
	MUST(program_submit(q, fill(p, q, &b, 1, 8), 0, NULL, 0, NULL, f));
	CHECK(vkWaitForFences(p->device, 1, &f, VK_TRUE, FOREVER) == VK_SUCCESS && b.words[1] == 8,
		"a fence that was reset does not work");
	vkDestroyFence(p->device, f, NULL);
	vkDestroyFence(p->device, empty, NULL);
	vkDestroySemaphore(p->device, gate, NULL);
	program_buffer_free(p, &b);
}

// A value handed from queue to queue and back by two binary semaphores.
static void binary_semaphores_hand_over(program *p)
{
	enum { ROUNDS = 200 };
	program_buffer b = program_buffer_make(p, 4 * (ROUNDS + 1));
	b.words[0] = 42;
	VkSemaphore ping = program_binary(p), pong = program_binary(p);
	program_queue *queues[2] = { queue_at(p, 0, 1), queue_at(p, 2, 0) };
	for (uint32_t k = 0; k < ROUNDS; k++) {
		program_queue *q = queues[k % 2];
		VkCommandBuffer c = program_begin(p, q);
		program_barrier(c);
		vkCmdCopyBuffer(c, b.handle, b.handle, 1, &(VkBufferCopy){ 4 * k, 4 * (k + 1), 4 });
		program_barrier(c);
		program_end(c);
		program_point wait = { k % 2 == 0 ? pong : ping, 0 }, signal = { k % 2 == 0 ? ping : pong, 0 };
		MUST(program_submit(q, c, k > 0, &wait, k + 1 < ROUNDS, &signal, VK_NULL_HANDLE));
	}
	MUST(vkDeviceWaitIdle(p->device));
	for (uint32_t k = 0; k <= ROUNDS; k++)
		CHECK(b.words[k] == 42, "round %u read too early", k);
	vkDestroySemaphore(p->device, ping, NULL);
	vkDestroySemaphore(p->device, pong, NULL);
	program_buffer_free(p, &b);
}

// Several batches in one vkQueueSubmit, waiting for each other's binary semaphore.
static void batches_of_one_call_keep_their_order(program *p)
{
	program_buffer b = program_buffer_make(p, 64);
	program_queue *q = queue_at(p, 0, 0);
	VkSemaphore s = program_binary(p), gate = program_timeline(p), passed = program_timeline(p);
	VkFence f = program_fence(p);
	VkCommandBuffer first = fill(p, q, &b, 0, 5), second = program_begin(p, q);
	vkCmdCopyBuffer(second, b.handle, b.handle, 1, &(VkBufferCopy){ 0, 4, 4 });
	program_barrier(second);
	program_end(second);
	// The first signals passed, the second waits for the gate: the fence is the second's.
	VkSemaphore signals[2] = { s, passed }, waits[2] = { s, gate };
	uint64_t values[2] = { 0, 1 };
	VkPipelineStageFlags stages[2] = {
		VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
	};
	VkTimelineSemaphoreSubmitInfo chained[2] = {
		{
			.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
			.signalSemaphoreValueCount = 2, .pSignalSemaphoreValues = values,
		},
		{
			.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
			.waitSemaphoreValueCount = 2, .pWaitSemaphoreValues = values,
		},
	};
	VkSubmitInfo infos[2] = {
		{
			.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
			.pNext = &chained[0],
			.commandBufferCount = 1, .pCommandBuffers = &first,
			.signalSemaphoreCount = 2, .pSignalSemaphores = signals,
		},
		{
			.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
			.pNext = &chained[1],
			.waitSemaphoreCount = 2, .pWaitSemaphores = waits, .pWaitDstStageMask = stages,
			.commandBufferCount = 1, .pCommandBuffers = &second,
		},
	};
	MUST(vkQueueSubmit(q->handle, 2, infos, f));
	CHECK(program_reaches(p, passed, 1, FOREVER), "the first does not end");
	CHECK(vkWaitForFences(p->device, 1, &f, VK_TRUE, 5000000) == VK_TIMEOUT,
		"the fence came with the first of two batches");
	signal_from_host(p, gate, 1);
	CHECK(vkWaitForFences(p->device, 1, &f, VK_TRUE, FOREVER) == VK_SUCCESS, "no fence");
	CHECK(b.words[0] == 5 && b.words[1] == 5, "words %u %u", b.words[0], b.words[1]);
	vkDestroySemaphore(p->device, s, NULL);
	vkDestroySemaphore(p->device, gate, NULL);
	vkDestroySemaphore(p->device, passed, NULL);
	vkDestroyFence(p->device, f, NULL);
	program_buffer_free(p, &b);
}

static void a_wait_may_come_before_its_signal(program *p)
{
	program_buffer b = program_buffer_make(p, 64);
	VkSemaphore a = program_timeline(p), done = program_timeline(p);
	program_queue *reader = queue_at(p, 0, 1), *writer = queue_at(p, 1, 0);
	VkCommandBuffer c = program_begin(p, reader);
	vkCmdCopyBuffer(c, b.handle, b.handle, 1, &(VkBufferCopy){ 0, 4, 4 });
	program_barrier(c);
	program_end(c);
	MUST(program_submit(reader, c, 1, &(program_point){ a, 1 }, 1, &(program_point){ done, 1 },
		VK_NULL_HANDLE));
	CHECK(!program_reaches(p, done, 1, 5000000), "the reader did not wait");
	MUST(program_submit(writer, fill(p, writer, &b, 0, 9), 0, NULL, 1, &(program_point){ a, 1 },
		VK_NULL_HANDLE));
	CHECK(program_reaches(p, done, 1, FOREVER), "the reader does not end");
	CHECK(b.words[1] == 9, "the reader read %u", b.words[1]);
	vkDestroySemaphore(p->device, a, NULL);
	vkDestroySemaphore(p->device, done, NULL);
	program_buffer_free(p, &b);
}

static void a_batch_holds_back_its_queue_alone(program *p)
{
	program_buffer b = program_buffer_make(p, 64);
	VkSemaphore gate = program_timeline(p), done = program_timeline(p);
	program_queue *held = queue_at(p, 0, 0), *other = queue_at(p, 0, 1);
	MUST(program_submit(held, VK_NULL_HANDLE, 1, &(program_point){ gate, 1 }, 0, NULL, VK_NULL_HANDLE));
	MUST(program_submit(held, fill(p, held, &b, 0, 1), 0, NULL, 1, &(program_point){ done, 1 },
		VK_NULL_HANDLE));
	for (uint32_t k = 0; k < 20; k++)
		MUST(program_submit(other, fill(p, other, &b, 1, k + 1), 0, NULL, 0, NULL, VK_NULL_HANDLE));
	MUST(vkQueueWaitIdle(other->handle));
	CHECK(b.words[1] == 20, "the other queue is idle after %u of 20 batches", b.words[1]);
	CHECK(b.words[0] == 0 && program_value(p, done) == 0, "a batch passed one that waits");
	signal_from_host(p, gate, 1);
	CHECK(program_reaches(p, done, 1, FOREVER) && b.words[0] == 1, "the queue stays held");
	vkDestroySemaphore(p->device, gate, NULL);
	vkDestroySemaphore(p->device, done, NULL);
	program_buffer_free(p, &b);
}

static void idle_means_all_has_run(program *p)
{
	enum { EACH = 30 };
	program_buffer b = program_buffer_make(p, 4 * PROGRAM_QUEUES * EACH);
	for (uint32_t round = 1; round <= 2; round++) {
		for (uint32_t k = 0; k < EACH; k++)
			for (uint32_t i = 0; i < p->queue_count; i++)
				MUST(program_submit(&p->queues[i],
					fill(p, &p->queues[i], &b, i * EACH + k, round), 0, NULL, 0, NULL,
					VK_NULL_HANDLE));
		if (round == 1) {
			MUST(vkDeviceWaitIdle(p->device));
		} else {
			for (uint32_t i = 0; i < p->queue_count; i++) {
				MUST(vkQueueWaitIdle(p->queues[i].handle));
				CHECK(b.words[i * EACH + EACH - 1] == round, "queue %u was not idle", i);
			}
		}
		for (uint32_t k = 0; k < p->queue_count * EACH; k++)
			CHECK(b.words[k] == round, "round %u: batch %u had not run", round, k);
	}
	program_buffer_free(p, &b);
}

// A buffer and an image that belong to one family at a time, handed from the first
// family to the last and read back there.
static void ownership_passes_between_families(program *p)
{
	program_buffer b = program_buffer_make(p, 64);
	program_queue *from = queue_at(p, 0, 0), *to = queue_at(p, 2, 1);
	VkImageCreateInfo image_info = {
		.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
		.imageType = VK_IMAGE_TYPE_2D,
		.format = VK_FORMAT_R32_UINT,
		.extent = { 2, 2, 1 },
		.mipLevels = 1,
		.arrayLayers = 1,
		.samples = VK_SAMPLE_COUNT_1_BIT,
		.tiling = VK_IMAGE_TILING_OPTIMAL,
		.usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
	};
	VkImage image;
	MUST(vkCreateImage(p->device, &image_info, NULL, &image));
	VkMemoryRequirements needs;
	vkGetImageMemoryRequirements(p->device, image, &needs);
	uint32_t type = 0;
	while ((needs.memoryTypeBits >> type & 1) == 0)
		type++;
	VkMemoryAllocateInfo allocate = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
		.allocationSize = needs.size,
		.memoryTypeIndex = type,
	};
	VkDeviceMemory memory;
	MUST(vkAllocateMemory(p->device, &allocate, NULL, &memory));
	MUST(vkBindImageMemory(p->device, image, memory, 0));

	VkImageSubresourceRange whole = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1 };
	VkImageMemoryBarrier clear = {
		.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
		.dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
		.oldLayout = VK_IMAGE_LAYOUT_UNDEFINED,
		.newLayout = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
		.srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
		.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
		.image = image,
		.subresourceRange = whole,
	};
	VkImageMemoryBarrier hand = clear;
	hand.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
	hand.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT;
	hand.oldLayout = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL;
	hand.newLayout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL;
	hand.srcQueueFamilyIndex = from->family;
	hand.dstQueueFamilyIndex = to->family;
	VkPipelineStageFlags transfer = VK_PIPELINE_STAGE_TRANSFER_BIT;

	VkCommandBuffer c = program_begin(p, from);
	vkCmdPipelineBarrier(c, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, transfer, 0, 0, NULL, 0, NULL, 1, &clear);
	VkClearColorValue color = { .uint32 = { 77 } };
	vkCmdClearColorImage(c, image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, &color, 1, &whole);
	vkCmdPipelineBarrier(c, transfer, transfer, 0, 0, NULL, 0, NULL, 1, &hand);
	program_end(c);
	VkSemaphore timeline = program_timeline(p);
	MUST(program_submit(from, c, 0, NULL, 1, &(program_point){ timeline, 1 }, VK_NULL_HANDLE));

	c = program_begin(p, to);
	vkCmdPipelineBarrier(c, transfer, transfer, 0, 0, NULL, 0, NULL, 1, &hand);
	VkBufferImageCopy region = {
		.imageSubresource = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1 },
		.imageExtent = { 2, 2, 1 },
	};
	vkCmdCopyImageToBuffer(c, image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, b.handle, 1, &region);
	program_barrier(c);
	program_end(c);
	MUST(program_submit(to, c, 1, &(program_point){ timeline, 1 }, 1, &(program_point){ timeline, 2 },
		VK_NULL_HANDLE));
	CHECK(program_reaches(p, timeline, 2, FOREVER), "the image does not come over");
	for (uint32_t k = 0; k < 4; k++)
		CHECK(b.words[k] == 77, "texel %u is %u", k, b.words[k]);
	vkDestroySemaphore(p->device, timeline, NULL);
	vkDestroyImage(p->device, image, NULL);
	vkFreeMemory(p->device, memory, NULL);
	program_buffer_free(p, &b);
}

typedef struct submitter {
	program *p;
	program_queue *q;
	VkSemaphore timeline;
	VkCommandBuffer commands[200];
} submitter;

static void *submit_all(void *argument)
{
	submitter *s = argument;
	for (uint32_t k = 0; k < 200; k++)
		MUST(program_submit(s->q, s->commands[k], 0, NULL, 1, &(program_point){ s->timeline, k + 1 },
			VK_NULL_HANDLE));
	return NULL;
}

static void queues_take_batches_from_many_threads(program *p)
{
	program_buffer b = program_buffer_make(p, 4 * PROGRAM_QUEUES * 200);
	static submitter s[PROGRAM_QUEUES];
	pthread_t threads[PROGRAM_QUEUES];
	for (uint32_t i = 0; i < p->queue_count; i++) {
		s[i] = (submitter){ .p = p, .q = &p->queues[i], .timeline = program_timeline(p) };
		for (uint32_t k = 0; k < 200; k++)
			s[i].commands[k] = fill(p, s[i].q, &b, i * 200 + k, k + 1);
	}
	for (uint32_t i = 0; i < p->queue_count; i++)
		if (pthread_create(&threads[i], NULL, submit_all, &s[i]) != 0)
			exit(1);
	for (uint32_t i = 0; i < p->queue_count; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < p->queue_count; i++) {
		CHECK(program_reaches(p, s[i].timeline, 200, FOREVER), "queue %u does not end", i);
		for (uint32_t k = 0; k < 200; k++)
			CHECK(b.words[i * 200 + k] == k + 1, "batch %u of queue %u is lost", k, i);
		vkDestroySemaphore(p->device, s[i].timeline, NULL);
	}
	program_buffer_free(p, &b);
}

// Each has its own queues: one is held, the other goes on.
static void devices_do_not_hold_each_other(program *first)
{
	program second;
	program_open_again(&second, first);
	CHECK(second.queues[0].handle != first->queues[0].handle, "two devices share a queue");
	VkSemaphore gate = program_timeline(first), done = program_timeline(first);
	for (uint32_t i = 0; i < first->queue_count; i++)
		MUST(program_submit(&first->queues[i], VK_NULL_HANDLE, 1, &(program_point){ gate, 1 }, 0, NULL,
			VK_NULL_HANDLE));
	idle_means_all_has_run(&second);
	program_close(&second);
	MUST(program_submit(&first->queues[0], VK_NULL_HANDLE, 0, NULL, 1, &(program_point){ done, 1 },
		VK_NULL_HANDLE));
	CHECK(program_value(first, done) == 0, "a batch passed one that waits");
	signal_from_host(first, gate, 1);
	MUST(vkDeviceWaitIdle(first->device));
	vkDestroySemaphore(first->device, gate, NULL);
	vkDestroySemaphore(first->device, done, NULL);
}

// VKOMP_MANYQUEUE_LOSE is 3: the fourth batch loses the device, which says so from
// then on and lets nobody wait for ever.
static void a_lost_device_says_so(void)
{
	program_environment("VKOMP_MANYQUEUE_LOSE", 3);
	program p;
	program_open(&p, plain);
	program_environment("VKOMP_MANYQUEUE_LOSE", 0);
	VkSemaphore t = program_timeline(&p);
	VkFence f = program_fence(&p);
	for (uint64_t k = 1; k <= 3; k++)
		MUST(program_submit(&p.queues[0], VK_NULL_HANDLE, 0, NULL, 1, &(program_point){ t, k },
			VK_NULL_HANDLE));
	CHECK(program_reaches(&p, t, 3, FOREVER), "the first three are lost too");
	// Held in its queue when the device is lost.
	program_submit(&p.queues[1], VK_NULL_HANDLE, 1, &(program_point){ t, 9 }, 0, NULL, VK_NULL_HANDLE);
	MUST(program_submit(&p.queues[0], VK_NULL_HANDLE, 0, NULL, 1, &(program_point){ t, 4 }, f));
	uint64_t four = 4, value;
	VkSemaphoreWaitInfo wait = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
		.semaphoreCount = 1,
		.pSemaphores = &t,
		.pValues = &four,
	};
	CHECK(vkWaitSemaphores(p.device, &wait, UINT64_MAX) == VK_ERROR_DEVICE_LOST, "vkWaitSemaphores");
	CHECK(vkWaitForFences(p.device, 1, &f, VK_TRUE, UINT64_MAX) == VK_ERROR_DEVICE_LOST,
		"vkWaitForFences");
	CHECK(vkGetFenceStatus(p.device, f) == VK_ERROR_DEVICE_LOST, "vkGetFenceStatus");
	CHECK(vkGetSemaphoreCounterValue(p.device, t, &value) == VK_ERROR_DEVICE_LOST,
		"vkGetSemaphoreCounterValue");
	CHECK(program_submit(&p.queues[2], VK_NULL_HANDLE, 0, NULL, 0, NULL, VK_NULL_HANDLE) ==
		VK_ERROR_DEVICE_LOST, "vkQueueSubmit");
	CHECK(vkQueueWaitIdle(p.queues[1].handle) == VK_ERROR_DEVICE_LOST, "vkQueueWaitIdle");
	CHECK(vkDeviceWaitIdle(p.device) == VK_ERROR_DEVICE_LOST, "vkDeviceWaitIdle");
	vkDestroySemaphore(p.device, t, NULL);
	vkDestroyFence(p.device, f, NULL);
	program_close(&p);
}

// VKOMP_MANYQUEUE_HOLD names a file: nothing begins before it is gone.
static void a_file_holds_all_batches_back(void)
{
	char path[64];
	snprintf(path, sizeof path, "/tmp/vkomp-manyqueue-%ld", (long)getpid());
	FILE *file = fopen(path, "w");
	CHECK(file != NULL && fclose(file) == 0, "%s", path);
	setenv("VKOMP_MANYQUEUE_HOLD", path, 1);
	program_environment("VKOMP_MANYQUEUE_DELAY_US", 0);
	program p;
	program_open(&p, plain);
	unsetenv("VKOMP_MANYQUEUE_HOLD");
	VkSemaphore t = program_timeline(&p);
	MUST(program_submit(&p.queues[0], VK_NULL_HANDLE, 0, NULL, 1, &(program_point){ t, 1 },
		VK_NULL_HANDLE));
	CHECK(!program_reaches(&p, t, 1, 50 * 1000 * 1000), "a batch begins though it is held back");
	CHECK(remove(path) == 0, "%s", path);
	CHECK(program_reaches(&p, t, 1, FOREVER), "a batch does not begin");
	unsetenv("VKOMP_MANYQUEUE_DELAY_US");
	vkDestroySemaphore(p.device, t, NULL);
	program_close(&p);
}

static void another_plan_gives_other_families(void)
{
	program_environment("VKOMP_MANYQUEUE_DELAY_US", 0);
	setenv("VKOMP_MANYQUEUE_FAMILIES", "C1,T12", 1);
	program p;
	program_open(&p, plain);
	unsetenv("VKOMP_MANYQUEUE_FAMILIES");
	CHECK(p.family_count == 2 && p.queue_count == 13, "%u families, %u queues", p.family_count,
		p.queue_count);
	CHECK(p.queues[0].flags == VK_QUEUE_COMPUTE_BIT && p.queues[1].flags == VK_QUEUE_TRANSFER_BIT,
		"flags 0x%x and 0x%x", p.queues[0].flags, p.queues[1].flags);
	VkBindSparseInfo sparse = { .sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO };
	CHECK(vkQueueBindSparse(p.queues[0].handle, 1, &sparse, VK_NULL_HANDLE) < 0,
		"vkQueueBindSparse is accepted");
	idle_means_all_has_run(&p);
	program_close(&p);
	unsetenv("VKOMP_MANYQUEUE_DELAY_US");
}

// The program does not ask for timelines, which the layer needs for itself.
static void one_queue_and_no_features_do(program *first)
{
	float priority = 1;
	VkDeviceQueueCreateInfo queue = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
		.queueFamilyIndex = 1,
		.queueCount = 1,
		.pQueuePriorities = &priority,
	};
	VkDeviceCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
		.queueCreateInfoCount = 1,
		.pQueueCreateInfos = &queue,
	};
	program p = { .physical = first->physical };
	MUST(vkCreateDevice(first->physical, &info, NULL, &p.device));
	VkQueue q = VK_NULL_HANDLE;
	vkGetDeviceQueue(p.device, 1, 0, &q);
	CHECK(q != VK_NULL_HANDLE, "the queue asked for is not there");
	VkSemaphore s = program_binary(&p);
	VkFence f = program_fence(&p);
	VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
	VkSubmitInfo signal = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .signalSemaphoreCount = 1, .pSignalSemaphores = &s,
	}, wait = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .waitSemaphoreCount = 1, .pWaitSemaphores = &s,
		.pWaitDstStageMask = &stage,
	};
	MUST(vkQueueSubmit(q, 1, &signal, VK_NULL_HANDLE));
	MUST(vkQueueSubmit(q, 1, &wait, f));
	CHECK(vkWaitForFences(p.device, 1, &f, VK_TRUE, FOREVER) == VK_SUCCESS, "no fence");
	vkDestroyFence(p.device, f, NULL);
	vkDestroySemaphore(p.device, s, NULL);
	vkDestroyDevice(p.device, NULL);
}

// Those below run in children, before this process has called Vulkan.

static void dispatch_in_a_transfer_family(void)
{
	program p;
	program_open(&p, plain);
	vkCmdDispatch(program_begin(&p, queue_at(&p, 2, 0)), 1, 1, 1);
}

static void command_buffer_of_another_family(void)
{
	program p;
	program_open(&p, plain);
	VkCommandBuffer c = program_begin(&p, queue_at(&p, 1, 0));
	program_end(c);
	program_submit(queue_at(&p, 0, 0), c, 0, NULL, 0, NULL, VK_NULL_HANDLE);
}

static void draw_in_a_compute_family(void)
{
	program p;
	program_open(&p, plain);
	vkCmdDraw(program_begin(&p, queue_at(&p, 1, 0)), 3, 1, 0, 0);
}

static void plan_without_a_count(void)
{
	setenv("VKOMP_MANYQUEUE_FAMILIES", "GCT", 1);
	program p;
	program_open(&p, plain);
}

static void destroying_a_device_that_hangs(void)
{
	program p;
	program_open(&p, plain);
	VkSemaphore never = program_timeline(&p);
	program_submit(&p.queues[2], VK_NULL_HANDLE, 1, &(program_point){ never, 5 }, 0, NULL,
		VK_NULL_HANDLE);
	program_submit(&p.queues[2], VK_NULL_HANDLE, 0, NULL, 0, NULL, VK_NULL_HANDLE);
	vkDestroyDevice(p.device, NULL);
	vkDestroyInstance(p.instance, NULL);
}

static void child(const char *what, void (*run)(void), bool aborts, const char *says)
{
	int ends[2];
	if (pipe(ends) != 0)
		exit(1);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		run();
		_exit(0);
	}
	close(ends[1]);
	char text[4096];
	size_t n = 0;
	for (ssize_t got; n < sizeof text - 1 && (got = read(ends[0], text + n, sizeof text - 1 - n)) > 0;)
		n += (size_t)got;
	text[n] = '\0';
	close(ends[0]);
	int status;
	waitpid(pid, &status, 0);
	CHECK(aborts ? WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT :
		WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: status 0x%x", what, status);
	CHECK(strstr(text, says) != NULL, "%s: says \"%s\"", what, text);
}

// Without what is signalled by the host: below a layer that waits in threads of its
// own, validation 1.3.239 takes ten seconds to find that it has lost count.
static void what_the_driver_gets_is_legal(void)
{
	program p;
	program_open(&p, validated_below);
	binary_semaphores_hand_over(&p);
	idle_means_all_has_run(&p);
	ownership_passes_between_families(&p);
	queues_take_batches_from_many_threads(&p);
	one_queue_and_no_features_do(&p);
	program_close(&p);
	CHECK(p.messages == 0, "%u messages of the validation layer", p.messages);
}

static void all_that_is_legal(void)
{
	program p;
	program_open(&p, validated);
	families_are_those_of_the_plan(&p);
	extensions_that_take_queues_are_hidden(&p);
	queues_take_names_and_labels(&p);
	a_fence_follows_its_batch_and_all_before(&p);
	binary_semaphores_hand_over(&p);
	batches_of_one_call_keep_their_order(&p);
	a_wait_may_come_before_its_signal(&p);
	a_batch_holds_back_its_queue_alone(&p);
	idle_means_all_has_run(&p);
	ownership_passes_between_families(&p);
	queues_take_batches_from_many_threads(&p);
	devices_do_not_hold_each_other(&p);
	one_queue_and_no_features_do(&p);
	program_close(&p);
	CHECK(p.messages == 0, "%u messages of the validation layer", p.messages);
}

int main(void)
{
	child("a dispatch in a transfer family", dispatch_in_a_transfer_family, true,
		"vkCmdDispatch in a command buffer of family 2");
	child("a draw in a compute family", draw_in_a_compute_family, true,
		"vkCmdDraw in a command buffer of family 1");
	child("a command buffer of another family", command_buffer_of_another_family, true,
		"a command buffer of family 1 is submitted to queue 0/0");
	child("a plan without a count", plan_without_a_count, true, "not like GCT2,CT4,T2");
	child("destroying a device that hangs", destroying_a_device_that_hangs, false,
		"queue 1/0 waits for semaphore");

	a_lost_device_says_so();
	a_file_holds_all_batches_back();
	another_plan_gives_other_families();

	all_that_is_legal();
	what_the_driver_gets_is_legal();
	return program_result("test_manyqueue_calls");
}
