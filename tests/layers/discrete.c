// VK_LAYER_VKOMP_discrete: shows a driver whose memory is the host's own as a device with
// memory of its own. Heaps, memory types and the kind of device are those of a profile:
//
//	VKOMP_DISCRETE_PROFILE  bar         a graphics card all of whose memory the host can map
//	                                    (resizable BAR), with the types of an NVIDIA H100;
//	                                    the default
//	                        smallbar    the same, of whose memory the host can map 256 MiB
//	                        nobar       the same, of whose memory the host can map none
//	                        nocached    smallbar without memory that the host caches
//	                        integrated  one heap, which the host can map cached or not
//	                        incoherent  the same, whose cached memory is not coherent
//	VKOMP_DISCRETE_MIB      the size of the device's own heap in MiB (8192), 0 among them
//	VKOMP_DISCRETE_BAR_KIB  the size of the mappable heap of smallbar in KiB (262144)
//
// A buffer has no more than 1 GiB, the least that maxBufferSize may be.
//
// They are read when an instance is created. Queues and families are the driver's; for others
// the many-queue layer stands below this one.
//
// The host reads memory that it does not cache hundreds of times slower than other memory. Here
// it reads poison instead, so that a program which relies on such a read computes a wrong
// result:
//
//	program's pointer -> [shadow] -- vkFlushMappedMemoryRanges --> [driver's memory] <- device
//	                       poison, but for bytes written and not flushed yet
//
// The layer cannot see which bytes a program writes. Types without VK_MEMORY_PROPERTY_HOST_CACHED
// are therefore shown without VK_MEMORY_PROPERTY_HOST_COHERENT, which hardware has there: the
// program says by vkFlushMappedMemoryRanges what it has written. nonCoherentAtomSize is 1, so that
// a flush touches nothing beside. Types that are cached are passed through, coherent; so is the
// memory of nocached through which results have to come back for want of a better one, and what
// incoherent does not cache.
//
// The cached memory of incoherent is a shadow too, with units of 64 bytes. It is the host's cache, which
// holds poison at first and then what the host has written or invalidated:
//
//	program's pointer -> [shadow] -- vkFlushMappedMemoryRanges -------> [driver's memory] <- device
//	                              <- vkInvalidateMappedMemoryRanges --
#define _GNU_SOURCE
#include "layer.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
	VISIBLE = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
	COHERENT = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
	CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
};

// maxBufferSize.
static const VkDeviceSize MAX_BUFFER = 1u << 30;

typedef struct profile {
	const char *name;
	VkPhysicalDeviceType kind;
	uint32_t heap_count, type_count, atom; // atom: nonCoherentAtomSize
	VkMemoryHeapFlags heaps[3];
	VkMemoryType types[5]; // flags and heap
} profile;

// Heap 0 is the device's own, heap 1 the host's and heap 2 the window of smallbar.
static const profile profiles[] = {
	{ "bar", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 2, 5, 1, { VK_MEMORY_HEAP_DEVICE_LOCAL_BIT },
		{ { 0, 1 }, { LOCAL, 0 }, { VISIBLE, 1 }, { VISIBLE | COHERENT | CACHED, 1 },
			{ LOCAL | VISIBLE, 0 } } },
	{ "smallbar", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 3, 5, 1,
		{ VK_MEMORY_HEAP_DEVICE_LOCAL_BIT, 0, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT },
		{ { 0, 1 }, { LOCAL, 0 }, { VISIBLE, 1 }, { VISIBLE | COHERENT | CACHED, 1 },
			{ LOCAL | VISIBLE, 2 } } },
	{ "nobar", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 2, 4, 1, { VK_MEMORY_HEAP_DEVICE_LOCAL_BIT },
		{ { 0, 1 }, { LOCAL, 0 }, { VISIBLE, 1 }, { VISIBLE | COHERENT | CACHED, 1 } } },
	{ "nocached", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 3, 4, 1,
		{ VK_MEMORY_HEAP_DEVICE_LOCAL_BIT, 0, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT },
		{ { 0, 1 }, { LOCAL, 0 }, { VISIBLE | COHERENT, 1 }, { LOCAL | VISIBLE, 2 } } },
	{ "integrated", VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, 1, 3, 1,
		{ VK_MEMORY_HEAP_DEVICE_LOCAL_BIT },
		{ { LOCAL, 0 }, { LOCAL | VISIBLE, 0 }, { LOCAL | VISIBLE | COHERENT | CACHED, 0 } } },
	{ "incoherent", VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, 1, 3, 64,
		{ VK_MEMORY_HEAP_DEVICE_LOCAL_BIT },
		{ { LOCAL, 0 }, { LOCAL | VISIBLE | COHERENT, 0 }, { LOCAL | VISIBLE | CACHED, 0 } } },
};

