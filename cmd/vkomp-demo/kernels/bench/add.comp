#version 450

// y[at] = y[at] + x[0] by a single invocation.

layout(local_size_x = 1) in;

layout(std430, set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(std430, set = 0, binding = 1) buffer Y { uint y[]; };

layout(push_constant, std430) uniform Arguments { uint at; };

void main() {
    y[at] += x[0];
}
