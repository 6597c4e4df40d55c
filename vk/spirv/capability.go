package spirv

import "strconv"

// Capability is a feature that a module declares to use with OpCapability.
type Capability uint32

// The capabilities of core SPIR-V and of extensions that compute modules use. Each has
// the specification's name, after "Capability", and number.
const (
	CapabilityMatrix                                      Capability = 0
	CapabilityShader                                      Capability = 1
	CapabilityAddresses                                   Capability = 4
	CapabilityLinkage                                     Capability = 5
	CapabilityKernel                                      Capability = 6
	CapabilityVector16                                    Capability = 7
	CapabilityFloat16Buffer                               Capability = 8
	CapabilityFloat16                                     Capability = 9
	CapabilityFloat64                                     Capability = 10
	CapabilityInt64                                       Capability = 11
	CapabilityInt64Atomics                                Capability = 12
	CapabilityImageBasic                                  Capability = 13
	CapabilityImageReadWrite                              Capability = 14
	CapabilityImageMipmap                                 Capability = 15
	CapabilityGroups                                      Capability = 18
	CapabilityLiteralSampler                              Capability = 20
	CapabilityAtomicStorage                               Capability = 21
	CapabilityInt16                                       Capability = 22
	CapabilityImageGatherExtended                         Capability = 25
	CapabilityStorageImageMultisample                     Capability = 27
	CapabilityUniformBufferArrayDynamicIndexing           Capability = 28
	CapabilitySampledImageArrayDynamicIndexing            Capability = 29
	CapabilityStorageBufferArrayDynamicIndexing           Capability = 30
	CapabilityStorageImageArrayDynamicIndexing            Capability = 31
	CapabilityClipDistance                                Capability = 32
	CapabilityCullDistance                                Capability = 33
	CapabilityImageCubeArray                              Capability = 34
	CapabilitySampleRateShading                           Capability = 35
	CapabilityImageRect                                   Capability = 36
	CapabilitySampledRect                                 Capability = 37
	CapabilityGenericPointer                              Capability = 38
	CapabilityInt8                                        Capability = 39
	CapabilityInputAttachment                             Capability = 40
	CapabilitySparseResidency                             Capability = 41
	CapabilityMinLod                                      Capability = 42
	CapabilitySampled1D                                   Capability = 43
	CapabilityImage1D                                     Capability = 44
	CapabilitySampledCubeArray                            Capability = 45
	CapabilitySampledBuffer                               Capability = 46
	CapabilityImageBuffer                                 Capability = 47
	CapabilityImageMSArray                                Capability = 48
	CapabilityStorageImageExtendedFormats                 Capability = 49
	CapabilityImageQuery                                  Capability = 50
	CapabilityDerivativeControl                           Capability = 51
	CapabilityInterpolationFunction                       Capability = 52
	CapabilityTransformFeedback                           Capability = 53
	CapabilityStorageImageReadWithoutFormat               Capability = 55
	CapabilityStorageImageWriteWithoutFormat              Capability = 56
	CapabilitySubgroupDispatch                            Capability = 58
	CapabilityNamedBarrier                                Capability = 59
	CapabilityGroupNonUniform                             Capability = 61
	CapabilityGroupNonUniformVote                         Capability = 62
	CapabilityGroupNonUniformArithmetic                   Capability = 63
	CapabilityGroupNonUniformBallot                       Capability = 64
	CapabilityGroupNonUniformShuffle                      Capability = 65
	CapabilityGroupNonUniformShuffleRelative              Capability = 66
	CapabilityGroupNonUniformClustered                    Capability = 67
	CapabilityGroupNonUniformQuad                         Capability = 68
	CapabilityUniformDecoration                           Capability = 71
	CapabilityFloat8EXT                                   Capability = 4212
	CapabilityFloat8CooperativeMatrixEXT                  Capability = 4213
	CapabilityFloat6EXT                                   Capability = 4228
	CapabilityFloat4EXT                                   Capability = 4229
	CapabilityFloat8UnsignedE8M0EXT                       Capability = 4230
	CapabilityMXInt8EXT                                   Capability = 4231
	CapabilityBitcastExtractEXT                           Capability = 4232
	CapabilitySubgroupBallotKHR                           Capability = 4423
	CapabilityWorkgroupMemoryExplicitLayoutKHR            Capability = 4428
	CapabilityWorkgroupMemoryExplicitLayout8BitAccessKHR  Capability = 4429
	CapabilityWorkgroupMemoryExplicitLayout16BitAccessKHR Capability = 4430
	CapabilitySubgroupVoteKHR                             Capability = 4431
	CapabilityStorageBuffer16BitAccess                    Capability = 4433
	CapabilityUniformAndStorageBuffer16BitAccess          Capability = 4434
	CapabilityStoragePushConstant16                       Capability = 4435
	CapabilityStorageInputOutput16                        Capability = 4436
	CapabilityDeviceGroup                                 Capability = 4437
	CapabilityVariablePointersStorageBuffer               Capability = 4441
	CapabilityVariablePointers                            Capability = 4442
	CapabilityAtomicStorageOps                            Capability = 4445
	CapabilityStorageBuffer8BitAccess                     Capability = 4448
	CapabilityUniformAndStorageBuffer8BitAccess           Capability = 4449
	CapabilityStoragePushConstant8                        Capability = 4450
	CapabilityDenormPreserve                              Capability = 4464
	CapabilityDenormFlushToZero                           Capability = 4465
	CapabilitySignedZeroInfNanPreserve                    Capability = 4466
	CapabilityRoundingModeRTE                             Capability = 4467
	CapabilityRoundingModeRTZ                             Capability = 4468
	CapabilityRayQueryProvisionalKHR                      Capability = 4471
	CapabilityRayQueryKHR                                 Capability = 4472
	CapabilityUntypedPointersKHR                          Capability = 4473
	CapabilityRayTraversalPrimitiveCullingKHR             Capability = 4478
	CapabilityInt64ImageEXT                               Capability = 5016
	CapabilityShaderClockKHR                              Capability = 5055
	CapabilityQuadControlKHR                              Capability = 5087
	CapabilityBFloat16TypeKHR                             Capability = 5116
	CapabilityBFloat16DotProductKHR                       Capability = 5117
	CapabilityBFloat16CooperativeMatrixKHR                Capability = 5118
	CapabilityAbortKHR                                    Capability = 5120
	CapabilityDescriptorHeapEXT                           Capability = 5128
	CapabilityConstantDataKHR                             Capability = 5146
	CapabilityPoisonFreezeKHR                             Capability = 5156
	CapabilityComputeDerivativeGroupQuadsKHR              Capability = 5288
	CapabilityGroupNonUniformPartitionedEXT               Capability = 5297
	CapabilityShaderNonUniform                            Capability = 5301
	CapabilityRuntimeDescriptorArray                      Capability = 5302
	CapabilityInputAttachmentArrayDynamicIndexing         Capability = 5303
	CapabilityUniformTexelBufferArrayDynamicIndexing      Capability = 5304
	CapabilityStorageTexelBufferArrayDynamicIndexing      Capability = 5305
	CapabilityUniformBufferArrayNonUniformIndexing        Capability = 5306
	CapabilitySampledImageArrayNonUniformIndexing         Capability = 5307
	CapabilityStorageBufferArrayNonUniformIndexing        Capability = 5308
	CapabilityStorageImageArrayNonUniformIndexing         Capability = 5309
	CapabilityInputAttachmentArrayNonUniformIndexing      Capability = 5310
	CapabilityUniformTexelBufferArrayNonUniformIndexing   Capability = 5311
	CapabilityStorageTexelBufferArrayNonUniformIndexing   Capability = 5312
	CapabilityVulkanMemoryModel                           Capability = 5345
	CapabilityVulkanMemoryModelDeviceScope                Capability = 5346
	CapabilityPhysicalStorageBufferAddresses              Capability = 5347
	CapabilityComputeDerivativeGroupLinearKHR             Capability = 5350
	CapabilityCooperativeMatrixNV                         Capability = 5357
	CapabilityDemoteToHelperInvocation                    Capability = 5379
	CapabilityRayQueryPositionFetchKHR                    Capability = 5391
	CapabilityCooperativeVectorNV                         Capability = 5394
	CapabilityAtomicFloat16VectorNV                       Capability = 5404
	CapabilityRawAccessChainsNV                           Capability = 5414
	CapabilityLongVectorEXT                               Capability = 5425
	CapabilityShader64BitIndexingEXT                      Capability = 5426
	CapabilityCooperativeMatrixConversionsEXT             Capability = 5429
	CapabilityCooperativeMatrixReductionsEXT              Capability = 5430
	CapabilityCooperativeMatrixConversionsNV              Capability = 5431
	CapabilityCooperativeMatrixPerElementOperationsEXT    Capability = 5432
	CapabilityCooperativeMatrixTensorAddressingNV         Capability = 5433
	CapabilityCooperativeMatrixBlockLoadsNV               Capability = 5434
	CapabilityCooperativeVectorTrainingNV                 Capability = 5435
	CapabilityCooperativeMatrixGetCoordinateEXT           Capability = 5438
	CapabilityCooperativeMatrixDecodeVectorNV             Capability = 5447
	CapabilityAtomicFloat32MinMaxEXT                      Capability = 5612
	CapabilityAtomicFloat64MinMaxEXT                      Capability = 5613
	CapabilityAtomicFloat16MinMaxEXT                      Capability = 5616
	CapabilityExpectAssumeKHR                             Capability = 5629
	CapabilityDotProductInputAll                          Capability = 6016
	CapabilityDotProductInput4x8Bit                       Capability = 6017
	CapabilityDotProductInput4x8BitPacked                 Capability = 6018
	CapabilityDotProduct                                  Capability = 6019
	CapabilityRayCullMaskKHR                              Capability = 6020
	CapabilityCooperativeMatrixKHR                        Capability = 6022
	CapabilityReplicatedCompositesEXT                     Capability = 6024
	CapabilityBitInstructions                             Capability = 6025
	CapabilityGroupNonUniformRotateKHR                    Capability = 6026
	CapabilityFloatControls2                              Capability = 6029
	CapabilityFMAKHR                                      Capability = 6030
	CapabilityAtomicFloat32AddEXT                         Capability = 6033
	CapabilityAtomicFloat64AddEXT                         Capability = 6034
	CapabilityOptNoneEXT                                  Capability = 6094
	CapabilityAtomicFloat16AddEXT                         Capability = 6095
	CapabilitySplitBarrierEXT                             Capability = 6141
	CapabilityArithmeticFenceEXT                          Capability = 6144
	CapabilityGroupUniformArithmeticKHR                   Capability = 6400
)

