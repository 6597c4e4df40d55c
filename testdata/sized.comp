#version 450
// Adds n values to n elements; n is a specialization constant, and so are the sizes of both.
layout(constant_id = 0) const uint n = 1;
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Block { uint a[n]; };
layout(push_constant) uniform Arguments { uint values[n]; };
void main() {
    if (gl_GlobalInvocationID.x < n) {
        a[gl_GlobalInvocationID.x] += values[gl_GlobalInvocationID.x];
    }
}
