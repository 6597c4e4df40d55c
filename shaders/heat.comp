#version 450

// One explicit step of the heat equation: the five-point stencil on a window of
// rows, the grid's outermost cells held fixed. Row y of the destination is row
// first + y of the source. The source holds one row more on each side where the
// grid has one, so its own first and last row are the grid's.

layout(local_size_x = 32, local_size_y = 4) in;

layout(std430, set = 0, binding = 0) restrict readonly buffer Source { float source[]; };
layout(std430, set = 0, binding = 1) restrict writeonly buffer Destination { float destination[]; };

layout(push_constant, std430) uniform Arguments {
    uint width;
    uint rows;
    uint first;
    uint source_rows;
    float alpha;
    uint vkomp_offset_0;
    uint vkomp_offset_1;
};

void main() {
    uint x = gl_GlobalInvocationID.x;
    uint y = gl_GlobalInvocationID.y;
    if (x >= width || y >= rows) {
        return;
    }
    uint sy = first + y;
    uint at = vkomp_offset_0 + sy * width + x;
    float here = source[at];
    float next = here;
    if (x > 0 && x + 1 < width && sy > 0 && sy + 1 < source_rows) {
        precise float around = (source[at - width] + source[at + width]) + (source[at - 1] + source[at + 1]);
        precise float stepped = here + alpha * (around - 4.0 * here);
        next = stepped;
    }
    destination[vkomp_offset_1 + y * width + x] = next;
}
