// Something to dispatch for test_record_*.c.
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) readonly buffer Source { uint source[]; };
layout(binding = 1) buffer Destination { uint destination[]; };
layout(push_constant) uniform Push { uint add, mark; };

void main()
{
	uint i = gl_GlobalInvocationID.x;
	destination[i] = source[i] + add * mark;
}
