// What the project's Vulkan layers share. A layer stands between the loader and
// the driver and changes or watches some of the calls that pass:
//
//	program -> loader -> this layer -> next layer -> ... -> driver
//
// layer.c holds the loader/layer interface (version 2): it takes its link out of
// the chains of vkCreateInstance and vkCreateDevice, resolves the next layer's
// functions, and answers vkGet*ProcAddr from the layer's table of intercepted
// names. A layer is one file that defines layer_this:
//
//	static VKAPI_ATTR VkResult VKAPI_CALL queue_submit(VkQueue q, uint32_t n,
//		const VkSubmitInfo *infos, VkFence fence)
//	{
//		layer_device *d = layer_device_of(q);
//		return d->next.QueueSubmit(q, n, infos, fence);
//	}
//	static const layer_intercept intercepts[] = {
//		LAYER_INTERCEPT(vkQueueSubmit, queue_submit),
//	};
//	const layer_hooks layer_this = {
//		.name = "VK_LAYER_VKOMP_example",
//		LAYER_INTERCEPTS(intercepts),
//	};
//
// A name that is intercepted is answered only where the next layer has it too; a
// function and its KHR alias are two entries of the table. Everything here may be
// called from any thread. Dispatchable objects that a layer makes up need
// layer_adopt before a program may see them.
#ifndef VKOMP_LAYER_H
#define VKOMP_LAYER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vulkan/vulkan.h>
#include <vulkan/vk_layer.h>

// The next layer's entry points, NULL where it has none. F(name, alias): the
// member is called name; alias is tried where the driver lacks name.
#define LAYER_INSTANCE_FUNCTIONS(F)                                                            \
	F(DestroyInstance, DestroyInstance)                                                    \
	F(EnumeratePhysicalDevices, EnumeratePhysicalDevices)                                  \
	F(EnumerateDeviceExtensionProperties, EnumerateDeviceExtensionProperties)              \
	F(GetPhysicalDeviceProperties, GetPhysicalDeviceProperties)                            \
	F(GetPhysicalDeviceProperties2, GetPhysicalDeviceProperties2KHR)                       \
	F(GetPhysicalDeviceFeatures2, GetPhysicalDeviceFeatures2KHR)                           \
	F(GetPhysicalDeviceMemoryProperties, GetPhysicalDeviceMemoryProperties)                \
	F(GetPhysicalDeviceMemoryProperties2, GetPhysicalDeviceMemoryProperties2KHR)           \
	F(GetPhysicalDeviceQueueFamilyProperties, GetPhysicalDeviceQueueFamilyProperties)      \
	F(GetPhysicalDeviceQueueFamilyProperties2, GetPhysicalDeviceQueueFamilyProperties2KHR)

