#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_atomic_int64 : require
// Adds to integers of 64 bits in a buffer, for which Vulkan has the feature shaderBufferInt64Atomics, and to one
// of 32 bits in a shared variable.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Sums { uint64_t sums[]; };
shared uint count;
void main() {
    atomicAdd(count, 1);
    atomicAdd(sums[gl_WorkGroupID.x], uint64_t(1));
}
