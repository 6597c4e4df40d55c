package spirv

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
)

// wantError checks that err is an *Error that ends with want.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, ErrInvalid) {
		t.Fatalf("error is %v, want an *Error with %q", err, want)
	}
	if !strings.Contains(err.Error(), want) {
		t.Fatalf("error is %q, want %q in it", err, want)
	}
	if e.Op == "" || e.Word < 0 || e.Msg == "" {
		t.Fatalf("error %+v does not say where", e)
	}
}

func setBound(code []byte, bound uint32) { binary.LittleEndian.PutUint32(code[12:], bound) }

func TestMalformedHeaders(t *testing.T) {
	good := assemble(1)
	change := func(word int, value uint32) []byte {
		code := slices.Clone(good)
		binary.LittleEndian.PutUint32(code[4*word:], value)
		return code
	}
	tests := []struct {
		name string
		code []byte
		word int
		want string
	}{
		{"empty", nil, 0, "header: truncated: 0 bytes of 20"},
		{"short", good[:19], 4, "header: truncated: 19 bytes of 20"},
		{"magic", change(0, 0x07230204), 0, "header: magic number is 0x07230204, not 0x07230203"},
		{"half a word", append(slices.Clone(good), 0, 0), 5, "header: 22 bytes are no whole number of words"},
		{"version 2", change(1, 0x00020000), 1, "header: version word 0x00020000 is not one of SPIR-V 1"},
		{"version junk", change(1, 0x00010001), 1, "header: version word"},
		{"bound 0", change(3, 0), 3, "header: bound on ids is 0, outside 1 to 4194303"},
		{"bound too high", change(3, 4194304), 3, "header: bound on ids is 4194304"},
		{"schema", change(4, 7), 4, "header: reserved word is 0x7, not 0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse(test.code)
			wantError(t, err, test.want)
			if e := err.(*Error); e.Word != test.word {
				t.Errorf("word %d, want %d", e.Word, test.word)
			}
		})
	}
}

