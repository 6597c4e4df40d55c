#version 450
#extension GL_EXT_buffer_reference : require
// A pointer among the push constants that is loaded in a loop.
layout(local_size_x = 32) in;

layout(buffer_reference, std430) buffer Numbers { uint numbers[]; };

layout(push_constant) uniform Push { Numbers from; uint n; } push;

layout(set = 0, binding = 0) buffer Out { uint sums[]; };

void main() {
    uint sum = 0;
    for (uint i = 0; i < push.n; i++) sum += push.from.numbers[i];
    sums[gl_GlobalInvocationID.x] = sum;
}
