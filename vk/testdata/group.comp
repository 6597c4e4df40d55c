#version 450
// Each workgroup adds 1 + its identifier's coordinates, as digits, at its linear place.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer B { uint b[]; };
layout(push_constant) uniform P { uint width; uint height; };
void main() {
	uvec3 g = gl_WorkGroupID;
	b[(g.z * height + g.y) * width + g.x] += 1 + g.x + 100 * g.y + 10000 * g.z;
}
