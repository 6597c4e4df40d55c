package spirv

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBlockSizes(t *testing.T) {
	type size struct {
		MinSize uint64
		Stride  uint32
	}
	want := map[string]size{
		"nested":      {96, 80}, // uint, pad to 16, Outer of 80, Outer[]
		"std140Block": {56, 0},  // 3 floats 16 apart, vec2
		"matrices":    {192, 0}, // mat3x2: 3 columns of 8; row major: 2 rows of 16, at 32; 2 mat4 at 64
		"small":       {24, 0},
		"fixedSize":   {64, 0},
	}
	got := make(map[string]size)
	for _, b := range entryPoint(t, "layout.spv", "main").Bindings {
		got[b.Name] = size{b.MinSize, b.Stride}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Sizes are those for the values of specialization constants, whatever the defaults are.
func TestSizesFollowSpecialization(t *testing.T) {
	code := testModules(t)["specialization.spv"]
	for _, c := range []struct {
		length, workgroup uint32
		block, shared     uint64
	}{{6, 16, 28, 128}, {2, 16, 12, 128}, {0, 1, 4, 8}, {9, 128, 40, 1024}} {
		m, err := ParseSpecialized(code, map[uint32]uint32{5: c.length, 10: c.workgroup, 77: 1})
		if err != nil {
			t.Fatal(err)
		}
		e := m.EntryPoints[0]
		if b := e.Bindings[0]; b.MinSize != c.block || b.Stride != 4 || e.SharedBytes != c.shared || e.LocalSize[0] != 16 {
			t.Errorf("%+v: %d bytes, stride %d, %d bytes of shared variables, workgroup %d", c, b.MinSize, b.Stride, e.SharedBytes, e.LocalSize)
		}
	}
	_, err := ParseSpecialized(code, map[uint32]uint32{5: math.MaxUint32})
	wantError(t, err, "is 0 or undefined")
}

// Types need no layout in order to take memory of a workgroup. Only variables that an entry point uses take some.
func TestSharedVariablesTakeMemory(t *testing.T) {
	const first, pointer, variable = 30, 50, 70
	for name, c := range map[string]struct {
		types [][]uint32 // the last one, first+len(types)-1, is that of the variable
		want  uint64
	}{
		"uint":       {[][]uint32{op(opTypeStruct, first, idUint)}, 4},
		"booleans":   {[][]uint32{op(opTypeVector, first, idBool, 3)}, 12},
		"array":      {[][]uint32{op(opTypeVector, first, idUint, 3), op(opTypeArray, first+1, first, idTwo)}, 24},
		"matrix":     {[][]uint32{op(opTypeFloat, first, 64), op(opTypeVector, first+1, first, 3), op(opTypeMatrix, first+2, first+1, 2)}, 48},
		"structure":  {[][]uint32{op(opTypeArray, first, idUint, idTwo), op(opTypeStruct, first+1, first, idBool, first)}, 20},
		"very large": {append([][]uint32{op(opConstant, idUint, 29, math.MaxUint32), op(opTypeArray, first, idUint, 29), op(opTypeArray, first+1, first, 29)}, op(opTypeArray, first+2, first+1, 29)), math.MaxUint64},
	} {
		held := uint32(first)
		for _, in := range c.types {
			if in[0]&0xffff != opConstant {
				held = in[1]
			}
		}
		s := shader{globals: append(c.types,
			op(opTypePointer, pointer, uint32(classWorkgroup), held),
			op(opVariable, pointer, variable, uint32(classWorkgroup)),
			op(opVariable, pointer, variable+1, uint32(classWorkgroup)))}
		for used, want := range []uint64{0, c.want, saturatingAdd(c.want, c.want)} {
			m, err := Parse(s.encode())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := m.EntryPoints[0].SharedBytes; got != want || m.InitializesShared {
				t.Errorf("%s, %d variables: %d bytes, want %d; initialized %v", name, used, got, want, m.InitializesShared)
			}
			s.body = append(s.body, op(opLoad, held, variable+10+uint32(used), variable+uint32(used)))
		}
	}
}

func TestPushConstantMembers(t *testing.T) {
	want := &Block{Name: "Push", Size: 106, Members: []Member{
		{Name: "i", Offset: 0, Size: 4, Kind: ScalarInt, Width: 4, Components: 1},
		{Name: "uv", Offset: 8, Size: 8, Kind: ScalarUint, Width: 4, Components: 2},
		{Name: "v3", Offset: 16, Size: 12, Kind: ScalarFloat, Width: 4, Components: 3},
		{Name: "m", Offset: 32, Size: 16, Kind: ScalarFloat, Width: 4, Components: 4},
		{Name: "list", Offset: 48, Size: 12, Kind: ScalarFloat, Width: 4, Components: 3},
		{Name: "inner", Offset: 64, Size: 17, Align: 16, ScalarAlign: 4},
		{Name: "wide", Offset: 96, Size: 8, Kind: ScalarInt, Width: 8, Components: 1},
		{Name: "half_", Offset: 104, Size: 2, Kind: ScalarFloat, Width: 2, Components: 1},
	}}
	if diff := cmp.Diff(want, entryPoint(t, "layout.spv", "main").PushConstants); diff != "" {
		t.Error(diff)
	}
}

func TestAddressesTakeEightBytes(t *testing.T) {
	e := entryPoint(t, "address.spv", "main")
	want := &Block{Name: "Push", Size: 32, Members: []Member{
		{Name: "head", Offset: 0, Size: 8, Kind: ScalarAddress, Width: 8, Components: 1},
		{Name: "n", Offset: 8, Size: 4, Kind: ScalarUint, Width: 4, Components: 1},
		{Name: "table", Offset: 16, Size: 16, Kind: ScalarAddress, Width: 8, Components: 2},
	}}
	if diff := cmp.Diff(want, e.PushConstants); diff != "" {
		t.Error(diff)
	}
	if !e.UsesAddresses {
		t.Error("UsesAddresses is false")
	}
	if entryPoint(t, "saxpy.spv", "main").UsesAddresses {
		t.Error("UsesAddresses is true for a shader without addresses")
	}
}

// Addresses as pointers, as 64-bit integers and as pairs of 32-bit ones, packed as in the
// scalar layout.
func TestAddressesInPushConstantsHaveTheirPlaces(t *testing.T) {
	e := entryPoint(t, "address2.spv", "main")
	want := &Block{Name: "Push", Size: 52, Members: []Member{
		{Name: "first", Offset: 0, Size: 4, Kind: ScalarUint, Width: 4, Components: 1},
		{Name: "value", Offset: 8, Size: 8, Kind: ScalarAddress, Width: 8, Components: 1},
		{Name: "number", Offset: 16, Size: 8, Kind: ScalarUint, Width: 8, Components: 1},
		{Name: "pair", Offset: 24, Size: 8, Kind: ScalarUint, Width: 4, Components: 2},
		{Name: "table", Offset: 32, Size: 16, Kind: ScalarAddress, Width: 8, Components: 2},
		{Name: "last", Offset: 48, Size: 4, Kind: ScalarUint, Width: 4, Components: 1},
	}}
	if diff := cmp.Diff(want, e.PushConstants); diff != "" {
		t.Error(diff)
	}
	if !e.UsesAddresses {
		t.Error("UsesAddresses is false")
	}
}

// Memory at an address that a binding holds is not part of the binding: following the
// address reads the binding, whatever is done with the memory.
func TestBindingsThatHoldAddresses(t *testing.T) {
	want := []Binding{
		{Binding: 0, Name: "declared", Kind: StorageBuffer, Read: true, NonWritable: true, ReadOnly: true, Stride: 16, MinSize: 8, Count: 1},
		{Binding: 1, Name: "followed", Kind: StorageBuffer, Read: true, ReadOnly: true, MinSize: 32, Count: 1},
		{Binding: 2, Name: "relinked", Kind: StorageBuffer, Written: true, WriteOnly: true, Stride: 8, Count: 1},
		{Binding: 3, Name: "numbers", Kind: StorageBuffer, Read: true, ReadOnly: true, MinSize: 20, Count: 1},
	}
	if diff := cmp.Diff(want, entryPoint(t, "address2.spv", "main").Bindings); diff != "" {
		t.Error(diff)
	}
}

func TestEndOfRuntimeArrayBlockIsItsOffset(t *testing.T) {
	// A runtime array 8 bytes after the end of the member before it.
	s := storageBuffer()
	s.annotations = append(s.annotations, op(opMemberDecorate, idStruct, 1, decorationOffset, 12))
	s.globals[1] = op(opTypeStruct, idStruct, idUint, idArray)
	s.body = [][]uint32{op(opArrayLength, idUint, 40, idVariable, 1)}
	m, err := Parse(s.encode())
	if err != nil {
		t.Fatal(err)
	}
	if b := m.EntryPoints[0].Bindings[0]; b.MinSize != 12 || b.Stride != 4 {
		t.Errorf("MinSize %d, Stride %d, want 12 and 4", b.MinSize, b.Stride)
	}
}

// TestTypesWithoutLayout replaces the element of a storage buffer's array by types that
// cannot be in memory or are too large.
func TestTypesWithoutLayout(t *testing.T) {
	const element = 30
	tests := []struct {
		name        string
		globals     [][]uint32
		annotations [][]uint32
		want        string
	}{
		{name: "boolean", globals: [][]uint32{op(opTypeVector, element, idBool, 2)}, want: "OpTypeBool: a boolean has no size in memory"},
		{name: "odd width", globals: [][]uint32{op(opTypeInt, element, 24, 0)}, want: "OpTypeInt: a width of 24 bits"},
		{name: "logical pointer", globals: [][]uint32{op(opTypePointer, 31, 6, idUint), op(opTypeStruct, element, 31)},
			annotations: [][]uint32{op(opMemberDecorate, element, 0, decorationOffset, 0)}, want: "OpTypeStruct: %31 is an OpTypePointer, which has no size in memory"},
		{name: "no stride", globals: [][]uint32{op(opTypeArray, element, idUint, idTwo)}, want: "OpTypeArray: %30 has no ArrayStride"},
		{name: "zero stride", globals: [][]uint32{op(opTypeArray, element, idUint, idTwo)},
			annotations: [][]uint32{op(opDecorate, element, decorationArrayStride, 0)}, want: "OpTypeArray: the ArrayStride of %30 is 0"},
		{name: "zero length", globals: [][]uint32{op(opTypeArray, element, idUint, idZero)},
			annotations: [][]uint32{op(opDecorate, element, decorationArrayStride, 4)}, want: "OpTypeArray: length %7 is 0 or undefined"},
		{name: "undefined length", globals: [][]uint32{op(opUndef, idUint, 31), op(opTypeArray, element, idUint, 31)},
			annotations: [][]uint32{op(opDecorate, element, decorationArrayStride, 4)}, want: "OpTypeArray: %31 is an OpUndef, which is no integer constant"},
		{name: "overflow", globals: [][]uint32{op(opTypeInt, 31, 64, 0), op(opConstant, 31, 32, 0xffffffff, 0xffffffff), op(opTypeArray, element, idUint, 32)},
			annotations: [][]uint32{op(opDecorate, element, decorationArrayStride, 0xffffffff)}, want: "18446744073709551615 elements of 4294967295 bytes are too large"},
		{name: "array of runtime arrays", globals: [][]uint32{op(opTypeRuntimeArray, 31, idUint), op(opTypeArray, element, 31, idTwo)},
			annotations: [][]uint32{op(opDecorate, 31, decorationArrayStride, 4), op(opDecorate, element, decorationArrayStride, 4)}, want: "element type %31 has no fixed size"},
		{name: "no offset", globals: [][]uint32{op(opTypeStruct, element, idUint)}, want: "OpTypeStruct: member 0 of %30 has no Offset"},
		{name: "runtime array inside", globals: [][]uint32{op(opTypeRuntimeArray, 31, idUint), op(opTypeStruct, element, 31, idUint)},
			annotations: [][]uint32{op(opDecorate, 31, decorationArrayStride, 4), op(opMemberDecorate, element, 0, decorationOffset, 0), op(opMemberDecorate, element, 1, decorationOffset, 4)},
			want:        "OpTypeStruct: member 0 of %30 has no fixed size and is not the last"},
		{name: "matrix without stride", globals: [][]uint32{op(opTypeVector, 31, idUint, 2), op(opTypeMatrix, 32, 31, 2), op(opTypeStruct, element, 32)},
			annotations: [][]uint32{op(opMemberDecorate, element, 0, decorationOffset, 0)}, want: "OpTypeStruct: a member is the matrix %32 and has no MatrixStride"},
		{name: "matrix too large", globals: [][]uint32{op(opTypeVector, 31, idUint, 2), op(opTypeMatrix, 32, 31, 0xffffffff), op(opTypeStruct, element, 32)},
			annotations: [][]uint32{op(opMemberDecorate, element, 0, decorationOffset, 0), op(opMemberDecorate, element, 0, decorationMatrixStride, 0xffffffff)}, want: "bytes is too large"},
		{name: "vector of vectors", globals: [][]uint32{op(opTypeVector, 31, idUint, 2), op(opTypeVector, element, 31, 2)}, want: "component type %31 is no scalar"},
		{name: "matrix of structures", globals: [][]uint32{op(opTypeStruct, 31), op(opTypeMatrix, element, 31, 2)}, want: "column type %31 is no vector"},
		{name: "image", globals: [][]uint32{op(opTypeSampler, 31), op(opTypeStruct, element, 31)},
			annotations: [][]uint32{op(opMemberDecorate, element, 0, decorationOffset, 0)}, want: "%31 is an OpTypeSampler, which has no size in memory"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := storageBuffer()
			s.annotations = append(s.annotations, test.annotations...)
			s.globals[0] = op(opTypeRuntimeArray, idArray, element)
			s.globals = append(test.globals, s.globals...)
			if _, err := Parse(s.encode()); err != nil {
				t.Errorf("a block that is not used is refused: %v", err)
			}
			s.body = [][]uint32{op(opArrayLength, idUint, 40, idVariable, 0)}
			_, err := Parse(s.encode())
			wantError(t, err, test.want)
		})
	}
}

func TestLoopsOfCalledFunctionsCount(t *testing.T) {
	for _, c := range []struct {
		file, entry string
		want        bool
	}{
		{"loops.spv", "round", true}, {"loops.spv", "straight", false}, {"pushed.spv", "main", true}, {"saxpy.spv", "main", false},
	} {
		if got := entryPoint(t, c.file, c.entry).Loops; got != c.want {
			t.Errorf("%s, %q: loops %t, want %t", c.file, c.entry, got, c.want)
		}
	}
}
