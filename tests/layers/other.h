// Commands that layers pass on without looking at their arguments. The last ones of each list are younger
// than the headers that the layers are compiled with, and known by their names alone.
#ifndef OTHER_H
#define OTHER_H

// These set what only graphics uses, or have to do with queries: they access no memory that a buffer has,
// order nothing and bind nothing that a dispatch uses.
#define STATE_COMMANDS(F) \
	F(CmdSetViewport) F(CmdSetScissor) F(CmdSetLineWidth) F(CmdSetDepthBias) \
	F(CmdSetBlendConstants) F(CmdSetDepthBounds) F(CmdSetStencilCompareMask) \
	F(CmdSetStencilWriteMask) F(CmdSetStencilReference) F(CmdBindIndexBuffer) \
	F(CmdBindVertexBuffers) F(CmdBeginQuery) F(CmdEndQuery) F(CmdResetQueryPool) \
	F(CmdWriteTimestamp) F(CmdSetDeviceMask) F(CmdWriteTimestamp2) \
	F(CmdSetCullMode) F(CmdSetFrontFace) F(CmdSetPrimitiveTopology) \
	F(CmdSetViewportWithCount) F(CmdSetScissorWithCount) F(CmdBindVertexBuffers2) \
	F(CmdSetDepthTestEnable) F(CmdSetDepthWriteEnable) F(CmdSetDepthCompareOp) \
	F(CmdSetDepthBoundsTestEnable) F(CmdSetStencilTestEnable) F(CmdSetStencilOp) \
	F(CmdSetRasterizerDiscardEnable) F(CmdSetDepthBiasEnable) \
	F(CmdSetPrimitiveRestartEnable) F(CmdSetDeviceMaskKHR) \
	F(CmdSetFragmentShadingRateKHR) F(CmdWriteTimestamp2KHR) \
	F(CmdBindTransformFeedbackBuffersEXT) F(CmdBeginQueryIndexedEXT) \
	F(CmdEndQueryIndexedEXT) F(CmdSetViewportWScalingNV) \
	F(CmdSetDiscardRectangleEXT) F(CmdSetSampleLocationsEXT) \
	F(CmdBindShadingRateImageNV) F(CmdSetViewportShadingRatePaletteNV) \
	F(CmdSetCoarseSampleOrderNV) F(CmdSetExclusiveScissorNV) F(CmdSetCheckpointNV) \
	F(CmdSetPerformanceMarkerINTEL) F(CmdSetPerformanceStreamMarkerINTEL) \
	F(CmdSetPerformanceOverrideINTEL) F(CmdSetLineStippleEXT) F(CmdSetCullModeEXT) \
	F(CmdSetFrontFaceEXT) F(CmdSetPrimitiveTopologyEXT) \
	F(CmdSetViewportWithCountEXT) F(CmdSetScissorWithCountEXT) \
	F(CmdBindVertexBuffers2EXT) F(CmdSetDepthTestEnableEXT) \
	F(CmdSetDepthWriteEnableEXT) F(CmdSetDepthCompareOpEXT) \
	F(CmdSetDepthBoundsTestEnableEXT) F(CmdSetStencilTestEnableEXT) \
	F(CmdSetStencilOpEXT) F(CmdSetFragmentShadingRateEnumNV) \
	F(CmdSetVertexInputEXT) F(CmdBindInvocationMaskHUAWEI) \
	F(CmdSetPatchControlPointsEXT) F(CmdSetRasterizerDiscardEnableEXT) \
	F(CmdSetDepthBiasEnableEXT) F(CmdSetLogicOpEXT) \
	F(CmdSetPrimitiveRestartEnableEXT) F(CmdSetColorWriteEnableEXT) \
	F(CmdSetTessellationDomainOriginEXT) F(CmdSetDepthClampEnableEXT) \
	F(CmdSetPolygonModeEXT) F(CmdSetRasterizationSamplesEXT) F(CmdSetSampleMaskEXT) \
	F(CmdSetAlphaToCoverageEnableEXT) F(CmdSetAlphaToOneEnableEXT) \
	F(CmdSetLogicOpEnableEXT) F(CmdSetColorBlendEnableEXT) \
	F(CmdSetColorBlendEquationEXT) F(CmdSetColorWriteMaskEXT) \
	F(CmdSetRasterizationStreamEXT) F(CmdSetConservativeRasterizationModeEXT) \
	F(CmdSetExtraPrimitiveOverestimationSizeEXT) F(CmdSetDepthClipEnableEXT) \
	F(CmdSetSampleLocationsEnableEXT) F(CmdSetColorBlendAdvancedEXT) \
	F(CmdSetProvokingVertexModeEXT) F(CmdSetLineRasterizationModeEXT) \
	F(CmdSetLineStippleEnableEXT) F(CmdSetDepthClipNegativeOneToOneEXT) \
	F(CmdSetViewportWScalingEnableNV) F(CmdSetViewportSwizzleNV) \
	F(CmdSetCoverageToColorEnableNV) F(CmdSetCoverageToColorLocationNV) \
	F(CmdSetCoverageModulationModeNV) F(CmdSetCoverageModulationTableEnableNV) \
	F(CmdSetCoverageModulationTableNV) F(CmdSetShadingRateImageEnableNV) \
	F(CmdSetRepresentativeFragmentTestEnableNV) F(CmdSetCoverageReductionModeNV) \
	F(CmdSetRayTracingPipelineStackSizeKHR) F(CmdSetLineStipple) \
	F(CmdBindIndexBuffer2) F(CmdSetRenderingAttachmentLocations) \
	F(CmdSetRenderingInputAttachmentIndices) F(CmdSetLineStippleKHR) \
	F(CmdBindIndexBuffer2KHR) F(CmdSetRenderingAttachmentLocationsKHR) \
	F(CmdSetRenderingInputAttachmentIndicesKHR)

