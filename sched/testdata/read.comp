#version 450
// Reads in and leaves unused alone; out[i] = in[i] + 1. Nothing aligns.
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) readonly buffer In { uint v[]; } in_;
layout(set = 0, binding = 2) writeonly buffer Out { uint v[]; } out_;
layout(push_constant) uniform Push { uint n; } p;
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < p.n) out_.v[i] = in_.v[i] + 1;
}
