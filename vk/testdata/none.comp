#version 450
// No bindings: writes through an address alone.
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 1) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer B { uint b[]; };
layout(push_constant) uniform P { B at; uint value; };
void main() {
	at.b[gl_WorkGroupID.x] = value + gl_WorkGroupID.x;
}
