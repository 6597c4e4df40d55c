#version 450

// Sums x: workgroup g leaves the sum of x[g·SPAN, (g+1)·SPAN) in partials[g].
// Each lane sums every LANES-th element, then the lanes are folded in halves;
// the Host variant adds in the same order.

#define LANES 128
#define SPAN 2048

layout(local_size_x = LANES) in;

layout(std430, set = 0, binding = 0) restrict readonly buffer X { float x[]; };
layout(std430, set = 0, binding = 1) restrict writeonly buffer Partials { float partials[]; };

layout(push_constant, std430) uniform Arguments {
    uint n;
    uint vkomp_offset_0;
    uint vkomp_offset_1;
};

shared float lanes[LANES];

void main() {
    uint lane = gl_LocalInvocationID.x;
    uint first = gl_WorkGroupID.x * SPAN;

    precise float sum = 0.0;
    for (uint i = first + lane; i < first + SPAN && i < n; i += LANES) {
        sum += x[vkomp_offset_0 + i];
    }
    lanes[lane] = sum;
    barrier();

    for (uint stride = LANES / 2; stride > 0; stride /= 2) {
        if (lane < stride) {
            precise float folded = lanes[lane] + lanes[lane + stride];
            lanes[lane] = folded;
        }
        barrier();
    }

    // Every lane reaches the barriers above; only here may they part. A group
    // beyond the last element has no partial to write.
    if (lane == 0 && first < n) {
        partials[vkomp_offset_1 + gl_WorkGroupID.x] = lanes[0];
    }
}
