#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
layout(local_size_x = 1) in;

struct Inner { vec3 v; float w; uint8_t b; };
struct Outer { Inner inner[2]; int64_t last; };

layout(std430, binding = 0) buffer Nested { uint count; Outer outer; Outer rest[]; } nested;
layout(std140, binding = 1) uniform Std140 { float a[3]; vec2 tail; } std140Block;
layout(std430, binding = 2) buffer Matrices { mat3x2 columnMajor; layout(row_major) mat3x2 rowMajor; mat4 many[2]; } matrices;
layout(std430, binding = 3) buffer Small { int8_t i8; uint16_t u16; float16_t f16; double f64; uint64_t u64; } small;
layout(std430, binding = 4) buffer Fixed { vec3 v[4]; } fixedSize;
layout(std430, push_constant) uniform Push {
    int i;
    uvec2 uv;
    vec3 v3;
    mat2 m;
    float list[3];
    Inner inner;
    int64_t wide;
    float16_t half_;
} push;

void main() {
    nested.count = nested.rest[0].inner[1].b + nested.outer.inner[0].b;
    nested.rest[0].inner[1].w = std140Block.a[2] + std140Block.tail.x + matrices.columnMajor[0].x
        + matrices.rowMajor[0].x + matrices.many[1][0].x + float(small.i8) + fixedSize.v[0].x
        + push.v3.x + float(push.i);
}
