package spirv

import (
	"encoding/binary"
	"slices"
)

// op encodes one instruction.
func op(opcode uint32, operands ...uint32) []uint32 {
	return append([]uint32{uint32(len(operands)+1)<<16 | opcode}, operands...)
}

// text encodes a string literal after other operands.
func text(s string, before ...uint32) []uint32 {
	bytes := append([]byte(s), 0)
	for len(bytes)%4 != 0 {
		bytes = append(bytes, 0)
	}
	words := slices.Clone(before)
	for i := 0; i < len(bytes); i += 4 {
		words = append(words, binary.LittleEndian.Uint32(bytes[i:]))
	}
	return words
}

// assemble encodes a module of SPIR-V 1.5.
func assemble(bound uint32, instructions ...[]uint32) []byte {
	words := []uint32{magic, 0x00010500, 0, bound, 0}
	for _, in := range instructions {
		words = append(words, in...)
	}
	return encode(words, binary.LittleEndian)
}

func encode(words []uint32, order binary.AppendByteOrder) []byte {
	var code []byte
	for _, w := range words {
		code = order.AppendUint32(code, w)
	}
	return code
}

// Ids of a shader. The next free one is idFree.
const (
	idVoid = iota + 1
	idFunctionType
	idMain
	idLabel
	idUint
	idBool
	idZero
	idOne
	idTwo
	idFree

	idBound = 100
)

// shader is a compute module that tests modify: a main function with types and constants
// for use in its parts.
type shader struct {
	modes       [][]uint32 // nil: LocalSize 4 2 1
	annotations [][]uint32
	globals     [][]uint32
	body        [][]uint32
	functions   [][]uint32
}

func (s shader) encode() []byte {
	if s.modes == nil {
		s.modes = [][]uint32{op(opExecutionMode, idMain, modeLocalSize, 4, 2, 1)}
	}
	return assemble(idBound, slices.Concat(
		[][]uint32{
			op(opCapability, uint32(CapabilityShader)),
			op(14, 0, 1), // OpMemoryModel Logical GLSL450
			op(opEntryPoint, text("main", uint32(ModelGLCompute), idMain)...),
		},
		s.modes, s.annotations,
		[][]uint32{
			op(opTypeVoid, idVoid),
			op(33, idFunctionType, idVoid), // OpTypeFunction
			op(opTypeInt, idUint, 32, 0),
			op(opTypeBool, idBool),
			op(opConstant, idUint, idZero, 0),
			op(opConstant, idUint, idOne, 1),
			op(opConstant, idUint, idTwo, 2),
		},
		s.globals,
		[][]uint32{
			op(opFunction, idVoid, idMain, 0, idFunctionType),
			op(248, idLabel), // OpLabel
		},
		s.body,
		[][]uint32{op(253), op(opFunctionEnd)}, // OpReturn
		s.functions,
	)...)
}

// Ids of the declarations that storageBuffer makes.
const (
	idArray = idFree + iota
	idStruct
	idStructPointer
	idUintPointer
	idVariable
	idAfterBuffer
)

// storageBuffer declares struct { uint[] } at set 0, binding 0.
func storageBuffer() shader {
	return shader{
		annotations: [][]uint32{
			op(opDecorate, idArray, decorationArrayStride, 4),
			op(opMemberDecorate, idStruct, 0, decorationOffset, 0),
			op(opDecorate, idStruct, decorationBlock),
			op(opDecorate, idVariable, decorationDescriptorSet, 0),
			op(opDecorate, idVariable, decorationBinding, 0),
		},
		globals: [][]uint32{
			op(opTypeRuntimeArray, idArray, idUint),
			op(opTypeStruct, idStruct, idArray),
			op(opTypePointer, idStructPointer, uint32(classStorageBuffer), idStruct),
			op(opTypePointer, idUintPointer, uint32(classStorageBuffer), idUint),
			op(opVariable, idStructPointer, idVariable, uint32(classStorageBuffer)),
		},
	}
}
