#version 450
// Addresses in push constants, in a buffer that is bound and in one that is not.
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_buffer_reference_uvec2 : require
layout(local_size_x = 1) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint w[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Table { Words at[]; };
layout(set = 0, binding = 0) readonly buffer Bound { uint scale; uint count; Words into[]; };
layout(push_constant) uniform P { Table table; uvec2 raw; uint add; };
void main() {
	uint k = gl_WorkGroupID.x;
	Words from = table.at[k], plus = Words(raw);
	into[k % count].w[k] = from.w[0] * scale + plus.w[k] + add;
}
