#version 450
// Adds a weighted sum of all of x and a member of a structure to the first component of each element of y, and an element
// behind that structure and the lengths of x and y to the second one.
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) buffer Y { uvec2 y[]; };
layout(set = 0, binding = 2) readonly buffer Z { uvec4 head; uint z[]; };
void main() {
	uint i = gl_LocalInvocationID.x;
	uint all = 0;
	for (uint k = 0; k < x.length(); k++)
		all += x[k] * (k + 1);
	if (i < y.length())
		y[i] += uvec2(all + head.y, z[2 * i % z.length()] + x.length() * 100 + y.length());
}
