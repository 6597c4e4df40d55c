// The C side of package vk. It does not call back into Go itself, but a driver or layer that it calls
// may: the messengers of an application that lends its instance can be functions in Go. So the Go files
// declare nocallback only what calls neither.
//
// Functions that can fail return 0, or another value with the fault filled in; a failed
// function has undone what it had begun.
#ifndef VKO_H
#define VKO_H

#include "vkabi.h"

// A failure: a Vulkan call with its result, or an argument that the C code refused.
typedef struct vko_fault {
	int32_t result;   // VkResult, when call is set
	const char *call; // static; NULL: the argument is invalid
	char detail[192];
} vko_fault;

int32_t vko_fail(vko_fault *fault, const char *call, int32_t result, const char *format, ...)
#if defined(__GNUC__)
	__attribute__((format(printf, 4, 5)))
#endif
	;
int32_t vko_refuse(vko_fault *fault, const char *format, ...)
#if defined(__GNUC__)
	__attribute__((format(printf, 2, 3)))
#endif
	;

// loader.c

// Opens a library and finds vkGetInstanceProcAddr in it; returns 0 and the reason in why
// if there is none. An opened library stays loaded.
uintptr_t vko_load(const char *library, char *why, size_t why_size);
// Keeps each loaded Vulkan driver loaded until the process ends. The loader loads drivers
// for every instance and unloads them with it, and some do not support that: each time,
// NVIDIA's driver leaks memory that dlopen reserves for thread-local storage, until it
// cannot be loaded again. Without ELF, where no such problem is known, it does nothing.
void vko_keep_drivers(void);
// Whether two vkGetInstanceProcAddr belong to the same library.
int32_t vko_same_loader(uintptr_t a, uintptr_t b);

// messages.c

// One message of the validation layer.
typedef struct vko_message {
	struct vko_message *next;
	uint32_t severity, types;
	int32_t number;
	const char *name; // inside the same allocation
	const char *text; // inside the same allocation
} vko_message;

// The messages that the debug messenger has received and Go has not yet taken. After
// VKO_MESSAGES_MAX messages only their number is kept.
#define VKO_MESSAGES_MAX 1024
typedef struct vko_messages vko_messages;

vko_messages *vko_messages_create(void);
void vko_messages_destroy(vko_messages *m);
vko_message *vko_messages_take(vko_messages *m, uint64_t *dropped); // oldest first
void vko_messages_free(vko_message *list);
uint32_t VKO_CALL vko_messages_heard(uint32_t severity, uint32_t types,
	const vkoDebugUtilsMessengerCallbackDataEXT *data, void *messages);

// instance.c

typedef void *(VKO_CALL *vko_get_proc)(void *handle, const char *name);

typedef struct vko_instance {
	void *handle;
	vko_get_proc GetInstanceProcAddr;
	vko_get_proc GetDeviceProcAddr;
	int32_t(VKO_CALL *EnumeratePhysicalDevices)(void *instance, uint32_t *count, void **devices);
	int32_t(VKO_CALL *EnumerateDeviceExtensionProperties)(void *device, const char *layer,
		uint32_t *count, vkoExtensionProperties *properties);
	void(VKO_CALL *GetPhysicalDeviceProperties2)(void *device, vkoPhysicalDeviceProperties2 *properties);
	void(VKO_CALL *GetPhysicalDeviceFeatures2)(void *device, vkoPhysicalDeviceFeatures2 *features);
	void(VKO_CALL *GetPhysicalDeviceQueueFamilyProperties)(void *device, uint32_t *count,
		vkoQueueFamilyProperties *properties);
	void(VKO_CALL *GetPhysicalDeviceExternalBufferProperties)(void *device,
		const vkoPhysicalDeviceExternalBufferInfo *info, vkoExternalBufferProperties *properties);
	void(VKO_CALL *GetPhysicalDeviceExternalSemaphoreProperties)(void *device,
		const vkoPhysicalDeviceExternalSemaphoreInfo *info, vkoExternalSemaphoreProperties *properties);
	void(VKO_CALL *GetPhysicalDeviceMemoryProperties2)(void *device,
		vkoPhysicalDeviceMemoryProperties2 *properties);
	int32_t(VKO_CALL *CreateDevice)(void *device, const vkoDeviceCreateInfo *info,
		const void *allocator, void **out);
	int32_t(VKO_CALL *CreateDebugUtilsMessengerEXT)(void *instance,
		const vkoDebugUtilsMessengerCreateInfoEXT *info, const void *allocator, vkoHandle *out);
	void(VKO_CALL *DestroyDebugUtilsMessengerEXT)(void *instance, vkoHandle messenger,
		const void *allocator);
	void(VKO_CALL *DestroyInstance)(void *instance, const void *allocator);
	vkoHandle messenger; // 0 without validation
} vko_instance;

