#version 450
// Inverts bytes, four to a word.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Words { uint w[]; };
layout(push_constant) uniform Arguments { uint n; };
void main() {
    if (gl_GlobalInvocationID.x < n) {
        w[gl_GlobalInvocationID.x] = ~w[gl_GlobalInvocationID.x];
    }
}