#define LAYER_DEVICE_FUNCTIONS(F)                                                              \
	F(DestroyDevice, DestroyDevice)                                                        \
	F(GetDeviceQueue, GetDeviceQueue)                                                      \
	F(GetDeviceQueue2, GetDeviceQueue2)                                                    \
	F(QueueSubmit, QueueSubmit)                                                            \
	F(QueueSubmit2, QueueSubmit2KHR)                                                       \
	F(QueueBindSparse, QueueBindSparse)                                                    \
	F(QueueWaitIdle, QueueWaitIdle)                                                        \
	F(DeviceWaitIdle, DeviceWaitIdle)                                                      \
	F(CreateSemaphore, CreateSemaphore)                                                    \
	F(DestroySemaphore, DestroySemaphore)                                                  \
	F(GetSemaphoreCounterValue, GetSemaphoreCounterValueKHR)                               \
	F(WaitSemaphores, WaitSemaphoresKHR)                                                   \
	F(SignalSemaphore, SignalSemaphoreKHR)                                                 \
	F(CreateFence, CreateFence)                                                            \
	F(DestroyFence, DestroyFence)                                                          \
	F(ResetFences, ResetFences)                                                            \
	F(GetFenceStatus, GetFenceStatus)                                                      \
	F(WaitForFences, WaitForFences)                                                        \
	F(CreateEvent, CreateEvent)                                                            \
	F(DestroyEvent, DestroyEvent)                                                          \
	F(CreateQueryPool, CreateQueryPool)                                                    \
	F(DestroyQueryPool, DestroyQueryPool)                                                  \
	F(GetQueryPoolResults, GetQueryPoolResults)                                            \
	F(AllocateMemory, AllocateMemory)                                                      \
	F(FreeMemory, FreeMemory)                                                              \
	F(MapMemory, MapMemory)                                                                \
	F(UnmapMemory, UnmapMemory)                                                            \
	F(FlushMappedMemoryRanges, FlushMappedMemoryRanges)                                    \
	F(InvalidateMappedMemoryRanges, InvalidateMappedMemoryRanges)                          \
	F(CreateBuffer, CreateBuffer)                                                          \
	F(DestroyBuffer, DestroyBuffer)                                                        \
	F(BindBufferMemory, BindBufferMemory)                                                  \
	F(BindBufferMemory2, BindBufferMemory2KHR)                                             \
	F(GetBufferMemoryRequirements, GetBufferMemoryRequirements)                            \
	F(GetBufferMemoryRequirements2, GetBufferMemoryRequirements2KHR)                       \
	F(GetBufferDeviceAddress, GetBufferDeviceAddressKHR)                                   \
	F(GetDeviceBufferMemoryRequirements, GetDeviceBufferMemoryRequirementsKHR)             \
	F(CreateImage, CreateImage)                                                            \
	F(DestroyImage, DestroyImage)                                                          \
	F(GetImageMemoryRequirements, GetImageMemoryRequirements)                              \
	F(GetImageMemoryRequirements2, GetImageMemoryRequirements2KHR)                         \
	F(GetDeviceImageMemoryRequirements, GetDeviceImageMemoryRequirementsKHR)               \
	F(CreateShaderModule, CreateShaderModule)                                              \
	F(DestroyShaderModule, DestroyShaderModule)                                            \
	F(CreateComputePipelines, CreateComputePipelines)                                      \
	F(CreatePipelineCache, CreatePipelineCache)                                            \
	F(GetPipelineCacheData, GetPipelineCacheData)                                          \
	F(MergePipelineCaches, MergePipelineCaches)                                            \
	F(DestroyPipeline, DestroyPipeline)                                                    \
	F(CreatePipelineLayout, CreatePipelineLayout)                                          \
	F(DestroyPipelineLayout, DestroyPipelineLayout)                                        \
	F(CreateDescriptorSetLayout, CreateDescriptorSetLayout)                                \
	F(DestroyDescriptorSetLayout, DestroyDescriptorSetLayout)                              \
	F(CreateDescriptorPool, CreateDescriptorPool)                                          \
	F(DestroyDescriptorPool, DestroyDescriptorPool)                                        \
	F(ResetDescriptorPool, ResetDescriptorPool)                                            \
	F(AllocateDescriptorSets, AllocateDescriptorSets)                                      \
	F(FreeDescriptorSets, FreeDescriptorSets)                                              \
	F(UpdateDescriptorSets, UpdateDescriptorSets)                                          \
	F(CreateDescriptorUpdateTemplate, CreateDescriptorUpdateTemplateKHR)                   \
	F(DestroyDescriptorUpdateTemplate, DestroyDescriptorUpdateTemplateKHR)                 \
	F(UpdateDescriptorSetWithTemplate, UpdateDescriptorSetWithTemplateKHR)                 \
	F(CreateCommandPool, CreateCommandPool)                                                \
	F(DestroyCommandPool, DestroyCommandPool)                                              \
	F(ResetCommandPool, ResetCommandPool)                                                  \
	F(TrimCommandPool, TrimCommandPoolKHR)                                                 \
	F(AllocateCommandBuffers, AllocateCommandBuffers)                                      \
	F(FreeCommandBuffers, FreeCommandBuffers)                                              \
	F(BeginCommandBuffer, BeginCommandBuffer)                                              \
	F(EndCommandBuffer, EndCommandBuffer)                                                  \
	F(ResetCommandBuffer, ResetCommandBuffer)                                              \
	F(CmdBindPipeline, CmdBindPipeline)                                                    \
	F(CmdBindDescriptorSets, CmdBindDescriptorSets)                                        \
	F(CmdPushDescriptorSetKHR, CmdPushDescriptorSet)                                       \
	F(CmdPushDescriptorSetWithTemplateKHR, CmdPushDescriptorSetWithTemplateKHR)            \
	F(CmdPushConstants, CmdPushConstants)                                                  \
	F(CmdDispatch, CmdDispatch)                                                            \
	F(CmdDispatchBase, CmdDispatchBaseKHR)                                                 \
	F(CmdDispatchIndirect, CmdDispatchIndirect)                                            \
	F(CmdDraw, CmdDraw)                                                                    \
	F(CmdDrawIndexed, CmdDrawIndexed)                                                      \
	F(CmdDrawIndirect, CmdDrawIndirect)                                                    \
	F(CmdDrawIndexedIndirect, CmdDrawIndexedIndirect)                                      \
	F(CmdDrawIndirectCount, CmdDrawIndirectCountKHR)                                       \
	F(CmdDrawIndexedIndirectCount, CmdDrawIndexedIndirectCountKHR)                         \
	F(CmdBindVertexBuffers, CmdBindVertexBuffers)                                          \
	F(CmdBindIndexBuffer, CmdBindIndexBuffer)                                              \
	F(CmdBeginRenderPass, CmdBeginRenderPass)                                              \
	F(CmdBeginRenderPass2, CmdBeginRenderPass2KHR)                                         \
	F(CmdNextSubpass, CmdNextSubpass)                                                      \
	F(CmdNextSubpass2, CmdNextSubpass2KHR)                                                 \
	F(CmdEndRenderPass, CmdEndRenderPass)                                                  \
	F(CmdEndRenderPass2, CmdEndRenderPass2KHR)                                             \
	F(CmdBeginRendering, CmdBeginRenderingKHR)                                             \
	F(CmdEndRendering, CmdEndRenderingKHR)                                                 \
	F(CmdCopyBuffer, CmdCopyBuffer)                                                        \
	F(CmdCopyBuffer2, CmdCopyBuffer2KHR)                                                   \
	F(CmdFillBuffer, CmdFillBuffer)                                                        \
	F(CmdUpdateBuffer, CmdUpdateBuffer)                                                    \
	F(CmdCopyImage, CmdCopyImage)                                                          \
	F(CmdCopyImage2, CmdCopyImage2KHR)                                                     \
	F(CmdCopyBufferToImage, CmdCopyBufferToImage)                                          \
	F(CmdCopyBufferToImage2, CmdCopyBufferToImage2KHR)                                     \
	F(CmdCopyImageToBuffer, CmdCopyImageToBuffer)                                          \
	F(CmdCopyImageToBuffer2, CmdCopyImageToBuffer2KHR)                                     \
	F(CmdBlitImage, CmdBlitImage)                                                          \
	F(CmdBlitImage2, CmdBlitImage2KHR)                                                     \
	F(CmdResolveImage, CmdResolveImage)                                                    \
	F(CmdResolveImage2, CmdResolveImage2KHR)                                               \
	F(CmdClearColorImage, CmdClearColorImage)                                              \
	F(CmdClearDepthStencilImage, CmdClearDepthStencilImage)                                \
	F(CmdClearAttachments, CmdClearAttachments)                                            \
	F(CmdPipelineBarrier, CmdPipelineBarrier)                                              \
	F(CmdPipelineBarrier2, CmdPipelineBarrier2KHR)                                         \
	F(CmdSetEvent, CmdSetEvent)                                                            \
	F(CmdSetEvent2, CmdSetEvent2KHR)                                                       \
	F(CmdResetEvent, CmdResetEvent)                                                        \
	F(CmdResetEvent2, CmdResetEvent2KHR)                                                   \
	F(CmdWaitEvents, CmdWaitEvents)                                                        \
	F(CmdWaitEvents2, CmdWaitEvents2KHR)                                                   \
	F(CmdBeginQuery, CmdBeginQuery)                                                        \
	F(CmdEndQuery, CmdEndQuery)                                                            \
	F(CmdResetQueryPool, CmdResetQueryPool)                                                \
	F(CmdWriteTimestamp, CmdWriteTimestamp)                                                \
	F(CmdWriteTimestamp2, CmdWriteTimestamp2KHR)                                           \
	F(CmdCopyQueryPoolResults, CmdCopyQueryPoolResults)                                    \
	F(CmdExecuteCommands, CmdExecuteCommands)                                              \
	F(CmdSetDeviceMask, CmdSetDeviceMaskKHR)                                               \
	F(GetMemoryHostPointerPropertiesEXT, GetMemoryHostPointerPropertiesEXT)                \
	F(GetMemoryFdKHR, GetMemoryFdKHR)                                                      \
	F(GetMemoryFdPropertiesKHR, GetMemoryFdPropertiesKHR)                                  \
	F(GetSemaphoreFdKHR, GetSemaphoreFdKHR)                                                \
	F(ImportSemaphoreFdKHR, ImportSemaphoreFdKHR)                                          \
	F(GetCalibratedTimestampsEXT, GetCalibratedTimestampsEXT)                              \
	F(SetPrivateData, SetPrivateDataEXT)                                                   \
	F(GetPrivateData, GetPrivateDataEXT)                                                   \
	F(SetDebugUtilsObjectNameEXT, SetDebugUtilsObjectNameEXT)                              \
	F(SetDebugUtilsObjectTagEXT, SetDebugUtilsObjectTagEXT)

