package spirv

import "math"

// constant is an integer or boolean constant that may depend on specialization constants.
// It is represented by the operations that compute it; the value of the last node is its
// value.
type constant struct {
	nodes       []node
	specialized bool // depends on a specialization constant that has a SpecId
}

// node is one operation of a constant; its operands are earlier nodes.
type node struct {
	opcode uint16 // opConstant for a value, else an operation of OpSpecConstantOp
	bits   uint8  // width of the result; 1 for a boolean
	source uint8  // width of the first operand
	args   [3]uint8
	value  uint64 // of opConstant: the default value
	spec   *uint32
}

// value computes a constant. spec holds values of specialization constants by SpecId; the
// others have their defaults. The result is zero-extended from its width. ok is false after
// a division by zero.
func (c constant) value(spec map[uint32]uint32) (v uint64, ok bool) {
	var values [maxConstantNodes]uint64
	for i := range c.nodes {
		n := &c.nodes[i]
		if n.opcode == opConstant {
			v = n.value
			if n.spec != nil {
				if given, ok := spec[*n.spec]; ok {
					v = uint64(given)
					if n.bits == 1 {
						v = boolean(given != 0)
					}
				}
			}
		} else {
			v, ok = n.operate(values[n.args[0]], values[n.args[1]], values[n.args[2]])
			if !ok {
				return 0, false
			}
		}
		v = truncate(v, n.bits)
		values[i] = v
	}
	return v, len(c.nodes) > 0
}

// dimension returns the value as a dimension of a workgroup, zero if it is undefined or
// too large.
func (c constant) dimension(spec map[uint32]uint32) uint32 {
	v, ok := c.value(spec)
	if !ok || v > math.MaxUint32 {
		return 0
	}
	return uint32(v)
}

func boolean(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func truncate(v uint64, bits uint8) uint64 { return v << (64 - bits) >> (64 - bits) }

func signed(v uint64, bits uint8) int64 { return int64(v<<(64-bits)) >> (64 - bits) }

// operands returns the number of operands of an operation, 0 for one that cannot be folded.
func operands(opcode uint32) int {
	switch opcode {
	case opUConvert, opSConvert, opSNegate, opNot, opLogicalNot:
		return 1
	case opIAdd, opISub, opIMul, opUDiv, opSDiv, opUMod, opSRem, opSMod,
		opShiftRightLogical, opShiftRightArithmetic, opShiftLeftLogical,
		opBitwiseOr, opBitwiseXor, opBitwiseAnd,
		opLogicalEqual, opLogicalNotEqual, opLogicalOr, opLogicalAnd,
		opIEqual, opINotEqual, opUGreaterThan, opSGreaterThan, opUGreaterThanEqual,
		opSGreaterThanEqual, opULessThan, opSLessThan, opULessThanEqual, opSLessThanEqual:
		return 2
	case opSelect:
		return 3
	}
	return 0
}

// operate applies the node's operation; the result may exceed its width.
func (n *node) operate(a, b, c uint64) (v uint64, ok bool) {
	sa, sb := signed(a, n.source), signed(b, n.source)
	switch n.opcode {
	case opUConvert:
		return a, true
	case opSConvert:
		return uint64(sa), true
	case opSNegate:
		return -a, true
	case opNot:
		return ^a, true
	case opLogicalNot:
		return a ^ 1, true
	case opIAdd:
		return a + b, true
	case opISub:
		return a - b, true
	case opIMul:
		return a * b, true
	case opUDiv, opSDiv, opUMod, opSRem, opSMod:
		if b == 0 {
			return 0, false
		}
		return n.divide(a, b, sa, sb), true
	case opShiftRightLogical:
		return a >> b, true
	case opShiftRightArithmetic:
		return uint64(sa >> b), true
	case opShiftLeftLogical:
		return a << b, true
	case opBitwiseOr, opLogicalOr:
		return a | b, true
	case opBitwiseXor:
		return a ^ b, true
	case opBitwiseAnd, opLogicalAnd:
		return a & b, true
	case opLogicalEqual, opIEqual:
		return boolean(a == b), true
	case opLogicalNotEqual, opINotEqual:
		return boolean(a != b), true
	case opUGreaterThan:
		return boolean(a > b), true
	case opSGreaterThan:
		return boolean(sa > sb), true
	case opUGreaterThanEqual:
		return boolean(a >= b), true
	case opSGreaterThanEqual:
		return boolean(sa >= sb), true
	case opULessThan:
		return boolean(a < b), true
	case opSLessThan:
		return boolean(sa < sb), true
	case opULessThanEqual:
		return boolean(a <= b), true
	case opSLessThanEqual:
		return boolean(sa <= sb), true
	case opSelect:
		if a != 0 {
			return b, true
		}
		return c, true
	}
	return 0, false
}

// divide computes a division by b, which is not zero.
func (n *node) divide(a, b uint64, sa, sb int64) uint64 {
	switch n.opcode {
	case opUDiv:
		return a / b
	case opUMod:
		return a % b
	case opSDiv:
		return uint64(sa / sb)
	}
	remainder := sa % sb // has the sign of sa, as OpSRem requires
	if n.opcode == opSMod && remainder != 0 && (remainder < 0) != (sb < 0) {
		remainder += sb
	}
	return uint64(remainder)
}
