package vk

import (
	"reflect"
	"testing"

	"github.com/vkomp/vkomp/vk/spirv"
)

// capabilityOf holds the capabilities of each feature. Features without one are listed
// too, so that this table has to be extended for every new feature.
var capabilityOf = map[string][]spirv.Capability{
	"ShaderFloat16":                        {spirv.CapabilityFloat16},
	"ShaderFloat64":                        {spirv.CapabilityFloat64},
	"ShaderInt8":                           {spirv.CapabilityInt8},
	"ShaderInt16":                          {spirv.CapabilityInt16},
	"ShaderInt64":                          {spirv.CapabilityInt64},
	"ShaderBufferInt64Atomics":             {spirv.CapabilityInt64Atomics},
	"ShaderSharedInt64Atomics":             {spirv.CapabilityInt64Atomics},
	"StorageBuffer8Bit":                    {spirv.CapabilityStorageBuffer8BitAccess},
	"UniformAndStorageBuffer8Bit":          {spirv.CapabilityUniformAndStorageBuffer8BitAccess},
	"StoragePushConstant8":                 {spirv.CapabilityStoragePushConstant8},
	"StorageBuffer16Bit":                   {spirv.CapabilityStorageBuffer16BitAccess},
	"UniformAndStorageBuffer16Bit":         {spirv.CapabilityUniformAndStorageBuffer16BitAccess},
	"StoragePushConstant16":                {spirv.CapabilityStoragePushConstant16},
	"VariablePointersStorageBuffer":        {spirv.CapabilityVariablePointersStorageBuffer},
	"VariablePointers":                     {spirv.CapabilityVariablePointers},
	"VulkanMemoryModel":                    {spirv.CapabilityVulkanMemoryModel},
	"VulkanMemoryModelDeviceScope":         {spirv.CapabilityVulkanMemoryModelDeviceScope},
	"BufferDeviceAddress":                  {spirv.CapabilityPhysicalStorageBufferAddresses},
	"StorageBufferArrayDynamicIndexing":    {spirv.CapabilityStorageBufferArrayDynamicIndexing},
	"UniformBufferArrayDynamicIndexing":    {spirv.CapabilityUniformBufferArrayDynamicIndexing},
	"StorageBufferArrayNonUniformIndexing": {spirv.CapabilityStorageBufferArrayNonUniformIndexing},
	"TimelineSemaphore":                    nil,
	"Synchronization2":                     nil,
	"RobustBufferAccess":                   nil,
	"RobustBufferAccess2":                  nil,
	"PushDescriptor":                       nil,
	"ExternalMemoryHost":                   nil,
	"MemoryBudget":                         nil,
	"HostQueryReset":                       nil,
	"CalibratedTimestamps":                 nil,
	"PipelineCreationFeedback":             nil,
	"ExternalMemoryFd":                     nil,
	"ExternalTimelineFd":                   nil,
	"ExternalBinaryFd":                     nil,
	"ScalarBlockLayout":                    nil,
	"ShaderSubgroupExtendedTypes":          nil,
	"SubgroupBroadcastDynamicID":           nil,
	"ShaderZeroInitializeWorkgroupMemory":  nil,
	"Maintenance4":                         nil,
}

// supported returns the capabilities that a device with these features supports.
func supported(f Features) map[spirv.Capability]bool {
	p := Properties{Features: f}
	set := map[spirv.Capability]bool{}
	for c := spirv.Capability(0); c < 7000; c++ {
		if p.Supports(c) {
			set[c] = true
		}
	}
	return set
}

func TestEachFeatureBringsItsCapability(t *testing.T) {
	base := supported(Features{})
	if !base[spirv.CapabilityShader] || base[spirv.CapabilityKernel] {
		t.Errorf("without features: %v", base)
	}
	kinds := reflect.TypeFor[Features]()
	for k := range kinds.NumField() {
		field := kinds.Field(k)
		if field.Type.Kind() != reflect.Bool {
			continue
		}
		want, known := capabilityOf[field.Name]
		if !known {
			t.Errorf("no line for feature %s", field.Name)
			continue
		}
		var f Features
		reflect.ValueOf(&f).Elem().Field(k).SetBool(true)
		got := supported(f)
		for _, c := range want {
			if !got[c] || base[c] {
				t.Errorf("%s does not decide %v", field.Name, c)
			}
		}
		if len(got) != len(base)+len(want) {
			t.Errorf("%s brings %d capabilities, want %v", field.Name, len(got)-len(base), want)
		}
	}
}

func TestSubgroupOperationsBringTheirCapabilities(t *testing.T) {
	base := supported(Features{})
	for bit, c := range []spirv.Capability{
		spirv.CapabilityGroupNonUniform,
		spirv.CapabilityGroupNonUniformVote,
		spirv.CapabilityGroupNonUniformArithmetic,
		spirv.CapabilityGroupNonUniformBallot,
		spirv.CapabilityGroupNonUniformShuffle,
		spirv.CapabilityGroupNonUniformShuffleRelative,
		spirv.CapabilityGroupNonUniformClustered,
		spirv.CapabilityGroupNonUniformQuad,
	} {
		got := supported(Features{SubgroupOperations: 1 << bit})
		if !got[c] || base[c] || len(got) != len(base)+1 {
			t.Errorf("operation bit %d: %v", bit, got)
		}
	}
}
