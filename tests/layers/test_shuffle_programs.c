// Programs that keep to Vulkan's rules of order get right answers behind the
// shuffling layer, with every seed; programs that forget one of them get wrong
// answers with many.
#include "test_shuffle.h"

#define TRANSFER VK_PIPELINE_STAGE_TRANSFER_BIT
#define COMPUTE VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
#define ALL VK_PIPELINE_STAGE_ALL_COMMANDS_BIT

enum { SEEDS = 200, MOST_TAPES = 16 };

// How the tapes of a program are submitted.
typedef enum manner {
	TOGETHER, // in one batch
	EACH,     // one vkQueueSubmit for each
	TIMELINE, // each waits for the one before it on a timeline
	BINARY,   // on binary semaphores
	MODERN,   // on a timeline, with vkQueueSubmit2
	TWICE,    // each, and all of them once more: the same command buffers
} manner;

typedef struct plan {
	tape tapes[MOST_TAPES];
	uint32_t count;
	manner how;
	VkPipelineStageFlags2 wait_stages;  // 0: ALL
	VkPipelineStageFlags2 signal_stages; // of MODERN; 0: ALL
	bool forget_wait;
} plan;

typedef enum ending { IDLE, DEVICE_IDLE, FENCE, SEMAPHORE, ENDINGS } ending;

static void submit_modern(rig *r, const plan *p, VkCommandBuffer c, uint32_t k, VkSemaphore timeline)
{
	const VkSemaphoreSubmitInfo wait = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
		.semaphore = timeline,
		.value = k,
		.stageMask = p->wait_stages != 0 ? p->wait_stages : ALL,
	};
	const VkSemaphoreSubmitInfo signal = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
		.semaphore = timeline,
		.value = k + 1,
		.stageMask = p->signal_stages != 0 ? p->signal_stages : ALL,
	};
	const VkCommandBufferSubmitInfo commands = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO,
		.commandBuffer = c,
	};
	const VkSubmitInfo2 info = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
		.waitSemaphoreInfoCount = k > 0 && !p->forget_wait,
		.pWaitSemaphoreInfos = &wait,
		.commandBufferInfoCount = 1,
		.pCommandBufferInfos = &commands,
		.signalSemaphoreInfoCount = 1,
		.pSignalSemaphoreInfos = &signal,
	};
	MUST(r->p.QueueSubmit2(r->p.queues[0].handle, 1, &info, VK_NULL_HANDLE));
}

static void submit_after(rig *r, const plan *p, VkCommandBuffer c, uint32_t k, const VkSemaphore *chain)
{
	const bool binary = p->how == BINARY;
	const VkSemaphore wait = binary ? (k > 0 ? chain[k - 1] : VK_NULL_HANDLE) : chain[0];
	const VkSemaphore signal = binary ? chain[k] : chain[0];
	const VkPipelineStageFlags stages = p->wait_stages != 0 ? (VkPipelineStageFlags)p->wait_stages : ALL;
	const uint64_t before = k, after = k + 1;
	const bool waits = k > 0 && !p->forget_wait;
	const VkTimelineSemaphoreSubmitInfo values = {
		.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
		.waitSemaphoreValueCount = waits,
		.pWaitSemaphoreValues = &before,
		.signalSemaphoreValueCount = 1,
		.pSignalSemaphoreValues = &after,
	};
	const VkSubmitInfo info = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
		.pNext = binary ? NULL : &values,
		.waitSemaphoreCount = waits,
		.pWaitSemaphores = &wait,
		.pWaitDstStageMask = &stages,
		.commandBufferCount = 1,
		.pCommandBuffers = &c,
		.signalSemaphoreCount = 1,
		.pSignalSemaphores = &signal,
	};
	MUST(vkQueueSubmit(r->p.queues[0].handle, 1, &info, VK_NULL_HANDLE));
}

