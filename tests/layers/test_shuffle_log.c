// What the shuffling layer makes the device execute, as the device itself tells:
// each dispatch appends its number to a log with an atomic, and each copy takes
// away how long the log was. A checker that knows only the rules of order looks
// for pairs that came the wrong way round, and counts those that are free and did.
#include "test_shuffle.h"

#define TRANSFER VK_PIPELINE_STAGE_TRANSFER_BIT
#define COMPUTE VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
#define ALL VK_PIPELINE_STAGE_ALL_COMMANDS_BIT

enum { SEEDS = 200, ITEMS = 56, SUBMISSIONS = 5 };

typedef struct item {
	enum { DISPATCHED, COPIED, BARRED, WAITED, SIGNALLED } kind;
	VkPipelineStageFlags first, second; // of a command both are its stage
	uint32_t position; // how long the log was
} item;

static item items[ITEMS + 2 * SUBMISSIONS];
static bool before[ITEMS + 2 * SUBMISSIONS][ITEMS + 2 * SUBMISSIONS];
static uint32_t count;

static item *add(int kind, VkPipelineStageFlags first, VkPipelineStageFlags second)
{
	items[count] = (item){ .first = first, .second = second };
	items[count].kind = kind;
	return &items[count++];
}

static bool executes(const item *i) { return i->kind == DISPATCHED || i->kind == COPIED; }

static bool meets(VkPipelineStageFlags a, VkPipelineStageFlags b)
{
	return (a & b) != 0 || (a == ALL && b != 0) || (b == ALL && a != 0);
}

static void close_over(void)
{
	memset(before, 0, sizeof before);
	for (uint32_t a = 0; a < count; a++)
		for (uint32_t b = a + 1; b < count; b++) {
			bool kept = items[a].kind >= WAITED && items[b].kind >= WAITED;
			bool chained = items[a].kind != SIGNALLED && items[b].kind != WAITED &&
				       (!executes(&items[a]) || !executes(&items[b])) &&
				       meets(items[a].second, items[b].first);
			before[a][b] = kept || chained;
		}
	for (uint32_t m = 0; m < count; m++)
		for (uint32_t a = 0; a < count; a++)
			for (uint32_t b = 0; before[a][m] && b < count; b++)
				before[a][b] |= before[m][b];
}

static VkPipelineStageFlags some_stages(uint64_t *random)
{
	static const VkPipelineStageFlags stages[] = { COMPUTE, TRANSFER, COMPUTE | TRANSFER, ALL };
	return stages[program_below(random, 4)];
}

// A submission of random commands and barriers, which waits for the one before it,
// or does not.
static VkCommandBuffer submit_some(rig *r, uint64_t *random, VkSemaphore timeline, uint32_t number)
{
	tape t = { .count = 0 };
	const bool waits = number > 0 && program_below(random, 4) == 0;
	const VkPipelineStageFlags wait_stages = some_stages(random);
	if (waits)
		add(WAITED, 0, wait_stages);
	for (uint32_t k = 0; k < ITEMS / SUBMISSIONS; k++) {
		uint32_t which = program_below(random, 8);
		if (which < 4) {
			tape_mark(&t, 0, 0, count);
			add(DISPATCHED, COMPUTE, COMPUTE);
		} else if (which < 6) {
			tape_copy(&t, 0, 0, 1, count);
			add(COPIED, TRANSFER, TRANSFER);
		} else {
			item *i = add(BARRED, some_stages(random), some_stages(random));
			tape_barrier(&t, i->first, i->second);
		}
	}
	add(SIGNALLED, ALL, 0);
	VkCommandBuffer c = tape_commands(r, &t);
	const uint64_t wait = number, signal = number + 1;
	const VkTimelineSemaphoreSubmitInfo values = {
		.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
		.waitSemaphoreValueCount = waits,
		.pWaitSemaphoreValues = &wait,
		.signalSemaphoreValueCount = 1,
		.pSignalSemaphoreValues = &signal,
	};
	const VkSubmitInfo info = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
		.pNext = &values,
		.waitSemaphoreCount = waits,
		.pWaitSemaphores = &timeline,
		.pWaitDstStageMask = &wait_stages,
		.commandBufferCount = 1,
		.pCommandBuffers = &c,
		.signalSemaphoreCount = 1,
		.pSignalSemaphores = &timeline,
	};
	MUST(vkQueueSubmit(r->p.queues[0].handle, 1, &info, VK_NULL_HANDLE));
	return c;
}

// Whether a is seen to come after b.
static bool seen_after(const item *a, const item *b)
{
	if (a->kind == DISPATCHED)
		return a->position >= b->position + (b->kind == DISPATCHED);
	return a->position > b->position;
}

int main(void)
{
	static const char *const layers[] = { "VK_LAYER_VKOMP_shuffle", NULL };
	static rig r;
	uint64_t ordered = 0, free_pairs = 0, turned = 0;
	program first;
	program_open(&first, layers);
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		rig_open(&r, &first, seed, seed % 3 == 0 ? 100 : LONG_HOLD, seed % 2 == 0);
		rig_clear(&r);
		VkSemaphore timeline = program_timeline(&r.p);
		uint64_t random = seed;
		count = 0;
		for (uint32_t k = 0; k < SUBMISSIONS; k++)
			submit_some(&r, &random, timeline, k);
		MUST(vkQueueWaitIdle(r.p.queues[0].handle));

		const uint32_t *log = r.data[0].words;
		uint32_t dispatches = 0;
		for (uint32_t k = 0; k < count; k++) {
			items[k].position = UINT32_MAX;
			dispatches += items[k].kind == DISPATCHED;
			if (items[k].kind == COPIED)
				items[k].position = r.data[1].words[k * CELL];
		}
		CHECK(log[0] == dispatches, "seed %llu: %u of %u dispatches", (unsigned long long)seed, log[0],
			dispatches);
		for (uint32_t k = 0; k < log[0]; k++) {
			item *i = &items[log[1 + k] < count ? log[1 + k] : 0];
			CHECK(i->kind == DISPATCHED && i->position == UINT32_MAX, "seed %llu: %u in the log",
				(unsigned long long)seed, log[1 + k]);
			i->position = k;
		}
		close_over();
		for (uint32_t a = 0; a < count; a++)
			for (uint32_t b = a + 1; b < count; b++) {
				if (!executes(&items[a]) || !executes(&items[b]))
					continue;
				bool after = seen_after(&items[a], &items[b]);
				ordered += before[a][b];
				free_pairs += !before[a][b];
				turned += !before[a][b] && after;
				CHECK(!before[a][b] || !after, "seed %llu: %u came after %u",
					(unsigned long long)seed, a, b);
			}
		vkDestroySemaphore(r.p.device, timeline, NULL);
		rig_close(&r);
	}
	printf("  %llu pairs in order; of %llu free ones %llu turned round\n", (unsigned long long)ordered,
		(unsigned long long)free_pairs, (unsigned long long)turned);
	CHECK(ordered > 10000 && free_pairs > 10000, "too few pairs");
	CHECK(turned * 5 >= free_pairs, "too few turned round");
	program_close(&first);
	return program_result("test_shuffle_log");
}
