#version 450
// Writes down two addresses that it got as values, then gives its copies others.
layout(local_size_x = 1) in;
layout(std430, set = 0, binding = 0) writeonly buffer Seen { uvec2 seen[]; };
layout(push_constant) uniform Arguments { uvec2 a, b; };
void main() {
    uvec2 mine = a;
    seen[0] = mine;
    seen[1] = b;
    mine = b;
}
