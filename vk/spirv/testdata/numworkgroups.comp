#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer Out { uint values[]; };

uint width() { return gl_NumWorkGroups.x; }

void main() { values[gl_WorkGroupID.y * width() + gl_WorkGroupID.x] = 1; }
