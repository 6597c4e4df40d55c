#define _GNU_SOURCE
#include "program.h"

#include <stdarg.h>

static uint32_t checks, failures;

void program_check(bool ok, const char *file, int line, const char *format, ...)
{
	checks++;
	if (ok)
		return;
	failures++;
	va_list arguments;
	va_start(arguments, format);
	fprintf(stderr, "%s:%d: ", file, line);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
}

int program_result(const char *name)
{
	printf("%s: %u checks, %u failed\n", name, checks, failures);
	return failures != 0 || checks == 0;
}

void program_must(VkResult r, const char *call)
{
	if (r != VK_SUCCESS) {
		fprintf(stderr, "%s: VkResult %d\n", call, r);
		exit(1);
	}
}

uint64_t program_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint32_t program_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(program_random(state) >> 32) % n;
}

void program_environment(const char *name, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	setenv(name, text, 1);
}

static VKAPI_ATTR VkBool32 VKAPI_CALL message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
	VkDebugUtilsMessageTypeFlagsEXT types, const VkDebugUtilsMessengerCallbackDataEXT *data,
	void *user)
{
	(void)severity;
	(void)types;
	__atomic_fetch_add(&((program *)user)->messages, 1, __ATOMIC_RELAXED);
	fprintf(stderr, "validation: %s\n", data->pMessage);
	return VK_FALSE;
}

static void open_device(program *p)
{
	VkQueueFamilyProperties families[PROGRAM_QUEUES];
	// SwiftShader gives as many families as there is room for.
	vkGetPhysicalDeviceQueueFamilyProperties(p->physical, &p->family_count, NULL);
	if (p->family_count > PROGRAM_QUEUES)
		p->family_count = PROGRAM_QUEUES;
	vkGetPhysicalDeviceQueueFamilyProperties(p->physical, &p->family_count, families);
	static const float priorities[PROGRAM_QUEUES];
	VkDeviceQueueCreateInfo queues[PROGRAM_QUEUES];
	for (uint32_t f = 0; f < p->family_count; f++) {
		p->families[f] = f;
		queues[f] = (VkDeviceQueueCreateInfo){
			.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
			.queueFamilyIndex = f,
			.queueCount = families[f].queueCount < PROGRAM_QUEUES ? families[f].queueCount : PROGRAM_QUEUES,
			.pQueuePriorities = priorities,
		};
	}
	VkPhysicalDeviceVulkan13Features features13 = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
		.synchronization2 = VK_TRUE,
	};
	VkPhysicalDeviceVulkan12Features features12 = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
		.pNext = &features13,
		.timelineSemaphore = VK_TRUE,
	};
	VkDeviceCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
		.pNext = &features12,
		.queueCreateInfoCount = p->family_count,
		.pQueueCreateInfos = queues,
	};
	MUST(vkCreateDevice(p->physical, &info, NULL, &p->device));
	p->CmdPipelineBarrier2 =
		(PFN_vkCmdPipelineBarrier2)vkGetDeviceProcAddr(p->device, "vkCmdPipelineBarrier2");
	p->QueueSubmit2 = (PFN_vkQueueSubmit2)vkGetDeviceProcAddr(p->device, "vkQueueSubmit2");

	p->queue_count = 0;
	for (uint32_t f = 0; f < p->family_count; f++)
		for (uint32_t k = 0; k < queues[f].queueCount && p->queue_count < PROGRAM_QUEUES; k++) {
			program_queue *q = &p->queues[p->queue_count++];
			*q = (program_queue){ .family = f, .index = k, .flags = families[f].queueFlags };
			vkGetDeviceQueue(p->device, f, k, &q->handle);
			VkCommandPoolCreateInfo pool = {
				.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
				.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
				.queueFamilyIndex = f,
			};
			MUST(vkCreateCommandPool(p->device, &pool, NULL, &q->pool));
		}
}

