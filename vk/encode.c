#include "vko.h"

#include <stdbool.h>
#include <string.h>

// The words of a stream; stream.go has the layout.
enum {
	OP_BARRIER = 1,
	OP_DISPATCH = 2,
	OP_COPY = 3,
	OP_FILL = 4,
	OP_TIMESTAMP = 5,
	OP_EXECUTE = 6,

	BARRIER_WORDS = 3,
	DISPATCH_WORDS = 9,
	COPY_WORDS = 3,
	FILL_WORDS = 5,
	STAMP_WORDS = 4,
	RANGE_WORDS = 3,
	REGION_WORDS = 3,
	MAX_UNORDERED_REGIONS = 64,
};

static uint32_t low(uint64_t w) { return (uint32_t)w; }
static uint32_t high(uint64_t w) { return (uint32_t)(w >> 32); }
static uint32_t op_code(const uint64_t *w) { return (uint32_t)(w[0] & 0xff); }
static uint32_t op_bindings(const uint64_t *w) { return (uint32_t)(w[0] >> 8 & 0xffffff); }
static uint32_t op_words(const uint64_t *w) { return high(w[0]); }

// Parts of a dispatch.
static uint32_t declared_bindings(const uint64_t *w) { return low(w[4]) & 0xff; }
static uint32_t merging_number(const uint64_t *w) { return low(w[4]) >> 8; }
static uint32_t binding_mask(const uint64_t *w) { return high(w[4]); }
static uint32_t push_size(const uint64_t *w) { return low(w[8]); }

static uint32_t bit_count(uint32_t bits)
{
	uint32_t n = 0;
	for (; bits != 0; bits &= bits - 1)
		n++;
	return n;
}

static int32_t scan_bindings(const vko_device *d, const uint64_t *w, uint32_t bindings,
	unsigned long long at, vko_fault *fault)
{
	const uint64_t *range = w + DISPATCH_WORDS;
	const uint64_t below = d->limits.storage_offset_alignment - 1; // it is a power of two
	for (uint32_t b = 0; b < bindings; b++, range += RANGE_WORDS) {
		if (range[0] == 0 || range[2] == 0)
			return vko_refuse(fault, "word %llu: dispatch: binding %u is empty", at, b);
		if ((range[1] & below) != 0)
			return vko_refuse(fault,
				"word %llu: dispatch: binding %u: offset %llu is no multiple of %llu",
				at, b, (unsigned long long)range[1],
				(unsigned long long)d->limits.storage_offset_alignment);
		if (range[2] > d->limits.storage_range)
			return vko_refuse(fault,
				"word %llu: dispatch: binding %u: %llu bytes are above the limit of %llu",
				at, b, (unsigned long long)range[2],
				(unsigned long long)d->limits.storage_range);
	}
	return 0;
}

// Whether a variant, if it is there, has room for the push constants of each launch.
static bool takes(const vko_variant *v, uint32_t push) { return v->launches == 0 || push <= v->stride; }