// messages is NULL without validation; severities is the mask to listen for.
int32_t vko_instance_create(uintptr_t get_instance_proc_addr, const char *application,
	vko_messages *messages, uint32_t severities, uint32_t synchronization,
	vko_instance **out, vko_fault *fault);
// Resolves the instance's functions; returns the name of the first missing one, or NULL.
const char *vko_instance_resolve(vko_instance *i, int validation);
// Destroys the messenger; messages of vkDestroyInstance itself are still received.
void vko_instance_stop_messenger(vko_instance *i);
void vko_instance_free(vko_instance *i); // after vkDestroyInstance, or adopted

// physical.c

#define VKO_API_1_3 (1u << 22 | 3u << 12)

// The features that are queried and enabled: the flat name, and its member in
// vko_feature_chain.
#define VKO_FEATURES(F)                                                                      \
	F(robust_buffer_access, core.features.robustBufferAccess)                            \
	F(uniform_buffer_array_dynamic_indexing,                                             \
		core.features.shaderUniformBufferArrayDynamicIndexing)                       \
	F(storage_buffer_array_dynamic_indexing,                                             \
		core.features.shaderStorageBufferArrayDynamicIndexing)                       \
	F(shader_float64, core.features.shaderFloat64)                                       \
	F(shader_int64, core.features.shaderInt64)                                           \
	F(shader_int16, core.features.shaderInt16)                                           \
	F(storage_buffer_16bit, v11.storageBuffer16BitAccess)                                \
	F(uniform_and_storage_buffer_16bit, v11.uniformAndStorageBuffer16BitAccess)          \
	F(storage_push_constant_16, v11.storagePushConstant16)                               \
	F(variable_pointers_storage_buffer, v11.variablePointersStorageBuffer)               \
	F(variable_pointers, v11.variablePointers)                                           \
	F(storage_buffer_8bit, v12.storageBuffer8BitAccess)                                  \
	F(uniform_and_storage_buffer_8bit, v12.uniformAndStorageBuffer8BitAccess)            \
	F(storage_push_constant_8, v12.storagePushConstant8)                                 \
	F(shader_buffer_int64_atomics, v12.shaderBufferInt64Atomics)                         \
	F(shader_shared_int64_atomics, v12.shaderSharedInt64Atomics)                         \
	F(shader_float16, v12.shaderFloat16)                                                 \
	F(shader_int8, v12.shaderInt8)                                                       \
	F(storage_buffer_array_non_uniform_indexing,                                         \
		v12.shaderStorageBufferArrayNonUniformIndexing)                              \
	F(scalar_block_layout, v12.scalarBlockLayout)                                        \
	F(shader_subgroup_extended_types, v12.shaderSubgroupExtendedTypes)                   \
	F(host_query_reset, v12.hostQueryReset)                                              \
	F(timeline_semaphore, v12.timelineSemaphore)                                         \
	F(buffer_device_address, v12.bufferDeviceAddress)                                    \
	F(vulkan_memory_model, v12.vulkanMemoryModel)                                        \
	F(vulkan_memory_model_device_scope, v12.vulkanMemoryModelDeviceScope)                \
	F(subgroup_broadcast_dynamic_id, v12.subgroupBroadcastDynamicId)                     \
	F(robust_buffer_access2, robustness2.robustBufferAccess2)                            \
	F(shader_zero_initialize_workgroup_memory,                                           \
		zero_initialize.shaderZeroInitializeWorkgroupMemory)                         \
	F(maintenance4, maintenance4.maintenance4)                                           \
	F(synchronization2, synchronization2.synchronization2)

