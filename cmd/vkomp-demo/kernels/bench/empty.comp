#version 450

// Nothing: the cost of the launch alone.

layout(local_size_x = 1) in;

void main() {
}
