// What the programs of test_shuffle_*.c run: a step of a chain, or a mark in a log.
#version 450
layout(local_size_x = 16) in;
layout(binding = 0) readonly buffer Source { uint source[]; };
layout(binding = 1) buffer Destination { uint destination[]; };
layout(push_constant) uniform Push { uint from, to, factor, add, mark; };

void main()
{
	uint i = gl_LocalInvocationID.x;
	if (mark == 0)
		destination[to + i] = source[from + i] * factor + add + gl_WorkGroupID.x;
	else if (i == 0)
		destination[to + 1 + atomicAdd(destination[to], 1)] = add;
}