static int32_t scan_dispatch(const vko_device *d, const uint64_t *w, unsigned long long at,
	vko_fault *fault)
{
	uint32_t bindings = op_bindings(w);
	// In 64 bits this cannot overflow: bindings has 24 bits.
	uint64_t fixed = DISPATCH_WORDS + (uint64_t)RANGE_WORDS * bindings;
	if (op_words(w) < fixed)
		return vko_refuse(fault, "word %llu: dispatch: too short", at);
	uint32_t push = push_size(w);
	if (((uint64_t)push + 7) / 8 != op_words(w) - fixed)
		return vko_refuse(fault, "word %llu: dispatch: %u push constant bytes in %llu words",
			at, push, (unsigned long long)(op_words(w) - fixed));
	if (w[1] == 0 || w[2] == 0 || (bindings > 0 && w[3] == 0))
		return vko_refuse(fault, "word %llu: dispatch: no pipeline", at);
	if (bindings > VKO_BINDINGS || bindings != declared_bindings(w) || bindings != bit_count(binding_mask(w)))
		return vko_refuse(fault, "word %llu: dispatch: %u buffers for %u bindings", at, bindings,
			declared_bindings(w));
	const uint32_t number = merging_number(w);
	if (number != 0) {
		const vko_merging *m = vko_merging_at(d, number);
		if (m == NULL || m->merged != w[1] || m->mask != binding_mask(w) || !takes(&m->own, push) ||
			!takes(&m->shared, push) || !takes(&m->spaced, push))
			return vko_refuse(fault, "word %llu: dispatch: %u names no pipeline that merges its launches",
				at, number);
	}
	if (push % 4 != 0 || push > high(w[8]))
		return vko_refuse(fault, "word %llu: dispatch: %u push constant bytes, the pipeline takes %u",
			at, push, high(w[8]));
	const uint32_t base[3] = { low(w[5]), high(w[5]), low(w[6]) };
	const uint32_t groups[3] = { high(w[6]), low(w[7]), high(w[7]) };
	for (int k = 0; k < 3; k++)
		if ((uint64_t)base[k] + groups[k] > d->limits.group_count[k] ||
			(base[k] != 0 && base[k] == d->limits.group_count[k]))
			return vko_refuse(fault,
				"word %llu: dispatch: workgroups %u+%u of dimension %d are above the limit of %u",
				at, base[k], groups[k], k, d->limits.group_count[k]);
	return scan_bindings(d, w, bindings, at, fault);
}

// Whether one dispatch can do what two successive ones do, of which the first alone could be merged
// with others.
static bool merges(const uint64_t *w, const uint64_t *next)
{
	return merging_number(w) != 0 && op_code(next) == OP_DISPATCH && w[0] == next[0] && w[1] == next[1] &&
		w[4] == next[4] && w[8] == next[8] && w[5] == 0 && next[5] == 0 && w[6] == next[6] &&
		low(w[6]) == 0 && w[7] == next[7] && high(w[7]) == 1 &&
		(uint64_t)high(w[6]) * low(w[7]) <= VKO_MERGED_GROUPS;
}

// Whether as many ranges are the same.
static bool same_ranges(const uint64_t *ranges, const uint64_t *others, uint32_t count)
{
	return memcmp(ranges, others, sizeof *ranges * RANGE_WORDS * count) == 0;
}

// Whether two dispatches of one pipeline bind the same.
static bool binds_same(const uint64_t *w, const uint64_t *other)
{
	return same_ranges(w + DISPATCH_WORDS, other + DISPATCH_WORDS, op_bindings(w));
}

// Whether dispatch number k behind the one at w binds parts at k times the distances at which the next one does, with
// no gap between them, and the elements of each begin where those of the whole do: then one descriptor has all of them,
// and nothing else.
static bool binds_next(const vko_device *d, const vko_merging *m, const uint64_t *w, const uint64_t *other, uint64_t k)
{
	const uint64_t *first = w + DISPATCH_WORDS, *second = first + op_words(w), *range = other + DISPATCH_WORDS;
	for (uint32_t b = 0; b < op_bindings(w); b++, first += RANGE_WORDS, second += RANGE_WORDS, range += RANGE_WORDS) {
		const uint64_t size = first[2], distance = second[1] - first[1]; // large if the second is before the first
		if (range[0] != first[0] || range[2] != size || distance > size ||
			range[1] != first[1] + k * distance || k * distance + size > d->limits.storage_range ||
			distance % m->bytes[b] != 0 || size % m->bytes[b] != 0)
			return false;
	}
	return true;
}

// Successive dispatches that one does with a variant of their pipeline, or a dispatch that is recorded alone,
// without a variant.
typedef struct run {
	uint32_t dispatches;
	const vko_variant *variant;
} run;

