#version 450

// Half of each value.

layout(local_size_x = 64) in;

layout(std430, set = 0, binding = 0) buffer Values { float values[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < values.length()) {
        values[i] *= 0.5;
    }
}