var capabilityNames = map[Capability]string{
	CapabilityMatrix:                                      "Matrix",
	CapabilityShader:                                      "Shader",
	CapabilityAddresses:                                   "Addresses",
	CapabilityLinkage:                                     "Linkage",
	CapabilityKernel:                                      "Kernel",
	CapabilityVector16:                                    "Vector16",
	CapabilityFloat16Buffer:                               "Float16Buffer",
	CapabilityFloat16:                                     "Float16",
	CapabilityFloat64:                                     "Float64",
	CapabilityInt64:                                       "Int64",
	CapabilityInt64Atomics:                                "Int64Atomics",
	CapabilityImageBasic:                                  "ImageBasic",
	CapabilityImageReadWrite:                              "ImageReadWrite",
	CapabilityImageMipmap:                                 "ImageMipmap",
	CapabilityGroups:                                      "Groups",
	CapabilityLiteralSampler:                              "LiteralSampler",
	CapabilityAtomicStorage:                               "AtomicStorage",
	CapabilityInt16:                                       "Int16",
	CapabilityImageGatherExtended:                         "ImageGatherExtended",
	CapabilityStorageImageMultisample:                     "StorageImageMultisample",
	CapabilityUniformBufferArrayDynamicIndexing:           "UniformBufferArrayDynamicIndexing",
	CapabilitySampledImageArrayDynamicIndexing:            "SampledImageArrayDynamicIndexing",
	CapabilityStorageBufferArrayDynamicIndexing:           "StorageBufferArrayDynamicIndexing",
	CapabilityStorageImageArrayDynamicIndexing:            "StorageImageArrayDynamicIndexing",
	CapabilityClipDistance:                                "ClipDistance",
	CapabilityCullDistance:                                "CullDistance",
	CapabilityImageCubeArray:                              "ImageCubeArray",
	CapabilitySampleRateShading:                           "SampleRateShading",
	CapabilityImageRect:                                   "ImageRect",
	CapabilitySampledRect:                                 "SampledRect",
	CapabilityGenericPointer:                              "GenericPointer",
	CapabilityInt8:                                        "Int8",
	CapabilityInputAttachment:                             "InputAttachment",
	CapabilitySparseResidency:                             "SparseResidency",
	CapabilityMinLod:                                      "MinLod",
	CapabilitySampled1D:                                   "Sampled1D",
	CapabilityImage1D:                                     "Image1D",
	CapabilitySampledCubeArray:                            "SampledCubeArray",
	CapabilitySampledBuffer:                               "SampledBuffer",
	CapabilityImageBuffer:                                 "ImageBuffer",
	CapabilityImageMSArray:                                "ImageMSArray",
	CapabilityStorageImageExtendedFormats:                 "StorageImageExtendedFormats",
	CapabilityImageQuery:                                  "ImageQuery",
	CapabilityDerivativeControl:                           "DerivativeControl",
	CapabilityInterpolationFunction:                       "InterpolationFunction",
	CapabilityTransformFeedback:                           "TransformFeedback",
	CapabilityStorageImageReadWithoutFormat:               "StorageImageReadWithoutFormat",
	CapabilityStorageImageWriteWithoutFormat:              "StorageImageWriteWithoutFormat",
	CapabilitySubgroupDispatch:                            "SubgroupDispatch",
	CapabilityNamedBarrier:                                "NamedBarrier",
	CapabilityGroupNonUniform:                             "GroupNonUniform",
	CapabilityGroupNonUniformVote:                         "GroupNonUniformVote",
	CapabilityGroupNonUniformArithmetic:                   "GroupNonUniformArithmetic",
	CapabilityGroupNonUniformBallot:                       "GroupNonUniformBallot",
	CapabilityGroupNonUniformShuffle:                      "GroupNonUniformShuffle",
	CapabilityGroupNonUniformShuffleRelative:              "GroupNonUniformShuffleRelative",
	CapabilityGroupNonUniformClustered:                    "GroupNonUniformClustered",
	CapabilityGroupNonUniformQuad:                         "GroupNonUniformQuad",
	CapabilityUniformDecoration:                           "UniformDecoration",
	CapabilityFloat8EXT:                                   "Float8EXT",
	CapabilityFloat8CooperativeMatrixEXT:                  "Float8CooperativeMatrixEXT",
	CapabilityFloat6EXT:                                   "Float6EXT",
	CapabilityFloat4EXT:                                   "Float4EXT",
	CapabilityFloat8UnsignedE8M0EXT:                       "Float8UnsignedE8M0EXT",
	CapabilityMXInt8EXT:                                   "MXInt8EXT",
	CapabilityBitcastExtractEXT:                           "BitcastExtractEXT",
	CapabilitySubgroupBallotKHR:                           "SubgroupBallotKHR",
	CapabilityWorkgroupMemoryExplicitLayoutKHR:            "WorkgroupMemoryExplicitLayoutKHR",
	CapabilityWorkgroupMemoryExplicitLayout8BitAccessKHR:  "WorkgroupMemoryExplicitLayout8BitAccessKHR",
	CapabilityWorkgroupMemoryExplicitLayout16BitAccessKHR: "WorkgroupMemoryExplicitLayout16BitAccessKHR",
	CapabilitySubgroupVoteKHR:                             "SubgroupVoteKHR",
	CapabilityStorageBuffer16BitAccess:                    "StorageBuffer16BitAccess",
	CapabilityUniformAndStorageBuffer16BitAccess:          "UniformAndStorageBuffer16BitAccess",
	CapabilityStoragePushConstant16:                       "StoragePushConstant16",
	CapabilityStorageInputOutput16:                        "StorageInputOutput16",
	CapabilityDeviceGroup:                                 "DeviceGroup",
	CapabilityVariablePointersStorageBuffer:               "VariablePointersStorageBuffer",
	CapabilityVariablePointers:                            "VariablePointers",
	CapabilityAtomicStorageOps:                            "AtomicStorageOps",
	CapabilityStorageBuffer8BitAccess:                     "StorageBuffer8BitAccess",
	CapabilityUniformAndStorageBuffer8BitAccess:           "UniformAndStorageBuffer8BitAccess",
	CapabilityStoragePushConstant8:                        "StoragePushConstant8",
	CapabilityDenormPreserve:                              "DenormPreserve",
	CapabilityDenormFlushToZero:                           "DenormFlushToZero",
	CapabilitySignedZeroInfNanPreserve:                    "SignedZeroInfNanPreserve",
	CapabilityRoundingModeRTE:                             "RoundingModeRTE",
	CapabilityRoundingModeRTZ:                             "RoundingModeRTZ",
	CapabilityRayQueryProvisionalKHR:                      "RayQueryProvisionalKHR",
	CapabilityRayQueryKHR:                                 "RayQueryKHR",
	CapabilityUntypedPointersKHR:                          "UntypedPointersKHR",
	CapabilityRayTraversalPrimitiveCullingKHR:             "RayTraversalPrimitiveCullingKHR",
	CapabilityInt64ImageEXT:                               "Int64ImageEXT",
	CapabilityShaderClockKHR:                              "ShaderClockKHR",
	CapabilityQuadControlKHR:                              "QuadControlKHR",
	CapabilityBFloat16TypeKHR:                             "BFloat16TypeKHR",
	CapabilityBFloat16DotProductKHR:                       "BFloat16DotProductKHR",
	CapabilityBFloat16CooperativeMatrixKHR:                "BFloat16CooperativeMatrixKHR",
	CapabilityAbortKHR:                                    "AbortKHR",
	CapabilityDescriptorHeapEXT:                           "DescriptorHeapEXT",
	CapabilityConstantDataKHR:                             "ConstantDataKHR",
	CapabilityPoisonFreezeKHR:                             "PoisonFreezeKHR",
	CapabilityComputeDerivativeGroupQuadsKHR:              "ComputeDerivativeGroupQuadsKHR",
	CapabilityGroupNonUniformPartitionedEXT:               "GroupNonUniformPartitionedEXT",
	CapabilityShaderNonUniform:                            "ShaderNonUniform",
	CapabilityRuntimeDescriptorArray:                      "RuntimeDescriptorArray",
	CapabilityInputAttachmentArrayDynamicIndexing:         "InputAttachmentArrayDynamicIndexing",
	CapabilityUniformTexelBufferArrayDynamicIndexing:      "UniformTexelBufferArrayDynamicIndexing",
	CapabilityStorageTexelBufferArrayDynamicIndexing:      "StorageTexelBufferArrayDynamicIndexing",
	CapabilityUniformBufferArrayNonUniformIndexing:        "UniformBufferArrayNonUniformIndexing",
	CapabilitySampledImageArrayNonUniformIndexing:         "SampledImageArrayNonUniformIndexing",
	CapabilityStorageBufferArrayNonUniformIndexing:        "StorageBufferArrayNonUniformIndexing",
	CapabilityStorageImageArrayNonUniformIndexing:         "StorageImageArrayNonUniformIndexing",
	CapabilityInputAttachmentArrayNonUniformIndexing:      "InputAttachmentArrayNonUniformIndexing",
	CapabilityUniformTexelBufferArrayNonUniformIndexing:   "UniformTexelBufferArrayNonUniformIndexing",
	CapabilityStorageTexelBufferArrayNonUniformIndexing:   "StorageTexelBufferArrayNonUniformIndexing",
	CapabilityVulkanMemoryModel:                           "VulkanMemoryModel",
	CapabilityVulkanMemoryModelDeviceScope:                "VulkanMemoryModelDeviceScope",
	CapabilityPhysicalStorageBufferAddresses:              "PhysicalStorageBufferAddresses",
	CapabilityComputeDerivativeGroupLinearKHR:             "ComputeDerivativeGroupLinearKHR",
	CapabilityCooperativeMatrixNV:                         "CooperativeMatrixNV",
	CapabilityDemoteToHelperInvocation:                    "DemoteToHelperInvocation",
	CapabilityRayQueryPositionFetchKHR:                    "RayQueryPositionFetchKHR",
	CapabilityCooperativeVectorNV:                         "CooperativeVectorNV",
	CapabilityAtomicFloat16VectorNV:                       "AtomicFloat16VectorNV",
	CapabilityRawAccessChainsNV:                           "RawAccessChainsNV",
	CapabilityLongVectorEXT:                               "LongVectorEXT",
	CapabilityShader64BitIndexingEXT:                      "Shader64BitIndexingEXT",
	CapabilityCooperativeMatrixConversionsEXT:             "CooperativeMatrixConversionsEXT",
	CapabilityCooperativeMatrixReductionsEXT:              "CooperativeMatrixReductionsEXT",
	CapabilityCooperativeMatrixConversionsNV:              "CooperativeMatrixConversionsNV",
	CapabilityCooperativeMatrixPerElementOperationsEXT:    "CooperativeMatrixPerElementOperationsEXT",
	CapabilityCooperativeMatrixTensorAddressingNV:         "CooperativeMatrixTensorAddressingNV",
	CapabilityCooperativeMatrixBlockLoadsNV:               "CooperativeMatrixBlockLoadsNV",
	CapabilityCooperativeVectorTrainingNV:                 "CooperativeVectorTrainingNV",
	CapabilityCooperativeMatrixGetCoordinateEXT:           "CooperativeMatrixGetCoordinateEXT",
	CapabilityCooperativeMatrixDecodeVectorNV:             "CooperativeMatrixDecodeVectorNV",
	CapabilityAtomicFloat32MinMaxEXT:                      "AtomicFloat32MinMaxEXT",
	CapabilityAtomicFloat64MinMaxEXT:                      "AtomicFloat64MinMaxEXT",
	CapabilityAtomicFloat16MinMaxEXT:                      "AtomicFloat16MinMaxEXT",
	CapabilityExpectAssumeKHR:                             "ExpectAssumeKHR",
	CapabilityDotProductInputAll:                          "DotProductInputAll",
	CapabilityDotProductInput4x8Bit:                       "DotProductInput4x8Bit",
	CapabilityDotProductInput4x8BitPacked:                 "DotProductInput4x8BitPacked",
	CapabilityDotProduct:                                  "DotProduct",
	CapabilityRayCullMaskKHR:                              "RayCullMaskKHR",
	CapabilityCooperativeMatrixKHR:                        "CooperativeMatrixKHR",
	CapabilityReplicatedCompositesEXT:                     "ReplicatedCompositesEXT",
	CapabilityBitInstructions:                             "BitInstructions",
	CapabilityGroupNonUniformRotateKHR:                    "GroupNonUniformRotateKHR",
	CapabilityFloatControls2:                              "FloatControls2",
	CapabilityFMAKHR:                                      "FMAKHR",
	CapabilityAtomicFloat32AddEXT:                         "AtomicFloat32AddEXT",
	CapabilityAtomicFloat64AddEXT:                         "AtomicFloat64AddEXT",
	CapabilityOptNoneEXT:                                  "OptNoneEXT",
	CapabilityAtomicFloat16AddEXT:                         "AtomicFloat16AddEXT",
	CapabilitySplitBarrierEXT:                             "SplitBarrierEXT",
	CapabilityArithmeticFenceEXT:                          "ArithmeticFenceEXT",
	CapabilityGroupUniformArithmeticKHR:                   "GroupUniformArithmeticKHR",
}

// String returns the specification's name, or "Capability(number)" for an unknown one.
func (c Capability) String() string {
	if name, ok := capabilityNames[c]; ok {
		return name
	}
	return "Capability(" + strconv.FormatUint(uint64(c), 10) + ")"
}
