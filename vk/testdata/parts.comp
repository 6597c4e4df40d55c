#version 450
// Adds to each pair an element of x, the lengths of both arrays, and an element of x further on. wild is added to indices,
// which may lead before or behind an array.
layout(local_size_x = 32) in;
struct Pair { uint a; uint b; };
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) buffer Y { Pair y[]; };
layout(push_constant) uniform P { int wild; };
uint further(uint i) {
	return x[i + 5u + uint(wild)];
}
void main() {
	int i = int(gl_GlobalInvocationID.x) + wild;
	if (i < y.length() || wild != 0) {
		y[i].a += x[i] + 1000 * x.length();
		atomicAdd(y[i].b, further(uint(i)) + 1000 * y.length());
	}
}