typedef struct vko_features {
#define VKO_FLAT(name, member) uint32_t name;
	VKO_FEATURES(VKO_FLAT)
#undef VKO_FLAT
} vko_features;

// Extensions that are enabled if the device has them.
enum {
	VKO_EXT_PUSH_DESCRIPTOR = 1 << 0,
	VKO_EXT_EXTERNAL_MEMORY_HOST = 1 << 1,
	VKO_EXT_MEMORY_BUDGET = 1 << 2,
	VKO_EXT_ROBUSTNESS2 = 1 << 3,
	VKO_EXT_SYNCHRONIZATION2 = 1 << 4, // in VKO_EXT_IN_1_3
	VKO_EXT_PORTABILITY_SUBSET = 1 << 5,
	VKO_EXT_EXTERNAL_MEMORY_FD = 1 << 6,
	VKO_EXT_EXTERNAL_SEMAPHORE_FD = 1 << 7,
	VKO_EXT_CALIBRATED_TIMESTAMPS = 1 << 8,
	VKO_EXT_PIPELINE_CREATION_FEEDBACK = 1 << 9, // in VKO_EXT_IN_1_3, as the next two
	VKO_EXT_ZERO_INITIALIZE_WORKGROUP_MEMORY = 1 << 10,
	VKO_EXT_MAINTENANCE4 = 1 << 11,
	VKO_EXT_ROBUSTNESS2_KHR = 1 << 12, // VKO_EXT_ROBUSTNESS2 under its later name
};
// Extensions that Vulkan 1.3 has in its core, and which are only used below it.
#define VKO_EXT_IN_1_3                                                                               \
	((uint32_t)(VKO_EXT_SYNCHRONIZATION2 | VKO_EXT_PIPELINE_CREATION_FEEDBACK |                  \
		VKO_EXT_ZERO_INITIALIZE_WORKGROUP_MEMORY | VKO_EXT_MAINTENANCE4))

// Queue families after this many are ignored.
#define VKO_FAMILIES_MAX 32

// The properties of a physical device from structures of Vulkan 1.1 and later.
typedef struct vko_physical {
	uint32_t version;    // the version to use, given by the caller
	uint32_t extensions; // VKO_EXT_ bits
	vko_features features;
	uint8_t uuid[16];
	uint32_t subgroup_size, subgroup_operations; // operations: of the compute stage
	uint64_t max_allocation_size;
	uint64_t min_import_alignment; // 0: a block cannot be made of the host's memory
	uint32_t max_push_descriptors;
	// Whether blocks, timelines and binary semaphores can be exported and imported as files.
	uint32_t memory_fd, timeline_fd, binary_fd;
	char driver_name[256], driver_info[256];
	uint32_t family_count;
	vkoQueueFamilyProperties families[VKO_FAMILIES_MAX];
} vko_physical;

// Fills handles with up to capacity of the instance's physical devices.
int32_t vko_physical_list(const vko_instance *i, uintptr_t *handles, uint32_t capacity,
	uint32_t *count, vko_fault *fault);
// Queue families and extensions of any device; extensions is malloc'ed.
int32_t vko_physical_basics(const vko_instance *i, uintptr_t device, vko_physical *p,
	vkoExtensionProperties **extensions, uint32_t *extension_count, vko_fault *fault);
// The features of a device of Vulkan 1.2 or later, after vko_physical_basics.
void vko_physical_features(const vko_instance *i, uintptr_t device, vko_physical *p);
// The rest, after vko_physical_features.
void vko_physical_details(const vko_instance *i, uintptr_t device, vko_physical *p);
// The values of VK_EXT_memory_budget, which the device must have, for each heap; both
// arrays have VKO_MAX_MEMORY_HEAPS entries.
void vko_memory_budget(const vko_instance *i, uintptr_t device, uint64_t *budget, uint64_t *usage);

