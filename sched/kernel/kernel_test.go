package kernel

import (
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/vk"
	"github.com/vkomp/vkomp/vk/spirv"
)

// module reads a module of the testdata of this module, wherever it is.
func module(t *testing.T, file string) []byte {
	t.Helper()
	for _, folder := range []string{"../../vk/spirv/testdata/", "../../testdata/", "../testdata/", "../../shaders/"} {
		if code, err := os.ReadFile(folder + file); err == nil {
			return code
		}
	}
	t.Fatalf("no module %s", file)
	return nil
}

func newKernel(t *testing.T, file string, spec map[uint32]uint32) *Kernel {
	t.Helper()
	k, err := New(file, module(t, file), "main", spec)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// able returns the properties of a device that can do everything.
func able() *vk.Properties {
	p := &vk.Properties{Name: "able", APIVersion: 1<<22 | 3<<12}
	f := reflect.ValueOf(&p.Features).Elem()
	for i := range f.NumField() {
		if f.Field(i).Kind() == reflect.Bool {
			f.Field(i).SetBool(true)
		}
	}
	l := &p.Limits
	l.MaxComputeWorkGroupSize = [3]uint32{1024, 1024, 64}
	p.Features.SubgroupOperations = math.MaxUint32
	l.MaxPerStageDescriptorStorageBuffers = 4
	l.MaxComputeWorkGroupInvocations, l.MaxPushConstantsSize, l.MaxComputeSharedMemorySize = 1024, 256, 32<<10
	return p
}

func wantError(t *testing.T, what string, err, want error, text string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want %v with %q", what, err, want, text)
	}
}

// A device has to have what a kernel needs, whether SPIR-V has a capability for it or Vulkan a feature or a limit alone.
func TestSupportedNamesWhatTheDeviceLacks(t *testing.T) {
	shared := map[uint32]uint32{10: 128} // 1 KiB of shared variables
	for _, c := range []struct {
		file  string
		spec  map[uint32]uint32
		lacks func(*vk.Properties)
		text  string
	}{
		{"localsizeid.spv", nil, func(p *vk.Properties) { p.Features.Maintenance4 = false }, "maintenance4"},
		{"localsizeid.spv", nil, func(p *vk.Properties) { p.Features.Maintenance4, p.Adopted = false, true }, "was adopted without maintenance4"},
		{"localsizeid.spv", nil, func(p *vk.Properties) { p.APIVersion = 1<<22 | 2<<12 | 999 }, "SPIR-V 1.6, device \"able\" has Vulkan 1.2.999 and takes 1.5"},
		{"zeroed.spv", nil, func(p *vk.Properties) { p.Features.ShaderZeroInitializeWorkgroupMemory = false }, "shaderZeroInitializeWorkgroupMemory"},
		{"bufferatomics.spv", nil, func(p *vk.Properties) { p.Features.ShaderBufferInt64Atomics = false }, "shaderBufferInt64Atomics"},
		{"sharedatomics.spv", nil, func(p *vk.Properties) { p.Features.ShaderSharedInt64Atomics = false }, "shaderSharedInt64Atomics"},
		{"subgrouptypes.spv", nil, func(p *vk.Properties) { p.Features.ShaderSubgroupExtendedTypes = false }, "shaderSubgroupExtendedTypes"},
		{"broadcast.spv", nil, func(p *vk.Properties) { p.Features.SubgroupBroadcastDynamicID = false }, "subgroupBroadcastDynamicId"},
		{"read.spv", nil, func(p *vk.Properties) { p.Limits.MaxPerStageDescriptorStorageBuffers = 1 }, "2 storage buffers"},
		{"specialization.spv", shared, func(p *vk.Properties) { p.Limits.MaxComputeSharedMemorySize = 1023 }, "1024 bytes of shared variables"},
		{"specialization.spv", shared, func(p *vk.Properties) { p.Limits.MaxComputeWorkGroupInvocations = 255 }, "256 invocations"},
		{"specialization.spv", nil, func(p *vk.Properties) { p.Features.ShaderFloat64 = false }, "Float64"},
		{"sized.spv", map[uint32]uint32{0: 40}, func(p *vk.Properties) { p.Limits.MaxPushConstantsSize = 159 }, "160 bytes of push constants"},
	} {
		k, p := newKernel(t, c.file, c.spec), able()
		if err := k.Supported(p); err != nil {
			t.Errorf("%s: %v", c.file, err)
		}
		c.lacks(p)
		wantError(t, c.file, k.Supported(p), vk.ErrUnsupported, c.text)
	}
	if err := newKernel(t, "specialization.spv", shared).Supported(&vk.Properties{Features: able().Features, Limits: able().Limits}); err != nil {
		t.Errorf("SPIR-V 1.5: %v", err)
	}
}

