#include "vko.h"

#include <stdio.h>
#include <string.h>

#if defined(_WIN32)

#include <windows.h>

uintptr_t vko_load(const char *library, char *why, size_t why_size)
{
	HMODULE module = LoadLibraryA(library);
	if (module == NULL) {
		snprintf(why, why_size, "LoadLibrary error %lu", (unsigned long)GetLastError());
		return 0;
	}
	FARPROC proc = GetProcAddress(module, "vkGetInstanceProcAddr");
	if (proc == NULL) {
		snprintf(why, why_size, "it has no vkGetInstanceProcAddr");
		FreeLibrary(module);
	}
	return (uintptr_t)proc;
}

#else

#include <dlfcn.h>

uintptr_t vko_load(const char *library, char *why, size_t why_size)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL) {
		const char *error = dlerror();
		snprintf(why, why_size, "%s", error != NULL ? error : "not found");
		return 0;
	}
	void *proc = dlsym(handle, "vkGetInstanceProcAddr");
	if (proc == NULL) {
		snprintf(why, why_size, "it has no vkGetInstanceProcAddr");
		dlclose(handle);
	}
	return (uintptr_t)proc;
}

#endif

int32_t vko_same_loader(uintptr_t a, uintptr_t b)
{
	// A function may stand before the library's own, such as a window library's: what
	// it finds is the library's.
	vko_get_proc get;
	memcpy(&get, &a, sizeof get);
	const void *first = get(NULL, "vkCreateInstance");
	memcpy(&get, &b, sizeof get);
	return first == get(NULL, "vkCreateInstance");
}
