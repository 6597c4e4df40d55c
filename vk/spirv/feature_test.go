package spirv

import (
	"fmt"
	"strings"
	"testing"
)

// features names what a module needs of Vulkan that has no capability of its own.
func features(m *Module) string {
	var names []string
	for _, f := range []struct {
		name   string
		needed bool
	}{
		{"initialized", m.InitializesShared}, {"size by id", m.SizeByID},
		{"shared atomics", m.SharedInt64Atomics}, {"buffer atomics", m.BufferInt64Atomics},
		{"extended types", m.SubgroupExtendedTypes}, {"dynamic id", m.SubgroupBroadcastDynamicID},
	} {
		if f.needed {
			names = append(names, f.name)
		}
	}
	return strings.Join(names, ", ")
}

func TestFeaturesWithoutCapabilityAreFound(t *testing.T) {
	for file, want := range map[string]string{
		"zeroed.spv": "initialized", "localsizeid.spv": "size by id",
		"sharedatomics.spv": "shared atomics", "bufferatomics.spv": "buffer atomics",
		"subgrouptypes.spv": "extended types", "broadcast.spv": "dynamic id",
		"specialization.spv": "", "access.spv": "",
	} {
		if got := features(parsed(t, file)); got != want {
			t.Errorf("%s needs %q, want %q", file, got, want)
		}
	}
}

func TestFeaturesOfTypesAndStorageClasses(t *testing.T) {
	const (
		idScalar = iota + idFree // the type that a case names
		idVector
		idPointerType
		idPointer
		idScalarValue
		idVectorValue
		idNumber // of an invocation, no constant
		idSpecialized
		idResult

		iAdd, fAdd, shuffle = 349, 350, 345
	)
	types := map[string][]uint32{
		"int8": op(opTypeInt, idScalar, 8, 1), "int16": op(opTypeInt, idScalar, 16, 0), "int64": op(opTypeInt, idScalar, 64, 1),
		"half": op(opTypeFloat, idScalar, 16), "float": op(opTypeFloat, idScalar, 32), "double": op(opTypeFloat, idScalar, 64),
	}
	load := op(opAtomicLoad, idScalar, idResult, idPointer, idOne, idZero)
	store := op(opAtomicStore, idPointer, idOne, idZero, idScalarValue)
	xor := op(opAtomicXor, idScalar, idResult, idPointer, idOne, idZero, idScalarValue)
	for _, c := range []struct {
		scalar string
		class  storageClass
		body   []uint32
		want   string
	}{
		{"int64", classWorkgroup, load, "shared atomics"},
		{"int64", classWorkgroup, store, "shared atomics"},
		{"int64", classWorkgroup, xor, "shared atomics"},
		{"int64", classStorageBuffer, xor, "buffer atomics"},
		{"int64", classUniform, store, "buffer atomics"},
		{"int64", classPhysicalStorageBuffer, load, "buffer atomics"},
		{"int16", classWorkgroup, load, ""},
		{"double", classWorkgroup, load, ""},
		{"int64", classWorkgroup, op(opLoad, idScalar, idResult, idPointer), ""},

		{"int8", 0, op(iAdd, idScalar, idResult, idOne, 0, idScalarValue), "extended types"},
		{"int16", 0, op(iAdd, idScalar, idResult, idOne, 0, idScalarValue), "extended types"},
		{"int64", 0, op(iAdd, idScalar, idResult, idOne, 0, idScalarValue), "extended types"},
		{"half", 0, op(fAdd, idScalar, idResult, idOne, 0, idScalarValue), "extended types"},
		{"float", 0, op(fAdd, idScalar, idResult, idOne, 0, idScalarValue), ""},
		{"double", 0, op(fAdd, idScalar, idResult, idOne, 0, idScalarValue), ""},
		{"half", 0, op(shuffle, idVector, idResult, idOne, idVectorValue, idNumber), "extended types"},
		{"float", 0, op(shuffle, idVector, idResult, idOne, idVectorValue, idNumber), ""},
		{"int16", 0, op(opGroupNonUniformAllEqual, idBool, idResult, idOne, idScalarValue), "extended types"},
		{"float", 0, op(opGroupNonUniformAllEqual, idBool, idResult, idOne, idScalarValue), ""},
		{"int16", 0, op(opGroupNonUniformElect, idBool, idResult, idOne), ""},
		{"int16", 0, op(opGroupNonUniformQuadSwap, idScalar, idResult, idOne, idScalarValue, idZero), "extended types"},

		{"float", 0, op(opGroupNonUniformBroadcast, idScalar, idResult, idOne, idScalarValue, idSpecialized), ""},
		{"float", 0, op(opGroupNonUniformBroadcast, idScalar, idResult, idOne, idScalarValue, idNumber), "dynamic id"},
		{"float", 0, op(opGroupNonUniformQuadBroadcast, idScalar, idResult, idOne, idScalarValue, idTwo), ""},
		{"float", 0, op(opGroupNonUniformQuadBroadcast, idScalar, idResult, idOne, idScalarValue, idNumber), "dynamic id"},
	} {
		t.Run(fmt.Sprintf("%s, %v, %s", c.scalar, c.class, operationName(uint16(c.body[0]))), func(t *testing.T) {
			s := shader{globals: [][]uint32{
				types[c.scalar],
				op(opTypeVector, idVector, idScalar, 2),
				op(opTypePointer, idPointerType, uint32(c.class), idScalar),
				op(opUndef, idPointerType, idPointer), op(opUndef, idScalar, idScalarValue),
				op(opUndef, idVector, idVectorValue), op(opUndef, idUint, idNumber),
				op(opSpecConstant, idUint, idSpecialized, 3),
			}, body: [][]uint32{c.body}}
			m, err := Parse(s.encode())
			if err != nil {
				t.Fatal(err)
			}
			if got := features(m); got != c.want {
				t.Errorf("needs %q, want %q", got, c.want)
			}
		})
	}
}
