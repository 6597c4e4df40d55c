#version 450
// Two views of the buffer at binding 0: one wide and read, one narrow and written.
layout(local_size_x = 1) in;
layout(binding = 0) readonly buffer Wide { uvec4 header; uvec4 wide[]; };
layout(binding = 0) writeonly buffer Narrow { uint narrow[]; };

void main() { narrow[gl_GlobalInvocationID.x] = wide[0].x + header.y; }
