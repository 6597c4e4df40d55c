package vgpu

//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/halve.spv testdata/halve.comp
