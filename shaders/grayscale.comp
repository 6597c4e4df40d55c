#version 450

// RGBA8 to grey RGBA8 by Rec. 709 luma, alpha kept. Integers throughout: the
// rounding is exact, halves go up. Source and destination may be one and the
// same storage, so neither is restrict.

layout(local_size_x = 128) in;

layout(std430, set = 0, binding = 0) readonly buffer Source { uint source[]; };
layout(std430, set = 0, binding = 1) writeonly buffer Destination { uint destination[]; };

layout(push_constant, std430) uniform Arguments {
    uint n;
    uint vkomp_offset_0;
    uint vkomp_offset_1;
};

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= n) {
        return;
    }
    uint p = source[vkomp_offset_0 + i];
    uint r = p & 0xffu;
    uint g = (p >> 8) & 0xffu;
    uint b = (p >> 16) & 0xffu;
    uint luma = (2126u * r + 7152u * g + 722u * b + 5000u) / 10000u;
    destination[vkomp_offset_1 + i] = (p & 0xff000000u) | luma * 0x010101u;
}
