// The commands that the shuffling layer does not keep to itself. A command buffer
// that has one of them is handed to the driver as it was recorded, and stands in
// the order of its queue as a wall. The last ones are younger than the headers
// that the layers are compiled with, and known by their names alone.
#ifndef SHUFFLE_OTHER_H
#define SHUFFLE_OTHER_H

#define OTHER_COMMANDS(F)                                                                      \
	F(CmdSetViewport) F(CmdSetScissor) F(CmdSetLineWidth) F(CmdSetDepthBias)               \
	F(CmdSetBlendConstants) F(CmdSetDepthBounds) F(CmdSetStencilCompareMask)               \
	F(CmdSetStencilWriteMask) F(CmdSetStencilReference) F(CmdBindIndexBuffer)              \
	F(CmdBindVertexBuffers) F(CmdDraw) F(CmdDrawIndexed) F(CmdDrawIndirect)                \
	F(CmdDrawIndexedIndirect) F(CmdCopyImage) F(CmdBlitImage) F(CmdCopyBufferToImage)      \
	F(CmdCopyImageToBuffer) F(CmdClearColorImage) F(CmdClearDepthStencilImage)             \
	F(CmdClearAttachments) F(CmdResolveImage) F(CmdSetEvent) F(CmdResetEvent) F(CmdWaitEvents) \
	F(CmdBeginQuery) F(CmdEndQuery) F(CmdResetQueryPool) F(CmdWriteTimestamp)              \
	F(CmdCopyQueryPoolResults) F(CmdBeginRenderPass) F(CmdNextSubpass) F(CmdEndRenderPass) \
	F(CmdExecuteCommands) F(CmdSetDeviceMask) F(CmdDrawIndirectCount)                      \
	F(CmdDrawIndexedIndirectCount) F(CmdBeginRenderPass2) F(CmdNextSubpass2)               \
	F(CmdEndRenderPass2) F(CmdSetEvent2) F(CmdResetEvent2) F(CmdWaitEvents2)               \
	F(CmdWriteTimestamp2) F(CmdCopyImage2) F(CmdCopyBufferToImage2) F(CmdCopyImageToBuffer2) \
	F(CmdBlitImage2) F(CmdResolveImage2) F(CmdBeginRendering) F(CmdEndRendering)           \
	F(CmdSetCullMode) F(CmdSetFrontFace) F(CmdSetPrimitiveTopology) F(CmdSetViewportWithCount) \
	F(CmdSetScissorWithCount) F(CmdBindVertexBuffers2) F(CmdSetDepthTestEnable)            \
	F(CmdSetDepthWriteEnable) F(CmdSetDepthCompareOp) F(CmdSetDepthBoundsTestEnable)       \
	F(CmdSetStencilTestEnable) F(CmdSetStencilOp) F(CmdSetRasterizerDiscardEnable)         \
	F(CmdSetDepthBiasEnable) F(CmdSetPrimitiveRestartEnable) F(CmdBeginVideoCodingKHR)     \
	F(CmdEndVideoCodingKHR) F(CmdControlVideoCodingKHR) F(CmdDecodeVideoKHR)               \
	F(CmdBeginRenderingKHR) F(CmdEndRenderingKHR) F(CmdSetDeviceMaskKHR)                   \
	F(CmdPushDescriptorSetWithTemplateKHR) F(CmdBeginRenderPass2KHR) F(CmdNextSubpass2KHR) \
	F(CmdEndRenderPass2KHR) F(CmdDrawIndirectCountKHR) F(CmdDrawIndexedIndirectCountKHR)   \
	F(CmdSetFragmentShadingRateKHR) F(CmdSetEvent2KHR) F(CmdResetEvent2KHR)                \
	F(CmdWaitEvents2KHR) F(CmdWriteTimestamp2KHR) F(CmdWriteBufferMarker2AMD)              \
	F(CmdCopyImage2KHR) F(CmdCopyBufferToImage2KHR) F(CmdCopyImageToBuffer2KHR)            \
	F(CmdBlitImage2KHR) F(CmdResolveImage2KHR) F(CmdTraceRaysIndirect2KHR)                 \
	F(CmdBindTransformFeedbackBuffersEXT) F(CmdBeginTransformFeedbackEXT)                  \
	F(CmdEndTransformFeedbackEXT) F(CmdBeginQueryIndexedEXT) F(CmdEndQueryIndexedEXT)      \
	F(CmdDrawIndirectByteCountEXT) F(CmdCuLaunchKernelNVX) F(CmdDrawIndirectCountAMD)      \
	F(CmdDrawIndexedIndirectCountAMD) F(CmdBeginConditionalRenderingEXT)                   \
	F(CmdEndConditionalRenderingEXT) F(CmdSetViewportWScalingNV) F(CmdSetDiscardRectangleEXT) \
	F(CmdSetSampleLocationsEXT) F(CmdBindShadingRateImageNV)                               \
	F(CmdSetViewportShadingRatePaletteNV) F(CmdSetCoarseSampleOrderNV)                     \
	F(CmdBuildAccelerationStructureNV) F(CmdCopyAccelerationStructureNV) F(CmdTraceRaysNV) \
	F(CmdWriteAccelerationStructuresPropertiesNV) F(CmdWriteBufferMarkerAMD)               \
	F(CmdDrawMeshTasksNV) F(CmdDrawMeshTasksIndirectNV) F(CmdDrawMeshTasksIndirectCountNV) \
	F(CmdSetExclusiveScissorNV) F(CmdSetCheckpointNV) F(CmdSetPerformanceMarkerINTEL)      \
	F(CmdSetPerformanceStreamMarkerINTEL) F(CmdSetPerformanceOverrideINTEL)                \
	F(CmdSetLineStippleEXT) F(CmdSetCullModeEXT) F(CmdSetFrontFaceEXT)                     \
	F(CmdSetPrimitiveTopologyEXT) F(CmdSetViewportWithCountEXT) F(CmdSetScissorWithCountEXT) \
	F(CmdBindVertexBuffers2EXT) F(CmdSetDepthTestEnableEXT) F(CmdSetDepthWriteEnableEXT)   \
	F(CmdSetDepthCompareOpEXT) F(CmdSetDepthBoundsTestEnableEXT) F(CmdSetStencilTestEnableEXT) \
	F(CmdSetStencilOpEXT) F(CmdPreprocessGeneratedCommandsNV) F(CmdExecuteGeneratedCommandsNV) \
	F(CmdBindPipelineShaderGroupNV) F(CmdBindDescriptorBuffersEXT)                         \
	F(CmdSetDescriptorBufferOffsetsEXT) F(CmdBindDescriptorBufferEmbeddedSamplersEXT)      \
	F(CmdSetFragmentShadingRateEnumNV) F(CmdSetVertexInputEXT) F(CmdSubpassShadingHUAWEI)  \
	F(CmdBindInvocationMaskHUAWEI) F(CmdSetPatchControlPointsEXT)                          \
	F(CmdSetRasterizerDiscardEnableEXT) F(CmdSetDepthBiasEnableEXT) F(CmdSetLogicOpEXT)    \
	F(CmdSetPrimitiveRestartEnableEXT) F(CmdSetColorWriteEnableEXT) F(CmdDrawMultiEXT)     \
	F(CmdDrawMultiIndexedEXT) F(CmdBuildMicromapsEXT) F(CmdCopyMicromapEXT)                \
	F(CmdCopyMicromapToMemoryEXT) F(CmdCopyMemoryToMicromapEXT)                            \
	F(CmdWriteMicromapsPropertiesEXT) F(CmdDrawClusterHUAWEI) F(CmdDrawClusterIndirectHUAWEI) \
	F(CmdCopyMemoryIndirectNV) F(CmdCopyMemoryToImageIndirectNV) F(CmdDecompressMemoryNV)  \
	F(CmdDecompressMemoryIndirectCountNV) F(CmdSetTessellationDomainOriginEXT)             \
	F(CmdSetDepthClampEnableEXT) F(CmdSetPolygonModeEXT) F(CmdSetRasterizationSamplesEXT)  \
	F(CmdSetSampleMaskEXT) F(CmdSetAlphaToCoverageEnableEXT) F(CmdSetAlphaToOneEnableEXT)  \
	F(CmdSetLogicOpEnableEXT) F(CmdSetColorBlendEnableEXT) F(CmdSetColorBlendEquationEXT)  \
	F(CmdSetColorWriteMaskEXT) F(CmdSetRasterizationStreamEXT)                             \
	F(CmdSetConservativeRasterizationModeEXT) F(CmdSetExtraPrimitiveOverestimationSizeEXT) \
	F(CmdSetDepthClipEnableEXT) F(CmdSetSampleLocationsEnableEXT)                          \
	F(CmdSetColorBlendAdvancedEXT) F(CmdSetProvokingVertexModeEXT)                         \
	F(CmdSetLineRasterizationModeEXT) F(CmdSetLineStippleEnableEXT)                        \
	F(CmdSetDepthClipNegativeOneToOneEXT) F(CmdSetViewportWScalingEnableNV)                \
	F(CmdSetViewportSwizzleNV) F(CmdSetCoverageToColorEnableNV)                            \
	F(CmdSetCoverageToColorLocationNV) F(CmdSetCoverageModulationModeNV)                   \
	F(CmdSetCoverageModulationTableEnableNV) F(CmdSetCoverageModulationTableNV)            \
	F(CmdSetShadingRateImageEnableNV) F(CmdSetRepresentativeFragmentTestEnableNV)          \
	F(CmdSetCoverageReductionModeNV) F(CmdOpticalFlowExecuteNV)                            \
	F(CmdBuildAccelerationStructuresKHR) F(CmdBuildAccelerationStructuresIndirectKHR)      \
	F(CmdCopyAccelerationStructureKHR) F(CmdCopyAccelerationStructureToMemoryKHR)          \
	F(CmdCopyMemoryToAccelerationStructureKHR) F(CmdWriteAccelerationStructuresPropertiesKHR) \
	F(CmdTraceRaysKHR) F(CmdTraceRaysIndirectKHR) F(CmdSetRayTracingPipelineStackSizeKHR)  \
	F(CmdDrawMeshTasksEXT) F(CmdDrawMeshTasksIndirectEXT) F(CmdDrawMeshTasksIndirectCountEXT) \
	F(CmdSetLineStipple) F(CmdBindIndexBuffer2) F(CmdPushDescriptorSetWithTemplate)        \
	F(CmdSetRenderingAttachmentLocations) F(CmdSetRenderingInputAttachmentIndices)         \
	F(CmdBindDescriptorSets2) F(CmdPushConstants2) F(CmdPushDescriptorSet2)                \
	F(CmdPushDescriptorSetWithTemplate2) F(CmdSetLineStippleKHR) F(CmdBindIndexBuffer2KHR) \
	F(CmdSetRenderingAttachmentLocationsKHR) F(CmdSetRenderingInputAttachmentIndicesKHR)   \
	F(CmdBindDescriptorSets2KHR) F(CmdPushConstants2KHR) F(CmdPushDescriptorSet2KHR)       \
	F(CmdPushDescriptorSetWithTemplate2KHR) F(CmdDispatchTileQCOM) F(CmdDispatchGraphAMDX) \
	F(CmdDispatchGraphIndirectAMDX) F(CmdDispatchGraphIndirectCountAMDX)                   \
	F(CmdInitializeGraphScratchMemoryAMDX) F(CmdCudaLaunchKernelNV)                        \
	F(CmdConvertCooperativeVectorMatrixNV) F(CmdDispatchDataGraphARM)                      \
	F(CmdDecompressMemoryEXT) F(CmdCopyMemoryIndirectKHR) F(CmdCopyMemoryToImageIndirectKHR) \
	F(CmdDecompressMemoryIndirectCountEXT)

#endif
