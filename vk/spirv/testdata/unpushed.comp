#version 450

// Push constants that nothing uses. Since SPIR-V 1.4 the interface of the entry point lists them all the same.
layout(local_size_x = 8) in;

layout(binding = 0) buffer Values { uint values[]; };

layout(push_constant) uniform Unused { uint unused; };

void main() { values[gl_GlobalInvocationID.x]++; }