// device.c

#define VKO_DEVICE_FUNCTIONS(F)                                                              \
	F(int32_t, AllocateMemory, (void *, const vkoMemoryAllocateInfo *, const void *,     \
		vkoHandle *))                                                                \
	F(int32_t, CreateBuffer, (void *, const vkoBufferCreateInfo *, const void *,         \
		vkoHandle *))                                                                \
	F(int32_t, FlushMappedMemoryRanges, (void *, uint32_t,                               \
		const vkoMappedMemoryRange *))                                               \
	F(int32_t, InvalidateMappedMemoryRanges, (void *, uint32_t,                          \
		const vkoMappedMemoryRange *))                                               \
	F(uint64_t, GetBufferDeviceAddress, (void *, const vkoBufferDeviceAddressInfo *))    \
	F(int32_t, CreateSemaphore, (void *, const vkoSemaphoreCreateInfo *, const void *,   \
		vkoHandle *))                                                                \
	F(void, DestroySemaphore, (void *, vkoHandle, const void *))                         \
	F(int32_t, GetSemaphoreCounterValue, (void *, vkoHandle, uint64_t *))                \
	F(int32_t, WaitSemaphores, (void *, const vkoSemaphoreWaitInfo *, uint64_t))         \
	F(int32_t, SignalSemaphore, (void *, const vkoSemaphoreSignalInfo *))                \
	F(int32_t, QueueSubmit, (void *, uint32_t, const vkoSubmitInfo *, vkoHandle))        \
	F(int32_t, AllocateCommandBuffers, (void *, const vkoCommandBufferAllocateInfo *,    \
		void **))                                                                    \
	F(void, FreeCommandBuffers, (void *, vkoHandle, uint32_t, void *const *))             \
	F(void, TrimCommandPool, (void *, vkoHandle, uint32_t))                              \
	F(int32_t, BeginCommandBuffer, (void *, const vkoCommandBufferBeginInfo *))          \
	F(int32_t, EndCommandBuffer, (void *))                                               \
	F(int32_t, ResetCommandBuffer, (void *, uint32_t))                                   \
	F(int32_t, CreateDescriptorPool, (void *, const vkoDescriptorPoolCreateInfo *,       \
		const void *, vkoHandle *))                                                  \
	F(void, DestroyDescriptorPool, (void *, vkoHandle, const void *))                    \
	F(int32_t, ResetDescriptorPool, (void *, vkoHandle, uint32_t))                       \
	F(int32_t, AllocateDescriptorSets, (void *, const vkoDescriptorSetAllocateInfo *,    \
		vkoHandle *))                                                                \
	F(void, UpdateDescriptorSets, (void *, uint32_t, const vkoWriteDescriptorSet *,      \
		uint32_t, const void *))                                                     \
	F(int32_t, CreateDescriptorSetLayout, (void *,                                       \
		const vkoDescriptorSetLayoutCreateInfo *, const void *, vkoHandle *))        \
	F(int32_t, CreatePipelineLayout, (void *, const vkoPipelineLayoutCreateInfo *,       \
		const void *, vkoHandle *))                                                  \
	F(int32_t, CreateShaderModule, (void *, const vkoShaderModuleCreateInfo *,           \
		const void *, vkoHandle *))                                                  \
	F(int32_t, CreateComputePipelines, (void *, vkoHandle, uint32_t,                     \
		const vkoComputePipelineCreateInfo *, const void *, vkoHandle *))            \
	F(int32_t, CreatePipelineCache, (void *, const vkoPipelineCacheCreateInfo *,         \
		const void *, vkoHandle *))                                                  \
	F(int32_t, GetPipelineCacheData, (void *, vkoHandle, size_t *, void *))              \
	F(int32_t, MergePipelineCaches, (void *, vkoHandle, uint32_t, const vkoHandle *))    \
	F(void, CmdPipelineBarrier, (void *, uint32_t, uint32_t, uint32_t, uint32_t,         \
		const vkoMemoryBarrier *, uint32_t, const void *, uint32_t, const void *))   \
	F(void, CmdBindPipeline, (void *, int32_t, vkoHandle))                               \
	F(void, CmdBindDescriptorSets, (void *, int32_t, vkoHandle, uint32_t, uint32_t,      \
		const vkoHandle *, uint32_t, const uint32_t *))                              \
	F(void, CmdPushConstants, (void *, vkoHandle, uint32_t, uint32_t, uint32_t,          \
		const void *))                                                               \
	F(void, CmdDispatch, (void *, uint32_t, uint32_t, uint32_t))                         \
	F(void, CmdDispatchBase, (void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,  \
		uint32_t))                                                                   \
	F(void, CmdCopyBuffer, (void *, vkoHandle, vkoHandle, uint32_t,                      \
		const vkoBufferCopy *))                                                      \
	F(void, CmdFillBuffer, (void *, vkoHandle, uint64_t, uint64_t, uint32_t))            \
	F(void, CmdWriteTimestamp, (void *, uint32_t, vkoHandle, uint32_t))                  \
	F(void, ResetQueryPool, (void *, vkoHandle, uint32_t, uint32_t))                     \
	F(int32_t, GetQueryPoolResults, (void *, vkoHandle, uint32_t, uint32_t, size_t,      \
		void *, uint64_t, uint32_t))                                                 \
	F(void, DestroyDevice, (void *, const void *))