// What an instance shows.
typedef struct shown {
	const profile *profile;
	VkDeviceSize heap_bytes[3];
} shown;

// A VkDeviceMemory.
typedef struct memory {
	VkDeviceSize bytes;
	uint32_t type;
	// Both are NULL while a type that is shadowed is not mapped.
	unsigned char *shadow, *driver;
} memory;

typedef struct device {
	const shown *shown;
	uint32_t driver_type; // the driver's type in which all memory is
	_Atomic(VkDeviceSize) used[3]; // bytes, by heap
	layer_map memories;  // VkDeviceMemory -> memory
	layer_map exporting; // VkBuffer and VkImage whose memory can be exported; the value is any
} device;

static const shown *shown_by(const void *physical) { return layer_instance_of(physical)->own; }
static device *device_of(const void *dispatchable) { return layer_device_of(dispatchable)->own; }

static bool cached(const shown *s, uint32_t type)
{
	return (s->profile->types[type].propertyFlags & CACHED) != 0;
}

static bool shadowed(const shown *s, uint32_t type)
{
	return (s->profile->types[type].propertyFlags & (VISIBLE | COHERENT)) == VISIBLE;
}

// The types of the profile as bits, without those that the host maps of the device's memory if
// the memory is to be exported or imported: drivers have no handles for these.
static uint32_t type_bits(const shown *s, bool external)
{
	uint32_t bits = 0;
	for (uint32_t t = 0; t < s->profile->type_count; t++)
		if (!external || (s->profile->types[t].propertyFlags & (LOCAL | VISIBLE)) != (LOCAL | VISIBLE) ||
			s->profile->kind == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU)
			bits |= 1u << t;
	return bits;
}

// The driver's first type that is all of local, visible, coherent and cached.
static uint32_t driver_type(layer_instance *i, VkPhysicalDevice physical)
{
	VkPhysicalDeviceMemoryProperties p;
	i->next.GetPhysicalDeviceMemoryProperties(physical, &p);
	const VkMemoryPropertyFlags all = LOCAL | VISIBLE | COHERENT | CACHED;
	for (uint32_t t = 0; t < p.memoryTypeCount; t++)
		if ((p.memoryTypes[t].propertyFlags & all) == all)
			return t;
	layer_die("the driver has no memory that is the host's own");
}

static void instance_created(layer_instance *i, const VkInstanceCreateInfo *info)
{
	(void)info;
	const char *name = getenv("VKOMP_DISCRETE_PROFILE");
	if (name == NULL || *name == '\0')
		name = "bar";
	shown *s = layer_allocate(sizeof *s);
	for (size_t k = 0; k < sizeof profiles / sizeof profiles[0]; k++)
		if (strcmp(name, profiles[k].name) == 0)
			s->profile = &profiles[k];
	if (s->profile == NULL)
		layer_die("VKOMP_DISCRETE_PROFILE=%s: not bar, smallbar, nobar, nocached, integrated or incoherent",
			name);
	s->heap_bytes[0] = layer_environment("VKOMP_DISCRETE_MIB", 8192) << 20;
	s->heap_bytes[1] = (VkDeviceSize)16 << 30;
	s->heap_bytes[2] = layer_environment("VKOMP_DISCRETE_BAR_KIB", 256 << 10) << 10;
	i->own = s;
}

static void instance_destroying(layer_instance *i) { free(i->own); }

static VkResult device_created(layer_device *d, const VkDeviceCreateInfo *info)
{
	(void)info;
	device *own = layer_allocate(sizeof *own);
	own->shown = d->instance->own;
	own->driver_type = driver_type(d->instance, d->physical);
	d->own = own;
	return VK_SUCCESS;
}

static bool free_memory_record(uint64_t key, void *value, void *context)
{
	(void)key;
	(void)context;
	free(((memory *)value)->shadow);
	free(value);
	return false;
}

static void device_destroying(layer_device *d)
{
	device *own = d->own;
	layer_map_each(&own->memories, free_memory_record, NULL);
	layer_map_free(&own->memories);
	layer_map_free(&own->exporting);
	free(own);
}

// What the physical device is.

