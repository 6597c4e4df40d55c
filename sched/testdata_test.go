package sched

//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/add.spv testdata/add.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/addloop.spv testdata/addloop.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/mix.spv testdata/mix.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/read.spv testdata/read.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/set.spv testdata/set.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/stencil.spv testdata/stencil.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/wide.spv testdata/wide.comp