typedef struct layer_instance {
	VkInstance handle;
	PFN_vkGetInstanceProcAddr get; // the next layer's
	void *own;                     // the layer's, NULL at first
	struct {
#define LAYER_MEMBER(name, alias) PFN_vk##name name;
		LAYER_INSTANCE_FUNCTIONS(LAYER_MEMBER)
	} next;
} layer_instance;

typedef struct layer_device {
	VkDevice handle;
	VkPhysicalDevice physical;
	layer_instance *instance;
	uint32_t number;             // 0, 1, 2, ... in order of creation in this process
	PFN_vkGetDeviceProcAddr get; // the next layer's
	PFN_vkSetDeviceLoaderData set_loader_data;
	void *own; // the layer's, NULL at first
	struct {
		LAYER_DEVICE_FUNCTIONS(LAYER_MEMBER)
#undef LAYER_MEMBER
	} next;
} layer_device;

typedef struct layer_intercept {
	const char *name;
	PFN_vkVoidFunction function;
} layer_intercept;

// One entry of the table; does not compile where own has another type than name.
#define LAYER_INTERCEPT(name, own) { #name, (PFN_vkVoidFunction)(1 ? (own) : (PFN_##name)NULL) }
#define LAYER_INTERCEPTS(table)                                                                \
	.intercepts = (table), .intercept_count = sizeof(table) / sizeof (table)[0]

