// The part of Vulkan's binary interface that the C code of this package uses, declared here so
// that building needs a C compiler but no Vulkan headers. vkoName is Vulkan's VkName and VKO_NAME
// is VK_NAME. Members keep Vulkan's names; unused ones are combined into reserved members.
// abicheck/abi_check.c compares every size, offset and value with the real headers.
#ifndef VKO_VKABI_H
#define VKO_VKABI_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define VKO_CALL __stdcall
#else
#define VKO_CALL
#endif

// Non-dispatchable handles have 64 bits on every platform that Vulkan supports: they are pointers
// where these have 64 bits, else uint64_t. Dispatchable handles are pointers.
typedef uint64_t vkoHandle;

enum {
	VKO_SUCCESS = 0,
	VKO_TIMEOUT = 2,
	VKO_INCOMPLETE = 5,
	VKO_ERROR_OUT_OF_HOST_MEMORY = -1,
	VKO_ERROR_INITIALIZATION_FAILED = -3,
	VKO_ERROR_DEVICE_LOST = -4,
	VKO_ERROR_LAYER_NOT_PRESENT = -6,
	VKO_ERROR_EXTENSION_NOT_PRESENT = -7,
	VKO_ERROR_INCOMPATIBLE_DRIVER = -9,
	VKO_ERROR_TOO_MANY_OBJECTS = -10,
	VKO_ERROR_INVALID_EXTERNAL_HANDLE = -1000072003,

	VKO_STRUCTURE_TYPE_APPLICATION_INFO = 0,
	VKO_STRUCTURE_TYPE_INSTANCE_CREATE_INFO = 1,
	VKO_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO = 2,
	VKO_STRUCTURE_TYPE_DEVICE_CREATE_INFO = 3,
	VKO_STRUCTURE_TYPE_SUBMIT_INFO = 4,
	VKO_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO = 5,
	VKO_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE = 6,
	VKO_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO = 9,
	VKO_STRUCTURE_TYPE_BUFFER_CREATE_INFO = 12,
	VKO_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO = 16,
	VKO_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO = 17,
	VKO_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO = 18,
	VKO_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO = 29,
	VKO_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO = 30,
	VKO_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO = 32,
	VKO_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO = 33,
	VKO_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO = 34,
	VKO_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET = 35,
	VKO_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO = 40,
	VKO_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO = 42,
	VKO_STRUCTURE_TYPE_MEMORY_BARRIER = 46,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES = 49,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES = 50,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES = 51,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES = 52,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES = 53,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2 = 1000059000,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2 = 1000059001,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2 = 1000059006,
	VKO_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO = 1000060000,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO = 1000071002,
	VKO_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES = 1000071003,
	VKO_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO = 1000072000,
	VKO_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO = 1000072002,
	VKO_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR = 1000074000,
	VKO_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR = 1000074002,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO = 1000076000,
	VKO_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES = 1000076001,
	VKO_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO = 1000077000,
	VKO_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR = 1000079000,
	VKO_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR = 1000079001,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR = 1000080000,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES = 1000082000,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES = 1000083000,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_VARIABLE_POINTERS_FEATURES = 1000120000,
	VKO_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT = 1000128004,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_FEATURES = 1000161001,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES = 1000175000,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES = 1000177000,
	VKO_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT = 1000178000,
	VKO_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT = 1000178001,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT = 1000178002,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_INT64_FEATURES = 1000180000,
	VKO_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT = 1000184000,
	VKO_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO = 1000192000,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES = 1000207000,
	VKO_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO = 1000207002,
	VKO_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO = 1000207003,
	VKO_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO = 1000207004,
	VKO_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO = 1000207005,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES = 1000211000,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_SCALAR_BLOCK_LAYOUT_FEATURES = 1000221000,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT = 1000237000,
	VKO_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO = 1000244001,
	VKO_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT = 1000247000,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES = 1000257000,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES = 1000261000,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT = 1000286000,
	VKO_STRUCTURE_TYPE_MEMORY_BARRIER_2 = 1000314000,
	VKO_STRUCTURE_TYPE_DEPENDENCY_INFO = 1000314003,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES = 1000314007,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES = 1000325000,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES = 1000413000,
	VKO_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES = 1000413001,

