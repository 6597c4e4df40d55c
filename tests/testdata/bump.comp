#version 450
// Adds to a number, to each of n elements times its index, and to a structure.
layout(local_size_x = 64) in;
struct Pair { uint v; uint w; };
layout(std430, set = 0, binding = 0) buffer Number { uint number[]; };
layout(std430, set = 0, binding = 1) buffer Elements { uint elements[]; };
layout(std430, set = 0, binding = 2) buffer Structure { Pair pair[]; };
layout(push_constant) uniform Arguments {
    uint n, toNumber, toElements, toPair;
    uint vkomp_offset_0;
    uint vkomp_offset_1;
    uint vkomp_offset_2;
};
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) {
        elements[vkomp_offset_1 + i] += toElements * i;
    }
    if (i == 0) {
        number[vkomp_offset_0] += toNumber;
        pair[vkomp_offset_2].v += toPair;
        pair[vkomp_offset_2].w += toPair;
    }
}
