#version 450
// Push constants that are loaded in loops, in a function too, and by indices that are no constants.
layout(local_size_x = 32) in;
layout(constant_id = 0) const uint last = 2;

struct Step { uint count; vec2 by; };

layout(push_constant) uniform Push {
    uint rounds;
    vec3 start;
    Step step;
    mat2 turn;
    float weights[3];
} push;

layout(set = 0, binding = 0) buffer Out { float values[]; };

float walk(float at) {
    for (uint i = 0; i < push.step.count; i++) at = at * push.step.by.y + push.step.by.x;
    return at;
}

void main() {
    float at = push.start.z;
    for (uint i = 0; i < push.rounds; i++) {
        at = walk(at) + push.weights[i % 3] + push.weights[1] + push.weights[last];
        at += (push.turn * vec2(at, 1)).x;
    }
    values[gl_GlobalInvocationID.x] = at;
}
