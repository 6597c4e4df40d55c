#version 450
#extension GL_GOOGLE_include_directive : require

// A task of a dependence graph: it asserts that every element of its inputs is what
// the task before wrote, and writes who it is throughout its slot. INPUTS is the
// number of its bindings for inputs, each of which holds the slots of consecutive
// points.

#include "slot.glsl"

#define INPUT(k) layout(std430, set = 0, binding = k + 1) readonly buffer Input##k { uvec4 elements[]; } input##k;
#if INPUTS > 0
INPUT(0)
#endif
#if INPUTS > 1
INPUT(1)
#endif
#if INPUTS > 2
INPUT(2)
#endif
#if INPUTS > 3
INPUT(3)
#endif
#if INPUTS > 4
INPUT(4)
#endif
#if INPUTS > 5
INPUT(5)
#endif
#if INPUTS > 6
INPUT(6)
#endif
#if INPUTS > 7
INPUT(7)
#endif

layout(push_constant, std430) uniform Arguments {
    // who is step, point and graph, and the rounds of work.
    uvec4 who;
    // The first point of each binding, and how many there are in the upper half.
#if INPUTS > 0
    uvec4 spans0;
#endif
#if INPUTS > 4
    uvec4 spans4;
#endif
};

// CHECK reads a binding's slots and adds their values to sum.
#define CHECK(k, at) \
    for (uint p = 0; p < (at) >> 16; p++) { \
        uint base = p * (HEADER + ELEMENTS) + HEADER; \
        uint value = input##k.elements[base + lane].w; \
        uint point = ((at) & 0xffffu) + p; \
        sum += value * (2u * point + 1u); \
        for (uint e = lane; e < ELEMENTS; e += LANES) { \
            uvec4 found = input##k.elements[base + e]; \
            if (found != uvec4(who.x - 1u, point, who.z, value + e / LANES)) { \
                violation(who, point, e, found); \
            } \
        } \
    }

void main() {
    uint lane = gl_LocalInvocationID.x;
    uint sum = 0;
#if INPUTS > 0
    CHECK(0, spans0.x)
#endif
#if INPUTS > 1
    CHECK(1, spans0.y)
#endif
#if INPUTS > 2
    CHECK(2, spans0.z)
#endif
#if INPUTS > 3
    CHECK(3, spans0.w)
#endif
#if INPUTS > 4
    CHECK(4, spans4.x)
#endif
#if INPUTS > 5
    CHECK(5, spans4.y)
#endif
#if INPUTS > 6
    CHECK(6, spans4.z)
#endif
#if INPUTS > 7
    CHECK(7, spans4.w)
#endif
    leave(who, lane, work(who, beginning(who, lane) + sum));
}
