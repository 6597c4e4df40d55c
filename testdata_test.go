package vkomp_test

import _ "embed"

//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/double.spv testdata/double.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/groups.spv testdata/groups.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/invert.spv testdata/invert.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/special.spv testdata/special.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/reach.spv testdata/reach.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/through.spv testdata/through.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/beyond.spv testdata/beyond.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/header.spv testdata/header.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/sized.spv testdata/sized.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/triples.spv testdata/triples.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/within.spv testdata/within.comp

var (
	//go:embed testdata/double.spv
	doubleSPIRV []byte
	//go:embed testdata/groups.spv
	groupsSPIRV []byte
	//go:embed testdata/invert.spv
	invertSPIRV []byte
	//go:embed testdata/special.spv
	specialSPIRV []byte
	//go:embed testdata/reach.spv
	reachSPIRV []byte
	//go:embed testdata/through.spv
	throughSPIRV []byte
	//go:embed testdata/beyond.spv
	beyondSPIRV []byte
	//go:embed testdata/header.spv
	headerSPIRV []byte
	//go:embed testdata/sized.spv
	sizedSPIRV []byte
	//go:embed testdata/triples.spv
	triplesSPIRV []byte
	//go:embed testdata/within.spv
	withinSPIRV []byte
)
