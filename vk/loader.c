#define _GNU_SOURCE // dladdr, dl_iterate_phdr
#include "vko.h"

#include <stdio.h>
#include <string.h>

#if defined(_WIN32)

#include <windows.h>

uintptr_t vko_load(const char *library, char *why, size_t why_size)
{
	// Search the system directory only: the program's own directory and those in PATH may be
	// writable by others.
	HMODULE module = LoadLibraryExA(library, NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
	if (module == NULL) {
		snprintf(why, why_size, "LoadLibraryEx error %lu", (unsigned long)GetLastError());
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
#include <stdlib.h>

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

#if defined(__ELF__)

#include <link.h>

typedef struct names {
	char **at;
	size_t count;
} names;

static int add_name(struct dl_phdr_info *object, size_t size, void *all)
{
	(void)size;
	names *n = all;
	if (object->dlpi_name == NULL || object->dlpi_name[0] == '\0')
		return 0; // the program itself
	char **grown = realloc(n->at, (n->count + 1) * sizeof *grown);
	if (grown == NULL)
		return 1;
	n->at = grown;
	n->at[n->count] = strdup(object->dlpi_name);
	return n->at[n->count++] == NULL;
}

void vko_keep_drivers(void)
{
	// The list is locked during the walk, so nothing can be opened here.
	names n = { 0 };
	dl_iterate_phdr(add_name, &n);
	for (size_t i = 0; i < n.count; i++) {
		void *library = n.at[i] != NULL ? dlopen(n.at[i], RTLD_LAZY | RTLD_NOLOAD) : NULL;
		free(n.at[i]);
		if (library == NULL)
			continue;
		Dl_info in;
		void *entry = dlsym(library, "vk_icdGetInstanceProcAddr");
		// It may belong to a library on which this one depends, which is also in the list.
		if (entry != NULL && dladdr(entry, &in) != 0) {
			void *kept = dlopen(in.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
			if (kept != NULL)
				dlclose(kept);
		}
		dlclose(library);
	}
	free(n.at);
}

#else

void vko_keep_drivers(void) {}

#endif

int32_t vko_same_loader(uintptr_t a, uintptr_t b)
{
	// The function may wrap the library's own, as in window libraries; the function that it
	// finds belongs to the library.
	vko_get_proc get;
	memcpy(&get, &a, sizeof get);
	const void *first = get(NULL, "vkCreateInstance");
	memcpy(&get, &b, sizeof get);
	return first == get(NULL, "vkCreateInstance");
}
