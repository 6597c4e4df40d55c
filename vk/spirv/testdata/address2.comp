#version 450
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 32) in;
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Value { float v; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Rows { Value row[]; };
struct Span { Value from; uint count; };
layout(set = 0, binding = 0, std430) readonly buffer Declared { uint n; Span spans[]; } declared;
layout(set = 0, binding = 1, std430) buffer Followed { Value to; Rows rows[3]; } followed;
layout(set = 0, binding = 2, std430) buffer Relinked { Value link[]; } relinked;
layout(set = 0, binding = 3, std430) buffer Numbers { uint64_t address; uvec2 pair; uint tail; } numbers;
layout(push_constant, scalar) uniform Push {
    uint first;
    Value value;
    uint64_t number;
    uvec2 pair;
    Rows table[2];
    uint last;
} push;

float sum(Value at, uint n) {
    float s = 0;
    for (uint k = 0; k < n; k++) s += at[k].v;
    return s;
}

void main() {
    uint i = gl_GlobalInvocationID.x;
    Value wide = Value(push.number + 4 * i), narrow = Value(push.pair);
    Span span = declared.spans[i];
    followed.to[i].v = sum(span.from, span.count) + followed.rows[i % 3].row[i].v;
    relinked.link[i] = push.value + push.first;
    Value(numbers.address)[i].v = Value(numbers.pair)[push.last].v + wide.v;
    narrow[i].v = push.table[i % 2].row[0].v;
}
