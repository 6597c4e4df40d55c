#include "vko.h"

#include <stdlib.h>

int32_t vko_shader_module(const vko_device *d, const uint32_t *code, size_t words, vkoHandle *out)
{
	const vkoShaderModuleCreateInfo info = {
		.sType = VKO_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
		.codeSize = words * sizeof *code,
		.pCode = code,
	};
	return d->CreateShaderModule(d->handle, &info, NULL, out);
}

int32_t vko_set_layout(const vko_device *d, uint32_t binding_mask, uint32_t elements, vkoHandle *out)
{
	vkoDescriptorSetLayoutBinding bindings[32];
	uint32_t count = 0;
	for (uint32_t b = 0; b < 32; b++) {
		if (!(binding_mask >> b & 1))
			continue;
		bindings[count++] = (vkoDescriptorSetLayoutBinding){
			.binding = b,
			.descriptorType = VKO_DESCRIPTOR_TYPE_STORAGE_BUFFER,
			.descriptorCount = elements,
			.stageFlags = VKO_SHADER_STAGE_COMPUTE_BIT,
		};
	}
	const vkoDescriptorSetLayoutCreateInfo info = {
		.sType = VKO_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
		.flags = d->CmdPushDescriptorSetKHR != NULL
			? VKO_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR
			: 0,
		.bindingCount = count,
		.pBindings = bindings,
	};
	return d->CreateDescriptorSetLayout(d->handle, &info, NULL, out);
}

int32_t vko_pipeline_layout(const vko_device *d, vkoHandle set_layout, uint32_t push_bytes,
	vkoHandle *out)
{
	const vkoPushConstantRange range = {
		.stageFlags = VKO_SHADER_STAGE_COMPUTE_BIT,
		.size = push_bytes,
	};
	const vkoPipelineLayoutCreateInfo info = {
		.sType = VKO_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
		.setLayoutCount = set_layout != 0,
		.pSetLayouts = &set_layout,
		.pushConstantRangeCount = push_bytes != 0,
		.pPushConstantRanges = &range,
	};
	return d->CreatePipelineLayout(d->handle, &info, NULL, out);
}

int32_t vko_pipeline(const vko_device *d, vkoHandle cache, vkoHandle module, const char *entry,
	vkoHandle layout, uint32_t count, const uint32_t *ids, const uint32_t *sizes,
	const uint64_t *data, vkoHandle *out, uint32_t *found)
{
	vkoSpecializationMapEntry *entries = NULL;
	if (count > 0) {
		entries = calloc(count, sizeof *entries);
		if (entries == NULL)
			return VKO_ERROR_OUT_OF_HOST_MEMORY;
	}
	for (uint32_t k = 0; k < count; k++) {
		entries[k].constantID = ids[k];
		entries[k].offset = k * (uint32_t)sizeof *data;
		entries[k].size = sizes[k];
	}
	const vkoSpecializationInfo specialization = {
		.mapEntryCount = count,
		.pMapEntries = entries,
		.dataSize = count * sizeof *data,
		.pData = data,
	};
	// Vulkan 1.2 wants as many elements for stages as there are stages.
	vkoPipelineCreationFeedback whole = { 0 }, stage = { 0 };
	const vkoPipelineCreationFeedbackCreateInfo feedback = {
		.sType = VKO_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO,
		.pPipelineCreationFeedback = &whole,
		.pipelineStageCreationFeedbackCount = 1,
		.pPipelineStageCreationFeedbacks = &stage,
	};
	const vkoComputePipelineCreateInfo info = {
		.sType = VKO_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
		.pNext = found != NULL ? &feedback : NULL,
		.flags = VKO_PIPELINE_CREATE_DISPATCH_BASE_BIT,
		.stage = {
			.sType = VKO_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
			.stage = VKO_SHADER_STAGE_COMPUTE_BIT,
			.module = module,
			.pName = entry,
			.pSpecializationInfo = count > 0 ? &specialization : NULL,
		},
		.layout = layout,
		.basePipelineIndex = -1,
	};
	int32_t r = d->CreateComputePipelines(d->handle, cache, 1, &info, NULL, out);
	free(entries);
	const uint32_t hit = VKO_PIPELINE_CREATION_FEEDBACK_VALID_BIT |
		VKO_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT;
	if (found != NULL)
		*found = (whole.flags & hit) == hit;
	return r;
}

int32_t vko_pipeline_cache(const vko_device *d, const void *data, size_t size, vkoHandle *out)
{
	const vkoPipelineCacheCreateInfo info = {
		.sType = VKO_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
		.initialDataSize = size,
		.pInitialData = data,
	};
	return d->CreatePipelineCache(d->handle, &info, NULL, out);
}

int32_t vko_pipeline_cache_merge(const vko_device *d, vkoHandle into, vkoHandle from)
{
	return d->MergePipelineCaches(d->handle, into, 1, &from);
}

int32_t vko_pipeline_cache_data(const vko_device *d, vkoHandle cache, void *data, size_t *size)
{
	return d->GetPipelineCacheData(d->handle, cache, size, data);
}
