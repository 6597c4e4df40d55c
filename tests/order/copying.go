package order

import "encoding/binary"

// Opcodes and storage classes of SPIR-V.
const (
	opFunctionCall        = 57
	opVariable            = 59
	opLoad                = 61
	opStore               = 62
	opCopyMemory          = 63
	opCopyMemorySized     = 64
	opAccessChain         = 65
	opInBoundsAccessChain = 66
	opAtomicLoad          = 227
	opAtomicXor           = 242

	classUniform       = 2 // a storage buffer before SPIR-V 1.3
	classStorageBuffer = 12
)

// onlyCopies reports whether a kernel stores in buffers nothing but what it has loaded from buffers, so
// that it moves the bytes that are bound to it. A kernel that does so in other ways than by plain
// loads and stores is not recognized.
func onlyCopies(code []byte) bool {
	const header = 5 // words
	var words []uint32
	for ; len(code) >= 4; code = code[4:] {
		words = append(words, binary.LittleEndian.Uint32(code))
	}
	class, loaded := map[uint32]uint32{}, map[uint32]bool{}
	inBuffer := func(pointer uint32) bool {
		return class[pointer] == classUniform || class[pointer] == classStorageBuffer
	}
	stores := false
	for at := header; at < len(words); {
		length, op := int(words[at]>>16), words[at]&0xffff
		if length == 0 || at+length > len(words) {
			return false
		}
		operands := words[at+1 : at+length]
		at += length
		switch {
		case op == opVariable && len(operands) >= 3:
			class[operands[1]] = operands[2]
		case (op == opAccessChain || op == opInBoundsAccessChain) && len(operands) >= 3:
			class[operands[1]] = class[operands[2]]
		case op == opLoad && len(operands) >= 3:
			loaded[operands[1]] = inBuffer(operands[2])
		case op == opStore && len(operands) >= 2 && inBuffer(operands[0]):
			if !loaded[operands[1]] {
				return false
			}
			stores = true
		case op == opFunctionCall, op == opCopyMemory, op == opCopyMemorySized, op >= opAtomicLoad && op <= opAtomicXor:
			return false
		}
	}
	return stores
}