	VKO_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR = 0x1,
	VKO_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT = 4,
	VKO_DEBUG_UTILS_MESSAGE_SEVERITY_VERBOSE_BIT_EXT = 0x1,
	VKO_DEBUG_UTILS_MESSAGE_SEVERITY_INFO_BIT_EXT = 0x10,
	VKO_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT = 0x100,
	VKO_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT = 0x1000,
	VKO_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT = 0x1,
	VKO_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT = 0x2,
	VKO_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT = 0x4,

	VKO_SHADER_STAGE_COMPUTE_BIT = 0x20,
	VKO_SUBGROUP_FEATURE_BASIC_BIT = 0x1,
	VKO_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT = 0x2,
	VKO_DRIVER_ID_GOOGLE_SWIFTSHADER = 10,
	VKO_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT = 0x1,
	VKO_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT = 0x80,
	VKO_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT = 0x1,
	VKO_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT = 0x2,
	VKO_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT = 0x4,
	VKO_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT = 0x1,
	VKO_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT = 0x1,
	VKO_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT = 0x2,
	VKO_SHARING_MODE_EXCLUSIVE = 0,
	VKO_SHARING_MODE_CONCURRENT = 1,
	VKO_BUFFER_USAGE_TRANSFER_SRC_BIT = 0x1,
	VKO_BUFFER_USAGE_TRANSFER_DST_BIT = 0x2,
	VKO_BUFFER_USAGE_STORAGE_BUFFER_BIT = 0x20,
	VKO_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT = 0x20000,
	VKO_SEMAPHORE_TYPE_BINARY = 0,
	VKO_SEMAPHORE_TYPE_TIMELINE = 1,
	VKO_COMMAND_BUFFER_LEVEL_PRIMARY = 0,
	VKO_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT = 0x1,
	VKO_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT = 0x4,
	VKO_PIPELINE_BIND_POINT_COMPUTE = 1,
	VKO_PIPELINE_CREATE_DISPATCH_BASE_BIT = 0x10,
	VKO_PIPELINE_CREATION_FEEDBACK_VALID_BIT = 0x1,
	VKO_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT = 0x2,
	VKO_PIPELINE_STAGE_TOP_OF_PIPE_BIT = 0x1,
	VKO_PIPELINE_STAGE_COMPUTE_SHADER_BIT = 0x800,
	VKO_PIPELINE_STAGE_TRANSFER_BIT = 0x1000,
	VKO_PIPELINE_STAGE_HOST_BIT = 0x4000,
	VKO_PIPELINE_STAGE_ALL_COMMANDS_BIT = 0x10000,
	VKO_ACCESS_SHADER_READ_BIT = 0x20,
	VKO_ACCESS_SHADER_WRITE_BIT = 0x40,
	VKO_ACCESS_TRANSFER_READ_BIT = 0x800,
	VKO_ACCESS_TRANSFER_WRITE_BIT = 0x1000,
	VKO_ACCESS_HOST_READ_BIT = 0x2000,
	VKO_ACCESS_HOST_WRITE_BIT = 0x4000,
	VKO_ACCESS_MEMORY_READ_BIT = 0x8000,
	VKO_ACCESS_MEMORY_WRITE_BIT = 0x10000,
	VKO_DESCRIPTOR_TYPE_STORAGE_BUFFER = 7,
	VKO_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR = 0x1,
	VKO_MAX_EXTENSION_NAME_SIZE = 256,
	VKO_MAX_MEMORY_HEAPS = 16,
	VKO_QUERY_RESULT_64_BIT = 0x1,
	VKO_TIME_DOMAIN_DEVICE_EXT = 0,
};

// Instance.

typedef struct vkoApplicationInfo {
	int32_t sType;
	const void *pNext;
	const char *pApplicationName;
	uint32_t applicationVersion;
	const char *pEngineName;
	uint32_t engineVersion;
	uint32_t apiVersion;
} vkoApplicationInfo;

