#version 450

// Blurs along rows: RGBA8 in, float channels of 0 to 255 out. Columns beyond
// the image repeat its border.

layout(local_size_x = 32, local_size_y = 4) in;

layout(std430, set = 0, binding = 0) restrict readonly buffer Weights { float weights[]; };
layout(std430, set = 0, binding = 1) restrict readonly buffer Source { uint source[]; };
layout(std430, set = 0, binding = 2) restrict writeonly buffer Destination { vec4 destination[]; };

layout(push_constant, std430) uniform Arguments {
    uint width;
    uint rows;
    uint radius;
    uint vkomp_offset_0;
    uint vkomp_offset_1;
    uint vkomp_offset_2;
};

vec4 channels(uint p) {
    return vec4(p & 0xffu, (p >> 8) & 0xffu, (p >> 16) & 0xffu, p >> 24);
}

void main() {
    uint x = gl_GlobalInvocationID.x;
    uint y = gl_GlobalInvocationID.y;
    if (x >= width || y >= rows) {
        return;
    }
    uint row = vkomp_offset_1 + y * width;
    precise vec4 sum = vec4(0.0);
    for (int d = -int(radius); d <= int(radius); d++) {
        uint sx = uint(clamp(int(x) + d, 0, int(width) - 1));
        sum += weights[vkomp_offset_0 + uint(abs(d))] * channels(source[row + sx]);
    }
    destination[vkomp_offset_2 + y * width + x] = sum;
}
