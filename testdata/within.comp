#version 450
// Writes the double of n elements. The push constants are one structure, as in what compilers of WGSL make.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(std430, set = 0, binding = 1) writeonly buffer Y { uint y[]; };
struct Arguments { uint n; uint vkomp_offset_1; uint vkomp_offset_0; };
layout(push_constant) uniform Block { Arguments a; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < a.n) {
        y[i + a.vkomp_offset_1] = 2 * x[i + a.vkomp_offset_0];
    }
}