typedef struct vkoInstanceCreateInfo {
	int32_t sType;
	const void *pNext;
	uint32_t flags;
	const vkoApplicationInfo *pApplicationInfo;
	uint32_t enabledLayerCount;
	const char *const *ppEnabledLayerNames;
	uint32_t enabledExtensionCount;
	const char *const *ppEnabledExtensionNames;
} vkoInstanceCreateInfo;

typedef struct vkoLayerProperties {
	char layerName[256];
	uint32_t specVersion;
	uint32_t implementationVersion;
	char description[256];
} vkoLayerProperties;

typedef struct vkoExtensionProperties {
	char extensionName[256];
	uint32_t specVersion;
} vkoExtensionProperties;

typedef struct vkoValidationFeaturesEXT {
	int32_t sType;
	const void *pNext;
	uint32_t enabledValidationFeatureCount;
	const int32_t *pEnabledValidationFeatures;
	uint32_t disabledValidationFeatureCount;
	const int32_t *pDisabledValidationFeatures;
} vkoValidationFeaturesEXT;

typedef struct vkoDebugUtilsMessengerCallbackDataEXT {
	int32_t sType;
	const void *pNext;
	uint32_t flags;
	const char *pMessageIdName;
	int32_t messageIdNumber;
	const char *pMessage;
	uint32_t queueLabelCount;
	const void *pQueueLabels;
	uint32_t cmdBufLabelCount;
	const void *pCmdBufLabels;
	uint32_t objectCount;
	const void *pObjects;
} vkoDebugUtilsMessengerCallbackDataEXT;

typedef uint32_t(VKO_CALL *vkoMessengerCallback)(uint32_t severity, uint32_t types,
	const vkoDebugUtilsMessengerCallbackDataEXT *data, void *user);

typedef struct vkoDebugUtilsMessengerCreateInfoEXT {
	int32_t sType;
	const void *pNext;
	uint32_t flags;
	uint32_t messageSeverity;
	uint32_t messageType;
	vkoMessengerCallback pfnUserCallback;
	void *pUserData;
} vkoDebugUtilsMessengerCreateInfoEXT;

// Physical device.

typedef struct vkoPhysicalDeviceProperties2 {
	int32_t sType;
	void *pNext;
	uint64_t properties[103]; // VkPhysicalDeviceProperties
} vkoPhysicalDeviceProperties2;

typedef struct vkoPhysicalDeviceVulkan11Properties {
	int32_t sType;
	void *pNext;
	uint8_t deviceUUID[16];
	uint32_t reserved0[8];
	uint32_t subgroupSize;
	uint32_t subgroupSupportedStages;
	uint32_t subgroupSupportedOperations;
	uint32_t reserved1[7];
	uint64_t maxMemoryAllocationSize;
} vkoPhysicalDeviceVulkan11Properties;

typedef struct vkoPhysicalDeviceVulkan12Properties {
	int32_t sType;
	void *pNext;
	int32_t driverID;
	char driverName[256];
	char driverInfo[256];
	uint8_t conformanceVersion[4];
	uint32_t reserved0[46];
	uint64_t maxTimelineSemaphoreValueDifference;
	uint32_t reserved1[2];
} vkoPhysicalDeviceVulkan12Properties;

typedef struct vkoPhysicalDevicePushDescriptorPropertiesKHR {
	int32_t sType;
	void *pNext;
	uint32_t maxPushDescriptors;
} vkoPhysicalDevicePushDescriptorPropertiesKHR;

typedef struct vkoPhysicalDeviceExternalMemoryHostPropertiesEXT {
	int32_t sType;
	void *pNext;
	uint64_t minImportedHostPointerAlignment;
} vkoPhysicalDeviceExternalMemoryHostPropertiesEXT;

typedef struct vkoPhysicalDeviceExternalBufferInfo {
	int32_t sType;
	const void *pNext;
	uint32_t flags;
	uint32_t usage;
	uint32_t handleType;
} vkoPhysicalDeviceExternalBufferInfo;

typedef struct vkoExternalMemoryProperties {
	uint32_t externalMemoryFeatures;
	uint32_t exportFromImportedHandleTypes;
	uint32_t compatibleHandleTypes;
} vkoExternalMemoryProperties;

