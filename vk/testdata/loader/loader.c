// A library for tests with a vkGetInstanceProcAddr of its own, as window libraries
// have one: it hands on what it is asked for. With VKOMP_TEST_LOADER in the
// environment it is another Vulkan's.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void own(void) {}

void *vkGetInstanceProcAddr(void *instance, const char *name)
{
	static void *(*next)(void *, const char *);
	if (getenv("VKOMP_TEST_LOADER") != NULL && strcmp(name, "vkCreateInstance") == 0)
		return (void *)own;
	if (next == NULL)
		next = (void *(*)(void *, const char *))dlsym(dlopen("libvulkan.so.1", RTLD_NOW), "vkGetInstanceProcAddr");
	return next(instance, name);
}
