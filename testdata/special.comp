#version 450
// out[i] = factor·i + pair.x + 2·pair.y, with a specialized factor and workgroup.
layout(constant_id = 0) const uint factor = 1;
layout(local_size_x_id = 1) in;
layout(std430, set = 0, binding = 0) writeonly buffer Out { uint v[]; };
layout(push_constant) uniform Arguments { uvec2 pair; uint n; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) {
        v[i] = factor * i + pair.x + 2u * pair.y;
    }
}