void program_open(program *p, const char *const *layers)
{
	*p = (program){ 0 };
	uint32_t count = 0;
	bool validation = false;
	while (layers[count] != NULL)
		validation |= strcmp(layers[count++], "VK_LAYER_KHRONOS_validation") == 0;

	static const char *const extensions[] = { VK_EXT_DEBUG_UTILS_EXTENSION_NAME };
	static const VkValidationFeatureEnableEXT enable[] = {
		VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,
	};
	VkValidationFeaturesEXT features = {
		.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
		.enabledValidationFeatureCount = 1,
		.pEnabledValidationFeatures = enable,
	};
	VkDebugUtilsMessengerCreateInfoEXT messenger = {
		.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
		.pNext = &features,
		.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
			VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
		.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
		.pfnUserCallback = message,
		.pUserData = p,
	};
	VkApplicationInfo application = {
		.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
		.apiVersion = VK_API_VERSION_1_3,
	};
	VkInstanceCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
		.pNext = validation ? &messenger : NULL,
		.pApplicationInfo = &application,
		.enabledLayerCount = count,
		.ppEnabledLayerNames = layers,
		.enabledExtensionCount = validation,
		.ppEnabledExtensionNames = extensions,
	};
	MUST(vkCreateInstance(&info, NULL, &p->instance));
	if (validation) {
		PFN_vkCreateDebugUtilsMessengerEXT create = (PFN_vkCreateDebugUtilsMessengerEXT)
			vkGetInstanceProcAddr(p->instance, "vkCreateDebugUtilsMessengerEXT");
		messenger.pNext = NULL;
		MUST(create(p->instance, &messenger, NULL, &p->messenger));
	}
	uint32_t one = 1;
	VkResult r = vkEnumeratePhysicalDevices(p->instance, &one, &p->physical);
	if (r != VK_INCOMPLETE)
		program_must(r, "vkEnumeratePhysicalDevices");
	if (one == 0) {
		fprintf(stderr, "no Vulkan device\n");
		exit(1);
	}
	open_device(p);
}

void program_open_again(program *p, const program *first)
{
	*p = (program){ .physical = first->physical };
	open_device(p);
}

void program_close(program *p)
{
	for (uint32_t k = 0; k < p->queue_count; k++)
		vkDestroyCommandPool(p->device, p->queues[k].pool, NULL);
	vkDestroyDevice(p->device, NULL);
	if (p->messenger != VK_NULL_HANDLE) {
		PFN_vkDestroyDebugUtilsMessengerEXT destroy = (PFN_vkDestroyDebugUtilsMessengerEXT)
			vkGetInstanceProcAddr(p->instance, "vkDestroyDebugUtilsMessengerEXT");
		destroy(p->instance, p->messenger, NULL);
	}
	if (p->instance != VK_NULL_HANDLE)
		vkDestroyInstance(p->instance, NULL);
}

program_buffer program_buffer_make(program *p, VkDeviceSize bytes)
{
	program_buffer b = { .bytes = bytes };
	VkBufferCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
		.size = bytes,
		.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
			VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
		.sharingMode = p->family_count > 1 ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE,
		.queueFamilyIndexCount = p->family_count > 1 ? p->family_count : 0,
		.pQueueFamilyIndices = p->families,
	};
	MUST(vkCreateBuffer(p->device, &info, NULL, &b.handle));
	VkMemoryRequirements needs;
	vkGetBufferMemoryRequirements(p->device, b.handle, &needs);
	VkPhysicalDeviceMemoryProperties memory;
	vkGetPhysicalDeviceMemoryProperties(p->physical, &memory);
	VkMemoryPropertyFlags want = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
		VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
	uint32_t type = 0;
	while (type < memory.memoryTypeCount && ((needs.memoryTypeBits >> type & 1) == 0 ||
			(memory.memoryTypes[type].propertyFlags & want) != want))
		type++;
	VkMemoryAllocateInfo allocate = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
		.allocationSize = needs.size,
		.memoryTypeIndex = type,
	};
	MUST(vkAllocateMemory(p->device, &allocate, NULL, &b.memory));
	MUST(vkBindBufferMemory(p->device, b.handle, b.memory, 0));
	void *host;
	MUST(vkMapMemory(p->device, b.memory, 0, VK_WHOLE_SIZE, 0, &host));
	b.words = host;
	memset(b.words, 0, bytes);
	return b;
}

