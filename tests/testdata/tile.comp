#version 450
// A tile of a stencil: each word is made of those at its place in three tiles, and of the length of the first one.
layout(local_size_x = 32) in;

layout(set = 0, binding = 0) readonly buffer Left { uint left[]; };
layout(set = 0, binding = 1) readonly buffer Here { uint here[]; };
layout(set = 0, binding = 2) readonly buffer Right { uint right[]; };
layout(set = 0, binding = 3) writeonly buffer Next { uint next[]; };

layout(push_constant) uniform Push { uint by; };

void main() {
	uint k = gl_GlobalInvocationID.x;
	if (k < next.length())
		next[k] = (left[k] + 2 * here[k] + 3 * right[k]) * by + left.length();
}
