#version 450
// Adds to all words that binding 0 reaches, and writes down how many those are.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Words { uint w[]; };
layout(std430, set = 0, binding = 1) writeonly buffer Out { uint reached[]; };
layout(push_constant) uniform Arguments { uint add, vkomp_offset_0, vkomp_offset_1; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint n = uint(w.length()) - vkomp_offset_0;
    if (i < n) {
        w[vkomp_offset_0 + i] += add;
    }
    if (i == 0) {
        reached[vkomp_offset_1] = n;
    }
}
