#define _GNU_SOURCE
#include "layer.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Instances and devices by the loader's dispatch pointer, the first word of every dispatchable
// object. It is read on every call without a lock: an entry is added before any object with it
// exists, and stays until all of them are destroyed.
enum { REGISTRY_ROOM = 512 };
typedef struct registry {
	struct {
		_Atomic(uintptr_t) key;
		_Atomic(void *) object;
	} entries[REGISTRY_ROOM];
} registry;

static registry instances, devices;
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint device_count;

static uintptr_t dispatch_key(const void *dispatchable)
{
	return *(const uintptr_t *)dispatchable;
}

static size_t registry_start(uintptr_t key)
{
	return (size_t)((key >> 4) * 0x9e3779b97f4a7c15u >> 32) % REGISTRY_ROOM;
}

static void *registry_find(registry *r, uintptr_t key)
{
	size_t start = registry_start(key);
	for (size_t k = 0; k < REGISTRY_ROOM; k++) {
		size_t i = (start + k) % REGISTRY_ROOM;
		if (atomic_load_explicit(&r->entries[i].key, memory_order_acquire) == key)
			return atomic_load_explicit(&r->entries[i].object, memory_order_relaxed);
	}
	return NULL;
}

static void registry_put(registry *r, uintptr_t key, void *object)
{
	pthread_mutex_lock(&registry_lock);
	size_t start = registry_start(key), k = 0;
	while (k < REGISTRY_ROOM && atomic_load(&r->entries[(start + k) % REGISTRY_ROOM].key) != 0)
		k++;
	if (k == REGISTRY_ROOM)
		layer_die("more than %d instances or devices at once", REGISTRY_ROOM);
	size_t i = (start + k) % REGISTRY_ROOM;
	atomic_store_explicit(&r->entries[i].object, object, memory_order_relaxed);
	atomic_store_explicit(&r->entries[i].key, key, memory_order_release);
	pthread_mutex_unlock(&registry_lock);
}

static void registry_remove(registry *r, uintptr_t key)
{
	pthread_mutex_lock(&registry_lock);
	for (size_t i = 0; i < REGISTRY_ROOM; i++)
		if (atomic_load(&r->entries[i].key) == key)
			atomic_store(&r->entries[i].key, 0);
	pthread_mutex_unlock(&registry_lock);
}

layer_instance *layer_instance_of(const void *dispatchable)
{
	layer_instance *i = registry_find(&instances, dispatch_key(dispatchable));
	if (i == NULL)
		layer_die("a call for an instance that was not created through the layer");
	return i;
}

layer_device *layer_device_of(const void *dispatchable)
{
	layer_device *d = registry_find(&devices, dispatch_key(dispatchable));
	if (d == NULL)
		layer_die("a call for a device that was not created through the layer");
	return d;
}

void layer_adopt(layer_device *d, void *dispatchable)
{
	if (d->set_loader_data == NULL || d->set_loader_data(d->handle, dispatchable) != VK_SUCCESS)
		*(uintptr_t *)dispatchable = dispatch_key(d->handle);
}

static PFN_vkVoidFunction intercepted(const char *name)
{
	for (size_t k = 0; k < layer_this.intercept_count; k++)
		if (strcmp(name, layer_this.intercepts[k].name) == 0)
			return layer_this.intercepts[k].function;
	for (const layer_intercept *i = layer_this.more_intercepts; i != NULL && i->name != NULL; i++)
		if (strcmp(name, i->name) == 0)
			return i->function;
	return NULL;
}

// Removes the layer's own link from the chain. Layers may change the loader's structure.
static VkLayerInstanceLink *instance_link(const VkInstanceCreateInfo *info)
{
	for (VkLayerInstanceCreateInfo *c = (void *)info->pNext; c != NULL; c = (void *)c->pNext)
		if (c->sType == VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO &&
			c->function == VK_LAYER_LINK_INFO) {
			VkLayerInstanceLink *link = c->u.pLayerInfo;
			c->u.pLayerInfo = link->pNext;
			return link;
		}
	layer_die("vkCreateInstance: no link in the loader's chain");
}