typedef struct vkoExternalBufferProperties {
	int32_t sType;
	void *pNext;
	vkoExternalMemoryProperties externalMemoryProperties;
} vkoExternalBufferProperties;

typedef struct vkoPhysicalDeviceMemoryProperties2 {
	int32_t sType;
	void *pNext;
	uint64_t memoryProperties[65]; // VkPhysicalDeviceMemoryProperties
} vkoPhysicalDeviceMemoryProperties2;

typedef struct vkoPhysicalDeviceMemoryBudgetPropertiesEXT {
	int32_t sType;
	void *pNext;
	uint64_t heapBudget[16];
	uint64_t heapUsage[16];
} vkoPhysicalDeviceMemoryBudgetPropertiesEXT;

typedef struct vkoPhysicalDeviceFeatures {
	uint32_t robustBufferAccess;
	uint32_t reserved0[32];
	uint32_t shaderUniformBufferArrayDynamicIndexing;
	uint32_t reserved1[1];
	uint32_t shaderStorageBufferArrayDynamicIndexing;
	uint32_t reserved2[3];
	uint32_t shaderFloat64;
	uint32_t shaderInt64;
	uint32_t shaderInt16;
	uint32_t reserved3[13];
} vkoPhysicalDeviceFeatures;

typedef struct vkoPhysicalDeviceFeatures2 {
	int32_t sType;
	void *pNext;
	vkoPhysicalDeviceFeatures features;
} vkoPhysicalDeviceFeatures2;

typedef struct vkoPhysicalDeviceVulkan11Features {
	int32_t sType;
	void *pNext;
	uint32_t storageBuffer16BitAccess;
	uint32_t uniformAndStorageBuffer16BitAccess;
	uint32_t storagePushConstant16;
	uint32_t reserved0[4];
	uint32_t variablePointersStorageBuffer;
	uint32_t variablePointers;
	uint32_t reserved1[3];
} vkoPhysicalDeviceVulkan11Features;

typedef struct vkoPhysicalDeviceVulkan12Features {
	int32_t sType;
	void *pNext;
	uint32_t reserved0[2];
	uint32_t storageBuffer8BitAccess;
	uint32_t uniformAndStorageBuffer8BitAccess;
	uint32_t storagePushConstant8;
	uint32_t shaderBufferInt64Atomics;
	uint32_t shaderSharedInt64Atomics;
	uint32_t shaderFloat16;
	uint32_t shaderInt8;
	uint32_t reserved1[6];
	uint32_t shaderStorageBufferArrayNonUniformIndexing;
	uint32_t reserved2[15];
	uint32_t scalarBlockLayout;
	uint32_t reserved3[2];
	uint32_t shaderSubgroupExtendedTypes;
	uint32_t reserved4[1];
	uint32_t hostQueryReset;
	uint32_t timelineSemaphore;
	uint32_t bufferDeviceAddress;
	uint32_t reserved5[2];
	uint32_t vulkanMemoryModel;
	uint32_t vulkanMemoryModelDeviceScope;
	uint32_t reserved6[3];
	uint32_t subgroupBroadcastDynamicId;
	uint32_t reserved7[1];
} vkoPhysicalDeviceVulkan12Features;

typedef struct vkoPhysicalDeviceRobustness2FeaturesEXT {
	int32_t sType;
	void *pNext;
	uint32_t robustBufferAccess2;
	uint32_t robustImageAccess2;
	uint32_t nullDescriptor;
} vkoPhysicalDeviceRobustness2FeaturesEXT;

typedef struct vkoPhysicalDeviceSynchronization2Features {
	int32_t sType;
	void *pNext;
	uint32_t synchronization2;
} vkoPhysicalDeviceSynchronization2Features;

typedef struct vkoPhysicalDeviceVulkan13Features {
	int32_t sType;
	void *pNext;
	uint32_t reserved0[9];
	uint32_t synchronization2;
	uint32_t reserved1[1];
	uint32_t shaderZeroInitializeWorkgroupMemory;
	uint32_t reserved2[2];
	uint32_t maintenance4;
} vkoPhysicalDeviceVulkan13Features;

typedef struct vkoPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures {
	int32_t sType;
	void *pNext;
	uint32_t shaderZeroInitializeWorkgroupMemory;
} vkoPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures;