// The limits that streams are checked against.
typedef struct vko_limits {
	uint64_t storage_offset_alignment; // bytes
	uint64_t storage_range;            // bytes
	uint32_t group_count[3];
} vko_limits;

// A pipeline with which one dispatch does what several dispatches of another one do: see
// vk.PipelineOptions.Merges.
typedef struct vko_variant {
	vkoHandle pipeline, layout, set_layout;
	uint32_t launches; // the largest number in a dispatch; 0: there is no such pipeline
	uint32_t elements; // descriptors of a binding
	uint32_t base;     // where the push constants of the first launch are, in bytes
	uint32_t stride;   // bytes between the push constants of two launches
} vko_variant;

// The largest number of bindings.
#define VKO_BINDINGS 32

// The variants of a pipeline.
typedef struct vko_merging {
	vkoHandle merged;   // the pipeline; 0: there is nothing in this place
	uint32_t mask;      // of its binding numbers
	vko_variant own;    // for launches that have bindings of their own
	vko_variant shared; // for those that bind the same
	vko_variant spaced; // for those that bind parts at equal distances
	uint32_t bytes[VKO_BINDINGS]; // of an element of each binding, for spaced
} vko_merging;

// The largest number of bytes that the push constants of all launches of a dispatch have.
#define VKO_MERGED_PUSH_BYTES 256
// The largest number of workgroups of a launch that is merged with others: see vk.MaxMergedGroups.
#define VKO_MERGED_GROUPS 256
// Mergings have numbers from 1 up to VKO_MERGING_CHUNK * VKO_MERGING_CHUNKS - 1.
#define VKO_MERGING_CHUNK 256
#define VKO_MERGING_CHUNKS 256

