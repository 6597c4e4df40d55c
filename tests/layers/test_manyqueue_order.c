// Random programs behind the many-queue layer: steps over a few registers, each a
// batch of its own on some queue, so that values flow through chains, diamonds and
// reuse of registers across queues. With all their waits they are always right;
// with the waits of one step left out they are often wrong.
//
//	queue 0:  r3 = f(r1, r2)   signals 1 --.
//	queue 5:                               '--> waits for it:  r0 = r3   signals 1 ...
//
// A batch begins with a barrier, which orders it behind the earlier ones of its
// queue, and waits for the timelines of the other queues that it depends on. Queues
// are submitted to in random order: many waits come before their signals.
#include "program.h"
#include "test_manyqueue.spv.h"

enum {
	STEPS = 32,
	REGISTERS = 6,
	CORRECT_SEEDS = 240,
	FORGETFUL_SEEDS = 120,
	STACKED_SEEDS = 60,
	VALIDATED_SEEDS = 12,
};

typedef struct step {
	uint32_t a, b, c, k;   // push constants: registers read, read and written; its number
	uint32_t queue;
	uint64_t value;                 // that its queue's timeline gets
	uint64_t waits[PROGRAM_QUEUES]; // values of other queues' timelines; 0: none
	bool dispatch, waiting;
} step;

typedef struct runner {
	program p;
	program_kernel kernel;
	program_buffer registers, log;
	VkDescriptorSet set;
	VkSemaphore timelines[PROGRAM_QUEUES];
} runner;

static const char *const plain[] = { "VK_LAYER_VKOMP_manyqueue", NULL };
static const char *const stacked[] = { "VK_LAYER_VKOMP_shuffle", "VK_LAYER_VKOMP_manyqueue", NULL };
static const char *const validated[] = {
	"VK_LAYER_KHRONOS_validation", "VK_LAYER_VKOMP_manyqueue", NULL,
};

static void open_runner(runner *r)
{
	r->kernel = program_kernel_make(&r->p, spirv_test_manyqueue, sizeof spirv_test_manyqueue, 2, 16, 1);
	r->registers = program_buffer_make(&r->p, REGISTERS * 4);
	r->log = program_buffer_make(&r->p, STEPS * 4);
	r->set = program_set(&r->p, &r->kernel, (const program_buffer *[]){ &r->registers, &r->log });
	for (uint32_t q = 0; q < r->p.queue_count; q++)
		r->timelines[q] = program_timeline(&r->p);
}

static void close_runner(runner *r)
{
	for (uint32_t q = 0; q < r->p.queue_count; q++)
		vkDestroySemaphore(r->p.device, r->timelines[q], NULL);
	program_buffer_free(&r->p, &r->registers);
	program_buffer_free(&r->p, &r->log);
	program_kernel_free(&r->p, &r->kernel);
	program_close(&r->p);
}

static void depend(step *s, const step *on)
{
	if (on->queue != s->queue && s->waits[on->queue] < on->value) {
		s->waits[on->queue] = on->value;
		s->waiting = true;
	}
}

static void make_steps(const program *p, uint64_t *random, step *steps)
{
	uint64_t values[PROGRAM_QUEUES] = { 0 };
	for (uint32_t k = 0; k < STEPS; k++) {
		step *s = &steps[k];
		*s = (step){ .k = k, .queue = program_below(random, p->queue_count) };
		s->a = program_below(random, REGISTERS);
		s->b = program_below(random, REGISTERS);
		s->c = program_below(random, REGISTERS);
		s->dispatch = (p->queues[s->queue].flags & VK_QUEUE_COMPUTE_BIT) != 0 &&
			program_below(random, 4) != 0;
		if (!s->dispatch)
			s->b = s->a;
		if (!s->dispatch && s->c == s->a)
			s->c = (s->c + 1) % REGISTERS;
		s->value = ++values[s->queue];
		for (uint32_t i = 0; i < k; i++) {
			const step *before = &steps[i];
			if (before->c == s->a || before->c == s->b || before->c == s->c ||
				before->a == s->c || before->b == s->c)
				depend(s, before);
		}
	}
}

static void expect(const step *steps, uint32_t *registers, uint32_t *log)
{
	for (uint32_t i = 0; i < REGISTERS; i++)
		registers[i] = i + 1;
	for (uint32_t k = 0; k < STEPS; k++) {
		const step *s = &steps[k];
		registers[s->c] = s->dispatch ? registers[s->a] * 3 + registers[s->b] * 5 + k :
			registers[s->a];
		log[k] = registers[s->c];
	}
}

