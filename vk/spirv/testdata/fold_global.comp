#version 450
layout(local_size_x = 2, local_size_y = 3, local_size_z = 2) in;
layout(set = 0, binding = 0) writeonly buffer Out { uint values[]; };

void main() { values[gl_GlobalInvocationID.x] = gl_GlobalInvocationID.y + gl_GlobalInvocationID.z; }
