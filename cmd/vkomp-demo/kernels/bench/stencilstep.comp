#version 450

// All points of a step of the stencil, of 64 elements each, by a workgroup a point. Beyond the last
// point comes the first.

layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) readonly buffer Before { uint before[]; };
layout(std430, set = 0, binding = 1) writeonly buffer Next { uint next[]; };

void main() {
    uint points = gl_NumWorkGroups.x, p = gl_WorkGroupID.x, i = gl_LocalInvocationID.x;
    uint left = (p == 0 ? points : p) - 1, right = p + 1 == points ? 0 : p + 1;
    next[p * 64 + i] = (before[left * 64 + i] + before[p * 64 + i] + before[right * 64 + i]) * 747796405u + 1u;
}
