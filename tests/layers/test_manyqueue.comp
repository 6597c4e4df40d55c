#version 450
// registers[c] becomes a function of registers a and b that tells their order; the
// log keeps what the step wrote.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Registers { uint registers[]; };
layout(set = 0, binding = 1) buffer Log { uint log[]; };
layout(push_constant) uniform Step { uint a, b, c, k; };

void main()
{
	uint value = registers[a] * 3 + registers[b] * 5 + k;
	registers[c] = value;
	log[k] = value;
}
