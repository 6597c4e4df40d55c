#include "vko.h"

void vko_query_reset(const vko_device *d, vkoHandle pool, uint32_t first, uint32_t count)
{
	d->ResetQueryPool(d->handle, pool, first, count);
}

int32_t vko_query_results(const vko_device *d, vkoHandle pool, uint32_t first, uint32_t count,
	uint64_t *out)
{
	return d->GetQueryPoolResults(d->handle, pool, first, count, count * sizeof *out, out,
		sizeof *out, VKO_QUERY_RESULT_64_BIT);
}

int32_t vko_device_ticks(const vko_device *d, uint64_t *ticks)
{
	const vkoCalibratedTimestampInfoEXT info = {
		.sType = VKO_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT,
		.timeDomain = VKO_TIME_DOMAIN_DEVICE_EXT,
	};
	uint64_t deviation;
	return d->GetCalibratedTimestampsEXT(d->handle, 1, &info, ticks, &deviation);
}
