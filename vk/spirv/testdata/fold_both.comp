#version 450
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z = 1) in;
layout(constant_id = 2) const uint skew = 0;
layout(set = 0, binding = 0) buffer Out { uvec4 indices[]; };
layout(push_constant) uniform Push { uint width, component; };

uint group() { return gl_WorkGroupID.x + 65536 * gl_WorkGroupID.y + gl_WorkGroupID.z; }

uint position() { return gl_GlobalInvocationID[component]; }

void main() {
	uint before = skew;
	uvec3 at = gl_GlobalInvocationID;
	if (at.x < width) {
		uint i = at.x + width * at.y;
		indices[i] = uvec4(position() + before, group(), gl_LocalInvocationIndex, at.z + gl_WorkGroupID.z);
	}
}
