#version 450
#extension GL_EXT_nonuniform_qualifier : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, r32f) uniform image2D written;
layout(set = 0, binding = 1, r32f) uniform image2D read;
layout(set = 0, binding = 2, r32ui) uniform uimage2D counted;
layout(set = 0, binding = 3) uniform sampler2D combined;
layout(set = 0, binding = 4) uniform texture2D separate;
layout(set = 0, binding = 5) uniform sampler separateSampler;
layout(set = 0, binding = 6, r32f) uniform imageBuffer storageTexels;
layout(set = 0, binding = 7) uniform samplerBuffer uniformTexels;
layout(set = 0, binding = 8, r32f) uniform image2D sized;
layout(set = 1, binding = 0) buffer Several { float value; } several[6];
layout(set = 1, binding = 1) buffer Unbounded { float values[]; } unbounded[];
layout(set = 2, binding = 0) uniform Uniform { float value; } uniformBlock;

void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    imageStore(written, p, imageLoad(read, p) + texture(combined, vec2(p)) + texelFetch(uniformTexels, p.x));
    imageAtomicAdd(counted, p, uint(imageSize(sized).x));
    imageStore(storageTexels, p.x, texture(sampler2D(separate, separateSampler), vec2(p)));
    several[p.x].value = unbounded[p.y].values[0] + uniformBlock.value;
}