typedef struct vko_device {
	void *handle;
	// Memory of chunks is made when it is needed and stays, so that queues can read it without a lock.
	vko_merging *mergings[VKO_MERGING_CHUNKS];
	vko_limits limits;
	uint32_t adopted;
	// The families of the queues; blocks are shared among them.
	uint32_t family_count, families[VKO_FAMILIES_MAX];
#define VKO_POINTER(result, name, parameters) result(VKO_CALL *name) parameters;
	VKO_DEVICE_FUNCTIONS(VKO_POINTER)
#undef VKO_POINTER
	// NULL if buffers are bound through descriptor pools.
	void(VKO_CALL *CmdPushDescriptorSetKHR)(void *, int32_t, vkoHandle, uint32_t, uint32_t,
		const vkoWriteDescriptorSet *);
	// NULL if the device has no synchronization2. Where a driver has it, vkCmdPipelineBarrier often
	// is a detour to it.
	void(VKO_CALL *CmdPipelineBarrier2)(void *, const vkoDependencyInfo *);
	// NULL if host memory cannot be imported.
	int32_t(VKO_CALL *GetMemoryHostPointerPropertiesEXT)(void *, int32_t, const void *,
		vkoMemoryHostPointerPropertiesEXT *);
	// NULL if nothing can be exported or imported as a file.
	int32_t(VKO_CALL *GetMemoryFdKHR)(void *, const vkoMemoryGetFdInfoKHR *, int *);
	int32_t(VKO_CALL *GetSemaphoreFdKHR)(void *, const vkoSemaphoreGetFdInfoKHR *, int *);
	int32_t(VKO_CALL *ImportSemaphoreFdKHR)(void *, const vkoImportSemaphoreFdInfoKHR *);
	// NULL if the device's clock is read by submissions.
	int32_t(VKO_CALL *GetCalibratedTimestampsEXT)(void *, uint32_t,
		const vkoCalibratedTimestampInfoEXT *, uint64_t *, uint64_t *);
} vko_device;

// Creates a device with counts[f] queues of each family f of p, and with all features and
// extensions that are set in p.
int32_t vko_device_create(const vko_instance *i, uintptr_t physical, const vko_physical *p,
	const uint32_t *counts, const vko_limits *limits, vko_device **out, vko_fault *fault);
// Resolves the device's functions; returns the name of the first missing one, or NULL.
const char *vko_device_resolve(const vko_instance *i, vko_device *d, const vko_physical *p);
void vko_device_free(vko_device *d); // after vkDestroyDevice, or adopted

// merge.c

// The merging of that number, or NULL if there is none.
const vko_merging *vko_merging_at(const vko_device *d, uint32_t number);
// Sets the merging of a number in range; one whose merged is 0 removes it. No stream that names the
// number is in use, so that queues read it without a lock, and one call is made at a time. It returns
// VKO_ERROR_OUT_OF_HOST_MEMORY, or 0.
int32_t vko_merging_set(vko_device *d, uint32_t number, const vko_merging *m);

// adopt.c; an instance and a device that the application made and destroys.

// The VKO_EXT_ bit of an extension's name, or 0.
uint32_t vko_extension_bit(const char *name);
const char *vko_extension_name(uint32_t bit);
// Adds what the VkDeviceCreateInfo enables.
void vko_read_create_info(const vkoDeviceCreateInfo *info, uint32_t *extensions,
	vko_features *features);
int32_t vko_instance_adopt(uintptr_t get_instance_proc_addr, uintptr_t handle, vko_instance **out,
	vko_fault *fault);
// p says what is enabled; blocks are shared among the families f for which families[f] is
// not 0.
int32_t vko_device_adopt(const vko_instance *i, uintptr_t handle, const vko_physical *p,
	const uint32_t *families, const vko_limits *limits, vko_device **out, vko_fault *fault);

// memory.c; those that return int32_t give a VkResult.

uint32_t vko_block_usage(uint32_t addressable); // VkBufferUsageFlags of a block's buffer
// handle_type is the external handle type of the memory for the buffer, 0 for none.
int32_t vko_block_buffer(const vko_device *d, uint64_t size, uint32_t addressable,
	uint32_t handle_type, vkoHandle *out);

// The source of a block's memory.
enum { VKO_SOURCE_NEW, VKO_SOURCE_HOST, VKO_SOURCE_EXPORTABLE, VKO_SOURCE_FILE };
typedef struct vko_source {
	uint32_t kind;
	uintptr_t host; // VKO_SOURCE_HOST: where the memory is that is imported
	int32_t fd;     // VKO_SOURCE_FILE: what is imported; it stays the caller's
} vko_source;
int32_t vko_memory_allocate(const vko_device *d, uint64_t size, uint32_t type, uint32_t addressable,
	vko_source source, vkoHandle *out);
