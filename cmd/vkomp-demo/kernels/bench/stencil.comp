#version 450

// A point of a stencil in one dimension, of 64 elements: it mixes what the point and its two
// neighbours had one step before.

layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) readonly buffer Left { uint left[]; };
layout(std430, set = 0, binding = 1) readonly buffer Here { uint here[]; };
layout(std430, set = 0, binding = 2) readonly buffer Right { uint right[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Next { uint next[]; };

void main() {
    uint i = gl_LocalInvocationID.x;
    next[i] = (left[i] + here[i] + right[i]) * 747796405u + 1u;
}
