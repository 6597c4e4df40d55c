#version 450
layout(binding = 0) uniform Transform { mat4 transform; };

void main() { gl_Position = transform * vec4(gl_VertexIndex, 0, 0, 1); }
