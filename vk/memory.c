#include "vko.h"

#include <stdlib.h>

uint32_t vko_block_usage(uint32_t addressable)
{
	uint32_t usage = VKO_BUFFER_USAGE_STORAGE_BUFFER_BIT | VKO_BUFFER_USAGE_TRANSFER_SRC_BIT |
		VKO_BUFFER_USAGE_TRANSFER_DST_BIT;
	if (addressable)
		usage |= VKO_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
	return usage;
}

int32_t vko_block_buffer(const vko_device *d, uint64_t size, uint32_t addressable,
	uint32_t handle_type, vkoHandle *out)
{
	const vkoExternalMemoryBufferCreateInfo external = {
		.sType = VKO_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
		.handleTypes = handle_type,
	};
	const vkoBufferCreateInfo info = {
		.sType = VKO_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
		.pNext = handle_type != 0 ? &external : NULL,
		.size = size,
		.usage = vko_block_usage(addressable),
		.sharingMode = d->family_count > 1 ? VKO_SHARING_MODE_CONCURRENT
						   : VKO_SHARING_MODE_EXCLUSIVE,
		.queueFamilyIndexCount = d->family_count, // ignored where exclusive
		.pQueueFamilyIndices = d->families,
	};
	return d->CreateBuffer(d->handle, &info, NULL, out);
}

int32_t vko_memory_allocate(const vko_device *d, uint64_t size, uint32_t type, uint32_t addressable,
	vko_source source, vkoHandle *out)
{
	const vkoImportMemoryHostPointerInfoEXT host = {
		.sType = VKO_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
		.handleType = VKO_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
		.pHostPointer = (void *)source.host,
	};
	const vkoExportMemoryAllocateInfo exportable = {
		.sType = VKO_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
		.handleTypes = VKO_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
	};
	vkoImportMemoryFdInfoKHR file = {
		.sType = VKO_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
		.handleType = VKO_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
	};
	const void *chain = NULL;
	int32_t r;
	switch (source.kind) {
	case VKO_SOURCE_HOST:
		chain = &host;
		break;
	case VKO_SOURCE_EXPORTABLE:
		chain = &exportable;
		break;
	case VKO_SOURCE_FILE:
		r = vko_duplicate(source.fd, &file.fd);
		if (r < 0)
			return r;
		chain = &file;
	}
	const vkoMemoryAllocateFlagsInfo flags = {
		.sType = VKO_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
		.pNext = chain,
		.flags = VKO_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT,
	};
	const vkoMemoryAllocateInfo info = {
		.sType = VKO_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
		.pNext = addressable ? &flags : chain,
		.allocationSize = size,
		.memoryTypeIndex = type,
	};
	r = d->AllocateMemory(d->handle, &info, NULL, out);
	if (r < 0 && source.kind == VKO_SOURCE_FILE)
		vko_close(file.fd);
	return r;
}

int32_t vko_host_memory_types(const vko_device *d, uintptr_t host, uint32_t *types)
{
	vkoMemoryHostPointerPropertiesEXT properties = {
		.sType = VKO_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT,
	};
	int32_t r = d->GetMemoryHostPointerPropertiesEXT(d->handle,
		VKO_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT, (const void *)host, &properties);
	*types = properties.memoryTypeBits;
	return r;
}

uint64_t vko_buffer_address(const vko_device *d, vkoHandle buffer)
{
	const vkoBufferDeviceAddressInfo info = {
		.sType = VKO_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
		.buffer = buffer,
	};
	return d->GetBufferDeviceAddress(d->handle, &info);
}

int32_t vko_memory_make_visible(const vko_device *d, uint32_t to_device, const uint64_t *ranges,
	uint32_t count, uint64_t atom)
{
	vkoMappedMemoryRange few[16], *mapped = few;
	if (count > sizeof few / sizeof few[0]) {
		mapped = calloc(count, sizeof *mapped);
		if (mapped == NULL)
			return VKO_ERROR_OUT_OF_HOST_MEMORY;
	}
	uint32_t n = 0;
	for (uint32_t k = 0; k < count; k++, ranges += 3) {
		if (ranges[2] == 0)
			continue;
		const uint64_t before = ranges[1] % atom, size = before + ranges[2];
		mapped[n++] = (vkoMappedMemoryRange){
			.sType = VKO_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
			.memory = ranges[0],
			.offset = ranges[1] - before,
			.size = (size + atom - 1) / atom * atom,
		};
	}
	int32_t r = VKO_SUCCESS;
	if (n > 0)
		r = (to_device ? d->FlushMappedMemoryRanges : d->InvalidateMappedMemoryRanges)(d->handle, n,
			mapped);
	if (mapped != few)
		free(mapped);
	return r;
}
