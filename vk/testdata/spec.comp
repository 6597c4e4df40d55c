#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint value = 7;
layout(constant_id = 2) const bool flag = false;
layout(constant_id = 3) const float real = 0.5;
layout(set = 0, binding = 0) buffer B { uint b[]; };
void main() {
	if (gl_LocalInvocationIndex == gl_WorkGroupSize.x - 1) {
		b[0] = gl_WorkGroupSize.x;
		b[1] = value;
		b[2] = flag ? 1 : 0;
		b[3] = floatBitsToUint(real);
	}
}