static void show_properties(const shown *s, VkPhysicalDeviceProperties *p)
{
	p->deviceType = s->profile->kind;
	p->limits.nonCoherentAtomSize = s->profile->atom;
}

static VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties *out)
{
	layer_instance_of(physical)->next.GetPhysicalDeviceProperties(physical, out);
	show_properties(shown_by(physical), out);
}

static VKAPI_ATTR void VKAPI_CALL properties2(VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *out)
{
	layer_instance_of(physical)->next.GetPhysicalDeviceProperties2(physical, out);
	show_properties(shown_by(physical), &out->properties);
	VkPhysicalDeviceMaintenance4Properties *m = (void *)layer_chained(out->pNext,
		VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES);
	if (m != NULL)
		m->maxBufferSize = MAX_BUFFER;
	VkPhysicalDeviceVulkan13Properties *v = (void *)layer_chained(out->pNext,
		VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES);
	if (v != NULL)
		v->maxBufferSize = MAX_BUFFER;
}

static void show_memory(const shown *s, VkPhysicalDeviceMemoryProperties *out)
{
	const profile *p = s->profile;
	memset(out, 0, sizeof *out);
	out->memoryHeapCount = p->heap_count;
	for (uint32_t h = 0; h < p->heap_count; h++)
		out->memoryHeaps[h] = (VkMemoryHeap){ s->heap_bytes[h], p->heaps[h] };
	out->memoryTypeCount = p->type_count;
	memcpy(out->memoryTypes, p->types, p->type_count * sizeof p->types[0]);
}

static VKAPI_ATTR void VKAPI_CALL memory_properties(VkPhysicalDevice physical,
	VkPhysicalDeviceMemoryProperties *out)
{
	show_memory(shown_by(physical), out);
}

static VKAPI_ATTR void VKAPI_CALL memory_properties2(VkPhysicalDevice physical,
	VkPhysicalDeviceMemoryProperties2 *out)
{
	layer_instance_of(physical)->next.GetPhysicalDeviceMemoryProperties2(physical, out);
	const shown *s = shown_by(physical);
	show_memory(s, &out->memoryProperties);
	VkPhysicalDeviceMemoryBudgetPropertiesEXT *b = (void *)layer_chained(out->pNext,
		VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
	if (b == NULL)
		return;
	// The driver's figures are those of the whole machine. vkAllocateMemory keeps to the sizes.
	for (uint32_t h = 0; h < VK_MAX_MEMORY_HEAPS; h++) {
		b->heapBudget[h] = h < s->profile->heap_count ? s->heap_bytes[h] : 0;
		b->heapUsage[h] = 0;
	}
}

// What buffers and images need.

static bool exports(const void *chain)
{
	const VkExternalMemoryBufferCreateInfo *b =
		layer_chained(chain, VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO);
	const VkExternalMemoryImageCreateInfo *i =
		layer_chained(chain, VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMAGE_CREATE_INFO);
	const VkExternalMemoryHandleTypeFlags host =
		VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT |
		VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_MAPPED_FOREIGN_MEMORY_BIT_EXT;
	return (b != NULL && (b->handleTypes & ~host) != 0) || (i != NULL && (i->handleTypes & ~host) != 0);
}

static void show_needs(const device *d, VkMemoryRequirements *r, bool external)
{
	if ((r->memoryTypeBits >> d->driver_type & 1) == 0)
		layer_die("a resource that cannot live in the driver's memory type %u", d->driver_type);
	r->memoryTypeBits = type_bits(d->shown, external);
}

static bool is_exporting(device *d, uint64_t key) { return layer_map_get(&d->exporting, key) != NULL; }

#define RESOURCE(Name, name)                                                                   \
	static VKAPI_ATTR VkResult VKAPI_CALL create_##name(VkDevice handle,                   \
		const Vk##Name##CreateInfo *info, const VkAllocationCallbacks *allocator,      \
		Vk##Name *out)                                                                 \
	{                                                                                      \
		VkResult r = layer_device_of(handle)->next.Create##Name(handle, info, allocator, out); \
		if (r == VK_SUCCESS && exports(info->pNext))                                   \
			layer_map_put(&device_of(handle)->exporting, LAYER_KEY(*out), (void *)1); \
		return r;                                                                      \
	}                                                                                      \
	static VKAPI_ATTR void VKAPI_CALL destroy_##name(VkDevice handle, Vk##Name name,       \
		const VkAllocationCallbacks *allocator)                                        \
	{                                                                                      \
		layer_map_take(&device_of(handle)->exporting, LAYER_KEY(name));                \
		layer_device_of(handle)->next.Destroy##Name(handle, name, allocator);          \
	}                                                                                      \
	static VKAPI_ATTR void VKAPI_CALL name##_needs(VkDevice handle, Vk##Name name,         \
		VkMemoryRequirements *out)                                                     \
	{                                                                                      \
		layer_device_of(handle)->next.Get##Name##MemoryRequirements(handle, name, out); \
		device *d = device_of(handle);                                                 \
		show_needs(d, out, is_exporting(d, LAYER_KEY(name)));                          \
	}                                                                                      \
	static VKAPI_ATTR void VKAPI_CALL name##_needs2(VkDevice handle,                       \
		const Vk##Name##MemoryRequirementsInfo2 *info, VkMemoryRequirements2 *out)     \
	{                                                                                      \
		layer_device_of(handle)->next.Get##Name##MemoryRequirements2(handle, info, out); \
		device *d = device_of(handle);                                                 \
		show_needs(d, &out->memoryRequirements, is_exporting(d, LAYER_KEY(info->name))); \
	}                                                                                      \
	static VKAPI_ATTR void VKAPI_CALL name##_would_need(VkDevice handle,                   \
		const VkDevice##Name##MemoryRequirements *info, VkMemoryRequirements2 *out)    \
	{                                                                                      \
		layer_device_of(handle)->next.GetDevice##Name##MemoryRequirements(handle, info, out); \
		show_needs(device_of(handle), &out->memoryRequirements, exports(info->pCreateInfo->pNext)); \
	}
