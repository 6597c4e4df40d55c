#version 450
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
// Writes 5·i to the i-th of n elements from an address on.
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Elements { uint at[]; };
layout(push_constant) uniform Arguments {
    Elements elements;
    uint n;
};
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) {
        elements.at[i] = 5 * i;
    }
}
