#version 450
// out[i] += a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + c + m[3]: as many arguments as a resident task can have, and more push
// constants than its record has room for.
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) buffer Out { uint v[]; } out_;
layout(set = 0, binding = 1) readonly buffer A { uint v[]; } a;
layout(set = 0, binding = 2) readonly buffer B { uint v[]; } b;
layout(set = 0, binding = 3) readonly buffer C { uint v[]; } c;
layout(set = 0, binding = 4) readonly buffer D { uint v[]; } d;
layout(set = 0, binding = 5) readonly buffer E { uint v[]; } e;
layout(set = 0, binding = 6) readonly buffer F { uint v[]; } f;
layout(set = 0, binding = 7) readonly buffer G { uint v[]; } g;
layout(push_constant) uniform Push {
    uint n;
    uint c;
    uint m[16];
    uint vkomp_offset_0;
    uint vkomp_offset_1;
    uint vkomp_offset_2;
    uint vkomp_offset_3;
    uint vkomp_offset_4;
    uint vkomp_offset_5;
    uint vkomp_offset_6;
    uint vkomp_offset_7;
} p;
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= p.n) return;
    out_.v[i + p.vkomp_offset_0] += a.v[i + p.vkomp_offset_1] + b.v[i + p.vkomp_offset_2] + c.v[i + p.vkomp_offset_3] +
        d.v[i + p.vkomp_offset_4] + e.v[i + p.vkomp_offset_5] + f.v[i + p.vkomp_offset_6] + g.v[i + p.vkomp_offset_7] + p.c + p.m[3];
}