RESOURCE(Buffer, buffer)
RESOURCE(Image, image)

static VKAPI_ATTR VkResult VKAPI_CALL create_bounded_buffer(VkDevice handle, const VkBufferCreateInfo *info,
	const VkAllocationCallbacks *allocator, VkBuffer *out)
{
	if (info->size > MAX_BUFFER)
		layer_die("vkCreateBuffer: %llu bytes, where maxBufferSize is %llu", (unsigned long long)info->size,
			(unsigned long long)MAX_BUFFER);
	return create_buffer(handle, info, allocator, out);
}

// Host storage is imported as coherent memory that the host caches, if there is some.
static VKAPI_ATTR VkResult VKAPI_CALL host_pointer_properties(VkDevice handle,
	VkExternalMemoryHandleTypeFlagBits type, const void *host, VkMemoryHostPointerPropertiesEXT *out)
{
	VkResult r = layer_device_of(handle)->next.GetMemoryHostPointerPropertiesEXT(handle, type, host, out);
	if (r != VK_SUCCESS)
		return r;
	const shown *s = device_of(handle)->shown;
	out->memoryTypeBits = 0;
	for (uint32_t t = 0; t < s->profile->type_count; t++)
		if (cached(s, t) && !shadowed(s, t))
			out->memoryTypeBits |= 1u << t;
	return out->memoryTypeBits != 0 ? VK_SUCCESS : VK_ERROR_INVALID_EXTERNAL_HANDLE;
}

static VKAPI_ATTR VkResult VKAPI_CALL fd_properties(VkDevice handle,
	VkExternalMemoryHandleTypeFlagBits type, int fd, VkMemoryFdPropertiesKHR *out)
{
	VkResult r = layer_device_of(handle)->next.GetMemoryFdPropertiesKHR(handle, type, fd, out);
	if (r == VK_SUCCESS)
		out->memoryTypeBits = type_bits(device_of(handle)->shown, true);
	return r;
}

// Memory, and what the host maps of it.

