#version 450
// out[i] += c. The argument may begin anywhere.
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) buffer Out { uint v[]; } out_;
layout(push_constant) uniform Push {
    uint n;
    uint c;
    uint vkomp_offset_0;
} p;
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < p.n) out_.v[i + p.vkomp_offset_0] += p.c;
}
