#version 450

// Blurs along columns, on a window of rows: row y of the destination is row
// first + y of the source. The source holds radius rows more on each side where
// the image has them, so clamping to the source repeats the image's border.

layout(local_size_x = 32, local_size_y = 4) in;

layout(std430, set = 0, binding = 0) restrict readonly buffer Weights { float weights[]; };
layout(std430, set = 0, binding = 1) restrict readonly buffer Source { vec4 source[]; };
layout(std430, set = 0, binding = 2) restrict writeonly buffer Destination { vec4 destination[]; };

layout(push_constant, std430) uniform Arguments {
    uint width;
    uint rows;
    uint first;
    uint source_rows;
    uint radius;
    uint vkomp_offset_0;
    uint vkomp_offset_1;
    uint vkomp_offset_2;
};

void main() {
    uint x = gl_GlobalInvocationID.x;
    uint y = gl_GlobalInvocationID.y;
    if (x >= width || y >= rows) {
        return;
    }
    precise vec4 sum = vec4(0.0);
    for (int d = -int(radius); d <= int(radius); d++) {
        uint sy = uint(clamp(int(first + y) + d, 0, int(source_rows) - 1));
        sum += weights[vkomp_offset_0 + uint(abs(d))] * source[vkomp_offset_1 + sy * width + x];
    }
    destination[vkomp_offset_2 + y * width + x] = sum;
}
