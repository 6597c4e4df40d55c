#version 450
layout(local_size_x = 8) in;
layout(set = 0, binding = 0) writeonly buffer Out { uint values[]; };
shared uint total;

void main() {
	if (gl_LocalInvocationID.x == 0)
		total = 0;
	barrier();
	atomicAdd(total, gl_WorkGroupID.x);
	barrier();
	if (gl_LocalInvocationID.x == 0)
		values[gl_WorkGroupID.x] = total;
}
