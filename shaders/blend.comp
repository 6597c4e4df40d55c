#version 450

// Mixes an RGBA8 image with its blurred version and its edges into RGBA8: one
// rounding, to the nearest, halves to even; the original's alpha is kept.
// Original and destination may be one and the same storage, so neither is
// restrict.

layout(local_size_x = 128) in;

layout(std430, set = 0, binding = 0) readonly buffer Original { uint original[]; };
layout(std430, set = 0, binding = 1) restrict readonly buffer Blurred { vec4 blurred[]; };
layout(std430, set = 0, binding = 2) restrict readonly buffer Edges { float edges[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Destination { uint destination[]; };

layout(push_constant, std430) uniform Arguments {
    uint n;
    float mix_original;
    float mix_blurred;
    float mix_edges;
    uint vkomp_offset_0;
    uint vkomp_offset_1;
    uint vkomp_offset_2;
    uint vkomp_offset_3;
};

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= n) {
        return;
    }
    uint p = original[vkomp_offset_0 + i];
    vec3 color = vec3(p & 0xffu, (p >> 8) & 0xffu, (p >> 16) & 0xffu);
    precise vec3 mixed = (mix_original * color + mix_blurred * blurred[vkomp_offset_1 + i].rgb)
        + vec3(mix_edges * edges[vkomp_offset_2 + i]);
    uvec3 v = uvec3(clamp(roundEven(mixed), 0.0, 255.0));
    destination[vkomp_offset_3 + i] = (p & 0xff000000u) | v.b << 16 | v.g << 8 | v.r;
}