// The memory types, one bit each, as which the host memory can be imported.
int32_t vko_host_memory_types(const vko_device *d, uintptr_t host, uint32_t *types);
uint64_t vko_buffer_address(const vko_device *d, vkoHandle buffer);
// Flushes, or else invalidates, the ranges in one call. ranges holds count triples of mapped
// memory, offset and size. Each is widened to whole atoms, of which the memory's size must be
// a multiple, and skipped if it is empty.
int32_t vko_memory_make_visible(const vko_device *d, uint32_t to_device, const uint64_t *ranges,
	uint32_t count, uint64_t atom);

// yield.c

void vko_yield(void);

// semaphore.c; timelines. Those that return int32_t give a VkResult.

int32_t vko_semaphore_create(const vko_device *d, uint64_t initial, vkoHandle *out);
// The value of a semaphore, and the VkResult of reading it. Go gets both without memory that C writes to,
// which it would allocate each time.
typedef struct vko_counter {
	int32_t result;
	uint64_t value;
} vko_counter;
vko_counter vko_semaphore_value(const vko_device *d, vkoHandle semaphore);
// Like vko_semaphore_value, for the timeline of a queue. No submission signals UINT64_MAX there: a driver
// that shows it with VK_SUCCESS has lost the device.
vko_counter vko_timeline_value(const vko_device *d, vkoHandle timeline);
int32_t vko_semaphore_wait(const vko_device *d, vkoHandle semaphore, uint64_t value,
	uint64_t nanoseconds);
int32_t vko_semaphore_signal(const vko_device *d, vkoHandle semaphore, uint64_t value);

// query.c; timestamps. Those that return int32_t give a VkResult.

void vko_query_reset(const vko_device *d, vkoHandle pool, uint32_t first, uint32_t count);
// VK_NOT_READY if one of them is not written; the others are read.
int32_t vko_query_results(const vko_device *d, vkoHandle pool, uint32_t first, uint32_t count,
	uint64_t *out);
// The current value of the device's clock; the device has GetCalibratedTimestampsEXT.
int32_t vko_device_ticks(const vko_device *d, uint64_t *ticks);

// external.c; handles of the operating system. Those that return int32_t give a
// VkResult; a descriptor that is imported stays the caller's.

int32_t vko_duplicate(int32_t fd, int32_t *copy);
int32_t vko_is_stream(int32_t fd); // a pipe, a socket or a terminal
void vko_close(int32_t fd);
int32_t vko_memory_export(const vko_device *d, vkoHandle memory, int32_t *fd);
// Creates an exportable semaphore of that VkSemaphoreType.
int32_t vko_semaphore_exportable(const vko_device *d, int32_t type, vkoHandle *out);
int32_t vko_semaphore_export(const vko_device *d, vkoHandle semaphore, int32_t *fd);
// Creates a semaphore of that type from the descriptor of an exported one.
int32_t vko_semaphore_import(const vko_device *d, int32_t type, int32_t fd, vkoHandle *out);

// pipeline.c

int32_t vko_shader_module(const vko_device *d, const uint32_t *code, size_t words, vkoHandle *out);
// elements is the number of descriptors of each binding.
int32_t vko_set_layout(const vko_device *d, uint32_t binding_mask, uint32_t elements, vkoHandle *out);
int32_t vko_pipeline_layout(const vko_device *d, vkoHandle set_layout, uint32_t push_bytes,
	vkoHandle *out);
// ids, sizes and data have count entries; an entry of data takes 8 bytes. found, if not NULL, is
// set to whether the pipeline was in the cache; the device has VKO_EXT_PIPELINE_CREATION_FEEDBACK
// or Vulkan 1.3.
int32_t vko_pipeline(const vko_device *d, vkoHandle cache, vkoHandle module, const char *entry,
	vkoHandle layout, uint32_t count, const uint32_t *ids, const uint32_t *sizes,
	const uint64_t *data, vkoHandle *out, uint32_t *found);