func TestMalformedInstructions(t *testing.T) {
	tests := []struct {
		name         string
		instructions [][]uint32
		want         string
	}{
		{"zero word count", [][]uint32{{opCapability}}, "spirv: word 5: OpCapability: word count is zero"},
		{"zero word count of an unknown", [][]uint32{{7777}}, "spirv: word 5: Op(7777): word count is zero"},
		{"past the end", [][]uint32{op(opTypeVoid, 1), {3<<16 | opTypeFloat, 2}}, "spirv: word 7: OpTypeFloat: truncated: 2 words of 3"},
		{"too few operands", [][]uint32{op(opTypeInt, 1, 32)}, "spirv: word 5: OpTypeInt: truncated: 2 operands, needs more"},
		{"no operands", [][]uint32{op(opTypeVoid)}, "OpTypeVoid: truncated: 0 operands, needs more"},
		{"result 0", [][]uint32{op(opTypeVoid, 0)}, "OpTypeVoid: id %0 is outside the bound 50"},
		{"result out of bound", [][]uint32{op(opTypeVoid, 50)}, "OpTypeVoid: id %50 is outside the bound 50"},
		{"operand out of bound", [][]uint32{op(opTypeVector, 1, 0xffffffff, 2)}, "OpTypeVector: id %4294967295 is outside the bound 50"},
		{"name out of bound", [][]uint32{op(opName, text("x", 51)...)}, "OpName: id %51 is outside the bound 50"},
		{"optional out of bound", [][]uint32{op(opTypeVoid, 1), op(opTypePointer, 2, 6, 1), op(opVariable, 2, 3, 6, 77)}, "OpVariable: id %77 is outside the bound 50"},
		{"redefinition", [][]uint32{op(opTypeVoid, 1), op(opTypeBool, 1)}, "spirv: word 7: OpTypeBool: id %1 is already defined at word 5"},
		{"never defined", [][]uint32{op(opTypeVector, 1, 2, 4)}, "OpTypeVector: id %2 is never defined"},
		{"used too early", [][]uint32{op(opTypeVector, 1, 2, 4), op(opTypeFloat, 2, 32)}, "spirv: word 5: OpTypeVector: id %2 is used before its definition at word 9"},
		{"structure of itself", [][]uint32{op(opTypeStruct, 1, 1)}, "OpTypeStruct: id %1 is used before its definition at word 5"},
		{"forward structure", [][]uint32{op(opTypeForwardPointer, 1, 5349), op(opTypeStruct, 1, 1)}, "OpTypeStruct: %1 was declared by OpTypeForwardPointer"},
		{"result type is a constant", [][]uint32{op(opTypeBool, 1), op(opConstantTrue, 1, 2), op(opConstantTrue, 2, 3)}, "OpConstantTrue: result type %2 is defined by OpConstantTrue, no type"},
		{"string without an end", [][]uint32{op(opExtension, 0x41414141)}, "OpExtension: string literal without an end"},
		{"entry point name", [][]uint32{op(opEntryPoint, 5, 1, 0x41414141)}, "OpEntryPoint: string literal without an end"},
		{"function in a function", [][]uint32{op(opTypeVoid, 1), op(33, 2, 1), op(opFunction, 1, 3, 0, 2), op(opFunction, 1, 4, 0, 2)}, "spirv: word 15: OpFunction: inside a function"},
		{"end outside", [][]uint32{op(opFunctionEnd)}, "OpFunctionEnd: outside a function"},
		{"no end", [][]uint32{op(opTypeVoid, 1), op(33, 2, 1), op(opFunction, 1, 3, 0, 2)}, "spirv: word 10: OpFunction: the module ends inside this function"},
		{"entry point without function", [][]uint32{op(opEntryPoint, text("f", 5, 1)...), op(opTypeVoid, 1)}, "OpEntryPoint: %1 is no function"},
		{"entry point undefined", [][]uint32{op(opEntryPoint, text("f", 5, 1)...)}, "OpEntryPoint: id %1 is never defined"},
		{"decoration without value", [][]uint32{op(opDecorate, 1, decorationBinding)}, "OpDecorate: Binding without its value"},
		{"conflicting decorations", [][]uint32{op(opDecorate, 1, decorationBinding, 2), op(opDecorate, 1, decorationBinding, 3)}, "spirv: word 9: OpDecorate: Binding is 3 here and 2 before"},
		{"conflict through a group", [][]uint32{op(opDecorate, 1, decorationOffset, 2), op(opDecorate, 2, decorationOffset, 4), op(opDecorationGroup, 2), op(opGroupDecorate, 2, 1)}, "OpGroupDecorate: Offset is 4 here and 2 before"},
		{"member of a group", [][]uint32{op(opDecorationGroup, 2), op(opGroupMemberDecorate, 2, 1)}, "OpGroupMemberDecorate: target %1 without a member index"},
		{"member of a group out of bound", [][]uint32{op(opDecorationGroup, 2), op(opGroupMemberDecorate, 2, 60, 0)}, "OpGroupMemberDecorate: id %60 is outside the bound 50"},
		{"member index of a group", [][]uint32{op(opDecorationGroup, 2), op(opGroupMemberDecorate, 2, 1, 0xffffffff)}, "member index 4294967295 is beyond any structure"},
		{"member index", [][]uint32{op(opMemberDecorate, 1, 0xffffffff, decorationOffset, 0)}, "OpMemberDecorate: member index 4294967295 is beyond any structure"},
		{"type of untyped pointers", [][]uint32{op(opTypeUntypedPointerKHR, 1, uint32(classPhysicalStorageBuffer))}, "untyped pointers (SPV_KHR_untyped_pointers) are not supported"},
		{"untyped pointers", [][]uint32{op(opTypeVoid, 1), op(opUntypedVariableKHR, 1, 2, 12)}, "untyped pointers (SPV_KHR_untyped_pointers) are not supported"},
		{"local variable of the module", [][]uint32{op(opTypeVoid, 1), op(opTypePointer, 2, 7, 1), op(opVariable, 2, 3, 7)}, "OpVariable: a variable of storage class Function outside a function"},
		{"float of an odd width", [][]uint32{op(opDecorate, 2, decorationSpecID, 0), op(opTypeFloat, 1, 24), op(opSpecConstant, 1, 2, 0)}, "OpTypeFloat: a width of 24 bits"},
		{"specialized vector", [][]uint32{op(opDecorate, 3, decorationSpecID, 0), op(opTypeFloat, 1, 32), op(opTypeVector, 2, 1, 2), op(opSpecConstant, 2, 3, 0)}, "OpSpecConstant: type %2 is no number"},
		{"half a specialization constant", [][]uint32{op(opDecorate, 2, decorationSpecID, 0), op(opTypeFloat, 1, 64), op(opSpecConstant, 1, 2, 0)}, "OpSpecConstant: truncated: a value of 64 bits takes 2 words"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse(assemble(50, test.instructions...))
			wantError(t, err, test.want)
		})
	}
}

