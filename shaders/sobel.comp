#version 450

// Gradient magnitude of the Rec. 709 luma by Sobel's operator, on a window of
// rows: row y of the destination is row first + y of the source. The source
// holds one row more on each side where the image has one, so clamping to the
// source repeats the image's border.

layout(local_size_x = 32, local_size_y = 4) in;

layout(std430, set = 0, binding = 0) restrict readonly buffer Source { vec4 source[]; };
layout(std430, set = 0, binding = 1) restrict writeonly buffer Destination { float destination[]; };

layout(push_constant, std430) uniform Arguments {
    uint width;
    uint rows;
    uint first;
    uint source_rows;
    uint vkomp_offset_0;
    uint vkomp_offset_1;
};

float luma(uint x, uint y) {
    vec4 p = source[vkomp_offset_0 + y * width + x];
    precise float v = (0.2126 * p.r + 0.7152 * p.g) + 0.0722 * p.b;
    return v;
}

void main() {
    uint x = gl_GlobalInvocationID.x;
    uint y = gl_GlobalInvocationID.y;
    if (x >= width || y >= rows) {
        return;
    }
    uint sy = first + y;
    uint left = x > 0 ? x - 1 : 0;
    uint right = min(x + 1, width - 1);
    uint above = sy > 0 ? sy - 1 : 0;
    uint below = min(sy + 1, source_rows - 1);

    float tl = luma(left, above);
    float t = luma(x, above);
    float tr = luma(right, above);
    float l = luma(left, sy);
    float r = luma(right, sy);
    float bl = luma(left, below);
    float b = luma(x, below);
    float br = luma(right, below);

    precise float gx = ((tr + 2.0 * r) + br) - ((tl + 2.0 * l) + bl);
    precise float gy = ((bl + 2.0 * b) + br) - ((tl + 2.0 * t) + tr);
    precise float squared = gx * gx + gy * gy;
    destination[vkomp_offset_1 + y * width + x] = sqrt(squared);
}
