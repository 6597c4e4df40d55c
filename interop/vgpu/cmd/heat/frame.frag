#version 450

// A pixel for each cell of the plate, from black over red and yellow to white. All is done
// in whole numbers, so that a frame is the same on every device.

layout(std430, set = 0, binding = 0) restrict readonly buffer Plate { float plate[]; };

layout(push_constant, std430) uniform Arguments { uint width; };

layout(location = 0) out vec4 color;

void main() {
    uvec2 cell = uvec2(gl_FragCoord.xy);
    precise float heat = clamp(plate[cell.y * width + cell.x], 0.0, 1.0) * 255.0;
    int thirds = 3 * int(heat);
    ivec3 channels = clamp(ivec3(thirds) - ivec3(0, 255, 510), 0, 255);
    color = vec4(vec3(channels) / 255.0, 1.0);
}
