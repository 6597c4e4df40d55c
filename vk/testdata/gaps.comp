#version 450
// Binding numbers with gaps between them.
layout(local_size_x = 1) in;
layout(set = 0, binding = 1) buffer A { uint a[]; };
layout(set = 0, binding = 4) buffer B { uint b[]; };
layout(set = 0, binding = 31) buffer C { uint c[]; };
// No function uses this, which the compiler leaves in the module.
layout(push_constant) uniform P { uint unused; };
void main() {
	a[0] = 11;
	b[0] = 44;
	c[0] = 3131;
}
