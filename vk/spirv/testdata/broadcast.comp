#version 450
#extension GL_KHR_shader_subgroup_ballot : require
// Broadcasts from an invocation that a buffer names, for which Vulkan has the feature subgroupBroadcastDynamicId.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Values { uint values[]; };
void main() {
    values[gl_GlobalInvocationID.x] = subgroupBroadcast(gl_LocalInvocationIndex, values[0]);
}
