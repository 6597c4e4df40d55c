#include "vko.h"

#include <stdlib.h>

const vko_merging *vko_merging_at(const vko_device *d, uint32_t number)
{
	if (number / VKO_MERGING_CHUNK >= VKO_MERGING_CHUNKS)
		return NULL;
	const vko_merging *chunk = d->mergings[number / VKO_MERGING_CHUNK];
	if (chunk == NULL || chunk[number % VKO_MERGING_CHUNK].merged == 0)
		return NULL;
	return &chunk[number % VKO_MERGING_CHUNK];
}

int32_t vko_merging_set(vko_device *d, uint32_t number, const vko_merging *m)
{
	vko_merging **chunk = &d->mergings[number / VKO_MERGING_CHUNK];
	if (*chunk == NULL) {
		*chunk = calloc(VKO_MERGING_CHUNK, sizeof **chunk);
		if (*chunk == NULL)
			return VKO_ERROR_OUT_OF_HOST_MEMORY;
	}
	(*chunk)[number % VKO_MERGING_CHUNK] = *m;
	return 0;
}
