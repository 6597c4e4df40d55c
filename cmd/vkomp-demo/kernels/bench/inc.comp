#version 450

// x[at] = x[at] + 1 by a single invocation.

layout(local_size_x = 1) in;

layout(std430, set = 0, binding = 0) buffer X { uint x[]; };

layout(push_constant, std430) uniform Arguments { uint at; };

void main() {
    x[at] += 1;
}
