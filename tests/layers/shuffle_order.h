// The orders in which a queue may execute what was submitted to it, and a random
// one of them.
//
// Vulkan orders nothing by program order alone. What orders is written down here
// as a graph, in the order of submission:
//
//	command   stages it executes in
//	barrier   first scope (stages before it), second scope (stages after it)
//	wait      second scope only: a semaphore wait of a batch
//	signal    first scope only: a semaphore or fence signal
//	wall      both scopes are everything: what is not understood
//
// A barrier is behind every earlier command in its first scope and before every
// later command in its second. A barrier is behind an earlier barrier or wait
// whose second scope meets its first: an execution dependency chain. Waits,
// signals and walls keep their order among themselves, for a queue executes them
// so: a wait that passed a signal in front of it could block what it waits for.
//
// The graph stays linear in what is added: for each kind of stage the commands
// since the last barrier meet in one join node, and so do the barriers.
//
// It knows no Vulkan call and no thread.
#ifndef SHUFFLE_ORDER_H
#define SHUFFLE_ORDER_H

#include <vulkan/vulkan.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

// The kinds of stages that are told apart, one bit each.
enum {
	STAGE_COMPUTE = 1 << 0,
	STAGE_INDIRECT = 1 << 1,
	STAGE_COPY = 1 << 2,
	STAGE_CLEAR = 1 << 3,
	STAGE_BLIT = 1 << 4, // blits and resolves
	STAGE_HOST = 1 << 5,
	STAGE_OTHER = 1 << 6, // graphics and all extensions
	STAGE_ANY = 1 << 7,   // in every command, and in no mask of a program
	STAGE_KINDS = 8,

	STAGE_ALL_COMMANDS = STAGE_COMPUTE | STAGE_INDIRECT | STAGE_COPY | STAGE_CLEAR | STAGE_BLIT |
			     STAGE_OTHER,
};

static uint32_t stages_named(VkPipelineStageFlags2 mask)
{
	static const struct {
		VkPipelineStageFlags2 flags;
		uint32_t stages;
	} names[] = {
		{ VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, STAGE_COMPUTE },
		{ VK_PIPELINE_STAGE_2_DRAW_INDIRECT_BIT, STAGE_INDIRECT },
		{ VK_PIPELINE_STAGE_2_COPY_BIT, STAGE_COPY },
		{ VK_PIPELINE_STAGE_2_CLEAR_BIT, STAGE_CLEAR },
		{ VK_PIPELINE_STAGE_2_BLIT_BIT | VK_PIPELINE_STAGE_2_RESOLVE_BIT, STAGE_BLIT },
		{ VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT, STAGE_COPY | STAGE_CLEAR | STAGE_BLIT },
		{ VK_PIPELINE_STAGE_2_HOST_BIT, STAGE_HOST },
		{ VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, STAGE_ALL_COMMANDS },
		{ VK_PIPELINE_STAGE_2_ALL_GRAPHICS_BIT, STAGE_OTHER | STAGE_INDIRECT },
	};
	uint32_t stages = 0;
	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
		if ((mask & names[k].flags) != 0)
			stages |= names[k].stages;
		mask &= ~names[k].flags;
	}
	mask &= ~(VK_PIPELINE_STAGE_2_TOP_OF_PIPE_BIT | VK_PIPELINE_STAGE_2_BOTTOM_OF_PIPE_BIT);
	return mask != 0 ? stages | STAGE_OTHER : stages;
}

// A first scope reaches to logically earlier stages, a second one to logically
// later ones: of a compute pipeline the indirect parameters come before the
// shader. The ends of the pipe stand for everything or for nothing.
static uint32_t first_scope(VkPipelineStageFlags2 mask)
{
	uint32_t stages = stages_named(mask);
	if ((mask & VK_PIPELINE_STAGE_2_BOTTOM_OF_PIPE_BIT) != 0)
		stages |= STAGE_ALL_COMMANDS;
	return (stages & STAGE_COMPUTE) != 0 ? stages | STAGE_INDIRECT : stages;
}

static uint32_t second_scope(VkPipelineStageFlags2 mask)
{
	uint32_t stages = stages_named(mask);
	if ((mask & VK_PIPELINE_STAGE_2_TOP_OF_PIPE_BIT) != 0)
		stages |= STAGE_ALL_COMMANDS;
	return (stages & STAGE_INDIRECT) != 0 ? stages | STAGE_COMPUTE : stages;
}

enum { ORDER_NONE = UINT32_MAX };

typedef struct order_node {
	const void *what, *of;   // the caller's; what is NULL for a join
	uint32_t behind;         // nodes that come first and have not yet
	uint32_t followers;      // index of an order_edge
} order_node;

typedef struct order_edge {
	uint32_t to, next;
} order_edge;

// The barriers that an order has come to, by kind.
typedef struct order_front {
	uint32_t barrier[STAGE_KINDS];
} order_front;