typedef struct vkoPhysicalDeviceMaintenance4Features {
	int32_t sType;
	void *pNext;
	uint32_t maintenance4;
} vkoPhysicalDeviceMaintenance4Features;

typedef struct vkoPhysicalDeviceMaintenance4Properties {
	int32_t sType;
	void *pNext;
	uint64_t maxBufferSize;
} vkoPhysicalDeviceMaintenance4Properties;

typedef struct vkoPhysicalDevice16BitStorageFeatures {
	int32_t sType;
	void *pNext;
	uint32_t storageBuffer16BitAccess;
	uint32_t uniformAndStorageBuffer16BitAccess;
	uint32_t storagePushConstant16;
	uint32_t reserved0[1];
} vkoPhysicalDevice16BitStorageFeatures;

typedef struct vkoPhysicalDeviceShaderFloat16Int8Features {
	int32_t sType;
	void *pNext;
	uint32_t shaderFloat16;
	uint32_t shaderInt8;
} vkoPhysicalDeviceShaderFloat16Int8Features;

typedef struct vkoPhysicalDeviceVariablePointersFeatures {
	int32_t sType;
	void *pNext;
	uint32_t variablePointersStorageBuffer;
	uint32_t variablePointers;
} vkoPhysicalDeviceVariablePointersFeatures;

typedef struct vkoPhysicalDeviceDescriptorIndexingFeatures {
	int32_t sType;
	void *pNext;
	uint32_t reserved0[5];
	uint32_t shaderStorageBufferArrayNonUniformIndexing;
	uint32_t reserved1[14];
} vkoPhysicalDeviceDescriptorIndexingFeatures;

typedef struct vkoPhysicalDeviceShaderSubgroupExtendedTypesFeatures {
	int32_t sType;
	void *pNext;
	uint32_t shaderSubgroupExtendedTypes;
} vkoPhysicalDeviceShaderSubgroupExtendedTypesFeatures;

typedef struct vkoPhysicalDevice8BitStorageFeatures {
	int32_t sType;
	void *pNext;
	uint32_t storageBuffer8BitAccess;
	uint32_t uniformAndStorageBuffer8BitAccess;
	uint32_t storagePushConstant8;
} vkoPhysicalDevice8BitStorageFeatures;

typedef struct vkoPhysicalDeviceShaderAtomicInt64Features {
	int32_t sType;
	void *pNext;
	uint32_t shaderBufferInt64Atomics;
	uint32_t shaderSharedInt64Atomics;
} vkoPhysicalDeviceShaderAtomicInt64Features;

typedef struct vkoPhysicalDeviceTimelineSemaphoreFeatures {
	int32_t sType;
	void *pNext;
	uint32_t timelineSemaphore;
} vkoPhysicalDeviceTimelineSemaphoreFeatures;

typedef struct vkoPhysicalDeviceHostQueryResetFeatures {
	int32_t sType;
	void *pNext;
	uint32_t hostQueryReset;
} vkoPhysicalDeviceHostQueryResetFeatures;

typedef struct vkoPhysicalDeviceVulkanMemoryModelFeatures {
	int32_t sType;
	void *pNext;
	uint32_t vulkanMemoryModel;
	uint32_t vulkanMemoryModelDeviceScope;
	uint32_t reserved0[1];
} vkoPhysicalDeviceVulkanMemoryModelFeatures;

typedef struct vkoPhysicalDeviceScalarBlockLayoutFeatures {
	int32_t sType;
	void *pNext;
	uint32_t scalarBlockLayout;
} vkoPhysicalDeviceScalarBlockLayoutFeatures;

typedef struct vkoPhysicalDeviceBufferDeviceAddressFeatures {
	int32_t sType;
	void *pNext;
	uint32_t bufferDeviceAddress;
	uint32_t reserved0[2];
} vkoPhysicalDeviceBufferDeviceAddressFeatures;

typedef struct vkoQueueFamilyProperties {
	uint32_t queueFlags;
	uint32_t queueCount;
	uint32_t timestampValidBits;
	uint32_t minImageTransferGranularity[3];
} vkoQueueFamilyProperties;

