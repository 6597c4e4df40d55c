// A Vulkan layer that writes down what reaches the driver: objects, the contents of
// command buffers with descriptors resolved to ranges of buffers, submissions with
// their waits and signals, and what the host saw, waited for, flushed and
// invalidated. tests/order reads the log, and its doc.go has the format.
//
// VKOMP_RECORD is the path of the log. If it contains %d, each device writes a log of its own,
// whose name has the device's number. Without VKOMP_RECORD nothing is written.
//
// The order of lines is a possible one: a submission, a host's signal, a flush, a destruction and
// the loss of what was recorded are written before the call, everything else after it. Commands of
// graphics and of extensions are written as unknown: see other.h.
#define _GNU_SOURCE
#include "layer.h"

#include "other.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A growing buffer of bytes.
typedef struct text {
	char *bytes;
	size_t used, room;
} text;

static char *reserve(text *t, size_t n)
{
	if (t->room - t->used < n) {
		size_t room = 2 * t->room + n + 256;
		char *bytes = realloc(t->bytes, room);
		if (bytes == NULL)
			layer_die("out of memory");
		t->bytes = bytes;
		t->room = room;
	}
	return t->bytes + t->used;
}

static void put_bytes(text *t, const char *bytes, size_t n)
{
	memcpy(reserve(t, n), bytes, n);
	t->used += n;
}

static void put(text *t, const char *s) { put_bytes(t, s, strlen(s)); }

static void put_digits(text *t, uint64_t n, unsigned base)
{
	char digits[24];
	size_t at = sizeof digits;
	do
		digits[--at] = "0123456789abcdef"[n % base];
	while ((n /= base) != 0);
	put_bytes(t, digits + at, sizeof digits - at);
}

static void put_number(text *t, char before, uint64_t n)
{
	*reserve(t, 1) = before;
	t->used++;
	put_digits(t, n, 10);
}

static void put_mask(text *t, char before, uint64_t n)
{
	*reserve(t, 1) = before;
	t->used++;
	put_digits(t, n, 16);
}

enum { QUEUE, BUFFER, MEMORY, MODULE, PIPELINE, SEMAPHORE, FENCE, COMMANDS, KINDS };
static const char *const kind_names[KINDS] = {
	"queue", "buffer", "memory", "module", "pipeline", "semaphore", "fence", "commands",
};

typedef struct journal {
	struct journal *next;
	pthread_mutex_t lock;
	int file;
	text unwritten;
	uint32_t thread; // of the last line
	uint32_t last[KINDS]; // numbers given
} journal;