func TestWorkgroupHasInvocations(t *testing.T) {
	for d, spec := range []map[uint32]uint32{{10: 0}, nil, {12: 0}} {
		_, err := New("k", module(t, "specialization.spv"), "main", spec)
		if spec == nil {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		wantError(t, "dimension "+string("xyz"[d]), err, ErrInvalidLaunch, "make a workgroup of ")
	}
}

// Constants that no module can have are an invalid launch, and a module that is none with any constants is not.
func TestConstantsThatFitNoModule(t *testing.T) {
	for n, text := range map[uint32]string{0: "is 0 or undefined", 1 << 31: "push constants take 8589934592 bytes"} {
		_, err := New("k", module(t, "sized.spv"), "main", map[uint32]uint32{0: n})
		wantError(t, "sized", err, ErrInvalidLaunch, text)
	}
	if _, err := New("k", module(t, "sized.spv")[:40], "main", map[uint32]uint32{0: 1}); err == nil || errors.Is(err, ErrInvalidLaunch) {
		t.Errorf("part of a module: %v", err)
	}
}

// A binding that the kernel does not access can have an argument. It needs one only if it is before one that is.
func TestArgumentsOfBindingsThatAreNotAccessed(t *testing.T) {
	fill, err := New("fill", module(t, "entries.spv"), "fill", nil) // accesses 0, and count of the same module 1
	if err != nil {
		t.Fatal(err)
	}
	read := newKernel(t, "read.spv", nil) // accesses 0 and 2
	for _, c := range []struct {
		k      *Kernel
		fits   []bool // by the number of arguments
		values [][]byte
	}{
		{fill, []bool{false, true, true, false}, nil},
		{read, []bool{false, false, false, true, false}, [][]byte{make([]byte, 4)}},
	} {
		for n, fits := range c.fits {
			if err := c.k.Fits(nil, make([]uint64, n), c.values); fits != (err == nil) || err != nil && !errors.Is(err, ErrInvalidLaunch) {
				t.Errorf("%s with %d arguments: %v", c.k.Name(), n, err)
			}
		}
	}
	if err := read.Bindable([]uint64{4, 0, 4}); err != nil {
		t.Error(err)
	}
	wantError(t, "an argument without elements", read.Bindable([]uint64{4, 4, 0}), ErrInvalidLaunch, "binding 2 of kernel \"read.spv\" has no elements")
}

// A range that cannot be split is an error of the launch, and not of the module.
func TestRangeThatCannotBeSplitIsAnErrorOfTheLaunch(t *testing.T) {
	k, p := newKernel(t, "numworkgroups.spv", nil), able()
	p.Limits.MaxComputeWorkGroupCount = [3]uint32{1024, 1024, 1024}
	if _, err := k.PipelineOptions(0, p); err != nil {
		t.Error(err)
	}
	_, err := k.PipelineOptions(1, p)
	wantError(t, "split", err, ErrInvalidLaunch, "NumWorkgroups")
	var module *spirv.Error
	if errors.As(err, &module) {
		t.Errorf("%v is an error of the module", err)
	}
}

// A structure is passed with or without the padding at its end, of which the next member may take the place.
func TestValueMayHaveThePaddingOfAStructure(t *testing.T) {
	k := &Kernel{name: "structure", pushSize: 40, values: []spirv.Member{
		{Name: "inner", Size: 17, Align: 16, ScalarAlign: 4},
		{Name: "next", Offset: 20, Size: 12, Kind: spirv.ScalarFloat, Width: 4, Components: 3},
	}}
	next := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	for size, fits := range map[int]bool{16: false, 17: true, 18: false, 20: true, 24: false, 32: true, 36: false, 48: false} {
		inner := make([]byte, size)
		for i := range inner {
			inner[i] = 99
		}
		err := k.Fits(nil, nil, [][]byte{inner, next})
		if !fits {
			wantError(t, fmt.Sprint(size, " bytes"), err, ErrInvalidLaunch, "inner")
			continue
		}
		push := k.Push(nil, [][]byte{inner, next})
		if err != nil || push[16] != 99 || push[17] != 0 || !slices.Equal(push[20:32], next) {
			t.Errorf("%d bytes: %v, %v", size, push, err)
		}
	}
	wantError(t, "no values", k.Fits(nil, nil, nil), ErrInvalidLaunch, "takes 2 values in its push constants [inner (structure, 17 bytes) next (float, 12 bytes)]")
	wantError(t, "a vector", k.Fits(nil, nil, [][]byte{make([]byte, 17), make([]byte, 16)}), ErrInvalidLaunch, "next")
}

// An argument is bound at an aligned address before it only if the elements alone need to be found.
func TestBindMovesElementsAlone(t *testing.T) {
	p := able()
	p.Limits.MinStorageBufferOffsetAlignment, p.Limits.MaxStorageBufferRange = 16, math.MaxUint32
	for _, c := range []struct {
		file   string
		offset uint64
		text   string // of the error
	}{
		{"header.spv", 32, ""},
		{"header.spv", 36, "4 bytes of members before them"},
		{"heat.spv", 36, ""},
		{"heat.spv", 34, "whole number of elements of 4 bytes"},
		{"double.spv", 32, ""},
		{"double.spv", 36, "declare the push-constant member uint vkomp_offset_0"},
	} {
		k := newKernel(t, c.file, nil)
		push := make([]byte, k.PushSize())
		r, err := k.Bind(0, &Argument{Buffer: 1, Offset: c.offset, Size: 64}, p, push)
		if _, ok := k.buffers[0].Skip(c.offset, 0, 16); ok != (c.text == "") {
			t.Errorf("%s takes %d: %v", c.file, c.offset, ok)
		}
		if c.text != "" {
			wantError(t, c.file, err, ErrInvalidLaunch, c.text)
		} else if err != nil || r.Offset != c.offset&^15 || r.Offset+r.Size != c.offset+64 {
			t.Errorf("%s at %d: %+v, %v", c.file, c.offset, r, err)
		}
	}
}
