#version 450
// Doubles n elements. It declares no offset member, so its slice must be aligned.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Values { float v[]; };
layout(push_constant) uniform Arguments { uint n; };
void main() {
    if (gl_GlobalInvocationID.x < n) {
        v[gl_GlobalInvocationID.x] *= 2.0;
    }
}
