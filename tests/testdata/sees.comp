#version 450
// Says whether it sees the number 80, elements i and the structure {1, 1}. Bindings
// 0 to 2 are for other items of the same storage.
layout(local_size_x = 64) in;
struct Pair { uint v; uint w; };
layout(std430, set = 0, binding = 3) readonly buffer Number { uint number[]; };
layout(std430, set = 0, binding = 4) readonly buffer Elements { uint elements[]; };
layout(std430, set = 0, binding = 5) readonly buffer Structure { Pair pair[]; };
layout(std430, set = 0, binding = 6) buffer Out { uint wrong[]; };
layout(push_constant) uniform Arguments {
    uint n;
    uint vkomp_offset_3;
    uint vkomp_offset_4;
    uint vkomp_offset_5;
    uint vkomp_offset_6;
};
void main() {
    uint i = gl_GlobalInvocationID.x;
    Pair p = pair[vkomp_offset_5];
    if (i < n && (elements[vkomp_offset_4 + i] != i || number[vkomp_offset_3] != 80 || p.v != 1 || p.w != 1)) {
        atomicAdd(wrong[vkomp_offset_6], 1);
    }
}
