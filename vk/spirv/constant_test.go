package spirv

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpecConstants(t *testing.T) {
	e := entryPoint(t, "specialization.spv", "main")
	minusThree := int64(-3)
	want := []SpecConstant{
		{ID: 3, Name: "offset", Size: 4, Default: 0xfffffffe, Kind: ScalarInt},
		{ID: 4, Name: "flip", Size: 4, Default: 1, Kind: ScalarBool},
		{ID: 5, Name: "length", Size: 4, Default: 6, Kind: ScalarUint},
		{ID: 6, Name: "exact", Size: 8, Default: math.Float64bits(0.25), Kind: ScalarFloat},
		{ID: 7, Name: "scale", Size: 4, Default: uint64(math.Float32bits(1.5)), Kind: ScalarFloat},
		{ID: 8, Name: "wide", Size: 8, Default: uint64(minusThree), Kind: ScalarInt},
		{ID: 9, Name: "small", Size: 2, Default: 9, Kind: ScalarUint},
		{ID: 10, Size: 4, Default: 16, Kind: ScalarUint},
		{ID: 12, Size: 4, Default: 1, Kind: ScalarUint},
	}
	if diff := cmp.Diff(want, e.SpecConstants); diff != "" {
		t.Error(diff)
	}
	if got := e.Bindings[0].MinSize; got != 28 { // float[length + 1]
		t.Errorf("MinSize %d, want 28", got)
	}
}

func TestConstantDeclaredTwiceIsListedOnce(t *testing.T) {
	want := []SpecConstant{{ID: 1, Size: 4, Default: 1, Kind: ScalarUint}}
	if diff := cmp.Diff(want, entryPoint(t, "localsizeid.spv", "main").SpecConstants); diff != "" {
		t.Error(diff)
	}
}

func TestWorkgroupSize(t *testing.T) {
	tests := []struct {
		file string
		spec map[uint32]uint32
		want [3]uint32
	}{
		{"access.spv", nil, [3]uint32{8, 4, 2}},
		{"access.spv", map[uint32]uint32{0: 9}, [3]uint32{8, 4, 2}},
		{"specialization.spv", nil, [3]uint32{16, 2, 1}},
		{"specialization.spv", map[uint32]uint32{10: 7}, [3]uint32{7, 2, 1}},
		{"specialization.spv", map[uint32]uint32{10: 7, 12: 3, 11: 99}, [3]uint32{7, 2, 3}},
		{"localsizeid.spv", nil, [3]uint32{1, 4, 1}},
		{"localsizeid.spv", map[uint32]uint32{1: 32}, [3]uint32{32, 4, 1}},
		{"workgroupsize.spv", nil, [3]uint32{13, 100, 10}},
		{"workgroupsize.spv", map[uint32]uint32{0: 2}, [3]uint32{9, 100, 1}},
		{"workgroupsize.spv", map[uint32]uint32{0: 5, 1: 20}, [3]uint32{21, 20, 50}},
		{"workgroupsize.spv", map[uint32]uint32{1: 0}, [3]uint32{13, 0, 0}}, // divides by zero
	}
	for _, test := range tests {
		e := entryPoint(t, test.file, "main")
		if got := e.WorkgroupSize(test.spec); got != test.want {
			t.Errorf("%s with %v: %v, want %v", test.file, test.spec, got, test.want)
		}
		if test.spec == nil && e.LocalSize != test.want {
			t.Errorf("%s: LocalSize %v, want %v", test.file, e.LocalSize, test.want)
		}
	}
}

func TestLocalSizeSpec(t *testing.T) {
	id := func(n uint32) *uint32 { return &n }
	for file, want := range map[string][3]*uint32{
		"access.spv":         {},
		"specialization.spv": {id(10), nil, id(12)},
		"localsizeid.spv":    {id(1), nil, nil},
		"workgroupsize.spv":  {nil, id(1), nil}, // x and z are computed
	} {
		if diff := cmp.Diff(want, entryPoint(t, file, "main").LocalSizeSpec); diff != "" {
			t.Error(file, diff)
		}
	}
}

