#version 450
// Multiplies so many words from a place on, and adds those of a weight.
layout(local_size_x = 4) in;

layout(set = 0, binding = 0) readonly buffer Weights { uint weight[]; };
layout(set = 0, binding = 1) buffer Cells { uint cell[]; };

layout(push_constant) uniform Push { uint at; uint n; uint by; };

void main() {
	uint k = gl_GlobalInvocationID.x;
	for (uint i = k; i < n; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x)
		cell[at + i] = cell[at + i] * by + weight[i];
}