func TestMalformedShaders(t *testing.T) {
	use := op(opArrayLength, idUint, 40, idVariable, 0)
	tests := []struct {
		name   string
		change func(s *shader)
		want   string
	}{
		{"no local size", func(s *shader) { s.modes = [][]uint32{op(opExecutionMode, idMain, 18, 1, 1, 1)} }, `compute entry point "main" has no local size`},
		{"zero local size", func(s *shader) { s.modes = [][]uint32{op(opExecutionMode, idMain, modeLocalSize, 1, 0, 1)} }, "OpExecutionMode: dimension 1 of the local size is 0"},
		{"zero local size by id", func(s *shader) {
			s.modes = [][]uint32{op(opExecutionModeID, idMain, modeLocalSizeID, idOne, idOne, idZero)}
		}, "OpExecutionModeId: dimension 2 of the local size is 0"},
		{"two dimensions", func(s *shader) { s.modes = [][]uint32{op(opExecutionMode, idMain, modeLocalSize, 1, 1)} }, "OpExecutionMode: 2 dimensions of a workgroup, not 3"},
		{"two local sizes", func(s *shader) {
			mode := op(opExecutionMode, idMain, modeLocalSize, 1, 1, 1)
			s.modes = [][]uint32{mode, mode}
		}, "has a local size already, at word 15"},
		{"WorkgroupSize of two", func(s *shader) {
			s.annotations = append(s.annotations, op(opDecorate, 51, decorationBuiltIn, builtInWorkgroupSize))
			s.globals = append(s.globals, op(opTypeVector, 50, idUint, 2), op(opConstantComposite, 50, 51, idOne, idOne))
		}, "OpConstantComposite: WorkgroupSize has 2 components, not 3"},
		{"two WorkgroupSizes", func(s *shader) {
			s.annotations = append(s.annotations, op(opDecorate, 51, decorationBuiltIn, builtInWorkgroupSize), op(opDecorate, 52, decorationBuiltIn, builtInWorkgroupSize))
			s.globals = append(s.globals, op(opTypeVector, 50, idUint, 3), op(opConstantComposite, 50, 51, idOne, idOne, idOne), op(opConstantComposite, 50, 52, idOne, idOne, idOne))
		}, "OpConstantComposite: a second WorkgroupSize"},
		{"second entry point of the name", func(s *shader) {
			s.modes = [][]uint32{op(opEntryPoint, text("main", 5, idMain)...), op(opExecutionMode, idMain, modeLocalSize, 1, 1, 1)}
		}, `OpEntryPoint: a second GLCompute entry point named "main"`},
		{"recursion", func(s *shader) { s.body = [][]uint32{op(opFunctionCall, idVoid, 41, idMain)} }, "OpFunctionCall: %3 calls itself"},
		{"mutual recursion", func(s *shader) {
			s.body = [][]uint32{op(opFunctionCall, idVoid, 41, 42)}
			s.functions = [][]uint32{
				op(opFunction, idVoid, 42, 0, idFunctionType), op(248, 43), op(opFunctionCall, idVoid, 44, 45), op(253), op(opFunctionEnd),
				op(opFunction, idVoid, 45, 0, idFunctionType), op(248, 46), op(opFunctionCall, idVoid, 47, 42), op(253), op(opFunctionEnd),
			}
		}, "OpFunctionCall: %42 calls itself"},
		{"call of a constant", func(s *shader) { s.body = [][]uint32{op(opFunctionCall, idVoid, 41, idOne)} }, "OpFunctionCall: %8 is no function"},
		{"buffer inside a function", func(s *shader) { s.body = [][]uint32{op(opVariable, idStructPointer, 41, uint32(classStorageBuffer))} }, "OpVariable: a variable of storage class StorageBuffer inside a function"},
		{"no Block", func(s *shader) { s.annotations = slices.Delete(s.annotations, 2, 3) }, "its structure %11 is no Block"},
		{"no structure", func(s *shader) { s.globals[2] = op(opTypePointer, idStructPointer, uint32(classStorageBuffer), idUint) }, "holds an OpTypeInt, not a structure"},
		{"type is no pointer", func(s *shader) { s.globals[4] = op(opVariable, idStruct, idVariable, uint32(classStorageBuffer)) }, "OpVariable: type %11 is no pointer"},
		{"other storage class", func(s *shader) { s.globals[4] = op(opVariable, idStructPointer, idVariable, uint32(classUniform)) }, "OpVariable: storage class Uniform, but its type points to StorageBuffer"},
		{"two kinds at one binding", func(s *shader) {
			s.annotations = append(s.annotations, op(opDecorate, 52, decorationDescriptorSet, 0), op(opDecorate, 52, decorationBinding, 0))
			s.globals = append(s.globals, op(opTypeSampler, 50), op(opTypePointer, 51, uint32(classUniformConstant), 50), op(opVariable, 51, 52, uint32(classUniformConstant)))
			s.body = append(s.body, op(opLoad, 50, 53, 52))
		}, "OpVariable: set 0 binding 0 is a sampler, and a storage buffer for another variable"},
		{"arrays of descriptors too deep", func(s *shader) {
			s.globals = s.globals[:2]
			for i := uint32(0); i < maxDescriptorDimensions; i++ {
				element := 60 + i
				if i == 0 {
					element = idStruct
				}
				s.globals = append(s.globals, op(opTypeArray, 61+i, element, idOne))
			}
			s.globals = append(s.globals, op(opTypePointer, 80, uint32(classStorageBuffer), 60+maxDescriptorDimensions), op(opVariable, 80, idVariable, uint32(classStorageBuffer)))
		}, "arrays of descriptors nest deeper than 8"},
		{"too many descriptors", func(s *shader) {
			s.globals = append(s.globals[:2], op(opConstant, idUint, 60, 0x10000), op(opTypeArray, 61, idStruct, 60), op(opTypeArray, 62, 61, 60),
				op(opTypePointer, 63, uint32(classStorageBuffer), 62), op(opVariable, 63, idVariable, uint32(classStorageBuffer)))
		}, "more than 4294967295 descriptors"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := storageBuffer()
			s.body = [][]uint32{use}
			if _, err := Parse(s.encode()); err != nil {
				t.Fatalf("before the change: %v", err)
			}
			test.change(&s)
			if len(s.body) == 0 || !slices.Equal(s.body[0], use) {
				s.body = append(s.body, use)
			}
			_, err := Parse(s.encode())
			wantError(t, err, test.want)
		})
	}
}