static VKAPI_ATTR VkResult VKAPI_CALL allocate_memory(VkDevice handle, const VkMemoryAllocateInfo *info,
	const VkAllocationCallbacks *allocator, VkDeviceMemory *out)
{
	device *d = device_of(handle);
	const shown *s = d->shown;
	uint32_t type = info->memoryTypeIndex;
	if (type >= s->profile->type_count)
		layer_die("vkAllocateMemory: memory type %u of %u", type, s->profile->type_count);
	const VkExportMemoryAllocateInfo *export =
		layer_chained(info->pNext, VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO);
	bool file = layer_chained(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR) != NULL;
	if ((file || (export != NULL && export->handleTypes != 0)) && (type_bits(s, true) >> type & 1) == 0)
		layer_die("vkAllocateMemory: memory type %u has no handles", type);
	uint32_t heap = s->profile->types[type].heapIndex;
	// Host storage that is imported takes nothing of a heap.
	bool imported = layer_chained(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT) != NULL;
	VkDeviceSize taken = imported ? 0 : info->allocationSize;
	if (atomic_fetch_add(&d->used[heap], taken) + taken > s->heap_bytes[heap]) {
		atomic_fetch_sub(&d->used[heap], taken);
		*out = VK_NULL_HANDLE;
		return VK_ERROR_OUT_OF_DEVICE_MEMORY;
	}
	VkMemoryAllocateInfo real = *info;
	real.memoryTypeIndex = d->driver_type;
	VkResult r = layer_device_of(handle)->next.AllocateMemory(handle, &real, allocator, out);
	if (r != VK_SUCCESS) {
		atomic_fetch_sub(&d->used[heap], taken);
		return r;
	}
	memory *m = layer_allocate(sizeof *m);
	m->bytes = taken;
	m->type = type;
	layer_map_put(&d->memories, LAYER_KEY(*out), m);
	return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL free_memory(VkDevice handle, VkDeviceMemory which,
	const VkAllocationCallbacks *allocator)
{
	device *d = device_of(handle);
	memory *m = which == VK_NULL_HANDLE ? NULL : layer_map_take(&d->memories, LAYER_KEY(which));
	if (m != NULL) {
		atomic_fetch_sub(&d->used[d->shown->profile->types[m->type].heapIndex], m->bytes);
		free(m->shadow);
		free(m);
	}
	layer_device_of(handle)->next.FreeMemory(handle, which, allocator);
}

// No test uses this pattern as a value.
static void poison(memory *m, VkDeviceSize from, VkDeviceSize bytes)
{
	static const unsigned char pattern[8] = { 0x9b, 0xe7, 0xc5, 0xfa, 0xb3, 0xd9, 0xed, 0xfd };
	for (VkDeviceSize k = from; k < from + bytes; k++)
		m->shadow[k] = pattern[k % sizeof pattern];
}

static VKAPI_ATTR VkResult VKAPI_CALL map_memory(VkDevice handle, VkDeviceMemory which,
	VkDeviceSize offset, VkDeviceSize bytes, VkMemoryMapFlags flags, void **out)
{
	device *d = device_of(handle);
	layer_device *next = layer_device_of(handle);
	memory *m = layer_map_get(&d->memories, LAYER_KEY(which));
	if (m == NULL || (d->shown->profile->types[m->type].propertyFlags & VISIBLE) == 0)
		layer_die("vkMapMemory: memory that the host cannot map");
	if (!shadowed(d->shown, m->type))
		return next->next.MapMemory(handle, which, offset, bytes, flags, out);
	void *driver;
	VkResult r = next->next.MapMemory(handle, which, 0, VK_WHOLE_SIZE, flags, &driver);
	if (r != VK_SUCCESS)
		return r;
	// minMemoryMapAlignment is at most a page.
	m->shadow = aligned_alloc(4096, (size_t)(m->bytes + 4095) & ~(size_t)4095);
	if (m->shadow == NULL) {
		next->next.UnmapMemory(handle, which);
		return VK_ERROR_OUT_OF_HOST_MEMORY;
	}
	m->driver = driver;
	poison(m, 0, m->bytes);
	*out = m->shadow + offset;
	return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL unmap_memory(VkDevice handle, VkDeviceMemory which)
{
	memory *m = layer_map_get(&device_of(handle)->memories, LAYER_KEY(which));
	if (m != NULL) {
		free(m->shadow);
		m->shadow = m->driver = NULL;
	}
	layer_device_of(handle)->next.UnmapMemory(handle, which);
}

// The memory of a range of the program's if it is shadowed, or NULL; bytes is the range's size.
static memory *shadow_of(device *d, const VkMappedMemoryRange *r, VkDeviceSize *bytes)
{
	memory *m = layer_map_get(&d->memories, LAYER_KEY(r->memory));
	if (m == NULL || m->shadow == NULL)
		return NULL;
	*bytes = r->size == VK_WHOLE_SIZE ? m->bytes - r->offset : r->size;
	if (r->offset > m->bytes || *bytes > m->bytes - r->offset)
		layer_die("a range of %llu bytes at %llu of memory of %llu", (unsigned long long)*bytes,
			(unsigned long long)r->offset, (unsigned long long)m->bytes);
	VkDeviceSize atom = d->shown->profile->atom;
	if (r->offset % atom != 0 || (*bytes % atom != 0 && *bytes != m->bytes - r->offset))
		layer_die("a range of %llu bytes at %llu, in units of %llu", (unsigned long long)*bytes,
			(unsigned long long)r->offset, (unsigned long long)atom);
	return m;
}

static VKAPI_ATTR VkResult VKAPI_CALL invalidate(VkDevice handle, uint32_t count,
	const VkMappedMemoryRange *ranges)
{
	device *d = device_of(handle);
	for (uint32_t k = 0; k < count; k++) {
		VkDeviceSize bytes;
		memory *m = shadow_of(d, &ranges[k], &bytes);
		if (m != NULL && cached(d->shown, m->type))
			memcpy(m->shadow + ranges[k].offset, m->driver + ranges[k].offset, bytes);
		else if (m != NULL)
			poison(m, ranges[k].offset, bytes);
	}
	return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL flush(VkDevice handle, uint32_t count, const VkMappedMemoryRange *ranges)
{
	device *d = device_of(handle);
	for (uint32_t k = 0; k < count; k++) {
		VkDeviceSize bytes;
		memory *m = shadow_of(d, &ranges[k], &bytes);
		if (m != NULL)
			memcpy(m->driver + ranges[k].offset, m->shadow + ranges[k].offset, bytes);
	}
	// The ranges of a call may overlap.
	invalidate(handle, count, ranges);
	return VK_SUCCESS; // the driver's memory is coherent
}

static const layer_intercept intercepts[] = {
	LAYER_INTERCEPT(vkGetPhysicalDeviceProperties, properties),
	LAYER_INTERCEPT(vkGetPhysicalDeviceProperties2, properties2),
	LAYER_INTERCEPT(vkGetPhysicalDeviceProperties2KHR, properties2),
	LAYER_INTERCEPT(vkGetPhysicalDeviceMemoryProperties, memory_properties),
	LAYER_INTERCEPT(vkGetPhysicalDeviceMemoryProperties2, memory_properties2),
	LAYER_INTERCEPT(vkGetPhysicalDeviceMemoryProperties2KHR, memory_properties2),
	LAYER_INTERCEPT(vkCreateBuffer, create_bounded_buffer),
	LAYER_INTERCEPT(vkDestroyBuffer, destroy_buffer),
	LAYER_INTERCEPT(vkGetBufferMemoryRequirements, buffer_needs),
	LAYER_INTERCEPT(vkGetBufferMemoryRequirements2, buffer_needs2),
	LAYER_INTERCEPT(vkGetBufferMemoryRequirements2KHR, buffer_needs2),
	LAYER_INTERCEPT(vkGetDeviceBufferMemoryRequirements, buffer_would_need),
	LAYER_INTERCEPT(vkGetDeviceBufferMemoryRequirementsKHR, buffer_would_need),
	LAYER_INTERCEPT(vkCreateImage, create_image),
	LAYER_INTERCEPT(vkDestroyImage, destroy_image),
	LAYER_INTERCEPT(vkGetImageMemoryRequirements, image_needs),
	LAYER_INTERCEPT(vkGetImageMemoryRequirements2, image_needs2),
	LAYER_INTERCEPT(vkGetImageMemoryRequirements2KHR, image_needs2),
	LAYER_INTERCEPT(vkGetDeviceImageMemoryRequirements, image_would_need),
	LAYER_INTERCEPT(vkGetDeviceImageMemoryRequirementsKHR, image_would_need),
	LAYER_INTERCEPT(vkGetMemoryHostPointerPropertiesEXT, host_pointer_properties),
	LAYER_INTERCEPT(vkGetMemoryFdPropertiesKHR, fd_properties),
	LAYER_INTERCEPT(vkAllocateMemory, allocate_memory),
	LAYER_INTERCEPT(vkFreeMemory, free_memory),
	LAYER_INTERCEPT(vkMapMemory, map_memory),
	LAYER_INTERCEPT(vkUnmapMemory, unmap_memory),
	LAYER_INTERCEPT(vkFlushMappedMemoryRanges, flush),
	LAYER_INTERCEPT(vkInvalidateMappedMemoryRanges, invalidate),
};

const layer_hooks layer_this = {
	.name = "VK_LAYER_VKOMP_discrete",
	LAYER_INTERCEPTS(intercepts),
	.instance_created = instance_created,
	.device_created = device_created,
	.device_destroying = device_destroying,
	.instance_destroying = instance_destroying,
};
