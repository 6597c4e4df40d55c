// The structures with which features are queried and enabled.
#ifndef VKO_FEATURE_CHAIN_H
#define VKO_FEATURE_CHAIN_H

#include "vko.h"

typedef struct vko_feature_chain {
	vkoPhysicalDeviceFeatures2 core;
	vkoPhysicalDeviceVulkan11Features v11;
	vkoPhysicalDeviceVulkan12Features v12;
	vkoPhysicalDeviceRobustness2FeaturesEXT robustness2;
	vkoPhysicalDeviceSynchronization2Features synchronization2;
	vkoPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures zero_initialize;
	vkoPhysicalDeviceMaintenance4Features maintenance4;
} vko_feature_chain;

// Clears the chain and links, starting with core, the structures known to a device with this
// version and these VKO_EXT_ extensions.
void vko_feature_chain_link(vko_feature_chain *c, uint32_t version, uint32_t extensions);

// Names of the VKO_EXT_ bits, bit 0 first.
#define VKO_EXT_COUNT 13
extern const char *const vko_extension_names[VKO_EXT_COUNT];

#endif
