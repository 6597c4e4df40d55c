// A Vulkan driver that can be loaded into a process so often and no more, like those
// that leave something behind each time that they are unloaded: from the 30th time on it
// refuses to work. All else is the driver's whose library VKOMP_TEST_DRIVER names.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define REFUSES 30
// What is kept in the environment outlives this library.
#define LOADS "VKOMP_TEST_LOADS"

static void *driver;
static int loads;

__attribute__((constructor)) static void loaded(void)
{
	const char *before = getenv(LOADS);
	char text[16];
	loads = (before != NULL ? atoi(before) : 0) + 1;
	snprintf(text, sizeof text, "%d", loads);
	setenv(LOADS, text, 1);
	driver = dlopen(getenv("VKOMP_TEST_DRIVER"), RTLD_NOW);
}

__attribute__((destructor)) static void unloaded(void)
{
	if (driver != NULL)
		dlclose(driver);
}

static void *drivers(const char *name) { return driver != NULL ? dlsym(driver, name) : NULL; }

void *vk_icdGetInstanceProcAddr(void *instance, const char *name)
{
	void *(*get)(void *, const char *) = (void *(*)(void *, const char *))drivers("vk_icdGetInstanceProcAddr");
	return get != NULL ? get(instance, name) : NULL;
}

void *vk_icdGetPhysicalDeviceProcAddr(void *instance, const char *name)
{
	void *(*get)(void *, const char *) = (void *(*)(void *, const char *))drivers("vk_icdGetPhysicalDeviceProcAddr");
	return get != NULL ? get(instance, name) : NULL;
}

int32_t vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version)
{
	int32_t (*negotiate)(uint32_t *) = (int32_t (*)(uint32_t *))drivers("vk_icdNegotiateLoaderICDInterfaceVersion");
	if (loads >= REFUSES || negotiate == NULL)
		return -9; // VK_ERROR_INCOMPATIBLE_DRIVER
	return negotiate(version);
}
