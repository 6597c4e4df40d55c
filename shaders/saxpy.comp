#version 450

// y = a·x + y. x and y may be one and the same storage, so neither is restrict.

layout(local_size_x = 128) in;

layout(std430, set = 0, binding = 0) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = 1) buffer Y { float y[]; };

layout(push_constant, std430) uniform Arguments {
    uint n;
    float a;
    uint vkomp_offset_0;
    uint vkomp_offset_1;
};

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= n) {
        return;
    }
    precise float v = a * x[vkomp_offset_0 + i] + y[vkomp_offset_1 + i];
    y[vkomp_offset_1 + i] = v;
}
