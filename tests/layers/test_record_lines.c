// What a small program did is in the log, line by line, and nothing else is.
#include "test_record.h"

#include "test_record.spv.h"

// * stands for what depends on the driver.
static const char *const expected[] = {
	"vkomp-order 1",
	"thread 1",
	"device 0 *",
	"queue 1 0 0 0 *",
	"buffer 1 0 256 *",
	"memory 1 0 256 * 0",
	"bind 1 1 0",
	"map 1 0 18446744073709551615",
	"buffer 2 0 256 *",
	"memory 2 0 256 * 0",
	"bind 2 2 0",
	"map 2 0 18446744073709551615",
	"module 1 0 03022307*",
	"pipeline 1 0 1 main",
	"semaphore 1 0 timeline 0",
	"semaphore 2 0 binary 0",
	"fence 1 0 0",
	"memory 3 0 * * 0",
	"flush 1 0 64",
	"commands 1 0",
	"f 1 64 64",
	"u 1 128 8",
	"b 1000:800:1000:60:0",
	"p 1",
	"r 0 0:1:0:18446744073709551615 1:2:0:18446744073709551615",
	"k 0 7,a",
	"d 0 0 0 3 1 1",
	"d 0 0 0 3 1 1",
	"b 800:1000:40:1800:1:2:0:64 800:1000:40:1800:1:1:64:32",
	"c 2 1 0:128:16 32:160:4",
	"b 800:1000:0:0:0",
	"b 1800:4000:1040:2000:0 100000000:800000000:1000:1000:0",
	"? vkCmdSetEvent",
	"b 1:1000:0:1000:2",
	"? vkCmdClearColorImage",
	"end",
	"submit 1 w c 1 s 1:3:10000 2:0:10000 f 1",
	"wait ? 1:3",
	"invalidate 1 128 18446744073709551615",
	"fences ? 1",
	"reset 1",
	"submit 1 w 2:0:10000 1:3:10000 c s 1:4:10000",
	"submit 1 w c s 1:5:10000 | w 1:5:800 c s 1:6:10000",
	"submit 1 w 1:6:800 c s 1:7:1000 f 1",
	"idle b 1",
	"idle b 1",
	"wait ? 1:7",
	"signal 1 9",
	"count 1 9",
	"wait n",
	"discard 1",
	"commands 1 0",
	"end",
	"discard 1",
	"commands 1 0",
	"end",
	"discard 1",
	"unmap 1",
	"destroy buffer 1",
	"destroy memory 1",
	"destroy buffer 2",
	"destroy memory 2",
	"destroy pipeline 1",
	"destroy module 1",
	"destroy semaphore 1",
	"destroy semaphore 2",
	"destroy fence 1",
	"destroy memory 3",
	"destroy commands 1",
	"destroy device 0",
};

static VkImage make_image(program *p, VkDeviceMemory *memory)
{
	VkImageCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
		.imageType = VK_IMAGE_TYPE_2D,
		.format = VK_FORMAT_R8G8B8A8_UNORM,
		.extent = { 4, 4, 1 },
		.mipLevels = 1,
		.arrayLayers = 1,
		.samples = VK_SAMPLE_COUNT_1_BIT,
		.usage = VK_IMAGE_USAGE_TRANSFER_DST_BIT,
	};
	VkImage image;
	MUST(vkCreateImage(p->device, &info, NULL, &image));
	VkMemoryRequirements needs;
	vkGetImageMemoryRequirements(p->device, image, &needs);
	VkMemoryAllocateInfo allocate = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
		.allocationSize = needs.size,
		.memoryTypeIndex = (uint32_t)__builtin_ctz(needs.memoryTypeBits),
	};
	MUST(vkAllocateMemory(p->device, &allocate, NULL, memory));
	MUST(vkBindImageMemory(p->device, image, *memory, 0));
	return image;
}

static void clear_image(VkCommandBuffer c, VkImage image)
{
	VkImageMemoryBarrier to_clear = {
		.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
		.dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
		.newLayout = VK_IMAGE_LAYOUT_GENERAL,
		.image = image,
		.subresourceRange = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1 },
	};
	vkCmdPipelineBarrier(c, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0,
		0, NULL, 0, NULL, 1, &to_clear);
	vkCmdClearColorImage(c, image, VK_IMAGE_LAYOUT_GENERAL, &(VkClearColorValue){ 0 }, 1,
		&to_clear.subresourceRange);
}

