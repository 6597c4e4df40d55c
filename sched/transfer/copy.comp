#version 450
// Copies words from one buffer to another, 16 bytes at a time. Fewer invocations than there are
// bytes go over them in strides.
layout(local_size_x = 128) in;
layout(set = 0, binding = 0) readonly buffer From { uvec4 v[]; } from_;
layout(set = 0, binding = 1) writeonly buffer To { uvec4 v[]; } to_;
layout(push_constant) uniform Push {
    uint words; // a multiple of 4
} p;
void main() {
    uint stride = gl_NumWorkGroups.x * 128;
    for (uint i = gl_GlobalInvocationID.x; i < p.words / 4; i += stride)
        to_.v[i] = from_.v[i];
}
