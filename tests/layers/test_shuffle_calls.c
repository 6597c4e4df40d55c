// The rest of Vulkan behind the shuffling layer: commands that it does not keep,
// waits before their signals across queues and devices, fences that are polled,
// objects that go before the commands that were recorded with them.
#include "test_shuffle.h"

#define COMPUTE VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
#define ALL VK_PIPELINE_STAGE_ALL_COMMANDS_BIT

static void submit(rig *r, VkCommandBuffer c)
{
	MUST(program_submit(&r->p.queues[0], c, 0, NULL, 0, NULL, VK_NULL_HANDLE));
}

static VkCommandBuffer marks(rig *r, uint32_t from, uint32_t n)
{
	tape t = { .count = 0 };
	for (uint32_t k = 0; k < n; k++)
		tape_mark(&t, 0, 0, from + k);
	return tape_commands(r, &t);
}

// A command buffer with an event, a query, float and stack arguments stands as a
// wall between what is before and what is after, its own commands in order.
static void unknown_commands_are_walls(rig *r)
{
	rig_clear(r);
	const VkEventCreateInfo event_info = { .sType = VK_STRUCTURE_TYPE_EVENT_CREATE_INFO };
	const VkQueryPoolCreateInfo query_info = {
		.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
		.queryType = VK_QUERY_TYPE_TIMESTAMP,
		.queryCount = 1,
	};
	VkEvent event;
	VkQueryPool queries;
	MUST(vkCreateEvent(r->p.device, &event_info, NULL, &event));
	MUST(vkCreateQueryPool(r->p.device, &query_info, NULL, &queries));
	VkCommandBuffer wall = program_begin(&r->p, &r->p.queues[0]);
	tape t = { .count = 0 };
	for (uint32_t k = 0; k < 4; k++)
		tape_mark(&t, 0, 0, 100 + k);
	tape_record(r, &t, wall);
	const float constants[4] = { 1, 2, 3, 4 };
	vkCmdSetBlendConstants(wall, constants);
	vkCmdSetDepthBias(wall, 1.5f, 0, 3.5f);
	vkCmdSetLineWidth(wall, 1);
	vkCmdResetQueryPool(wall, queries, 0, 1);
	vkCmdWriteTimestamp(wall, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries, 0);
	// What was bound before those commands is bound after them.
	vkCmdDispatch(wall, 1, 1, 1);
	const VkMemoryBarrier all = { VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, VK_ACCESS_SHADER_WRITE_BIT,
		VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT };
	vkCmdSetEvent(wall, event, COMPUTE);
	vkCmdWaitEvents(wall, 1, &event, COMPUTE, COMPUTE, 1, &all, 0, NULL, 0, NULL);
	t.count = 0;
	tape_mark(&t, 0, 0, 104);
	tape_record(r, &t, wall);
	program_end(wall);

	submit(r, marks(r, 0, 8));
	submit(r, wall);
	submit(r, marks(r, 200, 8));
	MUST(vkQueueWaitIdle(r->p.queues[0].handle));
	static const uint32_t inside[] = { 100, 101, 102, 103, 103, 104 };
	const uint32_t *log = r->data[0].words + 1;
	uint64_t stamp = 0;
	CHECK(log[-1] == 22, "%u marks", log[-1]);
	for (uint32_t k = 0; k < 8; k++)
		CHECK(log[k] < 8 && log[14 + k] >= 200, "%u and %u beside the wall", log[k], log[14 + k]);
	CHECK(memcmp(log + 8, inside, sizeof inside) == 0, "the wall's own order: %u %u %u %u %u %u", log[8],
		log[9], log[10], log[11], log[12], log[13]);
	CHECK(vkGetEventStatus(r->p.device, event) == VK_EVENT_SET, "the event is not set");
	MUST(vkGetQueryPoolResults(r->p.device, queries, 0, 1, sizeof stamp, &stamp, 8,
		VK_QUERY_RESULT_64_BIT));
	vkDestroyEvent(r->p.device, event, NULL);
	vkDestroyQueryPool(r->p.device, queries, NULL);
}

static void secondary_command_buffers(rig *r)
{
	rig_clear(r);
	const VkCommandBufferAllocateInfo info = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
		.commandPool = r->p.queues[0].pool,
		.level = VK_COMMAND_BUFFER_LEVEL_SECONDARY,
		.commandBufferCount = 1,
	};
	const VkCommandBufferInheritanceInfo inheritance = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO,
	};
	const VkCommandBufferBeginInfo begin = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
		.pInheritanceInfo = &inheritance,
	};
	VkCommandBuffer secondary;
	MUST(vkAllocateCommandBuffers(r->p.device, &info, &secondary));
	MUST(vkBeginCommandBuffer(secondary, &begin));
	tape t = { .count = 0 };
	tape_mark(&t, 0, 0, 50);
	tape_record(r, &t, secondary);
	MUST(vkEndCommandBuffer(secondary));
	VkCommandBuffer c = program_begin(&r->p, &r->p.queues[0]);
	vkCmdExecuteCommands(c, 1, &secondary);
	program_end(c);
	submit(r, marks(r, 0, 3));
	submit(r, c);
	submit(r, marks(r, 100, 3));
	MUST(vkQueueWaitIdle(r->p.queues[0].handle));
	const uint32_t *log = r->data[0].words;
	CHECK(log[0] == 7 && log[4] == 50 && log[1] < 3 && log[7] >= 100, "%u marks, %u in the middle", log[0],
		log[4]);
}

