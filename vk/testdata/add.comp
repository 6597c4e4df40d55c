#version 450
// y[i] += a * x[i] for i < n
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) buffer Y { uint y[]; };
layout(push_constant) uniform P { uint n; uint a; };
void main() {
	uint i = gl_GlobalInvocationID.x;
	if (i < n)
		y[i] += a * x[i];
}
