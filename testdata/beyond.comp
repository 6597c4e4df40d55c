#version 450
// Writes count words from word at on, wherever that is.
layout(local_size_x = 64) in;
layout(push_constant) uniform A { uint at; uint count; uint value; };
layout(set = 0, binding = 0) buffer Y { uint y[]; };

void main()
{
	uint i = gl_GlobalInvocationID.x;
	if (i < count)
		y[at + i] = value;
}
