// The layers' hash table against an array: random puts, gets and removals of few
// keys, so that runs of entries form, wrap around and are closed again.
#include "program.h"

#include "map.c"

enum { KEYS = 300, STEPS = 400000 };

void *layer_allocate(size_t bytes)
{
	void *p = calloc(1, bytes);
	if (p == NULL)
		exit(1);
	return p;
}

// Keys as handles are: some far apart, most next to each other.
static uint64_t key_of(uint32_t k)
{
	return k % 3 == 0 ? (uint64_t)k << 40 : 0x7f0000000000u + 16 * k;
}

static bool is_odd(uint64_t key, void *value, void *seen)
{
	(void)key;
	++*(uint32_t *)seen;
	return (uintptr_t)value % 2 == 1;
}

int main(void)
{
	layer_map m = { 0 };
	static uintptr_t model[KEYS];
	uint64_t random = 1;
	uint32_t wrong = 0, used = 0, sweeps = 0;
	CHECK(layer_map_get(&m, 5) == NULL && layer_map_take(&m, 5) == NULL, "an empty table has values");
	for (uint32_t s = 0; s < STEPS; s++) {
		// Mostly full for a while, then mostly empty.
		uint32_t k = program_below(&random, KEYS), what = program_below(&random, 8);
		uint32_t puts = s / 5000 % 2 == 0 ? 4 : 1;
		void *before = (void *)model[k], *got;
		if (what < puts) {
			model[k] = 1 + program_below(&random, 1000);
			got = layer_map_put(&m, key_of(k), (void *)model[k]);
		} else if (what < 6) {
			model[k] = 0;
			got = layer_map_take(&m, key_of(k));
		} else {
			got = layer_map_get(&m, key_of(k));
		}
		wrong += got != before;
		if (s % 1000 == 999) {
			uint32_t seen = 0;
			used = 0;
			for (k = 0; k < KEYS; k++)
				used += model[k] != 0;
			layer_map_each(&m, is_odd, &seen);
			wrong += seen != used;
			for (k = 0; k < KEYS; k++)
				if (model[k] % 2 == 1)
					model[k] = 0;
			for (k = 0; k < KEYS; k++)
				wrong += layer_map_get(&m, key_of(k)) != (void *)model[k];
			sweeps += used > 0;
		}
	}
	CHECK(wrong == 0, "%u of %d steps are wrong", wrong, STEPS);
	CHECK(sweeps > 100, "the table was empty in most of the sweeps");
	layer_map_free(&m);
	return program_result("test_layer_map");
}