static struct {
	pthread_mutex_t lock;
	journal *journals;
	journal *shared; // the one of all devices, where each has not its own
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

typedef struct recorded {
	journal *log;
	pthread_mutex_t lock;
	VkQueue *queues;
	uint32_t queue_count;
	_Atomic(PFN_vkVoidFunction) others[OTHER_COMMAND_COUNT];
} recorded;

// An object, which the log identifies by a number.
typedef struct object {
	uint32_t number;
	uint64_t seen; // of a semaphore: the largest value in the log; guarded by the log's lock
} object;

typedef struct descriptor {
	uint32_t binding, element;
	bool dynamic;
	uint32_t buffer; // 0: none
	uint64_t offset, range;
} descriptor;

typedef struct descriptor_set {
	struct descriptor_set *next; // of the pool
	VkDescriptorSet handle;
	descriptor *descriptors; // by binding and element
	uint32_t count, room;
	bool unknown;
} descriptor_set;

typedef struct descriptor_pool {
	descriptor_set *sets;
} descriptor_pool;

typedef struct command_buffer {
	layer_device *d;
	VkCommandPool pool;
	uint32_t number;
	bool recorded; // it has contents in the log
	text content;
	struct command_buffer *next; // of those that go, or are reset, with their pool
} command_buffer;

// By handle. Their contents are freed with the object, or not at all.
static layer_map objects[KINDS], sets, pools, buffers_of_commands;

static void write_out(journal *j)
{
	for (size_t at = 0; at < j->unwritten.used;) {
		ssize_t n = write(j->file, j->unwritten.bytes + at, j->unwritten.used - at);
		if (n < 0)
			layer_die("the log cannot be written");
		at += (size_t)n;
	}
	j->unwritten.used = 0;
}

__attribute__((destructor)) static void write_all(void)
{
	for (journal *j = all.journals; j != NULL; j = j->next) {
		pthread_mutex_lock(&j->lock);
		write_out(j);
		pthread_mutex_unlock(&j->lock);
	}
}

// The loader unloads a layer with the last instance, but a log continues with the next one.
static void stay_loaded(void)
{
	Dl_info self;
	if (dladdr((void *)&all, &self) != 0)
		dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

static journal *open_journal(const char *path)
{
	stay_loaded();
	journal *j = layer_allocate(sizeof *j);
	pthread_mutex_init(&j->lock, NULL);
	j->file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (j->file < 0)
		layer_die("VKOMP_RECORD: %s cannot be opened", path);
	put(&j->unwritten, "vkomp-order 1\n");
	j->next = all.journals;
	all.journals = j;
	return j;
}

static journal *journal_of(uint32_t number)
{
	const char *pattern = getenv("VKOMP_RECORD");
	if (pattern == NULL || *pattern == '\0')
		return NULL;
	pthread_mutex_lock(&all.lock);
	const char *place = strstr(pattern, "%d");
	journal *j = all.shared;
	if (place != NULL) {
		text path = { 0 };
		put_bytes(&path, pattern, (size_t)(place - pattern));
		put_digits(&path, number, 10);
		put_bytes(&path, place + 2, strlen(place + 2) + 1);
		j = open_journal(path.bytes);
		free(path.bytes);
	} else if (j == NULL) {
		j = all.shared = open_journal(pattern);
	}
	pthread_mutex_unlock(&all.lock);
	return j;
}

static journal *log_of(layer_device *d) { return ((recorded *)d->own)->log; }

// Names the thread of the following lines, if it has changed.
static void speak(journal *j)
{
	static atomic_uint threads;
	static _Thread_local uint32_t thread;
	if (thread == 0)
		thread = ++threads;
	if (j->thread != thread) {
		j->thread = thread;
		put(&j->unwritten, "thread");
		put_number(&j->unwritten, ' ', thread);
		put(&j->unwritten, "\n");
	}
}

// Locks the log for lines of the calling thread. Returns NULL if there is no log.
static journal *begin(layer_device *d)
{
	journal *j = log_of(d);
	if (j == NULL)
		return NULL;
	pthread_mutex_lock(&j->lock);
	speak(j);
	return j;
}

static void end(journal *j)
{
	enum { MUCH = 1 << 16 };
	put(&j->unwritten, "\n");
	if (j->unwritten.used > MUCH)
		write_out(j);
	pthread_mutex_unlock(&j->lock);
}

static object *object_of(int kind, uint64_t handle)
{
	return handle == 0 ? NULL : layer_map_get(&objects[kind], handle);
}

static uint32_t number_of(int kind, uint64_t handle)
{
	object *o = object_of(kind, handle);
	return o == NULL ? 0 : o->number;
}

// Begins the line of a new object; the caller completes it.
static journal *made(layer_device *d, int kind, uint64_t handle)
{
	object *o = layer_allocate(sizeof *o);
	journal *j = begin(d);
	if (j == NULL) {
		free(o);
		return NULL;
	}
	o->number = ++j->last[kind];
	free(layer_map_put(&objects[kind], handle, o));
	put(&j->unwritten, kind_names[kind]);
	put_number(&j->unwritten, ' ', o->number);
	put_number(&j->unwritten, ' ', d->number);
	return j;
}

static void destroyed(layer_device *d, int kind, uint64_t handle)
{
	object *o = handle == 0 ? NULL : layer_map_take(&objects[kind], handle);
	if (o == NULL)
		return;
	journal *j = begin(d);
	if (j != NULL) {
		put(&j->unwritten, "destroy ");
		put(&j->unwritten, kind_names[kind]);
		put_number(&j->unwritten, ' ', o->number);
		end(j);
	}
	free(o);
}

// Writes that the call of this thread's last line failed.
static void failed(layer_device *d)
{
	journal *j = begin(d);
	if (j != NULL) {
		put(&j->unwritten, "failed");
		end(j);
	}
}

// Devices and queues

static VkResult device_created(layer_device *d, const VkDeviceCreateInfo *info)
{
	(void)info;
	recorded *r = layer_allocate(sizeof *r);
	pthread_mutex_init(&r->lock, NULL);
	r->log = journal_of(d->number);
	d->own = r;
	VkPhysicalDeviceProperties properties;
	d->instance->next.GetPhysicalDeviceProperties(d->physical, &properties);
	journal *j = begin(d);
	if (j != NULL) {
		put(&j->unwritten, "device");
		put_number(&j->unwritten, ' ', d->number);
		put(&j->unwritten, " ");
		put(&j->unwritten, properties.deviceName);
		end(j);
	}
	return VK_SUCCESS;
}

static void device_destroying(layer_device *d)
{
	recorded *r = d->own;
	journal *j = begin(d);
	if (j != NULL) {
		put(&j->unwritten, "destroy device");
		put_number(&j->unwritten, ' ', d->number);
		put(&j->unwritten, "\n");
		write_out(j);
		pthread_mutex_unlock(&j->lock);
	}
	free(r->queues);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static void got_queue(layer_device *d, VkQueue q, uint32_t family, uint32_t index)
{
	recorded *r = d->own;
	if (q == VK_NULL_HANDLE)
		return;
	uint32_t count = 0;
	d->instance->next.GetPhysicalDeviceQueueFamilyProperties(d->physical, &count, NULL);
	VkQueueFamilyProperties *families = layer_allocate(count * sizeof *families);
	d->instance->next.GetPhysicalDeviceQueueFamilyProperties(d->physical, &count, families);
	pthread_mutex_lock(&r->lock);
	// A number in the table does not say that the queue is known: a queue of a device that was
	// destroyed can have had the same handle.
	for (uint32_t k = 0; k < r->queue_count; k++)
		if (r->queues[k] == q) {
			pthread_mutex_unlock(&r->lock);
			free(families);
			return;
		}
	journal *j = made(d, QUEUE, LAYER_KEY(q));
	if (j != NULL) {
		put_number(&j->unwritten, ' ', family);
		put_number(&j->unwritten, ' ', index);
		put_mask(&j->unwritten, ' ', family < count ? families[family].queueFlags : 0);
		VkQueue *queues = realloc(r->queues, (r->queue_count + 1) * sizeof *queues);
		if (queues == NULL)
			layer_die("out of memory");
		r->queues = queues;
		r->queues[r->queue_count++] = q;
		end(j);
	}
	pthread_mutex_unlock(&r->lock);
	free(families);
}

static VKAPI_ATTR void VKAPI_CALL get_device_queue(VkDevice device, uint32_t family, uint32_t index,
	VkQueue *q)
{
	layer_device *d = layer_device_of(device);
	d->next.GetDeviceQueue(device, family, index, q);
	got_queue(d, *q, family, index);
}

static VKAPI_ATTR void VKAPI_CALL get_device_queue2(VkDevice device, const VkDeviceQueueInfo2 *info,
	VkQueue *q)
{
	layer_device *d = layer_device_of(device);
	d->next.GetDeviceQueue2(device, info, q);
	got_queue(d, *q, info->queueFamilyIndex, info->queueIndex);
}

// Memory

static VKAPI_ATTR VkResult VKAPI_CALL allocate_memory(VkDevice device,
	const VkMemoryAllocateInfo *info, const VkAllocationCallbacks *allocator, VkDeviceMemory *memory)
{
	layer_device *d = layer_device_of(device);
	VkResult r = d->next.AllocateMemory(device, info, allocator, memory);
	if (r != VK_SUCCESS)
		return r;
	VkPhysicalDeviceMemoryProperties properties;
	d->instance->next.GetPhysicalDeviceMemoryProperties(d->physical, &properties);
	const VkImportMemoryHostPointerInfoEXT *import =
		layer_chained(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
	journal *j = made(d, MEMORY, LAYER_KEY(*memory));
	if (j != NULL) {
		put_number(&j->unwritten, ' ', info->allocationSize);
		put_mask(&j->unwritten, ' ', properties.memoryTypes[info->memoryTypeIndex].propertyFlags);
		put_mask(&j->unwritten, ' ', import == NULL ? 0 : LAYER_KEY(import->pHostPointer));
		end(j);
	}
	return r;
}

static VKAPI_ATTR void VKAPI_CALL free_memory(VkDevice device, VkDeviceMemory memory,
	const VkAllocationCallbacks *allocator)
{
	layer_device *d = layer_device_of(device);
	destroyed(d, MEMORY, LAYER_KEY(memory));
	d->next.FreeMemory(device, memory, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL map_memory(VkDevice device, VkDeviceMemory memory,
	VkDeviceSize offset, VkDeviceSize size, VkMemoryMapFlags flags, void **data)
{
	layer_device *d = layer_device_of(device);
	VkResult r = d->next.MapMemory(device, memory, offset, size, flags, data);
	journal *j = r == VK_SUCCESS ? begin(d) : NULL;
	if (j != NULL) {
		put(&j->unwritten, "map");
		put_number(&j->unwritten, ' ', number_of(MEMORY, LAYER_KEY(memory)));
		put_number(&j->unwritten, ' ', offset);
		put_number(&j->unwritten, ' ', size);
		end(j);
	}
	return r;
}

static VKAPI_ATTR void VKAPI_CALL unmap_memory(VkDevice device, VkDeviceMemory memory)
{
	layer_device *d = layer_device_of(device);
	journal *j = begin(d);
	if (j != NULL) {
		put(&j->unwritten, "unmap");
		put_number(&j->unwritten, ' ', number_of(MEMORY, LAYER_KEY(memory)));
		end(j);
	}
	d->next.UnmapMemory(device, memory);
}

static void made_visible(layer_device *d, const char *what, uint32_t count,
	const VkMappedMemoryRange *ranges)
{
	for (uint32_t k = 0; k < count; k++) {
		journal *j = begin(d);
		if (j == NULL)
			return;
		put(&j->unwritten, what);
		put_number(&j->unwritten, ' ', number_of(MEMORY, LAYER_KEY(ranges[k].memory)));
		put_number(&j->unwritten, ' ', ranges[k].offset);
		put_number(&j->unwritten, ' ', ranges[k].size);
		end(j);
	}
}

static VKAPI_ATTR VkResult VKAPI_CALL flush_ranges(VkDevice device, uint32_t count,
	const VkMappedMemoryRange *ranges)
{
	layer_device *d = layer_device_of(device);
	made_visible(d, "flush", count, ranges);
	return d->next.FlushMappedMemoryRanges(device, count, ranges);
}

static VKAPI_ATTR VkResult VKAPI_CALL invalidate_ranges(VkDevice device, uint32_t count,
	const VkMappedMemoryRange *ranges)
{
	layer_device *d = layer_device_of(device);
	VkResult r = d->next.InvalidateMappedMemoryRanges(device, count, ranges);
	if (r == VK_SUCCESS)
		made_visible(d, "invalidate", count, ranges);
	return r;
}

// Buffers

static VKAPI_ATTR VkResult VKAPI_CALL create_buffer(VkDevice device, const VkBufferCreateInfo *info,
	const VkAllocationCallbacks *allocator, VkBuffer *buffer)
{
	layer_device *d = layer_device_of(device);
	VkResult r = d->next.CreateBuffer(device, info, allocator, buffer);
	journal *j = r == VK_SUCCESS ? made(d, BUFFER, LAYER_KEY(*buffer)) : NULL;
	if (j != NULL) {
		put_number(&j->unwritten, ' ', info->size);
		put(&j->unwritten, info->sharingMode == VK_SHARING_MODE_EXCLUSIVE ? " exclusive" : " concurrent");
		end(j);
	}
	return r;
}

static VKAPI_ATTR void VKAPI_CALL destroy_buffer(VkDevice device, VkBuffer buffer,
	const VkAllocationCallbacks *allocator)
{
	layer_device *d = layer_device_of(device);
	destroyed(d, BUFFER, LAYER_KEY(buffer));
	d->next.DestroyBuffer(device, buffer, allocator);
}

static void bound(layer_device *d, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize offset)
{
	journal *j = begin(d);
	if (j != NULL) {
		put(&j->unwritten, "bind");
		put_number(&j->unwritten, ' ', number_of(BUFFER, LAYER_KEY(buffer)));
		put_number(&j->unwritten, ' ', number_of(MEMORY, LAYER_KEY(memory)));
		put_number(&j->unwritten, ' ', offset);
		end(j);
	}
}

static VKAPI_ATTR VkResult VKAPI_CALL bind_memory(VkDevice device, VkBuffer buffer,
	VkDeviceMemory memory, VkDeviceSize offset)
{
	layer_device *d = layer_device_of(device);
	VkResult r = d->next.BindBufferMemory(device, buffer, memory, offset);
	if (r == VK_SUCCESS)
		bound(d, buffer, memory, offset);
	return r;
}

static VKAPI_ATTR VkResult VKAPI_CALL bind_memory2(VkDevice device, uint32_t count,
	const VkBindBufferMemoryInfo *infos)
{
	layer_device *d = layer_device_of(device);
	VkResult r = d->next.BindBufferMemory2(device, count, infos);
	for (uint32_t k = 0; r == VK_SUCCESS && k < count; k++)
		bound(d, infos[k].buffer, infos[k].memory, infos[k].memoryOffset);
	return r;
}

// Kernels

static void module_code(journal *j, const void *code, size_t size)
{
	const uint8_t *bytes = code;
	char *to = reserve(&j->unwritten, 2 * size + 1);
	*to++ = ' ';
	for (size_t k = 0; k < size; k++) {
		*to++ = "0123456789abcdef"[bytes[k] >> 4];
		*to++ = "0123456789abcdef"[bytes[k] & 15];
	}
	j->unwritten.used += 2 * size + 1;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_module(VkDevice device,
	const VkShaderModuleCreateInfo *info, const VkAllocationCallbacks *allocator, VkShaderModule *module)
{
	layer_device *d = layer_device_of(device);
	VkResult r = d->next.CreateShaderModule(device, info, allocator, module);
	journal *j = r == VK_SUCCESS ? made(d, MODULE, LAYER_KEY(*module)) : NULL;
	if (j != NULL) {
		module_code(j, info->pCode, info->codeSize);
		end(j);
	}
	return r;
}

static VKAPI_ATTR void VKAPI_CALL destroy_module(VkDevice device, VkShaderModule module,
	const VkAllocationCallbacks *allocator)
{
	layer_device *d = layer_device_of(device);
	destroyed(d, MODULE, LAYER_KEY(module));
	d->next.DestroyShaderModule(device, module, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache,
	uint32_t count, const VkComputePipelineCreateInfo *infos, const VkAllocationCallbacks *allocator,
	VkPipeline *pipelines)
{
	layer_device *d = layer_device_of(device);
	VkResult r = d->next.CreateComputePipelines(device, cache, count, infos, allocator, pipelines);
	for (uint32_t k = 0; k < count; k++) {
		if (pipelines[k] == VK_NULL_HANDLE)
			continue;
		journal *j = made(d, PIPELINE, LAYER_KEY(pipelines[k]));
		if (j == NULL)
			break;
		put_number(&j->unwritten, ' ', number_of(MODULE, LAYER_KEY(infos[k].stage.module)));
		put(&j->unwritten, " ");
		put(&j->unwritten, infos[k].stage.pName);
		end(j);
	}
	return r;
}

static VKAPI_ATTR void VKAPI_CALL destroy_pipeline(VkDevice device, VkPipeline pipeline,
	const VkAllocationCallbacks *allocator)
{
	layer_device *d = layer_device_of(device);
	destroyed(d, PIPELINE, LAYER_KEY(pipeline));
	d->next.DestroyPipeline(device, pipeline, allocator);
}

// Descriptors

static void free_set(descriptor_set *s)
{
	layer_map_take(&sets, LAYER_KEY(s->handle));
	free(s->descriptors);
	free(s);
}

static void free_sets(descriptor_pool *p)
{
	while (p->sets != NULL) {
		descriptor_set *next = p->sets->next;
		free_set(p->sets);
		p->sets = next;
	}
}

static VKAPI_ATTR VkResult VKAPI_CALL create_pool(VkDevice device,
	const VkDescriptorPoolCreateInfo *info, const VkAllocationCallbacks *allocator,
	VkDescriptorPool *pool)
{
	layer_device *d = layer_device_of(device);
	VkResult r = d->next.CreateDescriptorPool(device, info, allocator, pool);
	if (r == VK_SUCCESS && log_of(d) != NULL)
		layer_map_put(&pools, LAYER_KEY(*pool), layer_allocate(sizeof(descriptor_pool)));
	return r;
}

static VKAPI_ATTR void VKAPI_CALL destroy_pool(VkDevice device, VkDescriptorPool pool,
	const VkAllocationCallbacks *allocator)
{
	layer_device *d = layer_device_of(device);
	descriptor_pool *p = layer_map_take(&pools, LAYER_KEY(pool));
	if (p != NULL)
		free_sets(p);
	free(p);
	d->next.DestroyDescriptorPool(device, pool, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL reset_pool(VkDevice device, VkDescriptorPool pool,
	VkDescriptorPoolResetFlags flags)
{
	layer_device *d = layer_device_of(device);
	descriptor_pool *p = layer_map_get(&pools, LAYER_KEY(pool));
	if (p != NULL)
		free_sets(p);
	return d->next.ResetDescriptorPool(device, pool, flags);
}

static VKAPI_ATTR VkResult VKAPI_CALL allocate_sets(VkDevice device,
	const VkDescriptorSetAllocateInfo *info, VkDescriptorSet *out)
{
	layer_device *d = layer_device_of(device);
	VkResult r = d->next.AllocateDescriptorSets(device, info, out);
	descriptor_pool *p = layer_map_get(&pools, LAYER_KEY(info->descriptorPool));
	for (uint32_t k = 0; r == VK_SUCCESS && p != NULL && k < info->descriptorSetCount; k++) {
		descriptor_set *s = layer_allocate(sizeof *s);
		s->handle = out[k];
		s->next = p->sets;
		p->sets = s;
		layer_map_put(&sets, LAYER_KEY(out[k]), s);
	}
	return r;
}

static VKAPI_ATTR VkResult VKAPI_CALL free_descriptor_sets(VkDevice device, VkDescriptorPool pool,
	uint32_t count, const VkDescriptorSet *freed)
{
	layer_device *d = layer_device_of(device);
	descriptor_pool *p = layer_map_get(&pools, LAYER_KEY(pool));
	for (uint32_t k = 0; p != NULL && k < count; k++)
		for (descriptor_set **at = &p->sets; *at != NULL; at = &(*at)->next)
			if ((*at)->handle == freed[k]) {
				descriptor_set *s = *at;
				*at = s->next;
				free_set(s);
				break;
			}
	return d->next.FreeDescriptorSets(device, pool, count, freed);
}

// The descriptor's place in the set, made if it is not there.
static descriptor *descriptor_at(descriptor_set *s, uint32_t binding, uint32_t element)
{
	uint32_t i = 0;
	while (i < s->count && (s->descriptors[i].binding < binding ||
			(s->descriptors[i].binding == binding && s->descriptors[i].element < element)))
		i++;
	if (i < s->count && s->descriptors[i].binding == binding && s->descriptors[i].element == element)
		return &s->descriptors[i];
	if (s->count == s->room) {
		s->room = 2 * s->room + 4;
		descriptor *larger = realloc(s->descriptors, s->room * sizeof *larger);
		if (larger == NULL)
			layer_die("out of memory");
		s->descriptors = larger;
	}
	memmove(&s->descriptors[i + 1], &s->descriptors[i], (s->count - i) * sizeof *s->descriptors);
	s->count++;
	s->descriptors[i] = (descriptor){ .binding = binding, .element = element };
	return &s->descriptors[i];
}

static bool of_buffers(VkDescriptorType type)
{
	return type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER || type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER ||
		type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC ||
		type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC;
}

static void update_set(descriptor_set *s, const VkWriteDescriptorSet *w)
{
	for (uint32_t k = 0; k < w->descriptorCount; k++) {
		descriptor *at = descriptor_at(s, w->dstBinding, w->dstArrayElement + k);
		at->buffer = 0;
		at->dynamic = w->descriptorType == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC ||
			w->descriptorType == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC;
		if (!of_buffers(w->descriptorType))
			continue;
		at->buffer = number_of(BUFFER, LAYER_KEY(w->pBufferInfo[k].buffer));
		at->offset = w->pBufferInfo[k].offset;
		at->range = w->pBufferInfo[k].range;
	}
}

static VKAPI_ATTR void VKAPI_CALL update_sets(VkDevice device, uint32_t count,
	const VkWriteDescriptorSet *writes, uint32_t copy_count, const VkCopyDescriptorSet *copies)
{
	layer_device *d = layer_device_of(device);
	for (uint32_t k = 0; k < count; k++) {
		descriptor_set *s = layer_map_get(&sets, LAYER_KEY(writes[k].dstSet));
		if (s != NULL)
			update_set(s, &writes[k]);
	}
	for (uint32_t k = 0; k < copy_count; k++) {
		const VkCopyDescriptorSet *c = &copies[k];
		descriptor_set *src = layer_map_get(&sets, LAYER_KEY(c->srcSet));
		descriptor_set *dst = layer_map_get(&sets, LAYER_KEY(c->dstSet));
		for (uint32_t i = 0; src != NULL && dst != NULL && i < c->descriptorCount; i++) {
			descriptor from = *descriptor_at(src, c->srcBinding, c->srcArrayElement + i);
			descriptor *to = descriptor_at(dst, c->dstBinding, c->dstArrayElement + i);
			from.binding = to->binding;
			from.element = to->element;
			*to = from;
		}
	}
	d->next.UpdateDescriptorSets(device, count, writes, copy_count, copies);
}

static VKAPI_ATTR void VKAPI_CALL update_with_template(VkDevice device, VkDescriptorSet set,
	VkDescriptorUpdateTemplate template, const void *data)
{
	layer_device *d = layer_device_of(device);
	descriptor_set *s = layer_map_get(&sets, LAYER_KEY(set));
	if (s != NULL)
		s->unknown = true;
	d->next.UpdateDescriptorSetWithTemplate(device, set, template, data);
}

// Command buffers

static VKAPI_ATTR VkResult VKAPI_CALL allocate_buffers(VkDevice device,
	const VkCommandBufferAllocateInfo *info, VkCommandBuffer *out)
{
	layer_device *d = layer_device_of(device);
	VkResult r = d->next.AllocateCommandBuffers(device, info, out);
	journal *j = log_of(d);
	for (uint32_t k = 0; r == VK_SUCCESS && j != NULL && k < info->commandBufferCount; k++) {
		command_buffer *b = layer_allocate(sizeof *b);
		b->d = d;
		b->pool = info->commandPool;
		pthread_mutex_lock(&j->lock);
		b->number = ++j->last[COMMANDS];
		pthread_mutex_unlock(&j->lock);
		layer_map_put(&buffers_of_commands, LAYER_KEY(out[k]), b);
	}
	return r;
}

static void free_buffer(command_buffer *b)
{
	journal *j = begin(b->d);
	if (j != NULL) {
		put(&j->unwritten, "destroy commands");
		put_number(&j->unwritten, ' ', b->number);
		end(j);
	}
	free(b->content.bytes);
	free(b);
}

static VKAPI_ATTR void VKAPI_CALL free_buffers(VkDevice device, VkCommandPool pool, uint32_t count,
	const VkCommandBuffer *buffers)
{
	layer_device *d = layer_device_of(device);
	for (uint32_t k = 0; k < count; k++) {
		command_buffer *b = layer_map_take(&buffers_of_commands, LAYER_KEY(buffers[k]));
		if (b != NULL)
			free_buffer(b);
	}
	d->next.FreeCommandBuffers(device, pool, count, buffers);
}

typedef struct pool_going {
	layer_device *d;
	VkCommandPool pool;
	command_buffer *buffers;
} pool_going;

static bool goes_with_pool(uint64_t key, void *value, void *context)
{
	(void)key;
	command_buffer *b = value;
	pool_going *p = context;
	if (b->d != p->d || b->pool != p->pool)
		return false;
	b->next = p->buffers;
	p->buffers = b;
	return true;
}

static VKAPI_ATTR void VKAPI_CALL destroy_command_pool(VkDevice device, VkCommandPool pool,
	const VkAllocationCallbacks *allocator)
{
	layer_device *d = layer_device_of(device);
	pool_going p = { .d = d, .pool = pool };
	layer_map_each(&buffers_of_commands, goes_with_pool, &p);
	// The log's lock comes before that of a table: see put_commands.
	while (p.buffers != NULL) {
		command_buffer *b = p.buffers;
		p.buffers = b->next;
		free_buffer(b);
	}
	d->next.DestroyCommandPool(device, pool, allocator);
}

static command_buffer *commands_of(VkCommandBuffer handle)
{
	return layer_map_get(&buffers_of_commands, LAYER_KEY(handle));
}

// Writes that what was recorded is given up, before the call that does so: from then on nothing may
// execute it. What takes its place is in the log only when it is complete.
static void discard(command_buffer *b)
{
	journal *j = b->recorded ? begin(b->d) : NULL;
	if (j != NULL) {
		put(&j->unwritten, "discard");
		put_number(&j->unwritten, ' ', b->number);
		end(j);
	}
	b->recorded = false;
}

static VKAPI_ATTR VkResult VKAPI_CALL reset_buffer(VkCommandBuffer handle, VkCommandBufferResetFlags flags)
{
	command_buffer *b = commands_of(handle);
	if (b != NULL)
		discard(b);
	return layer_device_of(handle)->next.ResetCommandBuffer(handle, flags);
}

static bool reset_with_pool(uint64_t key, void *value, void *context)
{
	goes_with_pool(key, value, context);
	return false; // it stays
}

static VKAPI_ATTR VkResult VKAPI_CALL reset_command_pool(VkDevice device, VkCommandPool pool,
	VkCommandPoolResetFlags flags)
{
	layer_device *d = layer_device_of(device);
	pool_going p = { .d = d, .pool = pool };
	layer_map_each(&buffers_of_commands, reset_with_pool, &p);
	for (command_buffer *b = p.buffers; b != NULL; b = b->next)
		discard(b);
	return d->next.ResetCommandPool(device, pool, flags);
}

static VKAPI_ATTR VkResult VKAPI_CALL begin_buffer(VkCommandBuffer handle,
	const VkCommandBufferBeginInfo *info)
{
	command_buffer *b = commands_of(handle);
	if (b != NULL) {
		discard(b);
		b->content.used = 0;
		put(&b->content, "commands");
		put_number(&b->content, ' ', b->number);
		put_number(&b->content, ' ', b->d->number);
		put(&b->content, "\n");
	}
	return layer_device_of(handle)->next.BeginCommandBuffer(handle, info);
}

static VKAPI_ATTR VkResult VKAPI_CALL end_buffer(VkCommandBuffer handle)
{
	command_buffer *b = commands_of(handle);
	VkResult r = layer_device_of(handle)->next.EndCommandBuffer(handle);
	journal *j = r == VK_SUCCESS && b != NULL ? begin(b->d) : NULL;
	if (j != NULL) {
		put_bytes(&j->unwritten, b->content.bytes, b->content.used);
		put(&j->unwritten, "end");
		end(j);
		b->recorded = true;
	}
	return r;
}

static void unknown(VkCommandBuffer handle, const char *what)
{
	command_buffer *b = commands_of(handle);
	if (b != NULL) {
		put(&b->content, "? ");
		put(&b->content, what);
		put(&b->content, "\n");
	}
}

static VKAPI_ATTR void VKAPI_CALL cmd_bind_pipeline(VkCommandBuffer handle, VkPipelineBindPoint point,
	VkPipeline pipeline)
{
	command_buffer *b = commands_of(handle);
	if (b != NULL && point == VK_PIPELINE_BIND_POINT_COMPUTE) {
		put(&b->content, "p");
		put_number(&b->content, ' ', number_of(PIPELINE, LAYER_KEY(pipeline)));
		put(&b->content, "\n");
	}
	layer_device_of(handle)->next.CmdBindPipeline(handle, point, pipeline);
}

static void put_range(text *t, uint32_t binding, uint32_t buffer, uint64_t offset, uint64_t range)
{
	put_number(t, ' ', binding);
	put_number(t, ':', buffer);
	put_number(t, ':', offset);
	put_number(t, ':', range);
}

static VKAPI_ATTR void VKAPI_CALL cmd_bind_sets(VkCommandBuffer handle, VkPipelineBindPoint point,
	VkPipelineLayout layout, uint32_t first, uint32_t count, const VkDescriptorSet *bound_sets,
	uint32_t dynamic_count, const uint32_t *dynamic)
{
	command_buffer *b = commands_of(handle);
	for (uint32_t k = 0; b != NULL && point == VK_PIPELINE_BIND_POINT_COMPUTE && k < count; k++) {
		descriptor_set *s = bound_sets[k] == VK_NULL_HANDLE ? NULL :
			layer_map_get(&sets, LAYER_KEY(bound_sets[k]));
		put(&b->content, "r");
		put_number(&b->content, ' ', first + k);
		for (uint32_t i = 0; s != NULL && i < s->count; i++) {
			descriptor *at = &s->descriptors[i];
			uint64_t offset = at->offset;
			if (at->dynamic && dynamic_count > 0) {
				offset += *dynamic++;
				dynamic_count--;
			}
			put_range(&b->content, at->binding, at->buffer, offset, at->range);
		}
		put(&b->content, "\n");
		if (s != NULL && s->unknown)
			unknown(handle, "vkUpdateDescriptorSetWithTemplate");
	}
	layer_device_of(handle)->next.CmdBindDescriptorSets(handle, point, layout, first, count, bound_sets,
		dynamic_count, dynamic);
}

static VKAPI_ATTR void VKAPI_CALL cmd_push_set(VkCommandBuffer handle, VkPipelineBindPoint point,
	VkPipelineLayout layout, uint32_t set, uint32_t count, const VkWriteDescriptorSet *writes)
{
	command_buffer *b = commands_of(handle);
	if (b != NULL && point == VK_PIPELINE_BIND_POINT_COMPUTE) {
		put(&b->content, "R");
		put_number(&b->content, ' ', set);
		for (uint32_t k = 0; k < count; k++)
			for (uint32_t i = 0; of_buffers(writes[k].descriptorType) && i < writes[k].descriptorCount; i++) {
				const VkDescriptorBufferInfo *info = &writes[k].pBufferInfo[i];
				put_range(&b->content, writes[k].dstBinding, number_of(BUFFER, LAYER_KEY(info->buffer)),
					info->offset, info->range);
			}
		put(&b->content, "\n");
	}
	layer_device_of(handle)->next.CmdPushDescriptorSetKHR(handle, point, layout, set, count, writes);
}

static VKAPI_ATTR void VKAPI_CALL cmd_push_constants(VkCommandBuffer handle, VkPipelineLayout layout,
	VkShaderStageFlags stages, uint32_t offset, uint32_t size, const void *values)
{
	command_buffer *b = commands_of(handle);
	if (b != NULL && (stages & VK_SHADER_STAGE_COMPUTE_BIT) != 0) {
		put(&b->content, "k");
		put_number(&b->content, ' ', offset);
		for (uint32_t k = 0; k < size / 4; k++) {
			uint32_t word;
			memcpy(&word, (const char *)values + 4 * k, sizeof word);
			put_mask(&b->content, k == 0 ? ' ' : ',', word);
		}
		put(&b->content, "\n");
	}
	layer_device_of(handle)->next.CmdPushConstants(handle, layout, stages, offset, size, values);
}

static void put_dispatch(VkCommandBuffer handle, const uint32_t size[6])
{
	command_buffer *b = commands_of(handle);
	if (b == NULL)
		return;
	put(&b->content, "d");
	for (int k = 0; k < 6; k++)
		put_number(&b->content, ' ', size[k]);
	put(&b->content, "\n");
}

static VKAPI_ATTR void VKAPI_CALL cmd_dispatch(VkCommandBuffer handle, uint32_t x, uint32_t y, uint32_t z)
{
	put_dispatch(handle, (uint32_t[]){ 0, 0, 0, x, y, z });
	layer_device_of(handle)->next.CmdDispatch(handle, x, y, z);
}

static VKAPI_ATTR void VKAPI_CALL cmd_dispatch_base(VkCommandBuffer handle, uint32_t bx, uint32_t by,
	uint32_t bz, uint32_t x, uint32_t y, uint32_t z)
{
	put_dispatch(handle, (uint32_t[]){ bx, by, bz, x, y, z });
	layer_device_of(handle)->next.CmdDispatchBase(handle, bx, by, bz, x, y, z);
}

static void put_buffer(text *t, VkBuffer buffer)
{
	put_number(t, ' ', number_of(BUFFER, LAYER_KEY(buffer)));
}

static VKAPI_ATTR void VKAPI_CALL cmd_dispatch_indirect(VkCommandBuffer handle, VkBuffer buffer,
	VkDeviceSize offset)
{
	command_buffer *b = commands_of(handle);
	if (b != NULL) {
		put(&b->content, "i");
		put_buffer(&b->content, buffer);
		put_number(&b->content, ' ', offset);
		put(&b->content, "\n");
	}
	layer_device_of(handle)->next.CmdDispatchIndirect(handle, buffer, offset);
}

static void put_region(text *t, uint64_t from, uint64_t to, uint64_t size)
{
	put_number(t, ' ', from);
	put_number(t, ':', to);
	put_number(t, ':', size);
}

static VKAPI_ATTR void VKAPI_CALL cmd_copy(VkCommandBuffer handle, VkBuffer src, VkBuffer dst,
	uint32_t count, const VkBufferCopy *regions)
{
	command_buffer *b = commands_of(handle);
	if (b != NULL) {
		put(&b->content, "c");
		put_buffer(&b->content, src);
		put_buffer(&b->content, dst);
		for (uint32_t k = 0; k < count; k++)
			put_region(&b->content, regions[k].srcOffset, regions[k].dstOffset, regions[k].size);
		put(&b->content, "\n");
	}
	layer_device_of(handle)->next.CmdCopyBuffer(handle, src, dst, count, regions);
}

static VKAPI_ATTR void VKAPI_CALL cmd_copy2(VkCommandBuffer handle, const VkCopyBufferInfo2 *info)
{
	command_buffer *b = commands_of(handle);
	if (b != NULL) {
		put(&b->content, "c");
		put_buffer(&b->content, info->srcBuffer);
		put_buffer(&b->content, info->dstBuffer);
		for (uint32_t k = 0; k < info->regionCount; k++)
			put_region(&b->content, info->pRegions[k].srcOffset, info->pRegions[k].dstOffset,
				info->pRegions[k].size);
		put(&b->content, "\n");
	}
	layer_device_of(handle)->next.CmdCopyBuffer2(handle, info);
}

static void put_written(VkCommandBuffer handle, const char *what, VkBuffer dst, VkDeviceSize offset,
	VkDeviceSize size)
{
	command_buffer *b = commands_of(handle);
	if (b == NULL)
		return;
	put(&b->content, what);
	put_buffer(&b->content, dst);
	put_number(&b->content, ' ', offset);
	put_number(&b->content, ' ', size);
	put(&b->content, "\n");
}

static VKAPI_ATTR void VKAPI_CALL cmd_fill(VkCommandBuffer handle, VkBuffer dst, VkDeviceSize offset,
	VkDeviceSize size, uint32_t value)
{
	put_written(handle, "f", dst, offset, size);
	layer_device_of(handle)->next.CmdFillBuffer(handle, dst, offset, size, value);
}

static VKAPI_ATTR void VKAPI_CALL cmd_update(VkCommandBuffer handle, VkBuffer dst, VkDeviceSize offset,
	VkDeviceSize size, const void *data)
{
	put_written(handle, "u", dst, offset, size);
	layer_device_of(handle)->next.CmdUpdateBuffer(handle, dst, offset, size, data);
}

enum { OF_MEMORY, OF_BUFFER, OF_IMAGE };

static void put_dependency(text *t, uint64_t src_stages, uint64_t dst_stages, uint64_t src_access,
	uint64_t dst_access, int of)
{
	put_mask(t, ' ', src_stages);
	put_mask(t, ':', dst_stages);
	put_mask(t, ':', src_access);
	put_mask(t, ':', dst_access);
	put_number(t, ':', (uint64_t)of);
}

static void put_section(text *t, VkBuffer buffer, uint64_t offset, uint64_t size)
{
	put_number(t, ':', number_of(BUFFER, LAYER_KEY(buffer)));
	put_number(t, ':', offset);
	put_number(t, ':', size);
}

static VKAPI_ATTR void VKAPI_CALL cmd_barrier(VkCommandBuffer handle, VkPipelineStageFlags src,
	VkPipelineStageFlags dst, VkDependencyFlags flags, uint32_t count, const VkMemoryBarrier *barriers,
	uint32_t buffer_count, const VkBufferMemoryBarrier *buffers, uint32_t image_count,
	const VkImageMemoryBarrier *images)
{
	command_buffer *b = commands_of(handle);
	bool transfers = false;
	if (b != NULL) {
		text *t = &b->content;
		put(t, "b");
		for (uint32_t k = 0; k < count; k++)
			put_dependency(t, src, dst, barriers[k].srcAccessMask, barriers[k].dstAccessMask, OF_MEMORY);
		for (uint32_t k = 0; k < buffer_count; k++) {
			put_dependency(t, src, dst, buffers[k].srcAccessMask, buffers[k].dstAccessMask, OF_BUFFER);
			put_section(t, buffers[k].buffer, buffers[k].offset, buffers[k].size);
			transfers |= buffers[k].srcQueueFamilyIndex != buffers[k].dstQueueFamilyIndex;
		}
		for (uint32_t k = 0; k < image_count; k++)
			put_dependency(t, src, dst, images[k].srcAccessMask, images[k].dstAccessMask, OF_IMAGE);
		if (count + buffer_count + image_count == 0)
			put_dependency(t, src, dst, 0, 0, OF_MEMORY);
		put(t, "\n");
	}
	if (transfers)
		unknown(handle, "queue family ownership transfer");
	layer_device_of(handle)->next.CmdPipelineBarrier(handle, src, dst, flags, count, barriers,
		buffer_count, buffers, image_count, images);
}

static VKAPI_ATTR void VKAPI_CALL cmd_barrier2(VkCommandBuffer handle, const VkDependencyInfo *info)
{
	command_buffer *b = commands_of(handle);
	bool transfers = false;
	if (b != NULL) {
		text *t = &b->content;
		put(t, "b");
		for (uint32_t k = 0; k < info->memoryBarrierCount; k++) {
			const VkMemoryBarrier2 *m = &info->pMemoryBarriers[k];
			put_dependency(t, m->srcStageMask, m->dstStageMask, m->srcAccessMask, m->dstAccessMask,
				OF_MEMORY);
		}
		for (uint32_t k = 0; k < info->bufferMemoryBarrierCount; k++) {
			const VkBufferMemoryBarrier2 *m = &info->pBufferMemoryBarriers[k];
			put_dependency(t, m->srcStageMask, m->dstStageMask, m->srcAccessMask, m->dstAccessMask,
				OF_BUFFER);
			put_section(t, m->buffer, m->offset, m->size);
			transfers |= m->srcQueueFamilyIndex != m->dstQueueFamilyIndex;
		}
		for (uint32_t k = 0; k < info->imageMemoryBarrierCount; k++) {
			const VkImageMemoryBarrier2 *m = &info->pImageMemoryBarriers[k];
			put_dependency(t, m->srcStageMask, m->dstStageMask, m->srcAccessMask, m->dstAccessMask,
				OF_IMAGE);
		}
		put(t, "\n");
	}
	if (transfers)
		unknown(handle, "queue family ownership transfer");
	layer_device_of(handle)->next.CmdPipelineBarrier2(handle, info);
}

// Commands whose accesses and orders are not in the log.

static PFN_vkVoidFunction other_below(VkCommandBuffer handle, uint32_t number, const char *name)
{
	layer_device *d = layer_device_of(handle);
	recorded *own = d->own;
	unknown(handle, name);
	PFN_vkVoidFunction f = atomic_load(&own->others[number]);
	if (f == NULL) {
		f = d->get(d->handle, name);
		atomic_store(&own->others[number], f);
	}
	return f;
}

UNDESCRIBED_COMMANDS(OTHER_PASS)

// Semaphores and fences

static VKAPI_ATTR VkResult VKAPI_CALL create_semaphore(VkDevice device,
	const VkSemaphoreCreateInfo *info, const VkAllocationCallbacks *allocator, VkSemaphore *semaphore)
{
	layer_device *d = layer_device_of(device);
	VkResult r = d->next.CreateSemaphore(device, info, allocator, semaphore);
	if (r != VK_SUCCESS)
		return r;
	const VkSemaphoreTypeCreateInfo *type =
		layer_chained(info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
	bool timeline = type != NULL && type->semaphoreType == VK_SEMAPHORE_TYPE_TIMELINE;
	journal *j = made(d, SEMAPHORE, LAYER_KEY(*semaphore));
	if (j != NULL) {
		object_of(SEMAPHORE, LAYER_KEY(*semaphore))->seen = timeline ? type->initialValue : 0;
		put(&j->unwritten, timeline ? " timeline" : " binary");
		put_number(&j->unwritten, ' ', timeline ? type->initialValue : 0);
		end(j);
	}
	return r;
}

static VKAPI_ATTR void VKAPI_CALL destroy_semaphore(VkDevice device, VkSemaphore semaphore,
	const VkAllocationCallbacks *allocator)
{
	layer_device *d = layer_device_of(device);
	destroyed(d, SEMAPHORE, LAYER_KEY(semaphore));
	d->next.DestroySemaphore(device, semaphore, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_fence(VkDevice device, const VkFenceCreateInfo *info,
	const VkAllocationCallbacks *allocator, VkFence *fence)
{
	layer_device *d = layer_device_of(device);
	VkResult r = d->next.CreateFence(device, info, allocator, fence);
	journal *j = r == VK_SUCCESS ? made(d, FENCE, LAYER_KEY(*fence)) : NULL;
	if (j != NULL) {
		put_number(&j->unwritten, ' ', (info->flags & VK_FENCE_CREATE_SIGNALED_BIT) != 0);
		end(j);
	}
	return r;
}

static VKAPI_ATTR void VKAPI_CALL destroy_fence(VkDevice device, VkFence fence,
	const VkAllocationCallbacks *allocator)
{
	layer_device *d = layer_device_of(device);
	destroyed(d, FENCE, LAYER_KEY(fence));
	d->next.DestroyFence(device, fence, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL reset_fences(VkDevice device, uint32_t count, const VkFence *fences)
{
	layer_device *d = layer_device_of(device);
	journal *j = begin(d);
	if (j != NULL) {
		put(&j->unwritten, "reset");
		for (uint32_t k = 0; k < count; k++)
			put_number(&j->unwritten, ' ', number_of(FENCE, LAYER_KEY(fences[k])));
		end(j);
	}
	return d->next.ResetFences(device, count, fences);
}

// How a wait of the host ended: it was satisfied at once (m), blocked until it was (b), timed
// out (t), or only queried (n).
static journal *waited(layer_device *d, const char *what, VkResult r, bool blocked)
{
	journal *j = begin(d);
	if (j == NULL)
		return NULL;
	put(&j->unwritten, what);
	if (r == VK_SUCCESS)
		put(&j->unwritten, blocked ? " b" : " m");
	else
		put(&j->unwritten, blocked ? " t" : " n");
	return j;
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_semaphores(VkDevice device, const VkSemaphoreWaitInfo *info,
	uint64_t timeout)
{
	layer_device *d = layer_device_of(device);
	VkResult r = d->next.WaitSemaphores(device, info, 0);
	bool blocked = r == VK_TIMEOUT && timeout > 0;
	if (blocked)
		r = d->next.WaitSemaphores(device, info, timeout);
	if (r != VK_SUCCESS && r != VK_TIMEOUT)
		return r;
	bool any = (info->flags & VK_SEMAPHORE_WAIT_ANY_BIT) != 0 && info->semaphoreCount > 1;
	text reached = { 0 };
	for (uint32_t k = 0; r == VK_SUCCESS && k < info->semaphoreCount; k++) {
		uint64_t value = info->pValues[k];
		if (any && (d->next.GetSemaphoreCounterValue(device, info->pSemaphores[k], &value) != VK_SUCCESS ||
				   value < info->pValues[k]))
			continue;
		put_number(&reached, ' ', number_of(SEMAPHORE, LAYER_KEY(info->pSemaphores[k])));
		put_number(&reached, ':', value);
	}
	journal *j = waited(d, "wait", r, blocked);
	if (j != NULL) {
		put_bytes(&j->unwritten, reached.used > 0 ? reached.bytes : "", reached.used);
		for (uint32_t k = 0; r == VK_SUCCESS && !any && k < info->semaphoreCount; k++) {
			object *o = object_of(SEMAPHORE, LAYER_KEY(info->pSemaphores[k]));
			if (o != NULL && o->seen < info->pValues[k])
				o->seen = info->pValues[k];
		}
		end(j);
	}
	free(reached.bytes);
	return r;
}

static VKAPI_ATTR VkResult VKAPI_CALL counter_value(VkDevice device, VkSemaphore semaphore, uint64_t *value)
{
	layer_device *d = layer_device_of(device);
	VkResult r = d->next.GetSemaphoreCounterValue(device, semaphore, value);
	object *o = r == VK_SUCCESS && log_of(d) != NULL ? object_of(SEMAPHORE, LAYER_KEY(semaphore)) : NULL;
	if (o == NULL)
		return r;
	// A program may query many thousand times, so only new values are written, before another
	// thread can see that the value is not new.
	journal *j = log_of(d);
	pthread_mutex_lock(&j->lock);
	if (*value <= o->seen) {
		pthread_mutex_unlock(&j->lock);
		return r;
	}
	o->seen = *value;
	speak(j);
	put(&j->unwritten, "count");
	put_number(&j->unwritten, ' ', o->number);
	put_number(&j->unwritten, ' ', *value);
	end(j);
	return r;
}

static VKAPI_ATTR VkResult VKAPI_CALL signal_semaphore(VkDevice device, const VkSemaphoreSignalInfo *info)
{
	layer_device *d = layer_device_of(device);
	journal *j = begin(d);
	if (j != NULL) {
		put(&j->unwritten, "signal");
		put_number(&j->unwritten, ' ', number_of(SEMAPHORE, LAYER_KEY(info->semaphore)));
		put_number(&j->unwritten, ' ', info->value);
		end(j);
	}
	VkResult r = d->next.SignalSemaphore(device, info);
	if (r != VK_SUCCESS)
		failed(d);
	return r;
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_fences(VkDevice device, uint32_t count, const VkFence *fences,
	VkBool32 all_of_them, uint64_t timeout)
{
	layer_device *d = layer_device_of(device);
	VkResult r = d->next.WaitForFences(device, count, fences, all_of_them, 0);
	bool blocked = r == VK_TIMEOUT && timeout > 0;
	if (blocked)
		r = d->next.WaitForFences(device, count, fences, all_of_them, timeout);
	if (r != VK_SUCCESS && r != VK_TIMEOUT)
		return r;
	text met = { 0 };
	for (uint32_t k = 0; r == VK_SUCCESS && k < count; k++)
		if (all_of_them || count == 1 || d->next.GetFenceStatus(device, fences[k]) == VK_SUCCESS)
			put_number(&met, ' ', number_of(FENCE, LAYER_KEY(fences[k])));
	journal *j = waited(d, "fences", r, blocked);
	if (j != NULL) {
		put_bytes(&j->unwritten, met.used > 0 ? met.bytes : "", met.used);
		end(j);
	}
	free(met.bytes);
	return r;
}

static VKAPI_ATTR VkResult VKAPI_CALL fence_status(VkDevice device, VkFence fence)
{
	layer_device *d = layer_device_of(device);
	VkResult r = d->next.GetFenceStatus(device, fence);
	journal *j = r == VK_SUCCESS ? waited(d, "fences", r, false) : NULL;
	if (j != NULL) {
		put_number(&j->unwritten, ' ', number_of(FENCE, LAYER_KEY(fence)));
		end(j);
	}
	return r;
}

static VKAPI_ATTR VkResult VKAPI_CALL queue_idle(VkQueue q)
{
	layer_device *d = layer_device_of(q);
	VkResult r = d->next.QueueWaitIdle(q);
	journal *j = r == VK_SUCCESS ? waited(d, "idle", r, true) : NULL;
	if (j != NULL) {
		put_number(&j->unwritten, ' ', number_of(QUEUE, LAYER_KEY(q)));
		end(j);
	}
	return r;
}

static VKAPI_ATTR VkResult VKAPI_CALL device_idle(VkDevice device)
{
	layer_device *d = layer_device_of(device);
	recorded *own = d->own;
	VkResult r = d->next.DeviceWaitIdle(device);
	journal *j = r == VK_SUCCESS ? waited(d, "idle", r, true) : NULL;
	if (j != NULL) {
		for (uint32_t k = 0; k < own->queue_count; k++)
			put_number(&j->unwritten, ' ', number_of(QUEUE, LAYER_KEY(own->queues[k])));
		end(j);
	}
	return r;
}

// Submissions

static void put_semaphore(text *t, VkSemaphore semaphore, uint64_t value, uint64_t stages)
{
	put_number(t, ' ', number_of(SEMAPHORE, LAYER_KEY(semaphore)));
	put_number(t, ':', value);
	put_mask(t, ':', stages);
}

static void put_commands(text *t, VkCommandBuffer handle)
{
	command_buffer *b = commands_of(handle);
	put_number(t, ' ', b == NULL ? 0 : b->number);
}

static void put_submit_end(journal *j, VkFence fence)
{
	if (fence != VK_NULL_HANDLE) {
		put(&j->unwritten, " f");
		put_number(&j->unwritten, ' ', number_of(FENCE, LAYER_KEY(fence)));
	}
	end(j);
}

static journal *put_submit(layer_device *d, VkQueue q)
{
	journal *j = begin(d);
	if (j != NULL) {
		put(&j->unwritten, "submit");
		put_number(&j->unwritten, ' ', number_of(QUEUE, LAYER_KEY(q)));
	}
	return j;
}

static VKAPI_ATTR VkResult VKAPI_CALL queue_submit(VkQueue q, uint32_t count, const VkSubmitInfo *infos,
	VkFence fence)
{
	layer_device *d = layer_device_of(q);
	journal *j = put_submit(d, q);
	if (j != NULL) {
		text *t = &j->unwritten;
		for (uint32_t k = 0; k < count; k++) {
			const VkSubmitInfo *s = &infos[k];
			const VkTimelineSemaphoreSubmitInfo *values =
				layer_chained(s->pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
			put(t, k == 0 ? " w" : " | w");
			for (uint32_t i = 0; i < s->waitSemaphoreCount; i++)
				put_semaphore(t, s->pWaitSemaphores[i],
					values != NULL && i < values->waitSemaphoreValueCount ?
						values->pWaitSemaphoreValues[i] : 0,
					s->pWaitDstStageMask[i]);
			put(t, " c");
			for (uint32_t i = 0; i < s->commandBufferCount; i++)
				put_commands(t, s->pCommandBuffers[i]);
			put(t, " s");
			for (uint32_t i = 0; i < s->signalSemaphoreCount; i++)
				put_semaphore(t, s->pSignalSemaphores[i],
					values != NULL && i < values->signalSemaphoreValueCount ?
						values->pSignalSemaphoreValues[i] : 0,
					VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
		}
		put_submit_end(j, fence);
	}
	VkResult r = d->next.QueueSubmit(q, count, infos, fence);
	if (r != VK_SUCCESS)
		failed(d);
	return r;
}

static VKAPI_ATTR VkResult VKAPI_CALL queue_submit2(VkQueue q, uint32_t count,
	const VkSubmitInfo2 *infos, VkFence fence)
{
	layer_device *d = layer_device_of(q);
	journal *j = put_submit(d, q);
	if (j != NULL) {
		text *t = &j->unwritten;
		for (uint32_t k = 0; k < count; k++) {
			const VkSubmitInfo2 *s = &infos[k];
			put(t, k == 0 ? " w" : " | w");
			for (uint32_t i = 0; i < s->waitSemaphoreInfoCount; i++)
				put_semaphore(t, s->pWaitSemaphoreInfos[i].semaphore, s->pWaitSemaphoreInfos[i].value,
					s->pWaitSemaphoreInfos[i].stageMask);
			put(t, " c");
			for (uint32_t i = 0; i < s->commandBufferInfoCount; i++)
				put_commands(t, s->pCommandBufferInfos[i].commandBuffer);
			put(t, " s");
			for (uint32_t i = 0; i < s->signalSemaphoreInfoCount; i++)
				put_semaphore(t, s->pSignalSemaphoreInfos[i].semaphore, s->pSignalSemaphoreInfos[i].value,
					s->pSignalSemaphoreInfos[i].stageMask);
		}
		put_submit_end(j, fence);
	}
	VkResult r = d->next.QueueSubmit2(q, count, infos, fence);
	if (r != VK_SUCCESS)
		failed(d);
	return r;
}

static VKAPI_ATTR VkResult VKAPI_CALL queue_bind_sparse(VkQueue q, uint32_t count,
	const VkBindSparseInfo *infos, VkFence fence)
{
	layer_device *d = layer_device_of(q);
	journal *j = begin(d);
	if (j != NULL) {
		put(&j->unwritten, "unknown vkQueueBindSparse");
		end(j);
	}
	return d->next.QueueBindSparse(q, count, infos, fence);
}

static const layer_intercept intercepts[] = {
	LAYER_INTERCEPT(vkGetDeviceQueue, get_device_queue),
	LAYER_INTERCEPT(vkGetDeviceQueue2, get_device_queue2),
	LAYER_INTERCEPT(vkAllocateMemory, allocate_memory),
	LAYER_INTERCEPT(vkFreeMemory, free_memory),
	LAYER_INTERCEPT(vkMapMemory, map_memory),
	LAYER_INTERCEPT(vkUnmapMemory, unmap_memory),
	LAYER_INTERCEPT(vkFlushMappedMemoryRanges, flush_ranges),
	LAYER_INTERCEPT(vkInvalidateMappedMemoryRanges, invalidate_ranges),
	LAYER_INTERCEPT(vkCreateBuffer, create_buffer),
	LAYER_INTERCEPT(vkDestroyBuffer, destroy_buffer),
	LAYER_INTERCEPT(vkBindBufferMemory, bind_memory),
	LAYER_INTERCEPT(vkBindBufferMemory2, bind_memory2),
	LAYER_INTERCEPT(vkBindBufferMemory2KHR, bind_memory2),
	LAYER_INTERCEPT(vkCreateShaderModule, create_module),
	LAYER_INTERCEPT(vkDestroyShaderModule, destroy_module),
	LAYER_INTERCEPT(vkCreateComputePipelines, create_pipelines),
	LAYER_INTERCEPT(vkDestroyPipeline, destroy_pipeline),
	LAYER_INTERCEPT(vkCreateDescriptorPool, create_pool),
	LAYER_INTERCEPT(vkDestroyDescriptorPool, destroy_pool),
	LAYER_INTERCEPT(vkResetDescriptorPool, reset_pool),
	LAYER_INTERCEPT(vkAllocateDescriptorSets, allocate_sets),
	LAYER_INTERCEPT(vkFreeDescriptorSets, free_descriptor_sets),
	LAYER_INTERCEPT(vkUpdateDescriptorSets, update_sets),
	LAYER_INTERCEPT(vkUpdateDescriptorSetWithTemplate, update_with_template),
	LAYER_INTERCEPT(vkUpdateDescriptorSetWithTemplateKHR, update_with_template),
	LAYER_INTERCEPT(vkAllocateCommandBuffers, allocate_buffers),
	LAYER_INTERCEPT(vkFreeCommandBuffers, free_buffers),
	LAYER_INTERCEPT(vkDestroyCommandPool, destroy_command_pool),
	LAYER_INTERCEPT(vkResetCommandPool, reset_command_pool),
	LAYER_INTERCEPT(vkResetCommandBuffer, reset_buffer),
	LAYER_INTERCEPT(vkBeginCommandBuffer, begin_buffer),
	LAYER_INTERCEPT(vkEndCommandBuffer, end_buffer),
	LAYER_INTERCEPT(vkCmdBindPipeline, cmd_bind_pipeline),
	LAYER_INTERCEPT(vkCmdBindDescriptorSets, cmd_bind_sets),
	LAYER_INTERCEPT(vkCmdPushDescriptorSetKHR, cmd_push_set),
	{ "vkCmdPushDescriptorSet", (PFN_vkVoidFunction)cmd_push_set },
	LAYER_INTERCEPT(vkCmdPushConstants, cmd_push_constants),
	LAYER_INTERCEPT(vkCmdDispatch, cmd_dispatch),
	LAYER_INTERCEPT(vkCmdDispatchBase, cmd_dispatch_base),
	LAYER_INTERCEPT(vkCmdDispatchBaseKHR, cmd_dispatch_base),
	LAYER_INTERCEPT(vkCmdDispatchIndirect, cmd_dispatch_indirect),
	LAYER_INTERCEPT(vkCmdCopyBuffer, cmd_copy),
	LAYER_INTERCEPT(vkCmdCopyBuffer2, cmd_copy2),
	LAYER_INTERCEPT(vkCmdCopyBuffer2KHR, cmd_copy2),
	LAYER_INTERCEPT(vkCmdFillBuffer, cmd_fill),
	LAYER_INTERCEPT(vkCmdUpdateBuffer, cmd_update),
	LAYER_INTERCEPT(vkCmdPipelineBarrier, cmd_barrier),
	LAYER_INTERCEPT(vkCmdPipelineBarrier2, cmd_barrier2),
	LAYER_INTERCEPT(vkCmdPipelineBarrier2KHR, cmd_barrier2),
	UNDESCRIBED_COMMANDS(OTHER_INTERCEPT)
	LAYER_INTERCEPT(vkCreateSemaphore, create_semaphore),
	LAYER_INTERCEPT(vkDestroySemaphore, destroy_semaphore),
	LAYER_INTERCEPT(vkCreateFence, create_fence),
	LAYER_INTERCEPT(vkDestroyFence, destroy_fence),
	LAYER_INTERCEPT(vkResetFences, reset_fences),
	LAYER_INTERCEPT(vkWaitSemaphores, wait_semaphores),
	LAYER_INTERCEPT(vkWaitSemaphoresKHR, wait_semaphores),
	LAYER_INTERCEPT(vkGetSemaphoreCounterValue, counter_value),
	LAYER_INTERCEPT(vkGetSemaphoreCounterValueKHR, counter_value),
	LAYER_INTERCEPT(vkSignalSemaphore, signal_semaphore),
	LAYER_INTERCEPT(vkSignalSemaphoreKHR, signal_semaphore),
	LAYER_INTERCEPT(vkWaitForFences, wait_fences),
	LAYER_INTERCEPT(vkGetFenceStatus, fence_status),
	LAYER_INTERCEPT(vkQueueWaitIdle, queue_idle),
	LAYER_INTERCEPT(vkDeviceWaitIdle, device_idle),
	LAYER_INTERCEPT(vkQueueSubmit, queue_submit),
	LAYER_INTERCEPT(vkQueueSubmit2, queue_submit2),
	LAYER_INTERCEPT(vkQueueSubmit2KHR, queue_submit2),
	LAYER_INTERCEPT(vkQueueBindSparse, queue_bind_sparse),
};

const layer_hooks layer_this = {
	.name = "VK_LAYER_VKOMP_record",
	LAYER_INTERCEPTS(intercepts),
	.device_created = device_created,
	.device_destroying = device_destroying,
};