// TestOperationsOfConstants folds every operation as the length of an array of uints, with
// operands whose sign and truncation make a difference.
func TestOperationsOfConstants(t *testing.T) {
	const minus7, minus3 = 0xfffffff9, 0xfffffffd
	tests := []struct {
		operation uint32
		a, b      uint32
		boolean   bool // the result is a boolean, by which 1 or 2 is selected
		want      uint64
	}{
		{opIAdd, minus7, 9, false, 2},
		{opISub, 9, 7, false, 2},
		{opIMul, minus7, minus3, false, 21},
		{opUDiv, minus7, 16, false, 0x0fffffff},
		{opSDiv, minus7, minus3, false, 2},
		{opUMod, minus7, 10, false, 9}, // 4294967289
		{opSRem, minus7, 3, false, 0xffffffff},
		{opSMod, minus7, 3, false, 2},
		{opSMod, 7, minus3, false, 0xfffffffe},
		{opSMod, 7, 3, false, 1},
		{opShiftLeftLogical, 3, 31, false, 0x80000000},
		{opShiftRightLogical, minus7, 28, false, 15},
		{opShiftRightArithmetic, minus7, 1, false, 0xfffffffc},
		{opBitwiseOr, 5, 3, false, 7},
		{opBitwiseXor, 5, 3, false, 6},
		{opBitwiseAnd, 5, 3, false, 1},
		{opIEqual, 5, 5, true, 1}, {opIEqual, 5, 6, true, 2},
		{opINotEqual, 5, 6, true, 1}, {opINotEqual, 5, 5, true, 2},
		{opUGreaterThan, minus7, 1, true, 1}, {opUGreaterThan, 1, 1, true, 2},
		{opUGreaterThanEqual, 1, 1, true, 1}, {opUGreaterThanEqual, 1, minus7, true, 2},
		{opULessThan, 1, minus7, true, 1}, {opULessThan, 1, 1, true, 2},
		{opULessThanEqual, 1, 1, true, 1}, {opULessThanEqual, minus7, 1, true, 2},
		{opSGreaterThan, 1, minus7, true, 1}, {opSGreaterThan, minus7, 1, true, 2},
		{opSGreaterThanEqual, 1, 1, true, 1}, {opSGreaterThanEqual, minus7, 1, true, 2},
		{opSLessThan, minus7, 1, true, 1}, {opSLessThan, 1, minus7, true, 2},
		{opSLessThanEqual, 1, 1, true, 1}, {opSLessThanEqual, 1, minus7, true, 2},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s %d %d", operationName(uint16(test.operation)), int32(test.a), int32(test.b)), func(t *testing.T) {
			globals := [][]uint32{
				op(opConstant, idUint, 60, test.a),
				op(opConstant, idUint, 61, test.b),
			}
			if test.boolean {
				globals = append(globals,
					op(opSpecConstantOp, idBool, 62, test.operation, 60, 61),
					op(opSpecConstantOp, idUint, 63, opSelect, 62, idOne, idTwo))
			} else {
				globals = append(globals, op(opSpecConstantOp, idUint, 63, test.operation, 60, 61))
			}
			if got := foldedLength(t, globals, 63); got != test.want {
				t.Errorf("%#x, want %#x", got, test.want)
			}
		})
	}
}

func TestUnaryAndLogicalOperationsOfConstants(t *testing.T) {
	const int8Type, int64Type, minusOne8 = 50, 51, 52
	base := [][]uint32{
		op(opTypeInt, int8Type, 8, 1),
		op(opTypeInt, int64Type, 64, 1),
		op(opConstant, int8Type, minusOne8, 0xffffffff), // sign-extended, as the specification wants
		op(opConstantTrue, idBool, 53),
		op(opSpecConstantFalse, idBool, 54),
		op(opConstantNull, idUint, 55),
		op(opConstant, int64Type, 56, 1, 2),
	}
	boolean := func(operation uint32, operands ...uint32) [][]uint32 {
		return [][]uint32{
			op(opSpecConstantOp, append([]uint32{idBool, 60, operation}, operands...)...),
			op(opSpecConstantOp, idUint, 63, opSelect, 60, idOne, idTwo),
		}
	}
	number := func(typeID, operation uint32, operands ...uint32) [][]uint32 {
		return [][]uint32{op(opSpecConstantOp, append([]uint32{typeID, 63, operation}, operands...)...)}
	}
	tests := []struct {
		name    string
		globals [][]uint32
		want    uint64
	}{
		{"SConvert", number(idUint, opSConvert, minusOne8), 0xffffffff},
		{"UConvert", number(idUint, opUConvert, minusOne8), 0xff},
		{"UConvert narrows", number(idUint, opUConvert, 56), 1},
		{"wide", number(int64Type, opIAdd, 56, 56), 0x400000002},
		{"SNegate", number(int8Type, opSNegate, minusOne8), 1},
		{"Not", number(idUint, opNot, idOne), 0xfffffffe},
		{"null", number(idUint, opNot, 55), 0xffffffff},
		{"LogicalNot", boolean(opLogicalNot, 54), 1},
		{"LogicalAnd", boolean(opLogicalAnd, 53, 54), 2},
		{"LogicalOr", boolean(opLogicalOr, 53, 54), 1},
		{"LogicalEqual", boolean(opLogicalEqual, 53, 54), 2},
		{"LogicalNotEqual", boolean(opLogicalNotEqual, 53, 54), 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := foldedLength(t, append(base[:len(base):len(base)], test.globals...), 63); got != test.want {
				t.Errorf("%#x, want %#x", got, test.want)
			}
		})
	}
}