typedef struct order {
	order_node *nodes;
	order_edge *edges;
	uint32_t node_count, node_capacity, edge_count, edge_capacity;
	// For each kind of stage: the join of the commands since one was last asked
	// for, the join before that, and the last of the barriers with that kind in
	// their second scope.
	uint32_t open[STAGE_KINDS], closed[STAGE_KINDS];
	order_front front;
	uint32_t last_kept; // wait, signal or wall
	bool failed;        // out of memory: the order is not to be used
	uint32_t *ready, *late, *joins;
	uint32_t room; // of the three
} order;

static void order_reset(order *o)
{
	o->node_count = o->edge_count = 0;
	o->last_kept = ORDER_NONE;
	o->failed = false;
	for (int k = 0; k < STAGE_KINDS; k++)
		o->open[k] = o->closed[k] = o->front.barrier[k] = ORDER_NONE;
}

static void order_free(order *o)
{
	free(o->nodes);
	free(o->edges);
	free(o->ready);
	free(o->late);
	free(o->joins);
	*o = (order){ 0 };
}

static bool order_grow(void **array, uint32_t *capacity, uint32_t count, size_t size)
{
	if (count < *capacity)
		return true;
	uint32_t more = *capacity < 256 ? 256 : *capacity * 2;
	void *grown = more > *capacity ? realloc(*array, more * size) : NULL;
	if (grown == NULL)
		return false;
	*array = grown;
	*capacity = more;
	return true;
}

static uint32_t order_node_add(order *o, const void *what, const void *of)
{
	if (o->failed ||
		!order_grow((void **)&o->nodes, &o->node_capacity, o->node_count, sizeof *o->nodes)) {
		o->failed = true;
		return ORDER_NONE;
	}
	o->nodes[o->node_count] = (order_node){ .what = what, .of = of, .followers = ORDER_NONE };
	return o->node_count++;
}

static void order_put_behind(order *o, uint32_t node, uint32_t first)
{
	if (o->failed || first == ORDER_NONE)
		return;
	if (!order_grow((void **)&o->edges, &o->edge_capacity, o->edge_count, sizeof *o->edges)) {
		o->failed = true;
		return;
	}
	o->edges[o->edge_count] = (order_edge){ .to = node, .next = o->nodes[first].followers };
	o->nodes[first].followers = o->edge_count++;
	o->nodes[node].behind++;
}

// Behind all earlier barriers and waits with one of the kinds in their second
// scope; behind walls in any case.
static void order_behind_barriers(order *o, uint32_t node, uint32_t stages)
{
	stages |= STAGE_ANY;
	for (int k = 0; k < STAGE_KINDS; k++) {
		if ((stages >> k & 1) == 0)
			continue;
		bool again = false;
		for (int earlier = 0; earlier < k; earlier++)
			again |= (stages >> earlier & 1) != 0 && o->front.barrier[earlier] == o->front.barrier[k];
		if (!again)
			order_put_behind(o, node, o->front.barrier[k]);
	}
}

// Behind all earlier commands that execute in one of the kinds.
static void order_behind_commands(order *o, uint32_t node, uint32_t stages)
{
	for (int k = 0; k < STAGE_KINDS; k++) {
		if ((stages >> k & 1) == 0)
			continue;
		if (o->open[k] != ORDER_NONE) {
			o->closed[k] = o->open[k];
			o->open[k] = ORDER_NONE;
		}
		order_put_behind(o, node, o->closed[k]);
	}
}

static void order_join(order *o, uint32_t node, uint32_t stages)
{
	for (int k = 0; k < STAGE_KINDS; k++) {
		if ((stages >> k & 1) == 0)
			continue;
		if (o->open[k] == ORDER_NONE) {
			o->open[k] = order_node_add(o, NULL, NULL);
			order_put_behind(o, o->open[k], o->closed[k]);
		}
		order_put_behind(o, o->open[k], node);
	}
}

// What comes later in one of the kinds is behind node, which is itself behind the
// barriers of front in the kinds of first.
static void order_before_later(order *o, uint32_t node, uint32_t first, uint32_t second,
	const order_front *front)
{
	const order_front now = o->front;
	const uint32_t *before = now.barrier;
	uint32_t *barrier = o->front.barrier;
	first |= STAGE_ANY;
	for (int k = 0; k < STAGE_KINDS; k++) {
		if ((second >> k & 1) == 0)
			continue;
		bool implied = before[k] == ORDER_NONE;
		uint32_t shared = ORDER_NONE;
		for (int m = 0; m < STAGE_KINDS; m++) {
			implied |= (first >> m & 1) != 0 && front->barrier[m] == before[k];
			if (m < k && (second >> m & 1) != 0 && before[m] == before[k])
				shared = barrier[m];
		}
		if (implied) {
			barrier[k] = node;
		} else if (shared != ORDER_NONE) {
			barrier[k] = shared;
		} else {
			uint32_t join = order_node_add(o, NULL, NULL);
			order_put_behind(o, join, before[k]);
			order_put_behind(o, join, node);
			barrier[k] = join;
		}
	}
}

static void order_command(order *o, uint32_t stages, const void *what, const void *of)
{
	uint32_t n = order_node_add(o, what, of);
	order_behind_barriers(o, n, stages);
	order_join(o, n, stages | STAGE_ANY);
}

