#version 450
#extension GL_GOOGLE_include_directive : require

// A carrier: it asserts what a task's slot holds and what the host has sent, and
// answers both to the host in a slot of its own.

#include "slot.glsl"

layout(std430, set = 0, binding = 1) readonly buffer Source { uvec4 elements[]; } source;
layout(std430, set = 0, binding = 2) readonly buffer Sent { uvec4 elements[]; } sent;

layout(push_constant, std430) uniform Arguments {
    // who is step, point and graph, and whether its own slot was sent too.
    uvec4 who;
    // task is step, point and graph of the task whose slot it is.
    uvec4 task;
};

// The point of an input, in a violation, that the host has sent.
#define CARRIED 0x10000u

#define CHECK(buffer, at, from, told) \
    for (uint e = lane; e < ELEMENTS; e += LANES) { \
        uvec4 found = buffer[HEADER + e]; \
        if (found != uvec4((from).xyz, (at) + e / LANES)) { \
            violation(who, told, e, found); \
        } \
    }

void main() {
    uint lane = gl_LocalInvocationID.x;
    // What is mapped from the device begins with no contents.
    if (lane == 0) {
        slot.violations = 0;
    }
    memoryBarrierBuffer();
    barrier();
    uint value = source.elements[HEADER + lane].w;
    CHECK(source.elements, value, task, task.y)
    uint hello = beginning(who, lane);
    CHECK(sent.elements, hello, who, CARRIED | who.y)
    if (who.w != 0) {
        for (uint e = lane; e < ELEMENTS; e += LANES) {
            uvec4 found = slot.elements[e];
            if (found != uvec4(who.xyz, hello + e / LANES)) {
                violation(who, CARRIED | who.y, e, found);
            }
        }
    }
    leave(who, lane, hello + value);
}