static void barrier(runner *r, VkCommandBuffer c, bool modern)
{
	if (!modern) {
		program_barrier(c);
		return;
	}
	VkMemoryBarrier2 memory = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
		.srcStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
		.srcAccessMask = VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT,
		.dstStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
		.dstAccessMask = VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT,
	};
	VkDependencyInfo info = {
		.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
		.memoryBarrierCount = 1,
		.pMemoryBarriers = &memory,
	};
	r->p.CmdPipelineBarrier2(c, &info);
}

static VkCommandBuffer record(runner *r, const step *s, bool modern)
{
	VkCommandBuffer c = program_begin(&r->p, &r->p.queues[s->queue]);
	barrier(r, c, modern);
	if (s->dispatch) {
		program_dispatch(c, &r->kernel, r->set, s, 1);
	} else {
		VkBufferCopy move = { s->a * 4, s->c * 4, 4 }, log = { s->a * 4, s->k * 4, 4 };
		vkCmdCopyBuffer(c, r->registers.handle, r->registers.handle, 1, &move);
		vkCmdCopyBuffer(c, r->registers.handle, r->log.handle, 1, &log);
	}
	// For the host, which waits for the timelines.
	barrier(r, c, modern);
	program_end(c);
	return c;
}

static void submit_modern(runner *r, const step *s, VkCommandBuffer c, uint32_t wait_count,
	const program_point *waits)
{
	VkSemaphoreSubmitInfo wait_infos[PROGRAM_QUEUES], signal = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
		.semaphore = r->timelines[s->queue],
		.value = s->value,
		.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
	};
	for (uint32_t k = 0; k < wait_count; k++)
		wait_infos[k] = (VkSemaphoreSubmitInfo){
			.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
			.semaphore = waits[k].semaphore,
			.value = waits[k].value,
			.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
		};
	VkCommandBufferSubmitInfo command = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO,
		.commandBuffer = c,
	};
	VkSubmitInfo2 info = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
		.waitSemaphoreInfoCount = wait_count,
		.pWaitSemaphoreInfos = wait_infos,
		.commandBufferInfoCount = 1,
		.pCommandBufferInfos = &command,
		.signalSemaphoreInfoCount = 1,
		.pSignalSemaphoreInfos = &signal,
	};
	MUST(r->p.QueueSubmit2(r->p.queues[s->queue].handle, 1, &info, VK_NULL_HANDLE));
}

static void submit(runner *r, const step *s, VkCommandBuffer c, bool forget, bool modern)
{
	program_point waits[PROGRAM_QUEUES];
	uint32_t wait_count = 0;
	for (uint32_t q = 0; q < r->p.queue_count && !forget; q++)
		if (s->waits[q] != 0)
			waits[wait_count++] = (program_point){ r->timelines[q], s->waits[q] };
	if (modern)
		submit_modern(r, s, c, wait_count, waits);
	else
		MUST(program_submit(&r->p.queues[s->queue], c, wait_count, waits, 1,
			&(program_point){ r->timelines[s->queue], s->value }, VK_NULL_HANDLE));
}

// Runs the steps with the waits of one, or of none where forget is STEPS, left out,
// on the runner's device, which has run nothing yet. Says how many logged values
// and registers are wrong.
static uint32_t run(runner *r, const step *steps, uint32_t forget, bool modern, uint64_t *random)
{
	uint32_t registers[REGISTERS], log[STEPS], wrong = 0;
	expect(steps, registers, log);
	for (uint32_t i = 0; i < REGISTERS; i++)
		r->registers.words[i] = i + 1;
	VkCommandBuffer commands[STEPS];
	for (uint32_t k = 0; k < STEPS; k++)
		commands[k] = record(r, &steps[k], modern);

	// Each queue gets its own steps in order, the queues in any.
	uint32_t next[PROGRAM_QUEUES] = { 0 };
	uint64_t last[PROGRAM_QUEUES] = { 0 };
	for (uint32_t left = STEPS; left > 0;) {
		uint32_t q = program_below(random, r->p.queue_count), k = next[q];
		while (k < STEPS && steps[k].queue != q)
			k++;
		next[q] = k + 1;
		if (k >= STEPS)
			continue;
		submit(r, &steps[k], commands[k], k == forget, modern);
		last[q] = steps[k].value;
		left--;
	}
	for (uint32_t q = 0; q < r->p.queue_count; q++)
		CHECK(program_reaches(&r->p, r->timelines[q], last[q], 30000000000u),
			"queue %u does not end", q);
	for (uint32_t i = 0; i < REGISTERS; i++)
		wrong += r->registers.words[i] != registers[i];
	for (uint32_t k = 0; k < STEPS; k++)
		wrong += r->log.words[k] != log[k];
	return wrong;
}

