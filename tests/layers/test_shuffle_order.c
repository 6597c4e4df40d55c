// The orders that shuffle_order.h draws, against a checker that knows only the
// rules and pays no heed to cost: all orders drawn are allowed, and all that are
// allowed are drawn. Needs no device.
#include "shuffle_order.h"

#include <stdio.h>
#include <string.h>

#define CHECK(condition, ...)                                                                  \
	do {                                                                                   \
		if (!(condition)) {                                                            \
			printf("%s:%d: %s: ", __FILE__, __LINE__, #condition);                 \
			printf(__VA_ARGS__);                                                   \
			printf("\n");                                                          \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

enum { MOST = 24 };

typedef struct item {
	enum { COMMAND, BARRIER, WAIT, SIGNAL, WALL } kind;
	uint32_t stages; // of a command
	uint32_t first, second;
	int parts; // of a barrier: how many that follow belong to the same call
} item;

typedef struct program {
	item items[MOST];
	int count;
	bool before[MOST][MOST];
} program;

static bool kept_in_order(const item *i) { return i->kind == WAIT || i->kind == SIGNAL || i->kind == WALL; }

// Whether the rules order a before b, which comes later, with nothing between.
static bool directly(const item *a, const item *b)
{
	if (a->kind == WALL || b->kind == WALL || (kept_in_order(a) && kept_in_order(b)))
		return true;
	bool everything = b->kind == SIGNAL && b->first == STAGE_ANY;
	switch (a->kind) {
	case COMMAND:
		return (b->kind == BARRIER || b->kind == SIGNAL) &&
		       (everything || (a->stages & b->first) != 0);
	case BARRIER:
	case WAIT:
		if (b->kind == COMMAND)
			return (a->second & b->stages) != 0;
		return b->kind != WAIT && (everything || (a->second & b->first) != 0);
	default:
		return false;
	}
}

static bool same_call(const program *p, int a, int b)
{
	return p->items[a].kind == BARRIER && p->items[b].kind == BARRIER && p->items[a].parts >= b - a;
}

static void close_over(program *p)
{
	memset(p->before, 0, sizeof p->before);
	for (int a = 0; a < p->count; a++)
		for (int b = a + 1; b < p->count; b++)
			p->before[a][b] = !same_call(p, a, b) && directly(&p->items[a], &p->items[b]);
	for (int m = 0; m < p->count; m++)
		for (int a = 0; a < p->count; a++)
			for (int b = 0; b < p->count; b++)
				p->before[a][b] |= p->before[a][m] && p->before[m][b];
}

// Allowed orders of what is not in done.
static uint32_t count_orders(const program *p, uint32_t done, uint32_t *known)
{
	if (done == (1u << p->count) - 1)
		return 1;
	if (known[done] != 0)
		return known[done];
	uint32_t orders = 0;
	for (int n = 0; n < p->count; n++) {
		bool ready = (done >> n & 1) == 0;
		for (int m = 0; m < p->count; m++)
			ready &= !p->before[m][n] || (done >> m & 1) != 0;
		if (ready)
			orders += count_orders(p, done | 1u << n, known);
	}
	return known[done] = orders;
}

static void add_all(order *o, program *p)
{
	for (int n = 0; n < p->count; n++) {
		item *i = &p->items[n];
		switch (i->kind) {
		case COMMAND:
			order_command(o, i->stages, i, p);
			break;
		case BARRIER: {
			const order_front front = o->front;
			const uint32_t node = o->node_count;
			for (int k = 0; k <= i->parts; k++)
				order_barrier_after(o, i[k].first, &i[k], p);
			for (int k = 0; k <= i->parts; k++)
				order_barrier_before(o, node + (uint32_t)k, i[k].first, i[k].second, &front);
			n += i->parts;
			break;
		}
		case WAIT:
			order_wait(o, i->second, i, p);
			break;
		case SIGNAL:
			order_signal(o, i->first, i, p);
			break;
		case WALL:
			order_wall(o, i, p);
			break;
		}
	}
}

typedef struct drawn {
	const program *p;
	uint64_t places; // the items met, five bits each
	int order[MOST], count;
} drawn;

static void visit(void *context, const void *what, const void *of)
{
	drawn *d = context;
	CHECK(of == d->p, "an item of another program");
	int n = (int)((const item *)what - d->p->items);
	CHECK(d->count < d->p->count, "too many");
	d->order[d->count++] = n;
	d->places = d->places << 5 | (uint64_t)n;
}

static drawn draw(order *o, program *p, order_manner manner, uint64_t *random)
{
	drawn d = { .p = p };
	add_all(o, p);
	CHECK(order_walk(o, manner, random, visit, &d), "out of memory");
	CHECK(d.count == p->count, "%d of %d", d.count, p->count);
	uint32_t met = 0;
	for (int k = 0; k < d.count; k++) {
		CHECK((met >> d.order[k] & 1) == 0, "%d came twice", d.order[k]);
		met |= 1u << d.order[k];
		for (int m = k + 1; m < d.count; m++)
			CHECK(!p->before[d.order[m]][d.order[k]], "%d before %d", d.order[k], d.order[m]);
	}
	return d;
}

static uint32_t random_stages(uint64_t *random)
{
	static const uint32_t kinds[] = { STAGE_COMPUTE, STAGE_COPY, STAGE_COPY | STAGE_CLEAR,
		STAGE_COMPUTE | STAGE_INDIRECT };
	return kinds[random_below(random, 4)];
}

static uint32_t random_scope(uint64_t *random)
{
	static const uint32_t scopes[] = { STAGE_COMPUTE, STAGE_COPY, STAGE_CLEAR, STAGE_HOST,
		STAGE_COPY | STAGE_CLEAR | STAGE_BLIT, STAGE_COMPUTE | STAGE_COPY, STAGE_ALL_COMMANDS, 0 };
	return scopes[random_below(random, 8)];
}

static program random_program(int count, uint64_t *random)
{
	program p = { .count = count };
	for (int n = 0; n < count; n++) {
		item *i = &p.items[n];
		uint32_t which = random_below(random, 20);
		*i = (item){ .stages = random_stages(random), .first = random_scope(random),
			.second = random_scope(random) };
		if (which < 11)
			i->kind = COMMAND;
		else if (which < 15)
			i->kind = BARRIER;
		else if (which < 17)
			i->kind = WAIT;
		else if (which < 19)
			i->kind = SIGNAL;
		else
			i->kind = WALL;
		if (i->kind == SIGNAL && random_below(random, 2) == 0)
			i->first = STAGE_ANY;
		if (i->kind == BARRIER && n > 0 && p.items[n - 1].kind == BARRIER &&
			p.items[n - 1].parts == 0 && random_below(random, 2) == 0)
			for (int m = n - 1, parts = 1; m >= 0 && p.items[m].kind == BARRIER &&
				p.items[m].parts == parts - 1; m--, parts++)
				p.items[m].parts = parts;
	}
	close_over(&p);
	return p;
}

static void allowed_orders_alone(void)
{
	order o = { 0 };
	order_reset(&o);
	uint64_t random = 1;
	for (int k = 0; k < 20000; k++) {
		program p = random_program(1 + (int)random_below(&random, MOST), &random);
		for (order_manner manner = 0; manner < ORDER_MANNERS; manner++)
			draw(&o, &p, manner, &random);
	}
	order_free(&o);
}

static void all_allowed_orders(void)
{
	enum { COUNT = 7, ORDERS = 300, DRAWS = 40 };
	order o = { 0 };
	order_reset(&o);
	uint64_t random = 2;
	uint32_t programs = 0, most = 0;
	for (int k = 0; k < 1500; k++) {
		program p = random_program(COUNT, &random);
		uint32_t known[1 << COUNT] = { 0 };
		uint32_t orders = count_orders(&p, 0, known);
		if (orders > ORDERS)
			continue;
		uint64_t met[ORDERS];
		uint32_t count = 0;
		// The rarest order is met once in some orders*orders draws at worst.
		for (uint32_t m = 0; count < orders && m < DRAWS * orders * (orders + 10); m++) {
			drawn d = draw(&o, &p, ORDER_EVEN, &random);
			bool again = false;
			for (uint32_t a = 0; a < count; a++)
				again |= met[a] == d.places;
			if (!again)
				met[count++] = d.places;
		}
		CHECK(count == orders, "program %d: %u of %u orders", k, count, orders);
		programs++;
		most = orders > most ? orders : most;
	}
	CHECK(programs > 700 && most > 200, "%u programs, at most %u orders", programs, most);
	printf("%u programs, all of their orders, up to %u\n", programs, most);
	order_free(&o);
}

static void chain_by_masks(void)
{
	// Two barriers without a command between them form a chain; through a stage that
	// only one of them names they do not.
	static const struct {
		uint32_t second, first;
		bool ordered;
	} cases[] = {
		{ STAGE_COPY, STAGE_COPY, true },
		{ STAGE_HOST, STAGE_HOST, true },
		{ STAGE_COPY | STAGE_CLEAR, STAGE_CLEAR, true },
		{ STAGE_COPY, STAGE_CLEAR, false },
		{ 0, STAGE_COPY, false },
	};
	order o = { 0 };
	order_reset(&o);
	uint64_t random = 3;
	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
		program p = { .count = 4, .items = {
			{ .kind = COMMAND, .stages = STAGE_COMPUTE },
			{ .kind = BARRIER, .first = STAGE_COMPUTE, .second = cases[k].second },
			{ .kind = BARRIER, .first = cases[k].first, .second = STAGE_COMPUTE },
			{ .kind = COMMAND, .stages = STAGE_COMPUTE } } };
		int swapped = 0;
		for (int m = 0; m < 1000; m++) {
			drawn d = { .p = &p };
			add_all(&o, &p);
			CHECK(order_walk(&o, ORDER_EVEN, &random, visit, &d), "out of memory");
			for (int n = 0; n < 4; n++) {
				if (d.order[n] == 0)
					break;
				swapped += d.order[n] == 3;
			}
		}
		CHECK((swapped == 0) == cases[k].ordered && (swapped == 0 || swapped > 200),
			"case %zu: swapped in %d of 1000", k, swapped);
	}
	order_free(&o);
}

static void scopes_of_masks(void)
{
	static const struct {
		VkPipelineStageFlags2 mask;
		uint32_t first, second;
	} cases[] = {
		{ VK_PIPELINE_STAGE_2_NONE, 0, 0 },
		{ VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, 0, STAGE_ALL_COMMANDS },
		{ VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, STAGE_ALL_COMMANDS, 0 },
		{ VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, STAGE_ALL_COMMANDS, STAGE_ALL_COMMANDS },
		{ VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, STAGE_COMPUTE | STAGE_INDIRECT, STAGE_COMPUTE },
		{ VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT, STAGE_INDIRECT, STAGE_INDIRECT | STAGE_COMPUTE },
		{ VK_PIPELINE_STAGE_TRANSFER_BIT, STAGE_COPY | STAGE_CLEAR | STAGE_BLIT,
			STAGE_COPY | STAGE_CLEAR | STAGE_BLIT },
		{ VK_PIPELINE_STAGE_2_COPY_BIT, STAGE_COPY, STAGE_COPY },
		{ VK_PIPELINE_STAGE_2_CLEAR_BIT, STAGE_CLEAR, STAGE_CLEAR },
		{ VK_PIPELINE_STAGE_HOST_BIT, STAGE_HOST, STAGE_HOST },
		{ VK_PIPELINE_STAGE_VERTEX_SHADER_BIT, STAGE_OTHER, STAGE_OTHER },
	};
	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
		CHECK(first_scope(cases[k].mask) == cases[k].first &&
				second_scope(cases[k].mask) == cases[k].second,
			"mask %#llx: %#x, %#x", (unsigned long long)cases[k].mask,
			first_scope(cases[k].mask), second_scope(cases[k].mask));
}

static void count_visit(void *context, const void *what, const void *of)
{
	(void)what, (void)of;
	++*(uint32_t *)context;
}

static void linear_size(void)
{
	enum { COUNT = 300000 };
	order o = { 0 };
	order_reset(&o);
	uint64_t random = 4;
	static const int something = 0;
	for (int k = 0; k < COUNT; k++)
		if (random_below(&random, 3) == 0)
			order_barrier(&o, random_scope(&random), random_scope(&random), &something, NULL);
		else
			order_command(&o, random_stages(&random), &something, NULL);
	order_signal(&o, STAGE_ANY, &something, NULL);
	uint32_t nodes = o.node_count, edges = o.edge_count, count = 0;
	CHECK(order_walk(&o, ORDER_EVEN, &random, count_visit, &count), "out of memory");
	CHECK(count == COUNT + 1, "%u", count);
	CHECK(nodes < 3 * COUNT && edges < 8 * COUNT, "%u nodes, %u edges", nodes, edges);
	printf("%d commands and barriers: %.2f nodes and %.2f edges each\n", COUNT,
		nodes / (double)COUNT, edges / (double)COUNT);
	order_free(&o);
}

int main(void)
{
	allowed_orders_alone();
	all_allowed_orders();
	chain_by_masks();
	scopes_of_masks();
	linear_size();
	return 0;
}
