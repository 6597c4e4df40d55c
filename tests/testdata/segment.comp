#version 450
#extension GL_EXT_buffer_reference : require
// p[i] = p[i]·a + b for the elements of a structure that has p as a pointer.
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Elements { int at[]; };
layout(std430, set = 0, binding = 0) buffer S {
    Elements p;
    int a, b;
} s;
layout(push_constant) uniform Arguments { uint n; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) {
        s.p.at[i] = s.p.at[i] * s.a + s.b;
    }
}
