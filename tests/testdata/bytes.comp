#version 450
#extension GL_EXT_shader_8bit_storage : require
// dst = src + add on n bytes, modulo 256.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) readonly buffer Src { uint8_t src[]; };
layout(std430, set = 0, binding = 1) buffer Dst { uint8_t dst[]; };
layout(push_constant) uniform Arguments {
    uint n, add;
    uint vkomp_offset_0;
    uint vkomp_offset_1;
};
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) {
        dst[vkomp_offset_1 + i] = uint8_t(uint(src[vkomp_offset_0 + i]) + add);
    }
}
