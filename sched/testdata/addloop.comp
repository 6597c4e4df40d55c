#version 450
// What add does, in as many rounds as c says.
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) buffer Out { uint v[]; } out_;
layout(push_constant) uniform Push {
    uint n;
    uint c;
    uint vkomp_offset_0;
} p;
void main() {
    uint i = gl_GlobalInvocationID.x;
    for (uint k = 0; i < p.n && k < p.c; k++) out_.v[i + p.vkomp_offset_0]++;
}