static run longer(run a, run b) { return b.dispatches > 1 && b.dispatches >= a.dispatches ? b : a; }

// The longest run from the dispatch at w on with a variant whose bindings are no arrays, and of two as long the one that
// binds less.
static run run_without_arrays(const vko_device *d, const vko_merging *m, const uint64_t *w, const uint64_t *end)
{
	uint32_t all = 1, shared = 1, spaced = 1;
	for (const uint64_t *next = w + op_words(w); next < end && merges(w, next); all++, next += op_words(w)) {
		const bool takes_shared = shared == all && all < m->shared.launches && binds_same(w, next);
		const bool takes_spaced = spaced == all && all < m->spaced.launches && binds_next(d, m, w, next, all);
		if (!takes_shared && !takes_spaced)
			break;
		shared += takes_shared;
		spaced += takes_spaced;
	}
	return longer(longer((run){ 1, NULL }, (run){ spaced, &m->spaced }), (run){ shared, &m->shared });
}

// The run that begins with the dispatch at w. It has arrays only if it is longer so, and then ends where a run without
// arrays begins that reaches further.
static run run_at(const vko_device *d, const uint64_t *w, const uint64_t *end)
{
	const run alone = { 1, NULL };
	const vko_merging *m = merging_number(w) == 0 ? NULL : vko_merging_at(d, merging_number(w));
	if (m == NULL)
		return alone;
	const run best = run_without_arrays(d, m, w, end);
	uint32_t own = 1;
	for (const uint64_t *next = w + op_words(w); own < m->own.launches && next < end && merges(w, next); own++)
		next += op_words(w);
	for (uint32_t k = 1; k < own && own > best.dispatches; k++)
		if (run_without_arrays(d, m, w + (size_t)k * op_words(w), end).dispatches > own - k)
			own = k;
	return longer(longer(alone, (run){ own, &m->own }), best);
}

// What a stream that has been checked needs from a descriptor pool.
static vko_demand demand_of(const vko_device *d, const uint64_t *words, uint64_t count)
{
	vko_demand demand = { 0 };
	for (const uint64_t *w = words, *end = words + count; w < end;) {
		run these = { 1, NULL };
		if (op_code(w) == OP_DISPATCH) {
			these = run_at(d, w, end);
			demand.sets += op_bindings(w) > 0;
			demand.descriptors += (uint64_t)op_bindings(w) *
				(these.variant == NULL ? 1 : these.variant->elements);
		}
		w += (size_t)these.dispatches * op_words(w);
	}
	return demand;
}

// The regions of a copy, which its words hold in Vulkan's layout.
static const vkoBufferCopy *copy_regions(const uint64_t *w)
{
	return (const vkoBufferCopy *)(w + COPY_WORDS);
}

static uint32_t copy_region_count(const uint64_t *w) { return (op_words(w) - COPY_WORDS) / REGION_WORDS; }

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

// Whether any byte is both read and written. The ends have been checked not to wrap around.
// Both sides are visited in ascending order: a region overlaps the other side exactly if it
// begins below the furthest end seen there.
static bool ascending_regions_overlap(const vkoBufferCopy *r, uint32_t count)
{
	uint64_t read_end = 0, written_end = 0;
	for (uint32_t s = 0, d = 0; s < count || d < count;) {
		if (d == count || (s < count && r[s].srcOffset <= r[d].dstOffset)) {
			if (r[s].srcOffset < written_end)
				return true;
			read_end = most(read_end, r[s].srcOffset + r[s].size);
			s++;
		} else {
			if (r[d].dstOffset < read_end)
				return true;
			written_end = most(written_end, r[d].dstOffset + r[d].size);
			d++;
		}
	}
	return false;
}

static bool any_regions_overlap(const vkoBufferCopy *r, uint32_t count)
{
	for (uint32_t s = 0; s < count; s++)
		for (uint32_t d = 0; d < count; d++)
			if (r[s].srcOffset < r[d].dstOffset + r[d].size &&
				r[d].dstOffset < r[s].srcOffset + r[s].size)
				return true;
	return false;
}