// Device and memory.

typedef struct vkoDeviceQueueCreateInfo {
	int32_t sType;
	const void *pNext;
	uint32_t flags;
	uint32_t queueFamilyIndex;
	uint32_t queueCount;
	const float *pQueuePriorities;
} vkoDeviceQueueCreateInfo;

typedef struct vkoDeviceCreateInfo {
	int32_t sType;
	const void *pNext;
	uint32_t flags;
	uint32_t queueCreateInfoCount;
	const vkoDeviceQueueCreateInfo *pQueueCreateInfos;
	uint32_t enabledLayerCount;
	const char *const *ppEnabledLayerNames;
	uint32_t enabledExtensionCount;
	const char *const *ppEnabledExtensionNames;
	const vkoPhysicalDeviceFeatures *pEnabledFeatures;
} vkoDeviceCreateInfo;

typedef struct vkoMemoryAllocateInfo {
	int32_t sType;
	const void *pNext;
	uint64_t allocationSize;
	uint32_t memoryTypeIndex;
} vkoMemoryAllocateInfo;

typedef struct vkoMemoryAllocateFlagsInfo {
	int32_t sType;
	const void *pNext;
	uint32_t flags;
	uint32_t deviceMask;
} vkoMemoryAllocateFlagsInfo;

typedef struct vkoImportMemoryHostPointerInfoEXT {
	int32_t sType;
	const void *pNext;
	int32_t handleType;
	void *pHostPointer;
} vkoImportMemoryHostPointerInfoEXT;

typedef struct vkoMemoryHostPointerPropertiesEXT {
	int32_t sType;
	void *pNext;
	uint32_t memoryTypeBits;
} vkoMemoryHostPointerPropertiesEXT;

typedef struct vkoMappedMemoryRange {
	int32_t sType;
	const void *pNext;
	vkoHandle memory;
	uint64_t offset;
	uint64_t size;
} vkoMappedMemoryRange;

typedef struct vkoBufferCreateInfo {
	int32_t sType;
	const void *pNext;
	uint32_t flags;
	uint64_t size;
	uint32_t usage;
	int32_t sharingMode;
	uint32_t queueFamilyIndexCount;
	const uint32_t *pQueueFamilyIndices;
} vkoBufferCreateInfo;

typedef struct vkoExternalMemoryBufferCreateInfo {
	int32_t sType;
	const void *pNext;
	uint32_t handleTypes;
} vkoExternalMemoryBufferCreateInfo;

typedef struct vkoBufferDeviceAddressInfo {
	int32_t sType;
	const void *pNext;
	vkoHandle buffer;
} vkoBufferDeviceAddressInfo;

// Timelines and submission.

typedef struct vkoSemaphoreTypeCreateInfo {
	int32_t sType;
	const void *pNext;
	int32_t semaphoreType;
	uint64_t initialValue;
} vkoSemaphoreTypeCreateInfo;

typedef struct vkoSemaphoreCreateInfo {
	int32_t sType;
	const void *pNext;
	uint32_t flags;
} vkoSemaphoreCreateInfo;

typedef struct vkoSemaphoreWaitInfo {
	int32_t sType;
	const void *pNext;
	uint32_t flags;
	uint32_t semaphoreCount;
	const vkoHandle *pSemaphores;
	const uint64_t *pValues;
} vkoSemaphoreWaitInfo;

typedef struct vkoSemaphoreSignalInfo {
	int32_t sType;
	const void *pNext;
	vkoHandle semaphore;
	uint64_t value;
} vkoSemaphoreSignalInfo;

typedef struct vkoTimelineSemaphoreSubmitInfo {
	int32_t sType;
	const void *pNext;
	uint32_t waitSemaphoreValueCount;
	const uint64_t *pWaitSemaphoreValues;
	uint32_t signalSemaphoreValueCount;
	const uint64_t *pSignalSemaphoreValues;
} vkoTimelineSemaphoreSubmitInfo;

typedef struct vkoSubmitInfo {
	int32_t sType;
	const void *pNext;
	uint32_t waitSemaphoreCount;
	const vkoHandle *pWaitSemaphores;
	const uint32_t *pWaitDstStageMask;
	uint32_t commandBufferCount;
	void *const *pCommandBuffers;
	uint32_t signalSemaphoreCount;
	const vkoHandle *pSignalSemaphores;
} vkoSubmitInfo;

