#version 450
// dst = mul·dst + fac·src + add on n elements, modulo 2^32. src may be dst.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) readonly buffer Src { uint src[]; };
layout(std430, set = 0, binding = 1) buffer Dst { uint dst[]; };
layout(push_constant) uniform Arguments {
    uint n, mul, fac, add;
    uint vkomp_offset_0;
    uint vkomp_offset_1;
};
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) {
        uint from = src[vkomp_offset_0 + i];
        dst[vkomp_offset_1 + i] = mul * dst[vkomp_offset_1 + i] + fac * from + add;
    }
}
