// A Vulkan driver that works and finds no device, like those that a
// distribution installs for graphics cards that the machine does not have.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void (*function)(void);

static int32_t create_instance(const void *info, const void *allocator, void **instance)
{
	// The loader keeps its dispatch table in the first word, which it expects
	// to hold this number.
	uintptr_t *object = calloc(2, sizeof *object);
	if (object == NULL)
		return -1;
	object[0] = 0x01CDC0DE;
	*instance = object;
	return 0;
}

static void destroy_instance(void *instance, const void *allocator) { free(instance); }

static int32_t enumerate_nothing(const void *where, uint32_t *count, void *list)
{
	*count = 0;
	return 0;
}

// Stands for the functions of devices, which nobody can call.
static void never(void) { abort(); }

function vk_icdGetInstanceProcAddr(void *instance, const char *name)
{
	if (strcmp(name, "vkCreateInstance") == 0)
		return (function)create_instance;
	if (strcmp(name, "vkDestroyInstance") == 0)
		return (function)destroy_instance;
	if (strcmp(name, "vkEnumeratePhysicalDevices") == 0 ||
		strcmp(name, "vkEnumerateInstanceExtensionProperties") == 0)
		return (function)enumerate_nothing;
	if (strcmp(name, "vkEnumerateInstanceVersion") == 0 || strncmp(name, "vk_icd", 6) == 0)
		return NULL;
	return never;
}

int32_t vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version)
{
	if (*version > 5)
		*version = 5;
	return 0;
}
