package vk

//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/add.spv testdata/add.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/chase.spv testdata/chase.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/gaps.spv testdata/gaps.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/group.spv testdata/group.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/lengths.spv testdata/lengths.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/none.spv testdata/none.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/parts.spv testdata/parts.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/place.spv testdata/place.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/spec.spv testdata/spec.comp
//go:generate spirv-as --target-env spv1.5 -o testdata/steps.spv testdata/steps.spvasm

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// shader returns the words of a shader module in testdata.
func shader(t testing.TB, name string) []uint32 {
	t.Helper()
	code, err := os.ReadFile(filepath.Join("testdata", name+".spv"))
	if err != nil {
		t.Fatal(err)
	}
	return moduleWords(code)
}

// moduleWords decodes the words of a little-endian module.
func moduleWords(code []byte) []uint32 {
	words := make([]uint32, len(code)/4)
	for k := range words {
		words[k] = binary.LittleEndian.Uint32(code[4*k:])
	}
	return words
}
