#version 450
// Adds h to n elements. The offset member moves the elements, not h.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Block { uint h; uint a[]; };
layout(push_constant) uniform Arguments { uint n; uint vkomp_offset_0; };
void main() {
    if (gl_GlobalInvocationID.x < n) {
        a[gl_GlobalInvocationID.x + vkomp_offset_0] += h;
    }
}
