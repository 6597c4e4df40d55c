#version 450
layout(local_size_x_id = 1, local_size_y = 4) in;
layout(binding = 0) buffer Out { uint values[]; };

void main() { values[gl_GlobalInvocationID.x] = 1; }