func TestMalformedPushConstants(t *testing.T) {
	const block, pointer, push, runtime = 30, 31, 32, 33
	tests := []struct {
		name        string
		annotations [][]uint32
		globals     [][]uint32
		want        string
	}{
		{"no structure", nil, [][]uint32{op(opTypePointer, pointer, 9, idUint)}, `PushConstant variable %32 "" holds no structure`},
		{"no offset", nil, [][]uint32{op(opTypeStruct, block, idUint), op(opTypePointer, pointer, 9, block)}, "member 0 of %30 has no Offset"},
		{"no length", [][]uint32{op(opMemberDecorate, block, 0, decorationOffset, 0), op(opDecorate, runtime, decorationArrayStride, 4)},
			[][]uint32{op(opTypeRuntimeArray, runtime, idUint), op(opTypeStruct, block, runtime), op(opTypePointer, pointer, 9, block)}, "push constants end in an array without a length"},
		{"too large", [][]uint32{op(opMemberDecorate, block, 0, decorationOffset, 0xfffffffe)},
			[][]uint32{op(opTypeStruct, block, idUint), op(opTypePointer, pointer, 9, block)}, "push constants take 4294967298 bytes"},
		{"too large in whole words", [][]uint32{op(opMemberDecorate, block, 0, decorationOffset, 0xfffffff9)},
			[][]uint32{op(opTypeStruct, block, idUint), op(opTypePointer, pointer, 9, block)}, "push constants take 4294967293 bytes"},
		{"two blocks", [][]uint32{op(opMemberDecorate, block, 0, decorationOffset, 0)},
			[][]uint32{op(opTypeStruct, block, idUint), op(opTypePointer, pointer, 9, block), op(opVariable, pointer, 34, 9)}, "a second PushConstant variable of one entry point, after %34"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := shader{annotations: test.annotations, globals: append(test.globals, op(opVariable, pointer, push, 9))}
			s.body = [][]uint32{op(opCopyObject, pointer, 60, push)}
			if strings.Contains(test.name, "two") {
				s.body = append(s.body, op(opCopyObject, pointer, 61, 34))
			}
			_, err := Parse(s.encode())
			wantError(t, err, test.want)
		})
	}
}