static VkCommandBuffer record_commands(program *p, program_kernel *k, program_buffer *a,
	program_buffer *b, VkEvent event, VkImage image)
{
	VkCommandBuffer c = program_begin(p, &p->queues[0]);
	uint32_t words[2] = { 7, 10 };
	vkCmdFillBuffer(c, a->handle, 64, 64, 5);
	vkCmdUpdateBuffer(c, a->handle, 128, sizeof words, words);
	VkMemoryBarrier barrier = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
		.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
		.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT,
	};
	vkCmdPipelineBarrier(c, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0,
		1, &barrier, 0, NULL, 0, NULL);
	VkDescriptorSet set = program_set(p, k, (const program_buffer *const[]){ a, b });
	program_dispatch(c, k, set, words, 3);
	vkCmdDispatchBase(c, 0, 0, 0, 3, 1, 1);
	VkBufferMemoryBarrier of_buffers[2] = {
		{
			.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
			.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
			.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
			.buffer = b->handle,
			.size = 64,
		},
	};
	of_buffers[1] = of_buffers[0];
	of_buffers[1].buffer = a->handle;
	of_buffers[1].offset = 64;
	of_buffers[1].size = 32;
	vkCmdPipelineBarrier(c, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0,
		0, NULL, 2, of_buffers, 0, NULL);
	VkBufferCopy regions[2] = { { 0, 128, 16 }, { 32, 160, 4 } };
	vkCmdCopyBuffer(c, b->handle, a->handle, 2, regions);
	vkCmdPipelineBarrier(c, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0,
		0, NULL, 0, NULL, 0, NULL);
	VkMemoryBarrier2 modern[2] = {
		{
			.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
			.srcStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT,
			.srcAccessMask = VK_ACCESS_2_SHADER_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT,
			.dstStageMask = VK_PIPELINE_STAGE_2_HOST_BIT,
			.dstAccessMask = VK_ACCESS_2_HOST_READ_BIT,
		},
		{
			.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
			.srcStageMask = VK_PIPELINE_STAGE_2_COPY_BIT,
			.srcAccessMask = VK_ACCESS_2_TRANSFER_WRITE_BIT,
			.dstStageMask = VK_PIPELINE_STAGE_2_CLEAR_BIT,
			.dstAccessMask = VK_ACCESS_2_TRANSFER_WRITE_BIT,
		},
	};
	VkDependencyInfo info = {
		.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
		.memoryBarrierCount = 2,
		.pMemoryBarriers = modern,
	};
	p->CmdPipelineBarrier2(c, &info);
	vkCmdSetEvent(c, event, VK_PIPELINE_STAGE_TRANSFER_BIT);
	vkCmdSetLineWidth(c, 1); // accesses nothing and orders nothing
	clear_image(c, image);
	program_end(c);
	return c;
}

static void submit_modern(program *p, VkSemaphore timeline, VkFence fence)
{
	VkSemaphoreSubmitInfo wait = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
		.semaphore = timeline,
		.value = 6,
		.stageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
	};
	VkSemaphoreSubmitInfo signal = wait;
	signal.value = 7;
	signal.stageMask = VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT;
	VkSubmitInfo2 info = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
		.waitSemaphoreInfoCount = 1,
		.pWaitSemaphoreInfos = &wait,
		.signalSemaphoreInfoCount = 1,
		.pSignalSemaphoreInfos = &signal,
	};
	MUST(p->QueueSubmit2(p->queues[0].handle, 1, &info, fence));
}

// Two batches in one call.
static void submit_two(program *p, VkSemaphore timeline)
{
	VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
	uint64_t five = 5, six = 6;
	VkTimelineSemaphoreSubmitInfo values[2] = {
		{ .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, .signalSemaphoreValueCount = 1,
			.pSignalSemaphoreValues = &five },
		{ .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, .waitSemaphoreValueCount = 1,
			.pWaitSemaphoreValues = &five, .signalSemaphoreValueCount = 1,
			.pSignalSemaphoreValues = &six },
	};
	VkSubmitInfo infos[2] = {
		{ .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .pNext = &values[0], .signalSemaphoreCount = 1,
			.pSignalSemaphores = &timeline },
		{ .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .pNext = &values[1], .waitSemaphoreCount = 1,
			.pWaitSemaphores = &timeline, .pWaitDstStageMask = &stage, .signalSemaphoreCount = 1,
			.pSignalSemaphores = &timeline },
	};
	MUST(vkQueueSubmit(p->queues[0].handle, 2, infos, VK_NULL_HANDLE));
}

