// A slot is the result of one task: a record of what was wrong with what the
// tasks before it have read, and then elements of {step, point, graph, value}. The
// invocations of a workgroup are lanes; lane l has elements l, l+LANES, …, whose
// values are the lane's and how many elements of the lane come before.

#define LANES 16
// Elements before a slot's own, and a record's uints.
#define HEADER 16
#define RECORD 8
#define RECORDS 7

layout(local_size_x = LANES) in;

layout(constant_id = 0) const uint ELEMENTS = 16;

layout(std430, set = 0, binding = 0) buffer Slot {
    // violations is how many there were; the first ones are told: step and point of
    // the task that read, the input's point (with CARRIED that of a carrier), the
    // element, and what it was.
    uint violations;
    uint unused[RECORD - 1];
    uint records[RECORDS * RECORD];
    uvec4 elements[];
} slot;

void violation(uvec4 who, uint point, uint element, uvec4 found) {
    uint n = atomicAdd(slot.violations, 1u);
    if (n >= RECORDS) {
        return;
    }
    n *= RECORD;
    slot.records[n] = who.x;
    slot.records[n + 1] = who.y;
    slot.records[n + 2] = point;
    slot.records[n + 3] = element;
    slot.records[n + 4] = found.x;
    slot.records[n + 5] = found.y;
    slot.records[n + 6] = found.z;
    slot.records[n + 7] = found.w;
}

// beginning is the value of a lane before its inputs.
uint beginning(uvec4 who, uint lane) {
    return ((who.x * 0x9e3779b1u) ^ (who.y * 0x85ebca77u) ^ (who.z * 0xc2b2ae3du)) + lane * 0x27d4eb2fu;
}

#define ROUND value = value * factor + 1013904223u;
#define ROUNDS8 ROUND ROUND ROUND ROUND ROUND ROUND ROUND ROUND

// work steps a value on, once a round, by a factor that no compiler knows: it would
// make one round of many. Llvmpipe ends every loop when the loops of an invocation
// have made 65535 iterations, so one is of many rounds.
uint work(uvec4 who, uint value) {
    uint factor = 1664525u + 8u * who.z, rounds = who.w;
    for (; rounds >= 64u; rounds -= 64u) {
        ROUNDS8 ROUNDS8 ROUNDS8 ROUNDS8 ROUNDS8 ROUNDS8 ROUNDS8 ROUNDS8
    }
    for (; rounds > 0u; rounds--) {
        ROUND
    }
    return value;
}

void leave(uvec4 who, uint lane, uint value) {
    for (uint e = lane; e < ELEMENTS; e += LANES) {
        slot.elements[e] = uvec4(who.xyz, value + e / LANES);
    }
}
