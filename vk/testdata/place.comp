#version 450
// y[at + i] += a * x[i] for each of the workgroups, of one invocation
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) buffer Y { uint y[]; };
layout(push_constant) uniform P { uint at; uint a; };
void main() {
	uint i = gl_WorkGroupID.x;
	y[at + i] += a * x[i];
}
