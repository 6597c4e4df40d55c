#version 450
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 32) in;
layout(buffer_reference) buffer Node;
layout(buffer_reference, std430) buffer Node { Node next; float value; };
layout(push_constant) uniform Push { Node head; uint n; Node table[2]; } push;

void main() {
    Node node = push.head;
    for (uint i = 0; i < push.n; i++) node = node.next;
    node.value = push.table[1].value;
}