// Handles of the operating system.

typedef struct vkoExportMemoryAllocateInfo {
	int32_t sType;
	const void *pNext;
	uint32_t handleTypes;
} vkoExportMemoryAllocateInfo;

typedef struct vkoImportMemoryFdInfoKHR {
	int32_t sType;
	const void *pNext;
	int32_t handleType;
	int fd;
} vkoImportMemoryFdInfoKHR;

typedef struct vkoMemoryGetFdInfoKHR {
	int32_t sType;
	const void *pNext;
	vkoHandle memory;
	int32_t handleType;
} vkoMemoryGetFdInfoKHR;

typedef struct vkoPhysicalDeviceExternalSemaphoreInfo {
	int32_t sType;
	const void *pNext;
	int32_t handleType;
} vkoPhysicalDeviceExternalSemaphoreInfo;

typedef struct vkoExternalSemaphoreProperties {
	int32_t sType;
	void *pNext;
	uint32_t exportFromImportedHandleTypes;
	uint32_t compatibleHandleTypes;
	uint32_t externalSemaphoreFeatures;
} vkoExternalSemaphoreProperties;

typedef struct vkoExportSemaphoreCreateInfo {
	int32_t sType;
	const void *pNext;
	uint32_t handleTypes;
} vkoExportSemaphoreCreateInfo;

typedef struct vkoImportSemaphoreFdInfoKHR {
	int32_t sType;
	const void *pNext;
	vkoHandle semaphore;
	uint32_t flags;
	int32_t handleType;
	int fd;
} vkoImportSemaphoreFdInfoKHR;

typedef struct vkoSemaphoreGetFdInfoKHR {
	int32_t sType;
	const void *pNext;
	vkoHandle semaphore;
	int32_t handleType;
} vkoSemaphoreGetFdInfoKHR;

// Commands.

typedef struct vkoCommandBufferAllocateInfo {
	int32_t sType;
	const void *pNext;
	vkoHandle commandPool;
	int32_t level;
	uint32_t commandBufferCount;
} vkoCommandBufferAllocateInfo;

typedef struct vkoCommandBufferBeginInfo {
	int32_t sType;
	const void *pNext;
	uint32_t flags;
	const void *pInheritanceInfo;
} vkoCommandBufferBeginInfo;

typedef struct vkoMemoryBarrier {
	int32_t sType;
	const void *pNext;
	uint32_t srcAccessMask;
	uint32_t dstAccessMask;
} vkoMemoryBarrier;

typedef struct vkoMemoryBarrier2 {
	int32_t sType;
	const void *pNext;
	uint64_t srcStageMask;
	uint64_t srcAccessMask;
	uint64_t dstStageMask;
	uint64_t dstAccessMask;
} vkoMemoryBarrier2;

typedef struct vkoDependencyInfo {
	int32_t sType;
	const void *pNext;
	uint32_t dependencyFlags;
	uint32_t memoryBarrierCount;
	const vkoMemoryBarrier2 *pMemoryBarriers;
	uint32_t bufferMemoryBarrierCount;
	const void *pBufferMemoryBarriers;
	uint32_t imageMemoryBarrierCount;
	const void *pImageMemoryBarriers;
} vkoDependencyInfo;

typedef struct vkoBufferCopy {
	uint64_t srcOffset;
	uint64_t dstOffset;
	uint64_t size;
} vkoBufferCopy;

// Timestamps.

typedef struct vkoCalibratedTimestampInfoEXT {
	int32_t sType;
	const void *pNext;
	int32_t timeDomain;
} vkoCalibratedTimestampInfoEXT;

// Descriptors and pipelines.

typedef struct vkoDescriptorBufferInfo {
	vkoHandle buffer;
	uint64_t offset;
	uint64_t range;
} vkoDescriptorBufferInfo;

