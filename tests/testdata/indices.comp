#version 450
// Every invocation writes down its own indices. Specialization constants 0 and
// 1 are the size of a workgroup.
layout(local_size_x_id = 0, local_size_y_id = 1) in;

layout(set = 0, binding = 0) writeonly buffer Seen { uvec4 seen[]; };

layout(push_constant) uniform Push { uint width, height; };

uint inside() { return gl_LocalInvocationIndex + gl_WorkGroupID.z + gl_GlobalInvocationID.z; }

void main() {
	uvec2 at = gl_GlobalInvocationID.xy;
	if (at.x >= width || at.y >= height)
		return;
	seen[at.x + width * at.y] = uvec4(3 * at.x + at.y, gl_WorkGroupID.x, gl_WorkGroupID.y, inside());
}