// All but name may be left out. Creation and destruction of instances and devices
// are reached through these hooks alone, not through the table.
typedef struct layer_hooks {
	const char *name; // as in the manifest
	const layer_intercept *intercepts;
	size_t intercept_count;
	const layer_intercept *more_intercepts; // of another file; the last one has no name

	// These two make the call in the layer's stead, with next.
	VkResult (*create_instance)(const VkInstanceCreateInfo *, const VkAllocationCallbacks *,
		VkInstance *, PFN_vkCreateInstance next);
	VkResult (*create_device)(layer_instance *, VkPhysicalDevice, const VkDeviceCreateInfo *,
		const VkAllocationCallbacks *, VkDevice *, PFN_vkCreateDevice next);

	void (*instance_created)(layer_instance *, const VkInstanceCreateInfo *info);
	// info is the program's. Failure destroys the device again.
	VkResult (*device_created)(layer_device *, const VkDeviceCreateInfo *info);
	void (*device_destroying)(layer_device *); // before the next layer hears of it
	void (*instance_destroying)(layer_instance *);
} layer_hooks;

extern const layer_hooks layer_this;

// Of a VkInstance or VkPhysicalDevice.
layer_instance *layer_instance_of(const void *dispatchable);
// Of a VkDevice, VkQueue or VkCommandBuffer.
layer_device *layer_device_of(const void *dispatchable);
// Lets an object, whose first word is the loader's, pass as one of the device's.
void layer_adopt(layer_device *d, void *dispatchable);

// A line on stderr that begins with the layer's name; layer_die then aborts.
void layer_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void layer_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

void *layer_allocate(size_t bytes); // zeroed; dies where there is none

// The environment variable as a number; fallback where it is not set or empty.
// Dies where it is no number.
uint64_t layer_environment(const char *name, uint64_t fallback);

// A seeded stream of numbers (SplitMix64); not for several threads at once.
typedef struct layer_random {
	uint64_t state;
} layer_random;
// The stream of one seed and one purpose (a device's number, a queue's index, ...).
layer_random layer_random_of(uint64_t seed, uint64_t a, uint64_t b);
uint64_t layer_random_next(layer_random *r);
uint64_t layer_random_below(layer_random *r, uint64_t n); // 0 where n is 0

// A locked hash table from handles to pointers; all zeros is an empty one. Values
// are the caller's to free, and NULL is none.
typedef struct layer_map {
	pthread_mutex_t lock; // all zeros: free
	size_t used, room;
	struct layer_map_entry *entries;
} layer_map;
void *layer_map_put(layer_map *m, uint64_t key, void *value); // gives what was there
void *layer_map_get(layer_map *m, uint64_t key);
void *layer_map_take(layer_map *m, uint64_t key);
void layer_map_free(layer_map *m); // nobody may use it meanwhile
// Calls each with every value, under the table's lock; where it gives true, the
// entry is removed.
void layer_map_each(layer_map *m, bool (*each)(uint64_t key, void *value, void *context),
	void *context);
// A handle, dispatchable or not, as a key.
#define LAYER_KEY(handle) ((uint64_t)(uintptr_t)(handle))

// The structure of that type in a chain, or NULL.
const void *layer_chained(const void *chain, VkStructureType type);

#endif