static int32_t scan_copy(const uint64_t *w, unsigned long long at, vko_fault *fault)
{
	if (op_words(w) <= COPY_WORDS || (op_words(w) - COPY_WORDS) % REGION_WORDS != 0 ||
		op_bindings(w) != 0)
		return vko_refuse(fault, "word %llu: copy: %u words with %u bindings", at, op_words(w),
			op_bindings(w));
	if (w[1] == 0 || w[2] == 0)
		return vko_refuse(fault, "word %llu: copy: no buffer", at);
	const vkoBufferCopy *r = copy_regions(w);
	const uint32_t count = copy_region_count(w);
	uint64_t read_begin = UINT64_MAX, read_end = 0, written_begin = UINT64_MAX, written_end = 0;
	bool ascending = true;
	for (uint32_t k = 0; k < count; k++) {
		if (r[k].size == 0)
			return vko_refuse(fault, "word %llu: copy: region %u has no bytes", at, k);
		if (r[k].srcOffset + r[k].size < r[k].srcOffset ||
			r[k].dstOffset + r[k].size < r[k].dstOffset)
			return vko_refuse(fault, "word %llu: copy: region %u wraps around", at, k);
		read_begin = least(read_begin, r[k].srcOffset);
		read_end = most(read_end, r[k].srcOffset + r[k].size);
		written_begin = least(written_begin, r[k].dstOffset);
		written_end = most(written_end, r[k].dstOffset + r[k].size);
		ascending = ascending && (k == 0 || (r[k - 1].srcOffset <= r[k].srcOffset &&
						     r[k - 1].dstOffset <= r[k].dstOffset));
	}
	if (w[1] != w[2] || read_end <= written_begin || written_end <= read_begin)
		return 0;
	if (!ascending && count > MAX_UNORDERED_REGIONS)
		return vko_refuse(fault, "word %llu: copy: %u regions of one buffer in no order", at, count);
	if (ascending ? ascending_regions_overlap(r, count) : any_regions_overlap(r, count))
		return vko_refuse(fault, "word %llu: copy: what is read and what is written overlap", at);
	return 0;
}

static int32_t scan_fill(const uint64_t *w, unsigned long long at, vko_fault *fault)
{
	if (w[1] == 0 || w[3] == 0)
		return vko_refuse(fault, "word %llu: fill: no buffer or no bytes", at);
	if (w[2] % 4 != 0 || w[3] % 4 != 0 || w[2] + w[3] < w[2])
		return vko_refuse(fault, "word %llu: fill: offset %llu, %llu bytes: no multiples of 4", at,
			(unsigned long long)w[2], (unsigned long long)w[3]);
	if (high(w[4]) != 0)
		return vko_refuse(fault, "word %llu: fill: the value has more than 4 bytes", at);
	return 0;
}

static int32_t scan_timestamp(const uint64_t *w, vko_family family, unsigned long long at,
	vko_fault *fault)
{
	if (w[1] == 0 || low(w[2]) >= high(w[2]))
		return vko_refuse(fault, "word %llu: timestamp: query %u of a pool of %u", at, low(w[2]),
			high(w[2]));
	switch (w[3]) {
	case VKO_PIPELINE_STAGE_COMPUTE_SHADER_BIT: // scan_for_transfers_only looks at it
	case VKO_PIPELINE_STAGE_TOP_OF_PIPE_BIT:
	case VKO_PIPELINE_STAGE_TRANSFER_BIT:
	case VKO_PIPELINE_STAGE_ALL_COMMANDS_BIT:
		break;
	default:
		return vko_refuse(fault, "word %llu: timestamp: stage 0x%llx", at, (unsigned long long)w[3]);
	}
	if (family.timestamp_bits == 0)
		return vko_refuse(fault, "word %llu: timestamp: queue family %u has none", at, family.index);
	return 0;
}

