#version 450
// out[i] = left[i] + 2 mid[i] + right[i] + 1.
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) writeonly buffer Out { uint v[]; } out_;
layout(set = 0, binding = 1) readonly buffer L { uint v[]; } left;
layout(set = 0, binding = 2) readonly buffer M { uint v[]; } mid;
layout(set = 0, binding = 3) readonly buffer R { uint v[]; } right;
layout(push_constant) uniform Push { uint n; } p;
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < p.n) out_.v[i] = left.v[i] + 2 * mid.v[i] + right.v[i] + 1;
}