static void finish(rig *r, ending e)
{
	program_queue *q = &r->p.queues[0];
	if (e == IDLE) {
		MUST(vkQueueWaitIdle(q->handle));
	} else if (e == DEVICE_IDLE) {
		MUST(vkDeviceWaitIdle(r->p.device));
	} else if (e == FENCE) {
		VkFence f = program_fence(&r->p);
		MUST(vkQueueSubmit(q->handle, 0, NULL, f));
		MUST(vkWaitForFences(r->p.device, 1, &f, VK_TRUE, UINT64_MAX));
		vkDestroyFence(r->p.device, f, NULL);
	} else {
		const program_point end = { program_timeline(&r->p), 1 };
		MUST(program_submit(q, VK_NULL_HANDLE, 0, NULL, 1, &end, VK_NULL_HANDLE));
		CHECK(program_reaches(&r->p, end.semaphore, 1, UINT64_MAX), "the end is not signalled");
		vkDestroySemaphore(r->p.device, end.semaphore, NULL);
	}
}

// A command buffer that may be pending more than once.
static VkCommandBuffer begin_shared(rig *r)
{
	const VkCommandBufferAllocateInfo info = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
		.commandPool = r->p.queues[0].pool,
		.commandBufferCount = 1,
	};
	const VkCommandBufferBeginInfo begin = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
		.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT,
	};
	VkCommandBuffer c;
	MUST(vkAllocateCommandBuffers(r->p.device, &info, &c));
	MUST(vkBeginCommandBuffer(c, &begin));
	return c;
}

// Whether the device and the model come to the same.
static bool run(rig *r, const plan *p, ending e)
{
	program_queue *q = &r->p.queues[0];
	VkCommandBuffer commands[MOST_TAPES];
	VkSemaphore chain[MOST_TAPES] = { VK_NULL_HANDLE };
	rig_clear(r);
	for (uint32_t k = 0; k < p->count; k++) {
		commands[k] = p->how == TWICE ? begin_shared(r) : program_begin(&r->p, q);
		tape_record(r, &p->tapes[k], commands[k]);
		program_end(commands[k]);
		if (p->how == BINARY)
			chain[k] = program_binary(&r->p);
	}
	if (p->how == TIMELINE || p->how == MODERN)
		chain[0] = program_timeline(&r->p);
	for (uint32_t again = 0; again < (p->how == TWICE ? 2 : 1); again++)
		for (uint32_t k = 0; k < p->count; k++)
			tape_play(r, &p->tapes[k]);

	if (p->how == TOGETHER) {
		const VkSubmitInfo info = {
			.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
			.commandBufferCount = p->count,
			.pCommandBuffers = commands,
		};
		MUST(vkQueueSubmit(q->handle, 1, &info, VK_NULL_HANDLE));
	}
	for (uint32_t k = 0; k < p->count * (p->how == TWICE ? 2 : 1) && p->how != TOGETHER; k++)
		if (p->how == MODERN)
			submit_modern(r, p, commands[k], k, chain[0]);
		else if (p->how == TIMELINE || p->how == BINARY)
			submit_after(r, p, commands[k], k, chain);
		else
			MUST(program_submit(q, commands[k % p->count], 0, NULL, 0, NULL, VK_NULL_HANDLE));
	finish(r, e);
	bool right = rig_agrees(r);
	vkFreeCommandBuffers(r->p.device, q->pool, p->count, commands);
	for (int k = 0; k < MOST_TAPES; k++)
		vkDestroySemaphore(r->p.device, chain[k], NULL);
	return right;
}

// The programs. forgetful: in the way that its name tells.

// One buffer, one step after the other.
static void chain(plan *p, bool forgetful, VkPipelineStageFlags first, VkPipelineStageFlags second)
{
	*p = (plan){ .count = 1 };
	for (uint32_t k = 0; k < 16; k++) {
		if (k > 0 && !(forgetful && first == 0))
			tape_barrier(&p->tapes[0], forgetful ? first : COMPUTE, forgetful ? second : COMPUTE);
		// Always the same pipeline: the buffers alone change.
		tape_step(&p->tapes[0], k & 1, k & 1, ~k & 1, ~k & 1, 3, 2 * k);
	}
}

static void chain_without_barriers(plan *p, bool forgetful) { chain(p, forgetful, 0, 0); }
static void chain_source_too_narrow(plan *p, bool forgetful) { chain(p, forgetful, TRANSFER, COMPUTE); }
static void chain_destination_too_narrow(plan *p, bool forgetful) { chain(p, forgetful, COMPUTE, TRANSFER); }

