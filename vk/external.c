// Descriptors are POSIX's.
#define _POSIX_C_SOURCE 200809L
#include "vko.h"

#if defined(_WIN32)

// No driver has the extensions there.
int32_t vko_duplicate(int32_t fd, int32_t *copy) { return (void)fd, (void)copy, VKO_ERROR_INVALID_EXTERNAL_HANDLE; }
void vko_close(int32_t fd) { (void)fd; }
int32_t vko_is_stream(int32_t fd) { return (void)fd, 0; }

#else

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int32_t vko_duplicate(int32_t fd, int32_t *copy)
{
	*copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (*copy >= 0)
		return VKO_SUCCESS;
	return errno == EBADF ? VKO_ERROR_INVALID_EXTERNAL_HANDLE : VKO_ERROR_TOO_MANY_OBJECTS;
}

void vko_close(int32_t fd) { close(fd); }

int32_t vko_is_stream(int32_t fd)
{
	struct stat s;
	return fstat(fd, &s) == 0 && (S_ISFIFO(s.st_mode) || S_ISSOCK(s.st_mode) || isatty(fd));
}

#endif

// exported returns the result of an export. A driver that duplicates a descriptor of its own, as lavapipe
// does, does not notice that the process can open no more files.
static int32_t exported(int32_t result, int32_t fd)
{
	return result == VKO_SUCCESS && fd < 0 ? VKO_ERROR_TOO_MANY_OBJECTS : result;
}

int32_t vko_memory_export(const vko_device *d, vkoHandle memory, int32_t *fd)
{
	const vkoMemoryGetFdInfoKHR info = {
		.sType = VKO_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
		.memory = memory,
		.handleType = VKO_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
	};
	int32_t result = d->GetMemoryFdKHR(d->handle, &info, fd);
	return exported(result, *fd);
}

static int32_t create(const vko_device *d, int32_t semaphore_type, const void *chain, vkoHandle *out)
{
	const vkoSemaphoreTypeCreateInfo type = {
		.sType = VKO_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
		.pNext = chain,
		.semaphoreType = semaphore_type,
	};
	const vkoSemaphoreCreateInfo info = {
		.sType = VKO_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
		.pNext = &type,
	};
	return d->CreateSemaphore(d->handle, &info, NULL, out);
}

int32_t vko_semaphore_exportable(const vko_device *d, int32_t type, vkoHandle *out)
{
	const vkoExportSemaphoreCreateInfo exportable = {
		.sType = VKO_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO,
		.handleTypes = VKO_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
	};
	return create(d, type, &exportable, out);
}

int32_t vko_semaphore_export(const vko_device *d, vkoHandle semaphore, int32_t *fd)
{
	const vkoSemaphoreGetFdInfoKHR info = {
		.sType = VKO_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR,
		.semaphore = semaphore,
		.handleType = VKO_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
	};
	int32_t result = d->GetSemaphoreFdKHR(d->handle, &info, fd);
	return exported(result, *fd);
}

int32_t vko_semaphore_import(const vko_device *d, int32_t type, int32_t fd, vkoHandle *out)
{
	vkoHandle semaphore;
	int32_t r = create(d, type, NULL, &semaphore);
	if (r < 0)
		return r;
	vkoImportSemaphoreFdInfoKHR info = {
		.sType = VKO_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR,
		.semaphore = semaphore,
		.handleType = VKO_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
	};
	r = vko_duplicate(fd, &info.fd);
	if (r >= 0) {
		r = d->ImportSemaphoreFdKHR(d->handle, &info);
		if (r >= 0) {
			*out = semaphore;
			return r;
		}
		vko_close(info.fd);
	}
	d->DestroySemaphore(d->handle, semaphore, NULL);
	return r;
}
