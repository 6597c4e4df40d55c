#version 450
// out[i] = 3 out[i] + a[i] + b[i] + c. Arguments may begin anywhere.
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) buffer Out { uint v[]; } out_;
layout(set = 0, binding = 1) readonly buffer A { uint v[]; } a;
layout(set = 0, binding = 2) readonly buffer B { uint v[]; } b;
layout(push_constant) uniform Push {
    uint n;
    uint c;
    uint vkomp_offset_0;
    uint vkomp_offset_1;
    uint vkomp_offset_2;
} p;
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= p.n) return;
    uint o = i + p.vkomp_offset_0;
    out_.v[o] = 3 * out_.v[o] + a.v[i + p.vkomp_offset_1] + b.v[i + p.vkomp_offset_2] + p.c;
}