void program_buffer_free(program *p, program_buffer *b)
{
	vkDestroyBuffer(p->device, b->handle, NULL);
	vkFreeMemory(p->device, b->memory, NULL);
}

VkSemaphore program_timeline(program *p)
{
	VkSemaphoreTypeCreateInfo type = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
		.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
	};
	VkSemaphoreCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type };
	VkSemaphore s;
	MUST(vkCreateSemaphore(p->device, &info, NULL, &s));
	return s;
}

VkSemaphore program_binary(program *p)
{
	VkSemaphoreCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO };
	VkSemaphore s;
	MUST(vkCreateSemaphore(p->device, &info, NULL, &s));
	return s;
}

uint64_t program_value(program *p, VkSemaphore timeline)
{
	uint64_t value;
	MUST(vkGetSemaphoreCounterValue(p->device, timeline, &value));
	return value;
}

bool program_reaches(program *p, VkSemaphore timeline, uint64_t value, uint64_t nanoseconds)
{
	VkSemaphoreWaitInfo info = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
		.semaphoreCount = 1,
		.pSemaphores = &timeline,
		.pValues = &value,
	};
	VkResult r = vkWaitSemaphores(p->device, &info, nanoseconds);
	if (r != VK_TIMEOUT)
		program_must(r, "vkWaitSemaphores");
	return r == VK_SUCCESS;
}

VkFence program_fence(program *p)
{
	VkFenceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
	VkFence f;
	MUST(vkCreateFence(p->device, &info, NULL, &f));
	return f;
}

VkCommandBuffer program_begin(program *p, program_queue *q)
{
	VkCommandBufferAllocateInfo allocate = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
		.commandPool = q->pool,
		.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
		.commandBufferCount = 1,
	};
	VkCommandBuffer c;
	MUST(vkAllocateCommandBuffers(p->device, &allocate, &c));
	VkCommandBufferBeginInfo begin = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO };
	MUST(vkBeginCommandBuffer(c, &begin));
	return c;
}

void program_end(VkCommandBuffer c)
{
	MUST(vkEndCommandBuffer(c));
}

void program_barrier(VkCommandBuffer c)
{
	VkMemoryBarrier barrier = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
		.srcAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
		.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
	};
	vkCmdPipelineBarrier(c, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
		0, 1, &barrier, 0, NULL, 0, NULL);
}

VkResult program_submit(program_queue *q, VkCommandBuffer c, uint32_t wait_count,
	const program_point *waits, uint32_t signal_count, const program_point *signals, VkFence fence)
{
	enum { MOST = 64 };
	VkSemaphore wait[MOST], signal[MOST];
	uint64_t wait_values[MOST], signal_values[MOST];
	VkPipelineStageFlags stages[MOST];
	if (wait_count > MOST || signal_count > MOST)
		return VK_ERROR_OUT_OF_HOST_MEMORY;
	for (uint32_t k = 0; k < wait_count; k++) {
		wait[k] = waits[k].semaphore;
		wait_values[k] = waits[k].value;
		stages[k] = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
	}
	for (uint32_t k = 0; k < signal_count; k++) {
		signal[k] = signals[k].semaphore;
		signal_values[k] = signals[k].value;
	}
	VkTimelineSemaphoreSubmitInfo values = {
		.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
		.waitSemaphoreValueCount = wait_count,
		.pWaitSemaphoreValues = wait_values,
		.signalSemaphoreValueCount = signal_count,
		.pSignalSemaphoreValues = signal_values,
	};
	VkSubmitInfo info = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
		.pNext = &values,
		.waitSemaphoreCount = wait_count,
		.pWaitSemaphores = wait,
		.pWaitDstStageMask = stages,
		.commandBufferCount = c != VK_NULL_HANDLE,
		.pCommandBuffers = &c,
		.signalSemaphoreCount = signal_count,
		.pSignalSemaphores = signal,
	};
	return vkQueueSubmit(q->handle, 1, &info, fence);
}

