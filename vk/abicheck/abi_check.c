// Compares every structure, member and value of vkabi.h with Vulkan's own headers, which only
// this check needs. Compiling it is the check:
//
//	gcc -std=c11 -Wall -Wextra -Werror -fsyntax-only -Ivk vk/abicheck/abi_check.c
//
// A member that stands for a structure of Vulkan has that structure's size. A test of package vk
// checks that no structure, member or value is left out here.
#include "vkabi.h"

#include <vulkan/vulkan.h>

#define STRUCT(name)                                                                         \
	_Static_assert(sizeof(vko##name) == sizeof(Vk##name), "size of " #name);             \
	_Static_assert(_Alignof(vko##name) == _Alignof(Vk##name), "alignment of " #name)
#define MEMBER(name, member)                                                                 \
	_Static_assert(offsetof(vko##name, member) == offsetof(Vk##name, member),            \
		"offset of " #name "." #member);                                             \
	_Static_assert(sizeof((vko##name){ 0 }.member) == sizeof((Vk##name){ 0 }.member),    \
		"size of " #name "." #member)
#define VALUE(name) _Static_assert((long long)VKO_##name == (long long)VK_##name, #name)

_Static_assert(sizeof(vkoHandle) == sizeof(VkBuffer), "size of a non-dispatchable handle");
_Static_assert(sizeof(void *) == sizeof(VkDevice), "size of a dispatchable handle");
_Static_assert(sizeof(int32_t) == sizeof(VkResult), "size of an enumeration");
_Static_assert(sizeof(uint32_t) == sizeof(VkBool32), "size of a boolean");
_Static_assert(sizeof(vkoMessengerCallback) == sizeof(PFN_vkDebugUtilsMessengerCallbackEXT),
	"size of a function pointer");

VALUE(SUCCESS);
VALUE(TIMEOUT);
VALUE(INCOMPLETE);
VALUE(ERROR_OUT_OF_HOST_MEMORY);
VALUE(ERROR_INITIALIZATION_FAILED);
VALUE(ERROR_DEVICE_LOST);
VALUE(ERROR_LAYER_NOT_PRESENT);
VALUE(ERROR_EXTENSION_NOT_PRESENT);
VALUE(ERROR_INCOMPATIBLE_DRIVER);
VALUE(ERROR_TOO_MANY_OBJECTS);
VALUE(ERROR_INVALID_EXTERNAL_HANDLE);
VALUE(STRUCTURE_TYPE_APPLICATION_INFO);
VALUE(STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
VALUE(STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
VALUE(STRUCTURE_TYPE_DEVICE_CREATE_INFO);
VALUE(STRUCTURE_TYPE_SUBMIT_INFO);
VALUE(STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
VALUE(STRUCTURE_TYPE_MAPPED_MEMORY_RANGE);
VALUE(STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO);
VALUE(STRUCTURE_TYPE_BUFFER_CREATE_INFO);
VALUE(STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
VALUE(STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
VALUE(STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO);
VALUE(STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
VALUE(STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
VALUE(STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
VALUE(STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
VALUE(STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO);
VALUE(STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
VALUE(STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
VALUE(STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
VALUE(STRUCTURE_TYPE_MEMORY_BARRIER);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2);
VALUE(STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO);
VALUE(STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES);
VALUE(STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO);
VALUE(STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO);
VALUE(STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR);
VALUE(STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO);
VALUE(STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES);
VALUE(STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO);
VALUE(STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR);
VALUE(STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_VARIABLE_POINTERS_FEATURES);
VALUE(STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_FEATURES);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES);
VALUE(STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
VALUE(STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_INT64_FEATURES);
VALUE(STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT);
VALUE(STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES);
VALUE(STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
VALUE(STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
VALUE(STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO);
VALUE(STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_SCALAR_BLOCK_LAYOUT_FEATURES);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
VALUE(STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO);
VALUE(STRUCTURE_TYPE_VALIDATION_FEATURES_EXT);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT);
VALUE(STRUCTURE_TYPE_MEMORY_BARRIER_2);
VALUE(STRUCTURE_TYPE_DEPENDENCY_INFO);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES);
VALUE(STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES);
VALUE(INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR);
VALUE(VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT);
VALUE(DEBUG_UTILS_MESSAGE_SEVERITY_VERBOSE_BIT_EXT);
VALUE(DEBUG_UTILS_MESSAGE_SEVERITY_INFO_BIT_EXT);
VALUE(DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT);
VALUE(DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT);
VALUE(DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT);
VALUE(DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT);
VALUE(DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT);
VALUE(SHADER_STAGE_COMPUTE_BIT);
VALUE(SUBGROUP_FEATURE_BASIC_BIT);
VALUE(MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT);
VALUE(DRIVER_ID_GOOGLE_SWIFTSHADER);
VALUE(EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT);
VALUE(EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT);
VALUE(EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT);
VALUE(EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT);
VALUE(EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT);
VALUE(EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT);
VALUE(EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT);
VALUE(EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT);
VALUE(SHARING_MODE_EXCLUSIVE);
VALUE(SHARING_MODE_CONCURRENT);
VALUE(BUFFER_USAGE_TRANSFER_SRC_BIT);
VALUE(BUFFER_USAGE_TRANSFER_DST_BIT);
VALUE(BUFFER_USAGE_STORAGE_BUFFER_BIT);
VALUE(BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT);
VALUE(SEMAPHORE_TYPE_BINARY);
VALUE(SEMAPHORE_TYPE_TIMELINE);
VALUE(COMMAND_BUFFER_LEVEL_PRIMARY);
VALUE(COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
VALUE(COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT);
VALUE(PIPELINE_BIND_POINT_COMPUTE);
VALUE(PIPELINE_CREATE_DISPATCH_BASE_BIT);
VALUE(PIPELINE_CREATION_FEEDBACK_VALID_BIT);
VALUE(PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT);
VALUE(PIPELINE_STAGE_TOP_OF_PIPE_BIT);
VALUE(PIPELINE_STAGE_COMPUTE_SHADER_BIT);
VALUE(PIPELINE_STAGE_TRANSFER_BIT);
VALUE(PIPELINE_STAGE_HOST_BIT);
VALUE(PIPELINE_STAGE_ALL_COMMANDS_BIT);
VALUE(ACCESS_SHADER_READ_BIT);
VALUE(ACCESS_SHADER_WRITE_BIT);
VALUE(ACCESS_TRANSFER_READ_BIT);
VALUE(ACCESS_TRANSFER_WRITE_BIT);
VALUE(ACCESS_HOST_READ_BIT);
VALUE(ACCESS_HOST_WRITE_BIT);
VALUE(ACCESS_MEMORY_READ_BIT);
VALUE(ACCESS_MEMORY_WRITE_BIT);
VALUE(DESCRIPTOR_TYPE_STORAGE_BUFFER);
VALUE(DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR);
VALUE(MAX_EXTENSION_NAME_SIZE);
VALUE(MAX_MEMORY_HEAPS);
VALUE(QUERY_RESULT_64_BIT);
VALUE(TIME_DOMAIN_DEVICE_EXT);

STRUCT(ApplicationInfo);
MEMBER(ApplicationInfo, sType);
MEMBER(ApplicationInfo, pNext);
MEMBER(ApplicationInfo, pApplicationName);
MEMBER(ApplicationInfo, applicationVersion);
MEMBER(ApplicationInfo, pEngineName);
MEMBER(ApplicationInfo, engineVersion);
MEMBER(ApplicationInfo, apiVersion);

STRUCT(InstanceCreateInfo);
MEMBER(InstanceCreateInfo, sType);
MEMBER(InstanceCreateInfo, pNext);
MEMBER(InstanceCreateInfo, flags);
MEMBER(InstanceCreateInfo, pApplicationInfo);
MEMBER(InstanceCreateInfo, enabledLayerCount);
MEMBER(InstanceCreateInfo, ppEnabledLayerNames);
MEMBER(InstanceCreateInfo, enabledExtensionCount);
MEMBER(InstanceCreateInfo, ppEnabledExtensionNames);

STRUCT(LayerProperties);
MEMBER(LayerProperties, layerName);
MEMBER(LayerProperties, specVersion);
MEMBER(LayerProperties, implementationVersion);
MEMBER(LayerProperties, description);

STRUCT(ExtensionProperties);
MEMBER(ExtensionProperties, extensionName);
MEMBER(ExtensionProperties, specVersion);

STRUCT(ValidationFeaturesEXT);
MEMBER(ValidationFeaturesEXT, sType);
MEMBER(ValidationFeaturesEXT, pNext);
MEMBER(ValidationFeaturesEXT, enabledValidationFeatureCount);
MEMBER(ValidationFeaturesEXT, pEnabledValidationFeatures);
MEMBER(ValidationFeaturesEXT, disabledValidationFeatureCount);
MEMBER(ValidationFeaturesEXT, pDisabledValidationFeatures);

STRUCT(DebugUtilsMessengerCallbackDataEXT);
MEMBER(DebugUtilsMessengerCallbackDataEXT, sType);
MEMBER(DebugUtilsMessengerCallbackDataEXT, pNext);
MEMBER(DebugUtilsMessengerCallbackDataEXT, flags);
MEMBER(DebugUtilsMessengerCallbackDataEXT, pMessageIdName);
MEMBER(DebugUtilsMessengerCallbackDataEXT, messageIdNumber);
MEMBER(DebugUtilsMessengerCallbackDataEXT, pMessage);
MEMBER(DebugUtilsMessengerCallbackDataEXT, queueLabelCount);
MEMBER(DebugUtilsMessengerCallbackDataEXT, pQueueLabels);
MEMBER(DebugUtilsMessengerCallbackDataEXT, cmdBufLabelCount);
MEMBER(DebugUtilsMessengerCallbackDataEXT, pCmdBufLabels);
MEMBER(DebugUtilsMessengerCallbackDataEXT, objectCount);
MEMBER(DebugUtilsMessengerCallbackDataEXT, pObjects);

STRUCT(DebugUtilsMessengerCreateInfoEXT);
MEMBER(DebugUtilsMessengerCreateInfoEXT, sType);
MEMBER(DebugUtilsMessengerCreateInfoEXT, pNext);
MEMBER(DebugUtilsMessengerCreateInfoEXT, flags);
MEMBER(DebugUtilsMessengerCreateInfoEXT, messageSeverity);
MEMBER(DebugUtilsMessengerCreateInfoEXT, messageType);
MEMBER(DebugUtilsMessengerCreateInfoEXT, pfnUserCallback);
MEMBER(DebugUtilsMessengerCreateInfoEXT, pUserData);

STRUCT(PhysicalDeviceProperties2);
MEMBER(PhysicalDeviceProperties2, sType);
MEMBER(PhysicalDeviceProperties2, pNext);
MEMBER(PhysicalDeviceProperties2, properties);

STRUCT(PhysicalDeviceVulkan11Properties);
MEMBER(PhysicalDeviceVulkan11Properties, sType);
MEMBER(PhysicalDeviceVulkan11Properties, pNext);
MEMBER(PhysicalDeviceVulkan11Properties, deviceUUID);
MEMBER(PhysicalDeviceVulkan11Properties, subgroupSize);
MEMBER(PhysicalDeviceVulkan11Properties, subgroupSupportedStages);
MEMBER(PhysicalDeviceVulkan11Properties, subgroupSupportedOperations);
MEMBER(PhysicalDeviceVulkan11Properties, maxMemoryAllocationSize);

STRUCT(PhysicalDeviceVulkan12Properties);
MEMBER(PhysicalDeviceVulkan12Properties, sType);
MEMBER(PhysicalDeviceVulkan12Properties, pNext);
MEMBER(PhysicalDeviceVulkan12Properties, driverID);
MEMBER(PhysicalDeviceVulkan12Properties, driverName);
MEMBER(PhysicalDeviceVulkan12Properties, driverInfo);
MEMBER(PhysicalDeviceVulkan12Properties, conformanceVersion);
MEMBER(PhysicalDeviceVulkan12Properties, maxTimelineSemaphoreValueDifference);

STRUCT(PhysicalDevicePushDescriptorPropertiesKHR);
MEMBER(PhysicalDevicePushDescriptorPropertiesKHR, sType);
MEMBER(PhysicalDevicePushDescriptorPropertiesKHR, pNext);
MEMBER(PhysicalDevicePushDescriptorPropertiesKHR, maxPushDescriptors);

STRUCT(PhysicalDeviceExternalMemoryHostPropertiesEXT);
MEMBER(PhysicalDeviceExternalMemoryHostPropertiesEXT, sType);
MEMBER(PhysicalDeviceExternalMemoryHostPropertiesEXT, pNext);
MEMBER(PhysicalDeviceExternalMemoryHostPropertiesEXT, minImportedHostPointerAlignment);

STRUCT(PhysicalDeviceExternalBufferInfo);
MEMBER(PhysicalDeviceExternalBufferInfo, sType);
MEMBER(PhysicalDeviceExternalBufferInfo, pNext);
MEMBER(PhysicalDeviceExternalBufferInfo, flags);
MEMBER(PhysicalDeviceExternalBufferInfo, usage);
MEMBER(PhysicalDeviceExternalBufferInfo, handleType);

STRUCT(ExternalMemoryProperties);
MEMBER(ExternalMemoryProperties, externalMemoryFeatures);
MEMBER(ExternalMemoryProperties, exportFromImportedHandleTypes);
MEMBER(ExternalMemoryProperties, compatibleHandleTypes);

STRUCT(ExternalBufferProperties);
MEMBER(ExternalBufferProperties, sType);
MEMBER(ExternalBufferProperties, pNext);
MEMBER(ExternalBufferProperties, externalMemoryProperties);

STRUCT(PhysicalDeviceMemoryProperties2);
MEMBER(PhysicalDeviceMemoryProperties2, sType);
MEMBER(PhysicalDeviceMemoryProperties2, pNext);
MEMBER(PhysicalDeviceMemoryProperties2, memoryProperties);

STRUCT(PhysicalDeviceMemoryBudgetPropertiesEXT);
MEMBER(PhysicalDeviceMemoryBudgetPropertiesEXT, sType);
MEMBER(PhysicalDeviceMemoryBudgetPropertiesEXT, pNext);
MEMBER(PhysicalDeviceMemoryBudgetPropertiesEXT, heapBudget);
MEMBER(PhysicalDeviceMemoryBudgetPropertiesEXT, heapUsage);

STRUCT(PhysicalDeviceFeatures);
MEMBER(PhysicalDeviceFeatures, robustBufferAccess);
MEMBER(PhysicalDeviceFeatures, shaderUniformBufferArrayDynamicIndexing);
MEMBER(PhysicalDeviceFeatures, shaderStorageBufferArrayDynamicIndexing);
MEMBER(PhysicalDeviceFeatures, shaderFloat64);
MEMBER(PhysicalDeviceFeatures, shaderInt64);
MEMBER(PhysicalDeviceFeatures, shaderInt16);

STRUCT(PhysicalDeviceFeatures2);
MEMBER(PhysicalDeviceFeatures2, sType);
MEMBER(PhysicalDeviceFeatures2, pNext);
MEMBER(PhysicalDeviceFeatures2, features);

STRUCT(PhysicalDeviceVulkan11Features);
MEMBER(PhysicalDeviceVulkan11Features, sType);
MEMBER(PhysicalDeviceVulkan11Features, pNext);
MEMBER(PhysicalDeviceVulkan11Features, storageBuffer16BitAccess);
MEMBER(PhysicalDeviceVulkan11Features, uniformAndStorageBuffer16BitAccess);
MEMBER(PhysicalDeviceVulkan11Features, storagePushConstant16);
MEMBER(PhysicalDeviceVulkan11Features, variablePointersStorageBuffer);
MEMBER(PhysicalDeviceVulkan11Features, variablePointers);

STRUCT(PhysicalDeviceVulkan12Features);
MEMBER(PhysicalDeviceVulkan12Features, sType);
MEMBER(PhysicalDeviceVulkan12Features, pNext);
MEMBER(PhysicalDeviceVulkan12Features, storageBuffer8BitAccess);
MEMBER(PhysicalDeviceVulkan12Features, uniformAndStorageBuffer8BitAccess);
MEMBER(PhysicalDeviceVulkan12Features, storagePushConstant8);
MEMBER(PhysicalDeviceVulkan12Features, shaderBufferInt64Atomics);
MEMBER(PhysicalDeviceVulkan12Features, shaderSharedInt64Atomics);
MEMBER(PhysicalDeviceVulkan12Features, shaderFloat16);
MEMBER(PhysicalDeviceVulkan12Features, shaderInt8);
MEMBER(PhysicalDeviceVulkan12Features, shaderStorageBufferArrayNonUniformIndexing);
MEMBER(PhysicalDeviceVulkan12Features, scalarBlockLayout);
MEMBER(PhysicalDeviceVulkan12Features, shaderSubgroupExtendedTypes);
MEMBER(PhysicalDeviceVulkan12Features, hostQueryReset);
MEMBER(PhysicalDeviceVulkan12Features, timelineSemaphore);
MEMBER(PhysicalDeviceVulkan12Features, bufferDeviceAddress);
MEMBER(PhysicalDeviceVulkan12Features, vulkanMemoryModel);
MEMBER(PhysicalDeviceVulkan12Features, vulkanMemoryModelDeviceScope);
MEMBER(PhysicalDeviceVulkan12Features, subgroupBroadcastDynamicId);

STRUCT(PhysicalDeviceRobustness2FeaturesEXT);
MEMBER(PhysicalDeviceRobustness2FeaturesEXT, sType);
MEMBER(PhysicalDeviceRobustness2FeaturesEXT, pNext);
MEMBER(PhysicalDeviceRobustness2FeaturesEXT, robustBufferAccess2);
MEMBER(PhysicalDeviceRobustness2FeaturesEXT, robustImageAccess2);
MEMBER(PhysicalDeviceRobustness2FeaturesEXT, nullDescriptor);

STRUCT(PhysicalDeviceSynchronization2Features);
MEMBER(PhysicalDeviceSynchronization2Features, sType);
MEMBER(PhysicalDeviceSynchronization2Features, pNext);
MEMBER(PhysicalDeviceSynchronization2Features, synchronization2);

STRUCT(PhysicalDeviceVulkan13Features);
MEMBER(PhysicalDeviceVulkan13Features, sType);
MEMBER(PhysicalDeviceVulkan13Features, pNext);
MEMBER(PhysicalDeviceVulkan13Features, synchronization2);
MEMBER(PhysicalDeviceVulkan13Features, shaderZeroInitializeWorkgroupMemory);
MEMBER(PhysicalDeviceVulkan13Features, maintenance4);

STRUCT(PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures);
MEMBER(PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures, sType);
MEMBER(PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures, pNext);
MEMBER(PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures, shaderZeroInitializeWorkgroupMemory);

STRUCT(PhysicalDeviceMaintenance4Features);
MEMBER(PhysicalDeviceMaintenance4Features, sType);
MEMBER(PhysicalDeviceMaintenance4Features, pNext);
MEMBER(PhysicalDeviceMaintenance4Features, maintenance4);

STRUCT(PhysicalDeviceMaintenance4Properties);
MEMBER(PhysicalDeviceMaintenance4Properties, sType);
MEMBER(PhysicalDeviceMaintenance4Properties, pNext);
MEMBER(PhysicalDeviceMaintenance4Properties, maxBufferSize);

STRUCT(PhysicalDevice16BitStorageFeatures);
MEMBER(PhysicalDevice16BitStorageFeatures, sType);
MEMBER(PhysicalDevice16BitStorageFeatures, pNext);
MEMBER(PhysicalDevice16BitStorageFeatures, storageBuffer16BitAccess);
MEMBER(PhysicalDevice16BitStorageFeatures, uniformAndStorageBuffer16BitAccess);
MEMBER(PhysicalDevice16BitStorageFeatures, storagePushConstant16);

STRUCT(PhysicalDeviceShaderFloat16Int8Features);
MEMBER(PhysicalDeviceShaderFloat16Int8Features, sType);
MEMBER(PhysicalDeviceShaderFloat16Int8Features, pNext);
MEMBER(PhysicalDeviceShaderFloat16Int8Features, shaderFloat16);
MEMBER(PhysicalDeviceShaderFloat16Int8Features, shaderInt8);

STRUCT(PhysicalDeviceVariablePointersFeatures);
MEMBER(PhysicalDeviceVariablePointersFeatures, sType);
MEMBER(PhysicalDeviceVariablePointersFeatures, pNext);
MEMBER(PhysicalDeviceVariablePointersFeatures, variablePointersStorageBuffer);
MEMBER(PhysicalDeviceVariablePointersFeatures, variablePointers);

STRUCT(PhysicalDeviceDescriptorIndexingFeatures);
MEMBER(PhysicalDeviceDescriptorIndexingFeatures, sType);
MEMBER(PhysicalDeviceDescriptorIndexingFeatures, pNext);
MEMBER(PhysicalDeviceDescriptorIndexingFeatures, shaderStorageBufferArrayNonUniformIndexing);

STRUCT(PhysicalDeviceShaderSubgroupExtendedTypesFeatures);
MEMBER(PhysicalDeviceShaderSubgroupExtendedTypesFeatures, sType);
MEMBER(PhysicalDeviceShaderSubgroupExtendedTypesFeatures, pNext);
MEMBER(PhysicalDeviceShaderSubgroupExtendedTypesFeatures, shaderSubgroupExtendedTypes);

STRUCT(PhysicalDevice8BitStorageFeatures);
MEMBER(PhysicalDevice8BitStorageFeatures, sType);
MEMBER(PhysicalDevice8BitStorageFeatures, pNext);
MEMBER(PhysicalDevice8BitStorageFeatures, storageBuffer8BitAccess);
MEMBER(PhysicalDevice8BitStorageFeatures, uniformAndStorageBuffer8BitAccess);
MEMBER(PhysicalDevice8BitStorageFeatures, storagePushConstant8);

STRUCT(PhysicalDeviceShaderAtomicInt64Features);
MEMBER(PhysicalDeviceShaderAtomicInt64Features, sType);
MEMBER(PhysicalDeviceShaderAtomicInt64Features, pNext);
MEMBER(PhysicalDeviceShaderAtomicInt64Features, shaderBufferInt64Atomics);
MEMBER(PhysicalDeviceShaderAtomicInt64Features, shaderSharedInt64Atomics);

STRUCT(PhysicalDeviceTimelineSemaphoreFeatures);
MEMBER(PhysicalDeviceTimelineSemaphoreFeatures, sType);
MEMBER(PhysicalDeviceTimelineSemaphoreFeatures, pNext);
MEMBER(PhysicalDeviceTimelineSemaphoreFeatures, timelineSemaphore);

STRUCT(PhysicalDeviceHostQueryResetFeatures);
MEMBER(PhysicalDeviceHostQueryResetFeatures, sType);
MEMBER(PhysicalDeviceHostQueryResetFeatures, pNext);
MEMBER(PhysicalDeviceHostQueryResetFeatures, hostQueryReset);

STRUCT(PhysicalDeviceVulkanMemoryModelFeatures);
MEMBER(PhysicalDeviceVulkanMemoryModelFeatures, sType);
MEMBER(PhysicalDeviceVulkanMemoryModelFeatures, pNext);
MEMBER(PhysicalDeviceVulkanMemoryModelFeatures, vulkanMemoryModel);
MEMBER(PhysicalDeviceVulkanMemoryModelFeatures, vulkanMemoryModelDeviceScope);

STRUCT(PhysicalDeviceScalarBlockLayoutFeatures);
MEMBER(PhysicalDeviceScalarBlockLayoutFeatures, sType);
MEMBER(PhysicalDeviceScalarBlockLayoutFeatures, pNext);
MEMBER(PhysicalDeviceScalarBlockLayoutFeatures, scalarBlockLayout);

STRUCT(PhysicalDeviceBufferDeviceAddressFeatures);
MEMBER(PhysicalDeviceBufferDeviceAddressFeatures, sType);
MEMBER(PhysicalDeviceBufferDeviceAddressFeatures, pNext);
MEMBER(PhysicalDeviceBufferDeviceAddressFeatures, bufferDeviceAddress);

STRUCT(QueueFamilyProperties);
MEMBER(QueueFamilyProperties, queueFlags);
MEMBER(QueueFamilyProperties, queueCount);
MEMBER(QueueFamilyProperties, timestampValidBits);
MEMBER(QueueFamilyProperties, minImageTransferGranularity);

STRUCT(DeviceQueueCreateInfo);
MEMBER(DeviceQueueCreateInfo, sType);
MEMBER(DeviceQueueCreateInfo, pNext);
MEMBER(DeviceQueueCreateInfo, flags);
MEMBER(DeviceQueueCreateInfo, queueFamilyIndex);
MEMBER(DeviceQueueCreateInfo, queueCount);
MEMBER(DeviceQueueCreateInfo, pQueuePriorities);

STRUCT(DeviceCreateInfo);
MEMBER(DeviceCreateInfo, sType);
MEMBER(DeviceCreateInfo, pNext);
MEMBER(DeviceCreateInfo, flags);
MEMBER(DeviceCreateInfo, queueCreateInfoCount);
MEMBER(DeviceCreateInfo, pQueueCreateInfos);
MEMBER(DeviceCreateInfo, enabledLayerCount);
MEMBER(DeviceCreateInfo, ppEnabledLayerNames);
MEMBER(DeviceCreateInfo, enabledExtensionCount);
MEMBER(DeviceCreateInfo, ppEnabledExtensionNames);
MEMBER(DeviceCreateInfo, pEnabledFeatures);

STRUCT(MemoryAllocateInfo);
MEMBER(MemoryAllocateInfo, sType);
MEMBER(MemoryAllocateInfo, pNext);
MEMBER(MemoryAllocateInfo, allocationSize);
MEMBER(MemoryAllocateInfo, memoryTypeIndex);

STRUCT(MemoryAllocateFlagsInfo);
MEMBER(MemoryAllocateFlagsInfo, sType);
MEMBER(MemoryAllocateFlagsInfo, pNext);
MEMBER(MemoryAllocateFlagsInfo, flags);
MEMBER(MemoryAllocateFlagsInfo, deviceMask);

STRUCT(ImportMemoryHostPointerInfoEXT);
MEMBER(ImportMemoryHostPointerInfoEXT, sType);
MEMBER(ImportMemoryHostPointerInfoEXT, pNext);
MEMBER(ImportMemoryHostPointerInfoEXT, handleType);
MEMBER(ImportMemoryHostPointerInfoEXT, pHostPointer);

STRUCT(MemoryHostPointerPropertiesEXT);
MEMBER(MemoryHostPointerPropertiesEXT, sType);
MEMBER(MemoryHostPointerPropertiesEXT, pNext);
MEMBER(MemoryHostPointerPropertiesEXT, memoryTypeBits);

STRUCT(MappedMemoryRange);
MEMBER(MappedMemoryRange, sType);
MEMBER(MappedMemoryRange, pNext);
MEMBER(MappedMemoryRange, memory);
MEMBER(MappedMemoryRange, offset);
MEMBER(MappedMemoryRange, size);

STRUCT(BufferCreateInfo);
MEMBER(BufferCreateInfo, sType);
MEMBER(BufferCreateInfo, pNext);
MEMBER(BufferCreateInfo, flags);
MEMBER(BufferCreateInfo, size);
MEMBER(BufferCreateInfo, usage);
MEMBER(BufferCreateInfo, sharingMode);
MEMBER(BufferCreateInfo, queueFamilyIndexCount);
MEMBER(BufferCreateInfo, pQueueFamilyIndices);

STRUCT(ExternalMemoryBufferCreateInfo);
MEMBER(ExternalMemoryBufferCreateInfo, sType);
MEMBER(ExternalMemoryBufferCreateInfo, pNext);
MEMBER(ExternalMemoryBufferCreateInfo, handleTypes);

STRUCT(BufferDeviceAddressInfo);
MEMBER(BufferDeviceAddressInfo, sType);
MEMBER(BufferDeviceAddressInfo, pNext);
MEMBER(BufferDeviceAddressInfo, buffer);

STRUCT(SemaphoreTypeCreateInfo);
MEMBER(SemaphoreTypeCreateInfo, sType);
MEMBER(SemaphoreTypeCreateInfo, pNext);
MEMBER(SemaphoreTypeCreateInfo, semaphoreType);
MEMBER(SemaphoreTypeCreateInfo, initialValue);

STRUCT(SemaphoreCreateInfo);
MEMBER(SemaphoreCreateInfo, sType);
MEMBER(SemaphoreCreateInfo, pNext);
MEMBER(SemaphoreCreateInfo, flags);

STRUCT(SemaphoreWaitInfo);
MEMBER(SemaphoreWaitInfo, sType);
MEMBER(SemaphoreWaitInfo, pNext);
MEMBER(SemaphoreWaitInfo, flags);
MEMBER(SemaphoreWaitInfo, semaphoreCount);
MEMBER(SemaphoreWaitInfo, pSemaphores);
MEMBER(SemaphoreWaitInfo, pValues);

STRUCT(SemaphoreSignalInfo);
MEMBER(SemaphoreSignalInfo, sType);
MEMBER(SemaphoreSignalInfo, pNext);
MEMBER(SemaphoreSignalInfo, semaphore);
MEMBER(SemaphoreSignalInfo, value);

STRUCT(TimelineSemaphoreSubmitInfo);
MEMBER(TimelineSemaphoreSubmitInfo, sType);
MEMBER(TimelineSemaphoreSubmitInfo, pNext);
MEMBER(TimelineSemaphoreSubmitInfo, waitSemaphoreValueCount);
MEMBER(TimelineSemaphoreSubmitInfo, pWaitSemaphoreValues);
MEMBER(TimelineSemaphoreSubmitInfo, signalSemaphoreValueCount);
MEMBER(TimelineSemaphoreSubmitInfo, pSignalSemaphoreValues);

STRUCT(SubmitInfo);
MEMBER(SubmitInfo, sType);
MEMBER(SubmitInfo, pNext);
MEMBER(SubmitInfo, waitSemaphoreCount);
MEMBER(SubmitInfo, pWaitSemaphores);
MEMBER(SubmitInfo, pWaitDstStageMask);
MEMBER(SubmitInfo, commandBufferCount);
MEMBER(SubmitInfo, pCommandBuffers);
MEMBER(SubmitInfo, signalSemaphoreCount);
MEMBER(SubmitInfo, pSignalSemaphores);

STRUCT(ExportMemoryAllocateInfo);
MEMBER(ExportMemoryAllocateInfo, sType);
MEMBER(ExportMemoryAllocateInfo, pNext);
MEMBER(ExportMemoryAllocateInfo, handleTypes);

STRUCT(ImportMemoryFdInfoKHR);
MEMBER(ImportMemoryFdInfoKHR, sType);
MEMBER(ImportMemoryFdInfoKHR, pNext);
MEMBER(ImportMemoryFdInfoKHR, handleType);
MEMBER(ImportMemoryFdInfoKHR, fd);

STRUCT(MemoryGetFdInfoKHR);
MEMBER(MemoryGetFdInfoKHR, sType);
MEMBER(MemoryGetFdInfoKHR, pNext);
MEMBER(MemoryGetFdInfoKHR, memory);
MEMBER(MemoryGetFdInfoKHR, handleType);

STRUCT(PhysicalDeviceExternalSemaphoreInfo);
MEMBER(PhysicalDeviceExternalSemaphoreInfo, sType);
MEMBER(PhysicalDeviceExternalSemaphoreInfo, pNext);
MEMBER(PhysicalDeviceExternalSemaphoreInfo, handleType);

STRUCT(ExternalSemaphoreProperties);
MEMBER(ExternalSemaphoreProperties, sType);
MEMBER(ExternalSemaphoreProperties, pNext);
MEMBER(ExternalSemaphoreProperties, exportFromImportedHandleTypes);
MEMBER(ExternalSemaphoreProperties, compatibleHandleTypes);
MEMBER(ExternalSemaphoreProperties, externalSemaphoreFeatures);

STRUCT(ExportSemaphoreCreateInfo);
MEMBER(ExportSemaphoreCreateInfo, sType);
MEMBER(ExportSemaphoreCreateInfo, pNext);
MEMBER(ExportSemaphoreCreateInfo, handleTypes);

STRUCT(ImportSemaphoreFdInfoKHR);
MEMBER(ImportSemaphoreFdInfoKHR, sType);
MEMBER(ImportSemaphoreFdInfoKHR, pNext);
MEMBER(ImportSemaphoreFdInfoKHR, semaphore);
MEMBER(ImportSemaphoreFdInfoKHR, flags);
MEMBER(ImportSemaphoreFdInfoKHR, handleType);
MEMBER(ImportSemaphoreFdInfoKHR, fd);

STRUCT(SemaphoreGetFdInfoKHR);
MEMBER(SemaphoreGetFdInfoKHR, sType);
MEMBER(SemaphoreGetFdInfoKHR, pNext);
MEMBER(SemaphoreGetFdInfoKHR, semaphore);
MEMBER(SemaphoreGetFdInfoKHR, handleType);

STRUCT(CommandBufferAllocateInfo);
MEMBER(CommandBufferAllocateInfo, sType);
MEMBER(CommandBufferAllocateInfo, pNext);
MEMBER(CommandBufferAllocateInfo, commandPool);
MEMBER(CommandBufferAllocateInfo, level);
MEMBER(CommandBufferAllocateInfo, commandBufferCount);

STRUCT(CommandBufferBeginInfo);
MEMBER(CommandBufferBeginInfo, sType);
MEMBER(CommandBufferBeginInfo, pNext);
MEMBER(CommandBufferBeginInfo, flags);
MEMBER(CommandBufferBeginInfo, pInheritanceInfo);

STRUCT(MemoryBarrier);
MEMBER(MemoryBarrier, sType);
MEMBER(MemoryBarrier, pNext);
MEMBER(MemoryBarrier, srcAccessMask);
MEMBER(MemoryBarrier, dstAccessMask);
STRUCT(MemoryBarrier2);
MEMBER(MemoryBarrier2, sType);
MEMBER(MemoryBarrier2, pNext);
MEMBER(MemoryBarrier2, srcStageMask);
MEMBER(MemoryBarrier2, srcAccessMask);
MEMBER(MemoryBarrier2, dstStageMask);
MEMBER(MemoryBarrier2, dstAccessMask);
STRUCT(DependencyInfo);
MEMBER(DependencyInfo, sType);
MEMBER(DependencyInfo, pNext);
MEMBER(DependencyInfo, dependencyFlags);
MEMBER(DependencyInfo, memoryBarrierCount);
MEMBER(DependencyInfo, pMemoryBarriers);
MEMBER(DependencyInfo, bufferMemoryBarrierCount);
MEMBER(DependencyInfo, pBufferMemoryBarriers);
MEMBER(DependencyInfo, imageMemoryBarrierCount);
MEMBER(DependencyInfo, pImageMemoryBarriers);

STRUCT(BufferCopy);
MEMBER(BufferCopy, srcOffset);
MEMBER(BufferCopy, dstOffset);
MEMBER(BufferCopy, size);

STRUCT(CalibratedTimestampInfoEXT);
MEMBER(CalibratedTimestampInfoEXT, sType);
MEMBER(CalibratedTimestampInfoEXT, pNext);
MEMBER(CalibratedTimestampInfoEXT, timeDomain);

STRUCT(DescriptorBufferInfo);
MEMBER(DescriptorBufferInfo, buffer);
MEMBER(DescriptorBufferInfo, offset);
MEMBER(DescriptorBufferInfo, range);

STRUCT(WriteDescriptorSet);
MEMBER(WriteDescriptorSet, sType);
MEMBER(WriteDescriptorSet, pNext);
MEMBER(WriteDescriptorSet, dstSet);
MEMBER(WriteDescriptorSet, dstBinding);
MEMBER(WriteDescriptorSet, dstArrayElement);
MEMBER(WriteDescriptorSet, descriptorCount);
MEMBER(WriteDescriptorSet, descriptorType);
MEMBER(WriteDescriptorSet, pImageInfo);
MEMBER(WriteDescriptorSet, pBufferInfo);
MEMBER(WriteDescriptorSet, pTexelBufferView);

STRUCT(DescriptorPoolSize);
MEMBER(DescriptorPoolSize, type);
MEMBER(DescriptorPoolSize, descriptorCount);

STRUCT(DescriptorPoolCreateInfo);
MEMBER(DescriptorPoolCreateInfo, sType);
MEMBER(DescriptorPoolCreateInfo, pNext);
MEMBER(DescriptorPoolCreateInfo, flags);
MEMBER(DescriptorPoolCreateInfo, maxSets);
MEMBER(DescriptorPoolCreateInfo, poolSizeCount);
MEMBER(DescriptorPoolCreateInfo, pPoolSizes);

STRUCT(DescriptorSetAllocateInfo);
MEMBER(DescriptorSetAllocateInfo, sType);
MEMBER(DescriptorSetAllocateInfo, pNext);
MEMBER(DescriptorSetAllocateInfo, descriptorPool);
MEMBER(DescriptorSetAllocateInfo, descriptorSetCount);
MEMBER(DescriptorSetAllocateInfo, pSetLayouts);

STRUCT(DescriptorSetLayoutBinding);
MEMBER(DescriptorSetLayoutBinding, binding);
MEMBER(DescriptorSetLayoutBinding, descriptorType);
MEMBER(DescriptorSetLayoutBinding, descriptorCount);
MEMBER(DescriptorSetLayoutBinding, stageFlags);
MEMBER(DescriptorSetLayoutBinding, pImmutableSamplers);

STRUCT(DescriptorSetLayoutCreateInfo);
MEMBER(DescriptorSetLayoutCreateInfo, sType);
MEMBER(DescriptorSetLayoutCreateInfo, pNext);
MEMBER(DescriptorSetLayoutCreateInfo, flags);
MEMBER(DescriptorSetLayoutCreateInfo, bindingCount);
MEMBER(DescriptorSetLayoutCreateInfo, pBindings);

STRUCT(PushConstantRange);
MEMBER(PushConstantRange, stageFlags);
MEMBER(PushConstantRange, offset);
MEMBER(PushConstantRange, size);

STRUCT(PipelineLayoutCreateInfo);
MEMBER(PipelineLayoutCreateInfo, sType);
MEMBER(PipelineLayoutCreateInfo, pNext);
MEMBER(PipelineLayoutCreateInfo, flags);
MEMBER(PipelineLayoutCreateInfo, setLayoutCount);
MEMBER(PipelineLayoutCreateInfo, pSetLayouts);
MEMBER(PipelineLayoutCreateInfo, pushConstantRangeCount);
MEMBER(PipelineLayoutCreateInfo, pPushConstantRanges);

STRUCT(ShaderModuleCreateInfo);
MEMBER(ShaderModuleCreateInfo, sType);
MEMBER(ShaderModuleCreateInfo, pNext);
MEMBER(ShaderModuleCreateInfo, flags);
MEMBER(ShaderModuleCreateInfo, codeSize);
MEMBER(ShaderModuleCreateInfo, pCode);

STRUCT(SpecializationMapEntry);
MEMBER(SpecializationMapEntry, constantID);
MEMBER(SpecializationMapEntry, offset);
MEMBER(SpecializationMapEntry, size);

STRUCT(SpecializationInfo);
MEMBER(SpecializationInfo, mapEntryCount);
MEMBER(SpecializationInfo, pMapEntries);
MEMBER(SpecializationInfo, dataSize);
MEMBER(SpecializationInfo, pData);

STRUCT(PipelineShaderStageCreateInfo);
MEMBER(PipelineShaderStageCreateInfo, sType);
MEMBER(PipelineShaderStageCreateInfo, pNext);
MEMBER(PipelineShaderStageCreateInfo, flags);
MEMBER(PipelineShaderStageCreateInfo, stage);
MEMBER(PipelineShaderStageCreateInfo, module);
MEMBER(PipelineShaderStageCreateInfo, pName);
MEMBER(PipelineShaderStageCreateInfo, pSpecializationInfo);

STRUCT(ComputePipelineCreateInfo);
MEMBER(ComputePipelineCreateInfo, sType);
MEMBER(ComputePipelineCreateInfo, pNext);
MEMBER(ComputePipelineCreateInfo, flags);
MEMBER(ComputePipelineCreateInfo, stage);
MEMBER(ComputePipelineCreateInfo, layout);
MEMBER(ComputePipelineCreateInfo, basePipelineHandle);
MEMBER(ComputePipelineCreateInfo, basePipelineIndex);

STRUCT(PipelineCreationFeedback);
MEMBER(PipelineCreationFeedback, flags);
MEMBER(PipelineCreationFeedback, duration);

STRUCT(PipelineCreationFeedbackCreateInfo);
MEMBER(PipelineCreationFeedbackCreateInfo, sType);
MEMBER(PipelineCreationFeedbackCreateInfo, pNext);
MEMBER(PipelineCreationFeedbackCreateInfo, pPipelineCreationFeedback);
MEMBER(PipelineCreationFeedbackCreateInfo, pipelineStageCreationFeedbackCount);
MEMBER(PipelineCreationFeedbackCreateInfo, pPipelineStageCreationFeedbacks);

STRUCT(PipelineCacheCreateInfo);
MEMBER(PipelineCacheCreateInfo, sType);
MEMBER(PipelineCacheCreateInfo, pNext);
MEMBER(PipelineCacheCreateInfo, flags);
MEMBER(PipelineCacheCreateInfo, initialDataSize);
MEMBER(PipelineCacheCreateInfo, pInitialData);
