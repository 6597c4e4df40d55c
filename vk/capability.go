package vk

import "github.com/vkomp/vkomp/vk/spirv"

// The bits of Features.SubgroupOperations (VkSubgroupFeatureFlagBits).
const (
	subgroupBasic           = 1 << 0
	subgroupVote            = 1 << 1
	subgroupArithmetic      = 1 << 2
	subgroupBallot          = 1 << 3
	subgroupShuffle         = 1 << 4
	subgroupShuffleRelative = 1 << 5
	subgroupClustered       = 1 << 6
	subgroupQuad            = 1 << 7
)

// Supports reports whether the opened device accepts modules with a capability: one
// that Vulkan 1.2 requires of every device, or one that comes with a feature in
// Features ("Vulkan Environment for SPIR-V" in the specification's appendix). A
// capability whose feature this package does not enable is not supported, even if the
// driver supports it.
func (p *Properties) Supports(c spirv.Capability) bool {
	f := &p.Features
	subgroups := func(operation uint32) bool { return f.SubgroupOperations&operation != 0 }
	switch c {
	case spirv.CapabilityMatrix, spirv.CapabilityShader,
		spirv.CapabilitySampled1D, spirv.CapabilityImage1D,
		spirv.CapabilitySampledBuffer, spirv.CapabilityImageBuffer, spirv.CapabilityImageQuery,
		spirv.CapabilityDeviceGroup, spirv.CapabilityShaderNonUniform:
		return true
	case spirv.CapabilityFloat16:
		return f.ShaderFloat16
	case spirv.CapabilityFloat64:
		return f.ShaderFloat64
	case spirv.CapabilityInt8:
		return f.ShaderInt8
	case spirv.CapabilityInt16:
		return f.ShaderInt16
	case spirv.CapabilityInt64:
		return f.ShaderInt64
	case spirv.CapabilityInt64Atomics: // for which of the two, the module says
		return f.ShaderBufferInt64Atomics || f.ShaderSharedInt64Atomics
	case spirv.CapabilityStorageBuffer8BitAccess:
		return f.StorageBuffer8Bit
	case spirv.CapabilityUniformAndStorageBuffer8BitAccess:
		return f.UniformAndStorageBuffer8Bit
	case spirv.CapabilityStoragePushConstant8:
		return f.StoragePushConstant8
	case spirv.CapabilityStorageBuffer16BitAccess:
		return f.StorageBuffer16Bit
	case spirv.CapabilityUniformAndStorageBuffer16BitAccess:
		return f.UniformAndStorageBuffer16Bit
	case spirv.CapabilityStoragePushConstant16:
		return f.StoragePushConstant16
	case spirv.CapabilityVariablePointersStorageBuffer:
		return f.VariablePointersStorageBuffer
	case spirv.CapabilityVariablePointers:
		return f.VariablePointers
	case spirv.CapabilityVulkanMemoryModel:
		return f.VulkanMemoryModel
	case spirv.CapabilityVulkanMemoryModelDeviceScope:
		return f.VulkanMemoryModelDeviceScope
	case spirv.CapabilityPhysicalStorageBufferAddresses:
		return f.BufferDeviceAddress
	case spirv.CapabilityStorageBufferArrayDynamicIndexing:
		return f.StorageBufferArrayDynamicIndexing
	case spirv.CapabilityUniformBufferArrayDynamicIndexing:
		return f.UniformBufferArrayDynamicIndexing
	case spirv.CapabilityStorageBufferArrayNonUniformIndexing:
		return f.StorageBufferArrayNonUniformIndexing
	case spirv.CapabilityGroupNonUniform:
		return subgroups(subgroupBasic)
	case spirv.CapabilityGroupNonUniformVote:
		return subgroups(subgroupVote)
	case spirv.CapabilityGroupNonUniformArithmetic:
		return subgroups(subgroupArithmetic)
	case spirv.CapabilityGroupNonUniformBallot:
		return subgroups(subgroupBallot)
	case spirv.CapabilityGroupNonUniformShuffle:
		return subgroups(subgroupShuffle)
	case spirv.CapabilityGroupNonUniformShuffleRelative:
		return subgroups(subgroupShuffleRelative)
	case spirv.CapabilityGroupNonUniformClustered:
		return subgroups(subgroupClustered)
	case spirv.CapabilityGroupNonUniformQuad:
		return subgroups(subgroupQuad)
	}
	return false
}
