#version 450
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
// Adds to n words at an address. A null address is left alone.
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint w[]; };
layout(push_constant) uniform Arguments { uvec2 at; uint n, add; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n && (at.x | at.y) != 0) {
        Words(at).w[i] += add;
    }
}