// Two devices behind the layer; one waits for a value that the host signals when it
// has seen what the other has done.
static void devices_and_host(rig *a, rig *b)
{
	rig_clear(a);
	rig_clear(b);
	const program_point wait = { program_timeline(&a->p), 1 }, end = { program_timeline(&a->p), 1 };
	const program_point other = { program_timeline(&b->p), 1 };
	MUST(program_submit(&a->p.queues[0], marks(a, 1, 1), 1, &wait, 1, &end, VK_NULL_HANDLE));
	MUST(program_submit(&b->p.queues[0], marks(b, 2, 1), 0, NULL, 1, &other, VK_NULL_HANDLE));
	CHECK(!program_reaches(&a->p, end.semaphore, 1, 3 * 1000 * 1000), "signalled before its wait");
	CHECK(program_reaches(&b->p, other.semaphore, 1, UINT64_MAX), "the other device");
	CHECK(a->data[0].words[0] == 0 && b->data[0].words[0] == 1, "%u and %u marks", a->data[0].words[0],
		b->data[0].words[0]);
	const VkSemaphoreSignalInfo signal = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
		.semaphore = wait.semaphore,
		.value = 1,
	};
	MUST(vkSignalSemaphore(a->p.device, &signal));
	CHECK(program_reaches(&a->p, end.semaphore, 1, UINT64_MAX), "never signalled");
	MUST(vkDeviceWaitIdle(a->p.device));
	CHECK(a->data[0].words[0] == 1, "%u marks", a->data[0].words[0]);
	vkDestroySemaphore(a->p.device, wait.semaphore, NULL);
	vkDestroySemaphore(a->p.device, end.semaphore, NULL);
	vkDestroySemaphore(b->p.device, other.semaphore, NULL);
}

// Queues that wait for one another back and forth, submitted in the worst order:
// all waits before the signals that they need.
static void waits_before_signals(rig *r, bool several)
{
	enum { ROUNDS = 12 };
	program_queue *q[2] = { &r->p.queues[0], &r->p.queues[several ? 1 : 0] };
	rig_clear(r);
	const VkSemaphore line = program_timeline(&r->p);
	for (uint32_t k = 0; k < ROUNDS; k++) {
		// With one queue only the order of submission can be the order of values.
		uint32_t n = several ? (k < ROUNDS / 2 ? 2 * k + 1 : 2 * (k - ROUNDS / 2)) : k;
		const program_point before = { line, n }, after = { line, n + 1 };
		tape t = { .count = 0 };
		tape_step(&t, 0, 0, 0, 0, 3, n);
		VkCommandBuffer c = program_begin(&r->p, q[n % 2]);
		tape_record(r, &t, c);
		program_end(c);
		MUST(program_submit(q[n % 2], c, n > 0, &before, 1, &after, VK_NULL_HANDLE));
	}
	for (uint32_t n = 0; n < ROUNDS; n++) {
		tape t = { .count = 0 };
		tape_step(&t, 0, 0, 0, 0, 3, n);
		tape_play(r, &t);
	}
	CHECK(program_reaches(&r->p, line, ROUNDS, UINT64_MAX), "never reached");
	MUST(vkDeviceWaitIdle(r->p.device));
	CHECK(rig_agrees(r), "wrong");
	vkDestroySemaphore(r->p.device, line, NULL);
}

static void fences(rig *r)
{
	rig_clear(r);
	VkFence f[3];
	for (uint32_t k = 0; k < 3; k++) {
		f[k] = program_fence(&r->p);
		MUST(program_submit(&r->p.queues[0], marks(r, 10 * k, 5), 0, NULL, 0, NULL, f[k]));
	}
	// Polling alone must come to an end too: the timer lets go what is held.
	VkResult status;
	while ((status = vkGetFenceStatus(r->p.device, f[2])) == VK_NOT_READY)
		;
	MUST(status);
	CHECK(vkWaitForFences(r->p.device, 3, f, VK_TRUE, 0) == VK_SUCCESS, "earlier fences");
	CHECK(r->data[0].words[0] == 15, "%u marks", r->data[0].words[0]);
	for (uint32_t k = 0; k < 3; k++)
		vkDestroyFence(r->p.device, f[k], NULL);
}

// A pipeline layout may go when the recording is over.
static void layouts_go_early(rig *r)
{
	rig_clear(r);
	tape t = { .count = 0 };
	tape_fill(&t, 0, 0, 5);
	tape_barrier(&t, ALL, ALL);
	tape_step(&t, 0, 0, 1, 0, 3, 4);
	tape_play(r, &t);
	VkCommandBuffer c = tape_commands(r, &t);
	for (int k = 0; k < 2; k++) {
		vkDestroyPipelineLayout(r->p.device, r->kernels[k].layout, NULL);
		r->kernels[k].layout = VK_NULL_HANDLE;
	}
	submit(r, c);
	MUST(vkQueueWaitIdle(r->p.queues[0].handle));
	CHECK(rig_agrees(r), "wrong");
}

int main(void)
{
	static const char *const layers[] = { "VK_LAYER_VKOMP_shuffle", NULL };
	static const uint64_t holds[] = { 0, 300, 2000 };
	static rig a, b;
	program first;
	program_open(&first, layers);
	for (uint64_t seed = 1; seed <= 60; seed++) {
		rig_open(&a, &first, seed, holds[seed % 3], false);
		rig_open(&b, &first, seed, holds[seed % 3], true);
		unknown_commands_are_walls(&a);
		unknown_commands_are_walls(&b);
		secondary_command_buffers(&a);
		devices_and_host(&a, &b);
		waits_before_signals(&a, a.p.queue_count > 1 && a.p.queues[1].flags & VK_QUEUE_COMPUTE_BIT);
		fences(&a);
		layouts_go_early(&a);
		rig_close(&b);
		rig_close(&a);
	}
	CHECK(first.messages == 0, "%u validation messages", first.messages);
	program_close(&first);
	return program_result("test_shuffle_calls");
}
