#version 450
// Takes as many steps as push constants say, in a function and out of it.
layout(local_size_x = 4) in;

layout(set = 0, binding = 0) buffer Places { uint at[]; };

layout(push_constant) uniform Push { uint rounds; uint n; uvec2 by; };

uint walk(uint at) {
	for (uint i = 0; i < rounds; i++)
		at = at * by.x + by.y;
	return at;
}

void main() {
	uint k = gl_GlobalInvocationID.x;
	for (uint i = 0; k < n && i < rounds; i++)
		at[k] = walk(at[k]) + by.y;
}
