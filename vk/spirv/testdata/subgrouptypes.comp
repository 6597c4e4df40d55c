#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_subgroup_extended_types_int64 : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Adds vectors of integers of 64 bits in a subgroup, for which Vulkan has the feature shaderSubgroupExtendedTypes.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Values { u64vec2 values[]; };
void main() {
    values[gl_GlobalInvocationID.x] = subgroupAdd(values[gl_GlobalInvocationID.x]);
}