// Rejects operations that only the device's other families support.
static int32_t scan_for_transfers_only(const uint64_t *w, uint32_t family, unsigned long long at,
	vko_fault *fault)
{
	if (op_code(w) == OP_DISPATCH)
		return vko_refuse(fault, "word %llu: dispatch: queue family %u only transfers", at, family);
	if (op_code(w) == OP_BARRIER && ((low(w[1]) | high(w[1])) & VKO_PIPELINE_STAGE_COMPUTE_SHADER_BIT))
		return vko_refuse(fault,
			"word %llu: barrier: queue family %u only transfers and has no compute stage", at,
			family);
	if (op_code(w) == OP_TIMESTAMP && w[3] == VKO_PIPELINE_STAGE_COMPUTE_SHADER_BIT)
		return vko_refuse(fault,
			"word %llu: timestamp: queue family %u only transfers and has no compute stage", at,
			family);
	return 0;
}

int32_t vko_scan(const vko_device *d, vko_family family, const uint64_t *words, uint64_t count,
	vko_demand *demand, vko_fault *fault)
{
	*demand = (vko_demand){ 0 };
	for (uint64_t at = 0; at < count;) {
		const uint64_t *w = words + at;
		const unsigned long long position = at;
		uint64_t n = op_words(w);
		uint32_t expected = 0;
		int32_t refused = 0;
		if (n == 0 || n > count - at)
			return vko_refuse(fault, "word %llu: %llu words where %llu are left", position,
				(unsigned long long)n, (unsigned long long)(count - at));
		switch (op_code(w)) {
		case OP_BARRIER:
			expected = BARRIER_WORDS;
			break;
		case OP_DISPATCH:
			refused = scan_dispatch(d, w, position, fault);
			break;
		case OP_COPY:
			refused = scan_copy(w, position, fault);
			break;
		case OP_FILL:
			expected = FILL_WORDS;
			break;
		case OP_TIMESTAMP:
			expected = STAMP_WORDS;
			break;
		case OP_EXECUTE:
			expected = VKO_EXECUTION_WORDS;
			break;
		default:
			return vko_refuse(fault, "word %llu: unknown operation %u", position, op_code(w));
		}
		if (expected != 0 && (n != expected || op_bindings(w) != 0))
			return vko_refuse(fault, "word %llu: operation %u of %llu words with %u bindings",
				position, op_code(w), (unsigned long long)n, op_bindings(w));
		if (op_code(w) == OP_BARRIER && (low(w[1]) == 0 || high(w[1]) == 0))
			refused = vko_refuse(fault, "word %llu: barrier: no stage", position);
		if (op_code(w) == OP_EXECUTE && w[1] == 0)
			refused = vko_refuse(fault, "word %llu: execute: no recording", position);
		if (op_code(w) == OP_FILL)
			refused = scan_fill(w, position, fault);
		if (op_code(w) == OP_TIMESTAMP)
			refused = scan_timestamp(w, family, position, fault);
		if (!refused && !family.computes)
			refused = scan_for_transfers_only(w, family.index, position, fault);
		if (refused)
			return refused;
		at += n;
	}
	if (d->CmdPushDescriptorSetKHR == NULL)
		*demand = demand_of(d, words, count);
	return 0;
}

// The bindings of the command buffer, so that repeated ones are not recorded. Sets and push
// constants count as lost when the layout changes, because Vulkan keeps them only between
// compatible layouts.
typedef struct bound {
	uint64_t pipeline, layout;
	const uint64_t *ranges; // of the dispatch whose buffers are bound; NULL: none
	uint32_t range_count;
	const uint64_t *push; // push constants in effect; NULL: none
	uint32_t push_bytes;
} bound;