program_kernel program_kernel_make(program *p, const uint32_t *code, size_t bytes,
	uint32_t binding_count, uint32_t push_bytes, uint32_t set_count)
{
	program_kernel k = { .binding_count = binding_count, .push_bytes = push_bytes };
	VkDescriptorSetLayoutBinding bindings[16];
	for (uint32_t b = 0; b < binding_count; b++)
		bindings[b] = (VkDescriptorSetLayoutBinding){
			.binding = b,
			.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
			.descriptorCount = 1,
			.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
		};
	VkDescriptorSetLayoutCreateInfo set_layout = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
		.bindingCount = binding_count,
		.pBindings = bindings,
	};
	MUST(vkCreateDescriptorSetLayout(p->device, &set_layout, NULL, &k.set_layout));
	VkPushConstantRange range = { .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = push_bytes };
	VkPipelineLayoutCreateInfo layout = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
		.setLayoutCount = 1,
		.pSetLayouts = &k.set_layout,
		.pushConstantRangeCount = push_bytes != 0,
		.pPushConstantRanges = &range,
	};
	MUST(vkCreatePipelineLayout(p->device, &layout, NULL, &k.layout));
	VkShaderModuleCreateInfo module = {
		.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
		.codeSize = bytes,
		.pCode = code,
	};
	MUST(vkCreateShaderModule(p->device, &module, NULL, &k.module));
	VkComputePipelineCreateInfo pipeline = {
		.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
		.stage = {
			.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
			.stage = VK_SHADER_STAGE_COMPUTE_BIT,
			.module = k.module,
			.pName = "main",
		},
		.layout = k.layout,
	};
	MUST(vkCreateComputePipelines(p->device, VK_NULL_HANDLE, 1, &pipeline, NULL, &k.pipeline));
	VkDescriptorPoolSize size = {
		.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
		.descriptorCount = binding_count * set_count,
	};
	VkDescriptorPoolCreateInfo pool = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
		.maxSets = set_count,
		.poolSizeCount = 1,
		.pPoolSizes = &size,
	};
	MUST(vkCreateDescriptorPool(p->device, &pool, NULL, &k.pool));
	return k;
}

void program_kernel_free(program *p, program_kernel *k)
{
	vkDestroyDescriptorPool(p->device, k->pool, NULL);
	vkDestroyPipeline(p->device, k->pipeline, NULL);
	vkDestroyShaderModule(p->device, k->module, NULL);
	vkDestroyPipelineLayout(p->device, k->layout, NULL);
	vkDestroyDescriptorSetLayout(p->device, k->set_layout, NULL);
}

VkDescriptorSet program_set(program *p, program_kernel *k, const program_buffer *const *buffers)
{
	VkDescriptorSetAllocateInfo allocate = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
		.descriptorPool = k->pool,
		.descriptorSetCount = 1,
		.pSetLayouts = &k->set_layout,
	};
	VkDescriptorSet set;
	MUST(vkAllocateDescriptorSets(p->device, &allocate, &set));
	for (uint32_t b = 0; b < k->binding_count; b++) {
		VkDescriptorBufferInfo buffer = { .buffer = buffers[b]->handle, .range = VK_WHOLE_SIZE };
		VkWriteDescriptorSet write = {
			.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
			.dstSet = set,
			.dstBinding = b,
			.descriptorCount = 1,
			.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
			.pBufferInfo = &buffer,
		};
		vkUpdateDescriptorSets(p->device, 1, &write, 0, NULL);
	}
	return set;
}

void program_dispatch(VkCommandBuffer c, program_kernel *k, VkDescriptorSet set, const void *push,
	uint32_t groups)
{
	vkCmdBindPipeline(c, VK_PIPELINE_BIND_POINT_COMPUTE, k->pipeline);
	vkCmdBindDescriptorSets(c, VK_PIPELINE_BIND_POINT_COMPUTE, k->layout, 0, 1, &set, 0, NULL);
	if (k->push_bytes != 0)
		vkCmdPushConstants(c, k->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, k->push_bytes, push);
	vkCmdDispatch(c, groups, 1, 1);
}