// A barrier in two steps, for barriers that do not chain among themselves: all
// come behind what is earlier, and only then before what is later.
static uint32_t order_barrier_after(order *o, uint32_t first, const void *what, const void *of)
{
	uint32_t n = order_node_add(o, what, of);
	order_behind_commands(o, n, first);
	order_behind_barriers(o, n, first);
	return n;
}

static void order_barrier_before(order *o, uint32_t node, uint32_t first, uint32_t second,
	const order_front *front)
{
	order_before_later(o, node, first, second, front);
	// Signals and walls come after it, lest what it makes visible comes too late.
	order_join(o, node, STAGE_ANY);
}

static void order_barrier(order *o, uint32_t first, uint32_t second, const void *what, const void *of)
{
	const order_front front = o->front;
	order_barrier_before(o, order_barrier_after(o, first, what, of), first, second, &front);
}

static void order_wait(order *o, uint32_t second, const void *what, const void *of)
{
	uint32_t n = order_node_add(o, what, of);
	order_behind_barriers(o, n, 0);
	order_put_behind(o, n, o->last_kept);
	const order_front front = o->front;
	order_before_later(o, n, 0, second, &front);
	o->last_kept = n;
}

// With STAGE_ANY in first, behind everything earlier.
static void order_signal(order *o, uint32_t first, const void *what, const void *of)
{
	uint32_t n = order_node_add(o, what, of);
	order_behind_commands(o, n, first);
	order_behind_barriers(o, n, first);
	order_put_behind(o, n, o->last_kept);
	o->last_kept = n;
}

static void order_wall(order *o, const void *what, const void *of)
{
	uint32_t n = order_node_add(o, what, of);
	order_behind_commands(o, n, STAGE_ANY);
	order_behind_barriers(o, n, UINT32_MAX);
	order_put_behind(o, n, o->last_kept);
	const order_front front = o->front;
	order_before_later(o, n, UINT32_MAX, (1u << STAGE_KINDS) - 1, &front);
	o->last_kept = n;
}

// splitmix64
static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static uint32_t random_below(uint64_t *state, uint32_t bound)
{
	return (uint32_t)((random_next(state) >> 32) * bound >> 32);
}

// How the next one is chosen among those that nothing holds back.
typedef enum order_manner {
	ORDER_EVEN,  // any of them
	ORDER_DEEP,  // the one that became ready last: chains run one by one, the last first
	ORDER_DELAY, // some wait until there is no other
	ORDER_MANNERS,
} order_manner;

typedef void (*order_visit)(void *context, const void *what, const void *of);

static void order_release(order *o, uint32_t node, order_manner manner, uint64_t *random,
	uint32_t *ready, uint32_t *late)
{
	uint32_t joins = 0;
	for (;;) {
		if (o->nodes[node].what != NULL) {
			if (manner == ORDER_DELAY && random_below(random, 8) == 0)
				o->late[(*late)++] = node;
			else
				o->ready[(*ready)++] = node;
		} else {
			for (uint32_t e = o->nodes[node].followers; e != ORDER_NONE; e = o->edges[e].next)
				if (--o->nodes[o->edges[e].to].behind == 0)
					o->joins[joins++] = o->edges[e].to;
		}
		if (joins == 0)
			return;
		node = o->joins[--joins];
	}
}

// Visits all that was added, in an order that is allowed, and resets the order.
// False: out of memory, and nothing was visited.
static bool order_walk(order *o, order_manner manner, uint64_t *random, order_visit visit,
	void *context)
{
	if (!o->failed && o->room < o->node_count) {
		uint32_t *arrays[3];
		for (int k = 0; k < 3; k++)
			arrays[k] = malloc(sizeof *arrays[k] * o->node_capacity);
		if (arrays[0] == NULL || arrays[1] == NULL || arrays[2] == NULL) {
			for (int k = 0; k < 3; k++)
				free(arrays[k]);
			o->failed = true;
		} else {
			free(o->ready);
			free(o->late);
			free(o->joins);
			o->ready = arrays[0];
			o->late = arrays[1];
			o->joins = arrays[2];
			o->room = o->node_capacity;
		}
	}
	if (o->failed) {
		order_reset(o);
		return false;
	}
	uint32_t ready = 0, late = 0;
	// No join is without anything in front of it, so that those found here are not
	// released twice.
	for (uint32_t n = 0; n < o->node_count; n++)
		if (o->nodes[n].behind == 0 && o->nodes[n].what != NULL)
			order_release(o, n, manner, random, &ready, &late);
	while (ready + late > 0) {
		uint32_t *from = ready > 0 ? o->ready : o->late, *count = ready > 0 ? &ready : &late;
		uint32_t at = manner == ORDER_DEEP ? *count - 1 : random_below(random, *count);
		uint32_t node = from[at];
		from[at] = from[--*count];
		visit(context, o->nodes[node].what, o->nodes[node].of);
		for (uint32_t e = o->nodes[node].followers; e != ORDER_NONE; e = o->edges[e].next)
			if (--o->nodes[o->edges[e].to].behind == 0)
				order_release(o, o->edges[e].to, manner, random, &ready, &late);
	}
	order_reset(o);
	return true;
}

#endif
