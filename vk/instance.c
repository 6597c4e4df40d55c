#include "vko.h"

#include <stdlib.h>
#include <string.h>

#define VALIDATION_LAYER "VK_LAYER_KHRONOS_validation"
#define API_1_1 (1u << 22 | 1u << 12)
#define API_1_3 (1u << 22 | 3u << 12)

typedef struct global_functions {
	int32_t(VKO_CALL *EnumerateInstanceVersion)(uint32_t *version);
	int32_t(VKO_CALL *EnumerateInstanceLayerProperties)(uint32_t *count, vkoLayerProperties *layers);
	int32_t(VKO_CALL *EnumerateInstanceExtensionProperties)(const char *layer, uint32_t *count,
		vkoExtensionProperties *extensions);
	int32_t(VKO_CALL *CreateInstance)(const vkoInstanceCreateInfo *info, const void *allocator,
		void **out);
} global_functions;

// Object and function pointers have the same size wherever Vulkan runs, but C has no conversion
// between them.
#define RESOLVE(slot, lookup, handle, name)                                                  \
	do {                                                                                 \
		void *found = (lookup)((handle), (name));                                    \
		memcpy(&(slot), &found, sizeof found);                                       \
	} while (0)

// Both return 1 when present, 0 when absent, negative for a VkResult.
static int32_t has_layer(const global_functions *g, const char *name)
{
	uint32_t count = 0;
	int32_t r = g->EnumerateInstanceLayerProperties(&count, NULL);
	if (r < 0 || count == 0)
		return r < 0 ? r : 0;
	vkoLayerProperties *layers = calloc(count, sizeof *layers);
	if (layers == NULL)
		return VKO_ERROR_OUT_OF_HOST_MEMORY;
	r = g->EnumerateInstanceLayerProperties(&count, layers);
	int32_t found = 0;
	for (uint32_t i = 0; r >= 0 && i < count; i++)
		found |= strncmp(layers[i].layerName, name, sizeof layers[i].layerName) == 0;
	free(layers);
	return r < 0 ? r : found;
}

static int32_t has_extension(const global_functions *g, const char *layer, const char *name)
{
	uint32_t count = 0;
	int32_t r = g->EnumerateInstanceExtensionProperties(layer, &count, NULL);
	if (r < 0 || count == 0)
		return r < 0 ? r : 0;
	vkoExtensionProperties *extensions = calloc(count, sizeof *extensions);
	if (extensions == NULL)
		return VKO_ERROR_OUT_OF_HOST_MEMORY;
	r = g->EnumerateInstanceExtensionProperties(layer, &count, extensions);
	int32_t found = 0;
	for (uint32_t i = 0; r >= 0 && i < count; i++)
		found |= strncmp(extensions[i].extensionName, name,
			sizeof extensions[i].extensionName) == 0;
	free(extensions);
	return r < 0 ? r : found;
}

// Finds the layer and the extensions that validation needs.
static int32_t require_validation(const global_functions *g, vko_fault *fault)
{
	int32_t r = has_layer(g, VALIDATION_LAYER);
	if (r < 0)
		return vko_fail(fault, "vkEnumerateInstanceLayerProperties", r, "%s", VALIDATION_LAYER);
	if (r == 0)
		return vko_fail(fault, "vkCreateInstance", VKO_ERROR_LAYER_NOT_PRESENT,
			"%s is not installed", VALIDATION_LAYER);
	static const char *const needed[] = { "VK_EXT_debug_utils", "VK_EXT_validation_features" };
	for (int i = 0; i < 2; i++) {
		r = has_extension(g, NULL, needed[i]);
		if (r == 0)
			r = has_extension(g, VALIDATION_LAYER, needed[i]);
		if (r < 0)
			return vko_fail(fault, "vkEnumerateInstanceExtensionProperties", r, "%s", needed[i]);
		if (r == 0)
			return vko_fail(fault, "vkCreateInstance", VKO_ERROR_EXTENSION_NOT_PRESENT,
				"%s, which validation takes, is missing", needed[i]);
	}
	return 0;
}

static int32_t resolve_global(vko_get_proc get, global_functions *g, vko_fault *fault)
{
	RESOLVE(g->EnumerateInstanceVersion, get, NULL, "vkEnumerateInstanceVersion");
	RESOLVE(g->EnumerateInstanceLayerProperties, get, NULL, "vkEnumerateInstanceLayerProperties");
	RESOLVE(g->EnumerateInstanceExtensionProperties, get, NULL,
		"vkEnumerateInstanceExtensionProperties");
	RESOLVE(g->CreateInstance, get, NULL, "vkCreateInstance");
	if (g->CreateInstance == NULL || g->EnumerateInstanceLayerProperties == NULL ||
		g->EnumerateInstanceExtensionProperties == NULL)
		return vko_fail(fault, "vkGetInstanceProcAddr", VKO_ERROR_INITIALIZATION_FAILED,
			"the loader lacks vkCreateInstance");
	// A Vulkan 1.0 loader does not have vkEnumerateInstanceVersion.
	uint32_t version = 1u << 22;
	if (g->EnumerateInstanceVersion != NULL) {
		int32_t r = g->EnumerateInstanceVersion(&version);
		if (r < 0)
			return vko_fail(fault, "vkEnumerateInstanceVersion", r, "%s", "");
	}
	if (version < API_1_1)
		return vko_fail(fault, "vkCreateInstance", VKO_ERROR_INCOMPATIBLE_DRIVER,
			"the loader speaks only Vulkan 1.0");
	return 0;
}

