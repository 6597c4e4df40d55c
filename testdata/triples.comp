#version 450
// Adds 1 to the middle of n elements of three words. Their size divides no alignment of a device.
layout(local_size_x = 64) in;
struct Triple { uint a, b, c; };
layout(std430, set = 0, binding = 0) buffer Block { Triple x[]; };
layout(push_constant) uniform Arguments { uint n; uint vkomp_offset_0; };
void main() {
    if (gl_GlobalInvocationID.x < n) {
        x[gl_GlobalInvocationID.x + vkomp_offset_0].b += 1;
    }
}
