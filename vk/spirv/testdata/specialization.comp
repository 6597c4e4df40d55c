#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x_id = 10, local_size_y = 2, local_size_z_id = 12) in;
layout(local_size_x = 16) in;
layout(constant_id = 7) const float scale = 1.5;
layout(constant_id = 3) const int offset = -2;
layout(constant_id = 4) const bool flip = true;
layout(constant_id = 5) const uint length = 6;
layout(constant_id = 6) const double exact = 0.25;
layout(constant_id = 8) const int64_t wide = -3l;
layout(constant_id = 9) const uint16_t small = 9us;
layout(binding = 0) buffer Out { float fixedPart[length + 1]; float values[]; };
shared float tile[gl_WorkGroupSize.x * 2];

void main() {
    uint i = gl_LocalInvocationIndex;
    tile[i] = scale + float(offset) + float(exact) + float(wide) + float(small);
    barrier();
    values[i] = flip ? tile[0] : fixedPart[length];
}