const char *vko_instance_resolve(vko_instance *i, int validation)
{
#define REQUIRE(name)                                                                        \
	RESOLVE(i->name, i->GetInstanceProcAddr, i->handle, "vk" #name);                     \
	if (i->name == NULL)                                                                 \
	return "vk" #name
	REQUIRE(DestroyInstance);
	REQUIRE(GetDeviceProcAddr);
	REQUIRE(EnumeratePhysicalDevices);
	REQUIRE(EnumerateDeviceExtensionProperties);
	REQUIRE(GetPhysicalDeviceProperties2);
	REQUIRE(GetPhysicalDeviceFeatures2);
	REQUIRE(GetPhysicalDeviceQueueFamilyProperties);
	REQUIRE(GetPhysicalDeviceExternalBufferProperties);
	REQUIRE(GetPhysicalDeviceExternalSemaphoreProperties);
	REQUIRE(GetPhysicalDeviceMemoryProperties2);
	REQUIRE(CreateDevice);
	if (validation) {
		REQUIRE(CreateDebugUtilsMessengerEXT);
		REQUIRE(DestroyDebugUtilsMessengerEXT);
	}
#undef REQUIRE
	return NULL;
}

int32_t vko_instance_create(uintptr_t get_instance_proc_addr, const char *application,
	vko_messages *messages, uint32_t severities, uint32_t synchronization, vko_instance **out,
	vko_fault *fault)
{
	vko_get_proc get;
	memcpy(&get, &get_instance_proc_addr, sizeof get);
	global_functions g;
	if (resolve_global(get, &g, fault))
		return 1;
	if (messages != NULL && require_validation(&g, fault))
		return 1;

	const char *layers[1], *extensions[3];
	uint32_t layer_count = 0, extension_count = 0, flags = 0;
	if (messages != NULL) {
		layers[layer_count++] = VALIDATION_LAYER;
		extensions[extension_count++] = "VK_EXT_debug_utils";
		extensions[extension_count++] = "VK_EXT_validation_features";
	}
	if (has_extension(&g, NULL, "VK_KHR_portability_enumeration") == 1) {
		extensions[extension_count++] = "VK_KHR_portability_enumeration";
		flags |= VKO_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
	}
	const vkoDebugUtilsMessengerCreateInfoEXT messenger = {
		.sType = VKO_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
		.messageSeverity = severities,
		.messageType = VKO_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT |
			VKO_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
			VKO_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
		.pfnUserCallback = vko_messages_heard,
		.pUserData = messages,
	};
	// In the chain, the messenger also receives messages of vkCreateInstance and vkDestroyInstance.
	const int32_t enables = VKO_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
	const vkoValidationFeaturesEXT validation = {
		.sType = VKO_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
		.pNext = &messenger,
		.enabledValidationFeatureCount = synchronization != 0,
		.pEnabledValidationFeatures = &enables,
	};
	const vkoApplicationInfo app = {
		.sType = VKO_STRUCTURE_TYPE_APPLICATION_INFO,
		.pApplicationName = application,
		.pEngineName = "vkomp",
		.apiVersion = API_1_3, // the newest whose features are used; no loader past 1.0 refuses it
	};
	const vkoInstanceCreateInfo info = {
		.sType = VKO_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
		.pNext = messages != NULL ? &validation : NULL,
		.flags = flags,
		.pApplicationInfo = &app,
		.enabledLayerCount = layer_count,
		.ppEnabledLayerNames = layers,
		.enabledExtensionCount = extension_count,
		.ppEnabledExtensionNames = extensions,
	};

	vko_instance *i = calloc(1, sizeof *i);
	if (i == NULL)
		return vko_fail(fault, "vkCreateInstance", VKO_ERROR_OUT_OF_HOST_MEMORY, "%s", "");
	i->GetInstanceProcAddr = get;
	int32_t r = g.CreateInstance(&info, NULL, &i->handle);
	if (r < 0) {
		free(i);
		// Some loaders, such as 1.3.239, take a manifest that is no JSON for a lack of memory.
		return vko_fail(fault, "vkCreateInstance", r, "%s", r != VKO_ERROR_OUT_OF_HOST_MEMORY ? "" :
			"or the loader cannot parse a manifest of a driver or layer: VK_LOADER_DEBUG=error names it");
	}
	const char *missing = vko_instance_resolve(i, messages != NULL);
	if (missing != NULL) {
		vko_fail(fault, "vkGetInstanceProcAddr", VKO_ERROR_INITIALIZATION_FAILED, "%s", missing);
	} else {
		r = 0;
		if (messages != NULL)
			r = i->CreateDebugUtilsMessengerEXT(i->handle, &messenger, NULL, &i->messenger);
		if (r >= 0) {
			*out = i;
			return 0;
		}
		vko_fail(fault, "vkCreateDebugUtilsMessengerEXT", r, "%s", "");
	}
	if (i->DestroyInstance != NULL)
		i->DestroyInstance(i->handle, NULL);
	free(i);
	return 1;
}

void vko_instance_stop_messenger(vko_instance *i)
{
	if (i->messenger != 0)
		i->DestroyDebugUtilsMessengerEXT(i->handle, i->messenger, NULL);
	i->messenger = 0;
}

void vko_instance_free(vko_instance *i) { free(i); }
