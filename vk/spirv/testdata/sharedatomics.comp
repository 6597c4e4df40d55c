#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_atomic_int64 : require
// Adds to an integer of 64 bits in a shared variable, for which Vulkan has the feature shaderSharedInt64Atomics,
// and to one of 32 bits in a buffer.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Counts { uint counts[]; };
shared uint64_t sum;
void main() {
    atomicAdd(sum, uint64_t(1));
    atomicAdd(counts[gl_WorkGroupID.x], 1);
}
