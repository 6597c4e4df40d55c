#version 450

// Push constants with a vector that needs 32 bytes of alignment.
layout(local_size_x = 8) in;

layout(binding = 0) buffer Values { double values[]; };

layout(push_constant) uniform Factors { dvec4 factors; };

void main()
{
	const uint k = gl_GlobalInvocationID.x;
	values[k] *= factors[k % 4];
}
