#version 450
#extension GL_EXT_null_initializer : require
// Shared variables with an initial value.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Out { uint b[]; };
shared uint sum[4] = {};
void main() {
    atomicAdd(sum[gl_LocalInvocationIndex % 4], 1u);
    barrier();
    b[gl_GlobalInvocationID.x] = sum[0];
}