// Creates a pipeline cache with the size bytes of data that vko_pipeline_cache_data gave.
int32_t vko_pipeline_cache(const vko_device *d, const void *data, size_t size, vkoHandle *out);
// Adds what one cache has to another, which nobody else uses meanwhile.
int32_t vko_pipeline_cache_merge(const vko_device *d, vkoHandle into, vkoHandle from);
// Fills data with the contents, at most size bytes, and sets size; only the latter if data is NULL.
// VK_INCOMPLETE if there are more.
int32_t vko_pipeline_cache_data(const vko_device *d, vkoHandle cache, void *data, size_t *size);

// encode.c

// The family of the queue for a stream. Without compute it supports only transfers.
typedef struct vko_family {
	uint32_t index, computes;
	uint32_t timestamp_bits; // 0: it writes no timestamps
} vko_family;

// What a stream needs from a descriptor pool.
typedef struct vko_demand {
	uint64_t sets, descriptors;
} vko_demand;

// Checks every word of a stream against the layout in stream.go, the limits and the
// capabilities of the family. The demand is none if the device has push descriptors.
int32_t vko_scan(const vko_device *d, vko_family family, const uint64_t *words, uint64_t count,
	vko_demand *demand, vko_fault *fault);
// The number of words before the first execution of a recording in a stream that vko_scan passed, and
// the recording in *recording, 0 if there is none.
uint64_t vko_before_execution(const uint64_t *words, uint64_t count, uint64_t *recording);
// The number of words of the operation that executes a recording.
#define VKO_EXECUTION_WORDS 2
// Records a stream that vko_scan passed, and that executes no recording, between
// vkBeginCommandBuffer and vkEndCommandBuffer. usage are the command buffer's usage flags. pool must
// have room for the demand, and is not used when the device has push descriptors.
int32_t vko_record(const vko_device *d, void *commands, vkoHandle pool, uint32_t usage,
	const uint64_t *words, uint64_t count, vko_fault *fault);

// queue.c

typedef struct vko_queue vko_queue;

// The queue owns its timeline and, until it is destroyed, uses the command pool.
int32_t vko_queue_create(const vko_device *d, uintptr_t queue, vko_family family,
	vkoHandle command_pool, vko_queue **out, vko_fault *fault);
// Frees everything except the timeline and the command pool; nothing may be in flight.
void vko_queue_destroy(vko_queue *q);
vkoHandle vko_queue_timeline(const vko_queue *q);
uint32_t vko_queue_slots(const vko_queue *q); // command buffers there are; under the lock
// Frees the command buffers that nothing uses, with their descriptor pools, and the spare
// memory of the command pool. The caller holds the queue's lock.
int32_t vko_queue_trim(vko_queue *q, vko_fault *fault);
// waits and signals hold pairs of semaphore and value; the queue's own timeline is
// signalled beside the signals. The caller holds the queue's lock.
int32_t vko_queue_submit(vko_queue *q, const uint64_t *words, uint64_t count,
	const uint64_t *waits, uint32_t wait_count, const uint64_t *signals, uint32_t signal_count,
	uint64_t signal, vko_fault *fault);
// Records a stream into a command buffer of its own, for any number of submissions at once. The
// recording is a handle for streams that are submitted to this queue. The caller holds the queue's
// lock.
int32_t vko_queue_record(vko_queue *q, const uint64_t *words, uint64_t count, uint64_t *recording,
	vko_fault *fault);
// Frees a recording that nothing in flight uses; 1 if it is none of this queue.
int32_t vko_queue_forget(vko_queue *q, uint64_t recording);
// An empty submission that does not signal the queue's own timeline.
int32_t vko_queue_order(vko_queue *q, const uint64_t *waits, uint32_t wait_count,
	const uint64_t *signals, uint32_t signal_count, vko_fault *fault);
// Submits a stream that signals the semaphore with the value instead of the queue's own
// timeline. The previous such submission must have ended.
int32_t vko_queue_sample(vko_queue *q, const uint64_t *words, uint64_t count, vkoHandle semaphore,
	uint64_t value, vko_fault *fault);
// Waits until everything submitted here has ended; returns a VkResult. The caller holds the
// queue's lock, so that nothing is added.
int32_t vko_queue_finish(const vko_queue *q);

#endif