// The pipeline and the layouts with which dispatches are recorded, and the number of descriptors of
// each binding.
typedef struct program {
	vkoHandle pipeline, layout, set_layout;
	uint32_t elements;
} program;

// Binds the buffers of a dispatch, or of several successive ones that are merged: those of dispatch k
// are the k-th of each binding. Elements beyond the dispatches are not used, but must be valid.
static int32_t bind_buffers(const vko_device *d, void *commands, vkoHandle pool, const program *p,
	const uint64_t *w, uint32_t dispatches, vko_fault *fault)
{
	const uint32_t bindings = op_bindings(w);
	vkoHandle set = 0;
	if (d->CmdPushDescriptorSetKHR == NULL) {
		const vkoDescriptorSetAllocateInfo info = {
			.sType = VKO_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
			.descriptorPool = pool,
			.descriptorSetCount = 1,
			.pSetLayouts = &p->set_layout,
		};
		int32_t r = d->AllocateDescriptorSets(d->handle, &info, &set);
		if (r < 0)
			return vko_fail(fault, "vkAllocateDescriptorSets", r, "%u bindings", bindings);
	}
	vkoDescriptorBufferInfo buffers[VKO_BINDINGS];
	vkoWriteDescriptorSet writes[VKO_BINDINGS];
	for (uint32_t k = 0; k < p->elements; k++) {
		const uint64_t *range = w + (k < dispatches ? k : 0) * (size_t)op_words(w) + DISPATCH_WORDS;
		for (uint32_t b = 0; b < bindings; b++, range += RANGE_WORDS)
			buffers[b * p->elements + k] = (vkoDescriptorBufferInfo){
				.buffer = range[0],
				.offset = range[1],
				.range = range[2],
			};
	}
	const uint32_t mask = binding_mask(w);
	for (uint32_t b = 0, number = 0; b < bindings; b++, number++) {
		while (!(mask >> number & 1))
			number++;
		writes[b] = (vkoWriteDescriptorSet){
			.sType = VKO_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
			.dstSet = set,
			.dstBinding = number,
			.descriptorCount = p->elements,
			.descriptorType = VKO_DESCRIPTOR_TYPE_STORAGE_BUFFER,
			.pBufferInfo = &buffers[b * p->elements],
		};
	}
	if (d->CmdPushDescriptorSetKHR != NULL) {
		d->CmdPushDescriptorSetKHR(commands, VKO_PIPELINE_BIND_POINT_COMPUTE, p->layout, 0, bindings,
			writes);
		return 0;
	}
	d->UpdateDescriptorSets(d->handle, bindings, writes, 0, NULL);
	d->CmdBindDescriptorSets(commands, VKO_PIPELINE_BIND_POINT_COMPUTE, p->layout, 0, 1, &set, 0, NULL);
	return 0;
}

static void bind_program(const vko_device *d, void *commands, const program *p, bound *now)
{
	if (now->pipeline != p->pipeline) {
		d->CmdBindPipeline(commands, VKO_PIPELINE_BIND_POINT_COMPUTE, p->pipeline);
		now->pipeline = p->pipeline;
	}
	if (now->layout != p->layout) {
		now->layout = p->layout;
		now->ranges = NULL;
		now->push = NULL;
	}
}

// Binds what spaced dispatches have of each buffer, and writes into words how far apart their parts are, and how long,
// in elements.
static int32_t bind_spaced(const vko_device *d, void *commands, vkoHandle pool, const program *p, const vko_merging *m,
	const uint64_t *w, uint32_t dispatches, uint32_t *words, vko_fault *fault)
{
	const uint32_t bindings = op_bindings(w);
	uint64_t whole[DISPATCH_WORDS + RANGE_WORDS * VKO_BINDINGS];
	memcpy(whole, w, sizeof *w * (DISPATCH_WORDS + RANGE_WORDS * bindings));
	for (uint32_t b = 0; b < bindings; b++) {
		uint64_t *range = whole + DISPATCH_WORDS + RANGE_WORDS * b;
		const uint64_t distance = w[op_words(w) + DISPATCH_WORDS + RANGE_WORDS * b + 1] - range[1];
		words[2 * b] = (uint32_t)(distance / m->bytes[b]);
		words[2 * b + 1] = (uint32_t)(range[2] / m->bytes[b]);
		range[2] += distance * (dispatches - 1);
	}
	return bind_buffers(d, commands, pool, p, whole, 1, fault);
}