static VkLayerDeviceCreateInfo *device_chain(const VkDeviceCreateInfo *info, VkLayerFunction function)
{
	for (VkLayerDeviceCreateInfo *c = (void *)info->pNext; c != NULL; c = (void *)c->pNext)
		if (c->sType == VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO && c->function == function)
			return c;
	return NULL;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *info,
	const VkAllocationCallbacks *allocator, VkInstance *out)
{
	PFN_vkGetInstanceProcAddr get = instance_link(info)->pfnNextGetInstanceProcAddr;
	PFN_vkCreateInstance next = (PFN_vkCreateInstance)get(NULL, "vkCreateInstance");
	if (next == NULL)
		return VK_ERROR_INITIALIZATION_FAILED;
	VkResult r = layer_this.create_instance != NULL ?
		layer_this.create_instance(info, allocator, out, next) : next(info, allocator, out);
	if (r != VK_SUCCESS)
		return r;
	layer_instance *i = layer_allocate(sizeof *i);
	i->handle = *out;
	i->get = get;
#define LOOK_UP(name, alias)                                                                   \
	i->next.name = (PFN_vk##name)get(*out, "vk" #name);                                    \
	if (i->next.name == NULL)                                                              \
		i->next.name = (PFN_vk##name)get(*out, "vk" #alias);
	LAYER_INSTANCE_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
	registry_put(&instances, dispatch_key(*out), i);
	if (layer_this.instance_created != NULL)
		layer_this.instance_created(i, info);
	return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL destroy_instance(VkInstance handle,
	const VkAllocationCallbacks *allocator)
{
	if (handle == VK_NULL_HANDLE)
		return;
	layer_instance *i = layer_instance_of(handle);
	if (layer_this.instance_destroying != NULL)
		layer_this.instance_destroying(i);
	uintptr_t key = dispatch_key(handle);
	i->next.DestroyInstance(handle, allocator);
	registry_remove(&instances, key);
	free(i);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
	const VkDeviceCreateInfo *info, const VkAllocationCallbacks *allocator, VkDevice *out)
{
	layer_instance *i = layer_instance_of(physical);
	VkLayerDeviceCreateInfo *c = device_chain(info, VK_LAYER_LINK_INFO);
	if (c == NULL)
		layer_die("vkCreateDevice: no link in the loader's chain");
	VkLayerDeviceLink *link = c->u.pLayerInfo;
	c->u.pLayerInfo = link->pNext;
	PFN_vkCreateDevice next =
		(PFN_vkCreateDevice)link->pfnNextGetInstanceProcAddr(i->handle, "vkCreateDevice");
	if (next == NULL)
		return VK_ERROR_INITIALIZATION_FAILED;
	VkLayerDeviceCreateInfo *data = device_chain(info, VK_LOADER_DATA_CALLBACK);
	VkResult r = layer_this.create_device != NULL ?
		layer_this.create_device(i, physical, info, allocator, out, next) :
		next(physical, info, allocator, out);
	if (r != VK_SUCCESS)
		return r;

	layer_device *d = layer_allocate(sizeof *d);
	d->handle = *out;
	d->physical = physical;
	d->instance = i;
	d->number = atomic_fetch_add(&device_count, 1);
	d->get = link->pfnNextGetDeviceProcAddr;
	d->set_loader_data = data != NULL ? data->u.pfnSetDeviceLoaderData : NULL;
#define LOOK_UP(name, alias)                                                                   \
	d->next.name = (PFN_vk##name)d->get(*out, "vk" #name);                                 \
	if (d->next.name == NULL)                                                              \
		d->next.name = (PFN_vk##name)d->get(*out, "vk" #alias);
	LAYER_DEVICE_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
	registry_put(&devices, dispatch_key(*out), d);
	if (layer_this.device_created != NULL && (r = layer_this.device_created(d, info)) != VK_SUCCESS) {
		registry_remove(&devices, dispatch_key(*out));
		d->next.DestroyDevice(*out, allocator);
		free(d);
		*out = VK_NULL_HANDLE;
	}
	return r;
}

static VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice handle,
	const VkAllocationCallbacks *allocator)
{
	if (handle == VK_NULL_HANDLE)
		return;
	layer_device *d = layer_device_of(handle);
	if (layer_this.device_destroying != NULL)
		layer_this.device_destroying(d);
	// Remove it first: the loader may reuse the address for a device that another thread creates
	// as soon as this one is destroyed.
	registry_remove(&devices, dispatch_key(handle));
	d->next.DestroyDevice(handle, allocator);
	free(d);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_proc(VkDevice handle, const char *name)
{
	if (strcmp(name, "vkGetDeviceProcAddr") == 0)
		return (PFN_vkVoidFunction)device_proc;
	if (strcmp(name, "vkDestroyDevice") == 0)
		return (PFN_vkVoidFunction)destroy_device;
	PFN_vkVoidFunction next = layer_device_of(handle)->get(handle, name), own;
	return next != NULL && (own = intercepted(name)) != NULL ? own : next;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_proc(VkInstance handle, const char *name)
{
	static const layer_intercept always[] = {
		LAYER_INTERCEPT(vkGetInstanceProcAddr, instance_proc),
		LAYER_INTERCEPT(vkCreateInstance, create_instance),
		LAYER_INTERCEPT(vkDestroyInstance, destroy_instance),
		LAYER_INTERCEPT(vkCreateDevice, create_device),
		LAYER_INTERCEPT(vkDestroyDevice, destroy_device),
		LAYER_INTERCEPT(vkGetDeviceProcAddr, device_proc),
	};
	for (size_t k = 0; k < sizeof always / sizeof always[0]; k++)
		if (strcmp(name, always[k].name) == 0)
			return always[k].function;
	if (handle == VK_NULL_HANDLE)
		return NULL;
	PFN_vkVoidFunction next = layer_instance_of(handle)->get(handle, name), own;
	return next != NULL && (own = intercepted(name)) != NULL ? own : next;
}

VK_LAYER_EXPORT VKAPI_ATTR VkResult VKAPI_CALL vkNegotiateLoaderLayerInterfaceVersion(
	VkNegotiateLayerInterface *n)
{
	if (n->loaderLayerInterfaceVersion < 2)
		return VK_ERROR_INITIALIZATION_FAILED;
	n->loaderLayerInterfaceVersion = 2;
	n->pfnGetInstanceProcAddr = instance_proc;
	n->pfnGetDeviceProcAddr = device_proc;
	n->pfnGetPhysicalDeviceProcAddr = NULL;
	return VK_SUCCESS;
}

// A single write, so that lines of several threads are not mixed.
static void say(const char *format, va_list arguments)
{
	char text[1024];
	int n = snprintf(text, sizeof text, "%s: ", layer_this.name);
	vsnprintf(text + n, sizeof text - (size_t)n - 1, format, arguments);
	strcat(text, "\n");
	fputs(text, stderr);
	fflush(stderr);
}

void layer_say(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
}

void layer_die(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
	abort();
}

void *layer_allocate(size_t bytes)
{
	void *p = calloc(1, bytes);
	if (p == NULL)
		layer_die("no memory for %zu bytes", bytes);
	return p;
}

uint64_t layer_environment(const char *name, uint64_t fallback)
{
	const char *text = getenv(name);
	if (text == NULL || *text == '\0')
		return fallback;
	char *end;
	errno = 0;
	uint64_t value = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end != '\0' || errno != 0)
		layer_die("%s=%s is not a number", name, text);
	return value;
}

uint64_t layer_random_next(layer_random *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

layer_random layer_random_of(uint64_t seed, uint64_t a, uint64_t b)
{
	layer_random r = { seed };
	r.state = layer_random_next(&r) ^ a;
	r.state = layer_random_next(&r) ^ b;
	r.state = layer_random_next(&r);
	return r;
}

uint64_t layer_random_below(layer_random *r, uint64_t n)
{
	return n == 0 ? 0 : (uint64_t)((unsigned __int128)layer_random_next(r) * n >> 64);
}

const void *layer_chained(const void *chain, VkStructureType type)
{
	for (const VkBaseInStructure *s = chain; s != NULL; s = s->pNext)
		if (s->sType == type)
			return s;
	return NULL;
}