// Independent groups, level by level; forgetful: one barrier of five is missing.
static void groups(plan *p, bool forgetful)
{
	*p = (plan){ .count = 1 };
	for (uint32_t level = 0; level < 6; level++) {
		if (level > 0 && !(forgetful && level == 3))
			tape_barrier(&p->tapes[0], COMPUTE, COMPUTE);
		for (uint32_t group = 0; group < 8; group++)
			tape_step(&p->tapes[0], 0, group, 0, group, 5, level * 8 + group);
	}
}

// One chain after the other, and a last step that reads them both; forgetful: what
// it reads of the first is not waited for.
static void chains_joined(plan *p, bool forgetful)
{
	*p = (plan){ .count = 1 };
	tape *t = &p->tapes[0];
	tape_step(t, 0, 0, 0, 1, 1, 7);
	if (!forgetful)
		tape_barrier(t, COMPUTE, COMPUTE);
	tape_step(t, 0, 2, 0, 3, 1, 9);
	tape_step(t, 0, 1, 0, 4, 2, 0);
}

// fill -> step -> copy -> step -> update -> copy
static void transfers(plan *p, int missing)
{
	*p = (plan){ .count = 1 };
	tape *t = &p->tapes[0];
	tape_fill(t, 0, 0, 11);
	if (missing != 1)
		tape_barrier(t, TRANSFER, COMPUTE);
	tape_step(t, 0, 0, 1, 1, 3, 1);
	if (missing != 2)
		tape_barrier(t, missing == 3 ? TRANSFER : COMPUTE, TRANSFER);
	tape_copy(t, 1, 1, 0, 2);
	if (missing != 4)
		tape_barrier(t, TRANSFER, COMPUTE);
	tape_step(t, 0, 2, 1, 3, 7, 2);
	tape_barrier2(t, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT);
	tape_update(t, 1, 2, 17);
	if (missing != 5)
		tape_barrier2(t, VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT, VK_PIPELINE_STAGE_2_COPY_BIT);
	tape_copy(t, 1, 2, 0, 4);
}

static void fill_then_dispatch(plan *p, bool forgetful) { transfers(p, forgetful ? 1 : 0); }
static void dispatch_then_copy(plan *p, bool forgetful) { transfers(p, forgetful ? 2 : 0); }
static void dispatch_then_copy_too_narrow(plan *p, bool forgetful) { transfers(p, forgetful ? 3 : 0); }
static void copy_then_dispatch(plan *p, bool forgetful) { transfers(p, forgetful ? 4 : 0); }
static void update_then_copy(plan *p, bool forgetful) { transfers(p, forgetful ? 5 : 0); }

// Two barriers make a chain through a stage that nothing executes in between;
// forgetful: they do not meet.
static void chain_of_barriers(plan *p, bool forgetful)
{
	*p = (plan){ .count = 1 };
	tape *t = &p->tapes[0];
	tape_step(t, 0, 0, 0, 0, 1, 1);
	tape_barrier(t, COMPUTE, TRANSFER);
	tape_barrier(t, forgetful ? VK_PIPELINE_STAGE_HOST_BIT : TRANSFER, COMPUTE);
	tape_step(t, 0, 0, 0, 0, 3, 5);
}

static void submissions(plan *p, bool forgetful, manner how)
{
	*p = (plan){ .count = 6, .how = how };
	for (uint32_t k = 0; k < p->count; k++) {
		tape *t = &p->tapes[k];
		if ((how == EACH || how == TOGETHER || how == TWICE) && !forgetful)
			tape_barrier(t, COMPUTE, COMPUTE);
		tape_step(t, 0, 0, 0, 0, 3, k);
		// Something beside it, that needs no order.
		tape_step(t, 0, 10, 0, 20 + k, 1, k);
	}
	p->forget_wait = forgetful;
}

static void buffers_of_a_batch(plan *p, bool forgetful) { submissions(p, forgetful, TOGETHER); }
static void barriers_across_submissions(plan *p, bool forgetful) { submissions(p, forgetful, EACH); }
static void submitted_twice(plan *p, bool forgetful) { submissions(p, forgetful, TWICE); }
static void timeline_between(plan *p, bool forgetful) { submissions(p, forgetful, TIMELINE); }
static void modern_timeline_between(plan *p, bool forgetful) { submissions(p, forgetful, MODERN); }