// Binds the buffers of a dispatch by a program without arrays, unless they are bound.
static int32_t bind_same(const vko_device *d, void *commands, vkoHandle pool, const program *p, const uint64_t *w,
	bound *now, vko_fault *fault)
{
	const uint32_t bindings = op_bindings(w);
	const uint64_t *ranges = w + DISPATCH_WORDS;
	if (bindings == 0 ||
		(now->ranges != NULL && now->range_count == bindings && same_ranges(now->ranges, ranges, bindings)))
		return 0;
	if (bind_buffers(d, commands, pool, p, w, 1, fault))
		return 1;
	now->ranges = ranges;
	now->range_count = bindings;
	return 0;
}

static int32_t record_dispatch(const vko_device *d, void *commands, vkoHandle pool,
	const uint64_t *w, bound *now, vko_fault *fault)
{
	const program p = { .pipeline = w[1], .layout = w[2], .set_layout = w[3], .elements = 1 };
	const uint64_t *push = w + DISPATCH_WORDS + (size_t)RANGE_WORDS * op_bindings(w);
	uint32_t push_bytes = push_size(w);
	bind_program(d, commands, &p, now);
	if (bind_same(d, commands, pool, &p, w, now, fault))
		return 1;
	if (push_bytes > 0 && (now->push == NULL || now->push_bytes != push_bytes ||
			      memcmp(now->push, push, push_bytes) != 0)) {
		d->CmdPushConstants(commands, w[2], VKO_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes, push);
		now->push = push;
		now->push_bytes = push_bytes;
	}
	if (w[5] == 0 && low(w[6]) == 0)
		d->CmdDispatch(commands, high(w[6]), low(w[7]), high(w[7]));
	else
		d->CmdDispatchBase(commands, low(w[5]), high(w[5]), low(w[6]), high(w[6]), low(w[7]),
			high(w[7]));
	return 0;
}

// Records successive dispatches as one.
static int32_t record_run(const vko_device *d, void *commands, vkoHandle pool, const uint64_t *w, run these,
	bound *now, vko_fault *fault)
{
	const vko_variant *v = these.variant;
	const program p = {
		.pipeline = v->pipeline,
		.layout = v->layout,
		.set_layout = v->set_layout,
		.elements = v->elements,
	};
	const vko_merging *m = vko_merging_at(d, merging_number(w));
	const uint32_t bindings = op_bindings(w);
	uint32_t push[VKO_MERGED_PUSH_BYTES / 4] = { 0 };
	bind_program(d, commands, &p, now);
	now->push = NULL;
	int32_t failed = 0;
	if (v == &m->shared) {
		failed = bind_same(d, commands, pool, &p, w, now, fault);
	} else {
		now->ranges = NULL;
		if (v == &m->spaced)
			failed = bind_spaced(d, commands, pool, &p, m, w, these.dispatches, push, fault);
		else if (bindings > 0)
			failed = bind_buffers(d, commands, pool, &p, w, these.dispatches, fault);
	}
	if (failed)
		return 1;
	const uint64_t *from = w + DISPATCH_WORDS + (size_t)RANGE_WORDS * bindings;
	for (uint32_t k = 0; k < these.dispatches && push_size(w) > 0; k++, from += op_words(w))
		memcpy((unsigned char *)push + v->base + (size_t)k * v->stride, from, push_size(w));
	// All of them, because the shader could use all.
	const uint32_t pushed = v->base + v->launches * v->stride;
	if (pushed > 0)
		d->CmdPushConstants(commands, p.layout, VKO_SHADER_STAGE_COMPUTE_BIT, 0, pushed, push);
	d->CmdDispatch(commands, high(w[6]), low(w[7]), these.dispatches);
	return 0;
}

