// The hash table of layer.h: open addressing with linear probing, at most half full. A removal
// moves up the entries behind it, so there are no tombstones.
#include "layer.h"

#include <stdlib.h>

struct layer_map_entry {
	uint64_t key;
	void *value; // NULL: free
};

// room is a power of two.
static size_t home(uint64_t key, size_t room)
{
	return (size_t)(key * 0x9e3779b97f4a7c15u >> 32) & (room - 1);
}

// The position of the key, or the free one where it would be.
static size_t place(const layer_map *m, uint64_t key)
{
	size_t i = home(key, m->room);
	while (m->entries[i].value != NULL && m->entries[i].key != key)
		i = (i + 1) & (m->room - 1);
	return i;
}

static void grow(layer_map *m)
{
	layer_map larger = { .room = m->room == 0 ? 64 : 2 * m->room };
	larger.entries = layer_allocate(larger.room * sizeof *larger.entries);
	for (size_t i = 0; i < m->room; i++)
		if (m->entries[i].value != NULL)
			larger.entries[place(&larger, m->entries[i].key)] = m->entries[i];
	free(m->entries);
	m->entries = larger.entries;
	m->room = larger.room;
}

static void remove_at(layer_map *m, size_t hole)
{
	size_t mask = m->room - 1;
	for (size_t i = (hole + 1) & mask; m->entries[i].value != NULL; i = (i + 1) & mask)
		// It may move up if the hole is on its way from home.
		if (((i - home(m->entries[i].key, m->room)) & mask) >= ((i - hole) & mask)) {
			m->entries[hole] = m->entries[i];
			hole = i;
		}
	m->entries[hole].value = NULL;
	m->used--;
}

static void *take(layer_map *m, uint64_t key)
{
	if (m->used == 0)
		return NULL;
	size_t i = place(m, key);
	void *value = m->entries[i].value;
	if (value != NULL)
		remove_at(m, i);
	return value;
}

void *layer_map_put(layer_map *m, uint64_t key, void *value)
{
	pthread_mutex_lock(&m->lock);
	void *old = NULL;
	if (value == NULL) {
		old = take(m, key);
	} else {
		if (2 * (m->used + 1) > m->room)
			grow(m);
		size_t i = place(m, key);
		old = m->entries[i].value;
		m->used += old == NULL;
		m->entries[i] = (struct layer_map_entry){ key, value };
	}
	pthread_mutex_unlock(&m->lock);
	return old;
}

void *layer_map_get(layer_map *m, uint64_t key)
{
	pthread_mutex_lock(&m->lock);
	void *value = m->used == 0 ? NULL : m->entries[place(m, key)].value;
	pthread_mutex_unlock(&m->lock);
	return value;
}

void *layer_map_take(layer_map *m, uint64_t key)
{
	pthread_mutex_lock(&m->lock);
	void *value = take(m, key);
	pthread_mutex_unlock(&m->lock);
	return value;
}

void layer_map_each(layer_map *m, bool (*each)(uint64_t key, void *value, void *context),
	void *context)
{
	pthread_mutex_lock(&m->lock);
	// They are removed afterwards, because a removal moves other entries.
	size_t count = 0;
	uint64_t *gone = m->used == 0 ? NULL : layer_allocate(m->used * sizeof *gone);
	for (size_t i = 0; i < m->room; i++)
		if (m->entries[i].value != NULL && each(m->entries[i].key, m->entries[i].value, context))
			gone[count++] = m->entries[i].key;
	while (count > 0)
		take(m, gone[--count]);
	free(gone);
	pthread_mutex_unlock(&m->lock);
}

void layer_map_free(layer_map *m)
{
	free(m->entries);
	m->entries = NULL;
	m->used = m->room = 0;
}