typedef struct vkoWriteDescriptorSet {
	int32_t sType;
	const void *pNext;
	vkoHandle dstSet;
	uint32_t dstBinding;
	uint32_t dstArrayElement;
	uint32_t descriptorCount;
	int32_t descriptorType;
	const void *pImageInfo;
	const vkoDescriptorBufferInfo *pBufferInfo;
	const void *pTexelBufferView;
} vkoWriteDescriptorSet;

typedef struct vkoDescriptorPoolSize {
	int32_t type;
	uint32_t descriptorCount;
} vkoDescriptorPoolSize;

typedef struct vkoDescriptorPoolCreateInfo {
	int32_t sType;
	const void *pNext;
	uint32_t flags;
	uint32_t maxSets;
	uint32_t poolSizeCount;
	const vkoDescriptorPoolSize *pPoolSizes;
} vkoDescriptorPoolCreateInfo;

typedef struct vkoDescriptorSetAllocateInfo {
	int32_t sType;
	const void *pNext;
	vkoHandle descriptorPool;
	uint32_t descriptorSetCount;
	const vkoHandle *pSetLayouts;
} vkoDescriptorSetAllocateInfo;

typedef struct vkoDescriptorSetLayoutBinding {
	uint32_t binding;
	int32_t descriptorType;
	uint32_t descriptorCount;
	uint32_t stageFlags;
	const void *pImmutableSamplers;
} vkoDescriptorSetLayoutBinding;

typedef struct vkoDescriptorSetLayoutCreateInfo {
	int32_t sType;
	const void *pNext;
	uint32_t flags;
	uint32_t bindingCount;
	const vkoDescriptorSetLayoutBinding *pBindings;
} vkoDescriptorSetLayoutCreateInfo;

typedef struct vkoPushConstantRange {
	uint32_t stageFlags;
	uint32_t offset;
	uint32_t size;
} vkoPushConstantRange;

typedef struct vkoPipelineLayoutCreateInfo {
	int32_t sType;
	const void *pNext;
	uint32_t flags;
	uint32_t setLayoutCount;
	const vkoHandle *pSetLayouts;
	uint32_t pushConstantRangeCount;
	const vkoPushConstantRange *pPushConstantRanges;
} vkoPipelineLayoutCreateInfo;

typedef struct vkoShaderModuleCreateInfo {
	int32_t sType;
	const void *pNext;
	uint32_t flags;
	size_t codeSize;
	const uint32_t *pCode;
} vkoShaderModuleCreateInfo;

typedef struct vkoSpecializationMapEntry {
	uint32_t constantID;
	uint32_t offset;
	size_t size;
} vkoSpecializationMapEntry;

typedef struct vkoSpecializationInfo {
	uint32_t mapEntryCount;
	const vkoSpecializationMapEntry *pMapEntries;
	size_t dataSize;
	const void *pData;
} vkoSpecializationInfo;

typedef struct vkoPipelineShaderStageCreateInfo {
	int32_t sType;
	const void *pNext;
	uint32_t flags;
	uint32_t stage;
	vkoHandle module;
	const char *pName;
	const vkoSpecializationInfo *pSpecializationInfo;
} vkoPipelineShaderStageCreateInfo;

typedef struct vkoComputePipelineCreateInfo {
	int32_t sType;
	const void *pNext;
	uint32_t flags;
	vkoPipelineShaderStageCreateInfo stage;
	vkoHandle layout;
	vkoHandle basePipelineHandle;
	int32_t basePipelineIndex;
} vkoComputePipelineCreateInfo;

typedef struct vkoPipelineCreationFeedback {
	uint32_t flags;
	uint64_t duration;
} vkoPipelineCreationFeedback;

typedef struct vkoPipelineCreationFeedbackCreateInfo {
	int32_t sType;
	const void *pNext;
	vkoPipelineCreationFeedback *pPipelineCreationFeedback;
	uint32_t pipelineStageCreationFeedbackCount;
	vkoPipelineCreationFeedback *pPipelineStageCreationFeedbacks;
} vkoPipelineCreationFeedbackCreateInfo;

typedef struct vkoPipelineCacheCreateInfo {
	int32_t sType;
	const void *pNext;
	uint32_t flags;
	size_t initialDataSize;
	const void *pInitialData;
} vkoPipelineCacheCreateInfo;

#endif
