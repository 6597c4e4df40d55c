#version 450
// Writes the number of workgroups of its launch.
layout(local_size_x = 1) in;
layout(std430, set = 0, binding = 0) writeonly buffer Out { uint count[]; };
void main() {
    if (gl_GlobalInvocationID.x == 0) {
        count[0] = gl_NumWorkGroups.x;
    }
}