static uint32_t a_step_that_waits(const step *steps, uint64_t *random)
{
	for (;;) {
		uint32_t k = program_below(random, STEPS);
		if (steps[k].waiting)
			return k;
	}
}

// Runs so many seeds, and says in how many of them anything was wrong.
static uint32_t seeds_wrong(const char *const *layers, uint32_t seeds, bool forgetful,
	uint32_t *messages)
{
	runner first;
	program_open(&first.p, layers);
	uint32_t wrong_seeds = 0;
	for (uint32_t seed = 0; seed < seeds; seed++) {
		program_environment("VKOMP_MANYQUEUE_SEED", seed);
		program_environment("VKOMP_SHUFFLE_SEED", seed);
		uint64_t random = seed * 7919;
		runner r;
		program_open_again(&r.p, &first.p);
		open_runner(&r);
		step steps[STEPS];
		make_steps(&r.p, &random, steps);
		uint32_t forget = forgetful ? a_step_that_waits(steps, &random) : STEPS;
		uint32_t wrong = run(&r, steps, forget, seed % 2 == 1, &random);
		if (!forgetful)
			CHECK(wrong == 0, "seed %u: %u values wrong", seed, wrong);
		wrong_seeds += wrong != 0;
		close_runner(&r);
	}
	program_close(&first.p);
	*messages = first.p.messages;
	return wrong_seeds;
}

// One batch that writes, one on another queue that reads what it wrote and forgets
// to wait: how many of so many pairs read too early.
static uint32_t pairs_wrong(uint32_t pairs, bool wait)
{
	program p;
	program_open(&p, plain);
	program_buffer b = program_buffer_make(&p, 8 * pairs);
	VkSemaphore timeline = program_timeline(&p), read = program_timeline(&p);
	uint64_t random = 1;
	uint32_t wrong = 0;
	for (uint32_t k = 0; k < pairs; k++) {
		uint32_t writer = program_below(&random, p.queue_count);
		uint32_t reader = (writer + 1 + program_below(&random, p.queue_count - 1)) % p.queue_count;
		VkCommandBuffer w = program_begin(&p, &p.queues[writer]);
		vkCmdFillBuffer(w, b.handle, 8 * k, 4, k + 1);
		program_end(w);
		VkCommandBuffer c = program_begin(&p, &p.queues[reader]);
		vkCmdCopyBuffer(c, b.handle, b.handle, 1, &(VkBufferCopy){ 8 * k, 8 * k + 4, 4 });
		program_barrier(c);
		program_end(c);
		program_point written = { timeline, k + 1 }, was_read = { read, k + 1 };
		MUST(program_submit(&p.queues[writer], w, 0, NULL, 1, &written, VK_NULL_HANDLE));
		MUST(program_submit(&p.queues[reader], c, wait, &written, 1, &was_read, VK_NULL_HANDLE));
		CHECK(program_reaches(&p, read, k + 1, 30000000000u) &&
			program_reaches(&p, timeline, k + 1, 30000000000u), "pair %u does not end", k);
		wrong += b.words[2 * k + 1] != k + 1;
	}
	vkDestroySemaphore(p.device, timeline, NULL);
	vkDestroySemaphore(p.device, read, NULL);
	program_buffer_free(&p, &b);
	program_close(&p);
	return wrong;
}

int main(void)
{
	uint32_t messages, wrong;
	program_environment("VKOMP_SHUFFLE_HOLD_US", 300);

	wrong = pairs_wrong(200, true);
	CHECK(wrong == 0, "%u of 200 pairs that wait read too early", wrong);
	wrong = pairs_wrong(200, false);
	printf("a pair that forgets its wait: %u of 200 wrong\n", wrong);
	CHECK(wrong >= 40, "only %u of 200 pairs that forget to wait read too early", wrong);

	seeds_wrong(plain, CORRECT_SEEDS, false, &messages);
	wrong = seeds_wrong(plain, FORGETFUL_SEEDS, true, &messages);
	printf("a graph in which one step forgets its waits: %u of %u seeds wrong\n", wrong,
		FORGETFUL_SEEDS);
	CHECK(wrong >= FORGETFUL_SEEDS / 5, "only %u of %u seeds wrong", wrong, FORGETFUL_SEEDS);

	seeds_wrong(stacked, STACKED_SEEDS, false, &messages);

	seeds_wrong(validated, VALIDATED_SEEDS, false, &messages);
	CHECK(messages == 0, "%u messages of the validation layer", messages);
	return program_result("test_manyqueue_order");
}