// These may access buffers, order commands, or bind what a dispatch uses.
#define UNDESCRIBED_COMMANDS(F) \
	F(CmdDraw) F(CmdDrawIndexed) F(CmdDrawIndirect) F(CmdDrawIndexedIndirect) \
	F(CmdCopyImage) F(CmdBlitImage) F(CmdCopyBufferToImage) F(CmdCopyImageToBuffer) \
	F(CmdClearColorImage) F(CmdClearDepthStencilImage) F(CmdClearAttachments) \
	F(CmdResolveImage) F(CmdSetEvent) F(CmdResetEvent) F(CmdWaitEvents) \
	F(CmdCopyQueryPoolResults) F(CmdBeginRenderPass) F(CmdNextSubpass) \
	F(CmdEndRenderPass) F(CmdExecuteCommands) F(CmdDrawIndirectCount) \
	F(CmdDrawIndexedIndirectCount) F(CmdBeginRenderPass2) F(CmdNextSubpass2) \
	F(CmdEndRenderPass2) F(CmdSetEvent2) F(CmdResetEvent2) F(CmdWaitEvents2) \
	F(CmdCopyImage2) F(CmdCopyBufferToImage2) F(CmdCopyImageToBuffer2) \
	F(CmdBlitImage2) F(CmdResolveImage2) F(CmdBeginRendering) F(CmdEndRendering) \
	F(CmdBeginVideoCodingKHR) F(CmdEndVideoCodingKHR) F(CmdControlVideoCodingKHR) \
	F(CmdDecodeVideoKHR) F(CmdBeginRenderingKHR) F(CmdEndRenderingKHR) \
	F(CmdPushDescriptorSetWithTemplateKHR) F(CmdBeginRenderPass2KHR) \
	F(CmdNextSubpass2KHR) F(CmdEndRenderPass2KHR) F(CmdDrawIndirectCountKHR) \
	F(CmdDrawIndexedIndirectCountKHR) F(CmdSetEvent2KHR) F(CmdResetEvent2KHR) \
	F(CmdWaitEvents2KHR) F(CmdWriteBufferMarker2AMD) F(CmdCopyImage2KHR) \
	F(CmdCopyBufferToImage2KHR) F(CmdCopyImageToBuffer2KHR) F(CmdBlitImage2KHR) \
	F(CmdResolveImage2KHR) F(CmdTraceRaysIndirect2KHR) \
	F(CmdBeginTransformFeedbackEXT) F(CmdEndTransformFeedbackEXT) \
	F(CmdDrawIndirectByteCountEXT) F(CmdCuLaunchKernelNVX) \
	F(CmdDrawIndirectCountAMD) F(CmdDrawIndexedIndirectCountAMD) \
	F(CmdBeginConditionalRenderingEXT) F(CmdEndConditionalRenderingEXT) \
	F(CmdBuildAccelerationStructureNV) F(CmdCopyAccelerationStructureNV) \
	F(CmdTraceRaysNV) F(CmdWriteAccelerationStructuresPropertiesNV) \
	F(CmdWriteBufferMarkerAMD) F(CmdDrawMeshTasksNV) F(CmdDrawMeshTasksIndirectNV) \
	F(CmdDrawMeshTasksIndirectCountNV) F(CmdPreprocessGeneratedCommandsNV) \
	F(CmdExecuteGeneratedCommandsNV) F(CmdBindPipelineShaderGroupNV) \
	F(CmdBindDescriptorBuffersEXT) F(CmdSetDescriptorBufferOffsetsEXT) \
	F(CmdBindDescriptorBufferEmbeddedSamplersEXT) F(CmdSubpassShadingHUAWEI) \
	F(CmdDrawMultiEXT) F(CmdDrawMultiIndexedEXT) F(CmdBuildMicromapsEXT) \
	F(CmdCopyMicromapEXT) F(CmdCopyMicromapToMemoryEXT) \
	F(CmdCopyMemoryToMicromapEXT) F(CmdWriteMicromapsPropertiesEXT) \
	F(CmdDrawClusterHUAWEI) F(CmdDrawClusterIndirectHUAWEI) \
	F(CmdCopyMemoryIndirectNV) F(CmdCopyMemoryToImageIndirectNV) \
	F(CmdDecompressMemoryNV) F(CmdDecompressMemoryIndirectCountNV) \
	F(CmdOpticalFlowExecuteNV) F(CmdBuildAccelerationStructuresKHR) \
	F(CmdBuildAccelerationStructuresIndirectKHR) F(CmdCopyAccelerationStructureKHR) \
	F(CmdCopyAccelerationStructureToMemoryKHR) \
	F(CmdCopyMemoryToAccelerationStructureKHR) \
	F(CmdWriteAccelerationStructuresPropertiesKHR) F(CmdTraceRaysKHR) \
	F(CmdTraceRaysIndirectKHR) F(CmdDrawMeshTasksEXT) \
	F(CmdDrawMeshTasksIndirectEXT) F(CmdDrawMeshTasksIndirectCountEXT) \
	F(CmdPushDescriptorSetWithTemplate) F(CmdBindDescriptorSets2) \
	F(CmdPushConstants2) F(CmdPushDescriptorSet2) \
	F(CmdPushDescriptorSetWithTemplate2) F(CmdBindDescriptorSets2KHR) \
	F(CmdPushConstants2KHR) F(CmdPushDescriptorSet2KHR) \
	F(CmdPushDescriptorSetWithTemplate2KHR) F(CmdDispatchTileQCOM) \
	F(CmdDispatchGraphAMDX) F(CmdDispatchGraphIndirectAMDX) \
	F(CmdDispatchGraphIndirectCountAMDX) F(CmdInitializeGraphScratchMemoryAMDX) \
	F(CmdCudaLaunchKernelNV) F(CmdConvertCooperativeVectorMatrixNV) \
	F(CmdDispatchDataGraphARM) F(CmdDecompressMemoryEXT) \
	F(CmdCopyMemoryIndirectKHR) F(CmdCopyMemoryToImageIndirectKHR) \
	F(CmdDecompressMemoryIndirectCountEXT)

#define OTHER_COMMANDS(F) STATE_COMMANDS(F) UNDESCRIBED_COMMANDS(F)

enum {
#define OTHER_NUMBER(name) OTHER_##name,
	OTHER_COMMANDS(OTHER_NUMBER)
#undef OTHER_NUMBER
	OTHER_COMMAND_COUNT
};

// What each layer defines: the next layer's function, before which the layer does what it does.
static PFN_vkVoidFunction other_below(VkCommandBuffer handle, uint32_t number, const char *name);

// A function that passes a command on with whatever arguments it has. None of them takes more than
// OTHER_STACK bytes of the stack, and all return nothing.
enum { OTHER_STACK = 256 };
#define OTHER_PASS(name)                                                                       \
	static VKAPI_ATTR void VKAPI_CALL other_##name(VkCommandBuffer handle)                 \
	{                                                                                      \
		void *arguments = __builtin_apply_args();                                      \
		__builtin_apply(other_below(handle, OTHER_##name, "vk" #name), arguments,      \
			OTHER_STACK);                                                          \
	}
#define OTHER_INTERCEPT(name) { "vk" #name, (PFN_vkVoidFunction)other_##name },

#endif