static int32_t record_op(const vko_device *d, void *commands, vkoHandle pool, const uint64_t *w,
	bound *now, vko_fault *fault)
{
	switch (op_code(w)) {
	case OP_BARRIER: {
		if (d->CmdPipelineBarrier2 != NULL) {
			const vkoMemoryBarrier2 memory = {
				.sType = VKO_STRUCTURE_TYPE_MEMORY_BARRIER_2,
				.srcStageMask = low(w[1]),
				.srcAccessMask = low(w[2]),
				.dstStageMask = high(w[1]),
				.dstAccessMask = high(w[2]),
			};
			const vkoDependencyInfo dependency = {
				.sType = VKO_STRUCTURE_TYPE_DEPENDENCY_INFO,
				.memoryBarrierCount = 1,
				.pMemoryBarriers = &memory,
			};
			d->CmdPipelineBarrier2(commands, &dependency);
			return 0;
		}
		const vkoMemoryBarrier barrier = {
			.sType = VKO_STRUCTURE_TYPE_MEMORY_BARRIER,
			.srcAccessMask = low(w[2]),
			.dstAccessMask = high(w[2]),
		};
		d->CmdPipelineBarrier(commands, low(w[1]), high(w[1]), 0, 1, &barrier, 0, NULL, 0, NULL);
		return 0;
	}
	case OP_DISPATCH:
		return record_dispatch(d, commands, pool, w, now, fault);
	case OP_COPY:
		d->CmdCopyBuffer(commands, w[1], w[2], copy_region_count(w), copy_regions(w));
		return 0;
	case OP_FILL:
		d->CmdFillBuffer(commands, w[1], w[2], w[3], low(w[4]));
		return 0;
	case OP_TIMESTAMP:
		d->CmdWriteTimestamp(commands, low(w[3]), w[1], low(w[2]));
		return 0;
	}
	return vko_refuse(fault, "unknown operation %u", op_code(w));
}

uint64_t vko_before_execution(const uint64_t *words, uint64_t count, uint64_t *recording)
{
	uint64_t at = 0;
	*recording = 0;
	for (; at < count; at += op_words(words + at))
		if (op_code(words + at) == OP_EXECUTE) {
			*recording = words[at + 1];
			break;
		}
	return at;
}

int32_t vko_record(const vko_device *d, void *commands, vkoHandle pool, uint32_t usage,
	const uint64_t *words, uint64_t count, vko_fault *fault)
{
	const vkoCommandBufferBeginInfo begin = {
		.sType = VKO_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
		.flags = usage,
	};
	int32_t r = d->BeginCommandBuffer(commands, &begin);
	if (r < 0)
		return vko_fail(fault, "vkBeginCommandBuffer", r, "%s", "");
	bound now = { 0 };
	for (const uint64_t *w = words, *end = words + count; w < end;) {
		run these = { 1, NULL };
		if (op_code(w) == OP_DISPATCH)
			these = run_at(d, w, end);
		if (these.variant != NULL ? record_run(d, commands, pool, w, these, &now, fault)
					  : record_op(d, commands, pool, w, &now, fault)) {
			// Leaves the recording state, in which vkBeginCommandBuffer is not allowed.
			d->ResetCommandBuffer(commands, 0);
			return 1;
		}
		w += (size_t)these.dispatches * op_words(w);
	}
	r = d->EndCommandBuffer(commands);
	if (r < 0) {
		d->ResetCommandBuffer(commands, 0);
		return vko_fail(fault, "vkEndCommandBuffer", r, "%s", "");
	}
	return 0;
}