static void timeline_too_narrow(plan *p, bool forgetful)
{
	submissions(p, false, TIMELINE);
	p->wait_stages = forgetful ? TRANSFER : COMPUTE;
}

static void binary_too_narrow(plan *p, bool forgetful)
{
	submissions(p, false, BINARY);
	p->wait_stages = forgetful ? TRANSFER : COMPUTE;
}

static void modern_signal_too_narrow(plan *p, bool forgetful)
{
	submissions(p, false, MODERN);
	p->signal_stages = forgetful ? VK_PIPELINE_STAGE_2_COPY_BIT : VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;
}

// Only the barrier of the third submission orders the first and the last.
static void barrier_of_another_submission(plan *p, bool forgetful)
{
	*p = (plan){ .count = 4, .how = EACH };
	tape_step(&p->tapes[0], 0, 0, 0, 0, 1, 1);
	tape_step(&p->tapes[1], 0, 9, 0, 10, 1, 4);
	tape_barrier(&p->tapes[2], forgetful ? TRANSFER : COMPUTE, ALL);
	tape_step(&p->tapes[3], 0, 0, 0, 0, 3, 5);
}

static const struct {
	const char *name;
	void (*make)(plan *, bool forgetful);
} programs[] = {
#define PROGRAM(name) { #name, name }
	PROGRAM(chain_without_barriers),
	PROGRAM(chain_source_too_narrow),
	PROGRAM(chain_destination_too_narrow),
	PROGRAM(groups),
	PROGRAM(chains_joined),
	PROGRAM(fill_then_dispatch),
	PROGRAM(dispatch_then_copy),
	PROGRAM(dispatch_then_copy_too_narrow),
	PROGRAM(copy_then_dispatch),
	PROGRAM(update_then_copy),
	PROGRAM(chain_of_barriers),
	PROGRAM(buffers_of_a_batch),
	PROGRAM(barriers_across_submissions),
	PROGRAM(barrier_of_another_submission),
	PROGRAM(submitted_twice),
	PROGRAM(timeline_between),
	PROGRAM(timeline_too_narrow),
	PROGRAM(binary_too_narrow),
	PROGRAM(modern_timeline_between),
	PROGRAM(modern_signal_too_narrow),
#undef PROGRAM
};
enum { PROGRAMS = sizeof programs / sizeof programs[0] };

int main(void)
{
	static const char *const layers[] = { "VK_LAYER_VKOMP_shuffle", NULL };
	static const uint64_t holds[] = { 0, 100, LONG_HOLD };
	static rig r;
	static plan p;
	static uint32_t right[PROGRAMS], wrong[PROGRAMS];
	program first;
	program_open(&first, layers);
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		rig_open(&r, &first, seed, holds[seed % 3], seed % 2 == 0);
		for (uint32_t k = 0; k < PROGRAMS; k++) {
			programs[k].make(&p, false);
			// What only the timer lets go would be waited for too long.
			ending e = seed % 3 == 2 ? (seed / 3) % 2 : (ending)(seed / 3 % ENDINGS);
			bool agrees = run(&r, &p, e);
			right[k] += agrees;
			CHECK(agrees, "%s, seed %llu: wrong", programs[k].name, (unsigned long long)seed);
		}
		rig_close(&r);

		rig_open(&r, &first, seed, LONG_HOLD, seed % 2 == 0);
		for (uint32_t k = 0; k < PROGRAMS; k++) {
			programs[k].make(&p, true);
			wrong[k] += !run(&r, &p, IDLE);
		}
		rig_close(&r);
	}
	for (uint32_t k = 0; k < PROGRAMS; k++) {
		printf("  %-32s right %u of %d; forgetful wrong %u of %d\n", programs[k].name, right[k],
			SEEDS, wrong[k], SEEDS);
		CHECK(wrong[k] * 5 >= SEEDS, "%s, forgetful: wrong with %u seeds of %d", programs[k].name,
			wrong[k], SEEDS);
	}
	program_close(&first);
	return program_result("test_shuffle_programs");
}