static void run(program *p)
{
	program_buffer a = program_buffer_make(p, 256), b = program_buffer_make(p, 256);
	program_kernel k = program_kernel_make(p, spirv_test_record, sizeof spirv_test_record, 2, 8, 1);
	VkSemaphore timeline = program_timeline(p), binary = program_binary(p);
	VkFence fence = program_fence(p);
	VkEventCreateInfo event_info = { .sType = VK_STRUCTURE_TYPE_EVENT_CREATE_INFO };
	VkEvent event;
	MUST(vkCreateEvent(p->device, &event_info, NULL, &event));
	VkDeviceMemory of_image;
	VkImage image = make_image(p, &of_image);
	VkMappedMemoryRange range = {
		.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
		.memory = a.memory,
		.size = 64,
	};
	MUST(vkFlushMappedMemoryRanges(p->device, 1, &range));
	VkCommandBuffer c = record_commands(p, &k, &a, &b, event, image);
	program_point signals[2] = { { timeline, 3 }, { binary, 0 } };
	MUST(program_submit(&p->queues[0], c, 0, NULL, 2, signals, fence));
	CHECK(program_reaches(p, timeline, 3, UINT64_MAX), "value 3");
	CHECK(program_value(p, timeline) == 3, "counter: the log has it from the wait");
	range.offset = 128;
	range.size = VK_WHOLE_SIZE;
	MUST(vkInvalidateMappedMemoryRanges(p->device, 1, &range));
	MUST(vkWaitForFences(p->device, 1, &fence, VK_TRUE, UINT64_MAX));
	MUST(vkResetFences(p->device, 1, &fence));
	program_point waits[2] = { { binary, 0 }, { timeline, 3 } };
	MUST(program_submit(&p->queues[0], VK_NULL_HANDLE, 2, waits, 1, &(program_point){ timeline, 4 },
		VK_NULL_HANDLE));
	submit_two(p, timeline);
	submit_modern(p, timeline, fence);
	MUST(vkQueueWaitIdle(p->queues[0].handle));
	MUST(vkDeviceWaitIdle(p->device));
	CHECK(program_reaches(p, timeline, 7, UINT64_MAX), "value 7");
	VkSemaphoreSignalInfo nine = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
		.semaphore = timeline,
		.value = 9,
	};
	MUST(vkSignalSemaphore(p->device, &nine));
	for (int k = 0; k < 2; k++)
		CHECK(program_value(p, timeline) == 9, "counter: the log has the first time");
	CHECK(!program_reaches(p, timeline, 10, 0), "value 10");
	// What was recorded is lost when a recording begins, or with the first reset.
	VkCommandBufferBeginInfo begin = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO };
	for (int k = 0; k < 2; k++) {
		MUST(vkBeginCommandBuffer(c, &begin));
		program_end(c);
		if (k == 0)
			MUST(vkResetCommandBuffer(c, 0));
		MUST(vkResetCommandPool(p->device, p->queues[0].pool, 0));
	}
	vkUnmapMemory(p->device, a.memory);
	program_buffer_free(p, &a);
	program_buffer_free(p, &b);
	program_kernel_free(p, &k);
	vkDestroySemaphore(p->device, timeline, NULL);
	vkDestroySemaphore(p->device, binary, NULL);
	vkDestroyFence(p->device, fence, NULL);
	vkDestroyEvent(p->device, event, NULL);
	vkDestroyImage(p->device, image, NULL);
	vkFreeMemory(p->device, of_image, NULL);
}

int main(void)
{
	static record r;
	record_begin(&r, "");
	program p;
	program_open(&p, record_layer);
	run(&p);
	program_close(&p);
	record_read(&r);
	int lines = sizeof expected / sizeof expected[0];
	for (int k = 0; k < lines || k < r.count; k++) {
		const char *want = k < lines ? expected[k] : "nothing", *got = k < r.count ? r.lines[k] : "nothing";
		CHECK(fnmatch(want, got, 0) == 0, "line %d: want %.80s, got %.80s", k + 1, want, got);
	}
	return program_result("test_record_lines");
}