// foldedLength returns the length of an array of chars whose size is a constant, computed
// from the MinSize of a block.
func foldedLength(t *testing.T, globals [][]uint32, length uint32) uint64 {
	t.Helper()
	s := storageBuffer()
	s.annotations[0] = op(opDecorate, idArray, decorationArrayStride, 1)
	s.globals[0] = op(opTypeArray, idArray, idUint, length)
	s.globals = append(globals, s.globals...)
	s.body = [][]uint32{op(opCopyObject, idStructPointer, 80, idVariable)}
	m, err := Parse(s.encode())
	if err != nil {
		t.Fatal(err)
	}
	return m.EntryPoints[0].Bindings[0].MinSize
}

func TestConstantsThatAreNotFolded(t *testing.T) {
	deep := [][]uint32{op(opSpecConstantOp, idUint, 200, opIAdd, idOne, idOne)}
	for i := uint32(201); i < 201+maxConstantNodes; i++ {
		deep = append(deep, op(opSpecConstantOp, idUint, i, opIAdd, i-1, i-1))
	}
	const composite, pair = 90, 91
	withPair := func(globals ...[]uint32) [][]uint32 {
		return append([][]uint32{op(opTypeVector, pair, idUint, 2), op(opConstantComposite, pair, composite, idOne, idTwo)}, globals...)
	}
	tests := []struct {
		name    string
		globals [][]uint32
		id      uint32
		want    string
	}{
		{"operation", [][]uint32{op(opSpecConstantOp, idUint, 60, 204, idOne)}, 60, "OpSpecConstantOp: OpBitReverse is not folded here"},
		{"huge opcode", [][]uint32{op(opSpecConstantOp, idUint, 60, 0xfffffff0, idOne)}, 60, "OpSpecConstantOp: Op(65535) is not folded here"},
		{"operand count", [][]uint32{op(opSpecConstantOp, idUint, 60, opIAdd, idOne)}, 60, "OpIAdd has 1 operands, not 2"},
		{"depth", deep, 200 + maxConstantNodes, "nests too many operations"},
		{"composite", withPair(), composite, "%90 is an OpConstantComposite, which is no integer constant"},
		{"index", withPair(op(opSpecConstantOp, idUint, 60, opCompositeExtract, composite, 2)), 60, "composite %90 has no component 2"},
		{"no index", withPair(op(opSpecConstantOp, idUint, 60, opCompositeExtract, composite)), 60, "OpCompositeExtract has 1 operands"},
		{"too many indexes", withPair(op(opSpecConstantOp, idUint, 60, opCompositeExtract, composite, 1, 0)), 60, "%9 is an OpConstant, from which no component is folded here"},
		{"float", [][]uint32{op(opTypeFloat, 60, 32), op(opConstant, 60, 61, 0)}, 61, "type %60 is neither boolean nor an integer"},
		{"half a value", [][]uint32{op(opTypeInt, 60, 64, 0), op(opConstant, 60, 61, 1)}, 61, "truncated: a value of 64 bits takes 2 words"},
		{"division by zero", [][]uint32{op(opSpecConstantOp, idUint, 60, opSMod, idOne, idZero)}, 60, "dimension 0 is not a number of 32 bits"},
		{"too wide", [][]uint32{op(opTypeInt, 60, 64, 0), op(opConstant, 60, 61, 0, 1)}, 61, "dimension 0 is not a number of 32 bits"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := shader{globals: test.globals, modes: [][]uint32{op(opExecutionModeID, idMain, modeLocalSizeID, test.id, idOne, idOne)}}
			code := s.encode()
			setBound(code, 1000)
			_, err := Parse(code)
			wantError(t, err, test.want)
		})
	}
}

func TestExtractFromNullAndNestedComposites(t *testing.T) {
	const pair, pairs = 90, 91
	s := shader{
		globals: [][]uint32{
			op(opTypeVector, pair, idUint, 2),
			op(opTypeArray, pairs, pair, idTwo),
			op(opSpecConstant, idUint, 60, 5),
			op(opSpecConstantComposite, pair, 61, idOne, 60),
			op(opConstantNull, pair, 62),
			op(opSpecConstantComposite, pairs, 63, 61, 62),
			op(opSpecConstantOp, idUint, 64, opCompositeExtract, 63, 0, 1), // 60
			op(opSpecConstantOp, idUint, 65, opCompositeExtract, 63, 1, 0), // 0
			op(opSpecConstantOp, idUint, 66, opIAdd, 65, idTwo),
		},
		annotations: [][]uint32{op(opDecorate, 60, decorationSpecID, 4)},
		modes:       [][]uint32{op(opExecutionModeID, idMain, modeLocalSizeID, 64, 66, 64)},
	}
	m, err := Parse(s.encode())
	if err != nil {
		t.Fatal(err)
	}
	e := m.EntryPoints[0]
	if got, want := e.LocalSize, [3]uint32{5, 2, 5}; got != want {
		t.Errorf("LocalSize %v, want %v", got, want)
	}
	if got, want := e.WorkgroupSize(map[uint32]uint32{4: 3}), [3]uint32{3, 2, 3}; got != want {
		t.Errorf("WorkgroupSize %v, want %v", got, want)
	}
}
