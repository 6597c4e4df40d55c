package spirv

// noteFeatures records what an instruction needs of Vulkan that has no capability of its own. For group
// operations of extensions, and atomic operations on images, there are capabilities.
func (p *parser) noteFeatures(in instruction) {
	o, m := in.operands, p.module
	switch {
	case in.opcode >= opAtomicLoad && in.opcode <= opAtomicXor:
		pointer := o[0]
		if in.opcode != opAtomicStore {
			pointer = o[2]
		}
		pointerType, ok := p.definition(p.typeOf(pointer))
		if !ok || pointerType.opcode != opTypePointer || p.integerBits(pointerType.operands[2]) != 64 {
			return
		}
		if storageClass(pointerType.operands[1]) == classWorkgroup {
			m.SharedInt64Atomics = true
		} else {
			m.BufferInt64Atomics = true
		}
	case in.opcode >= opGroupNonUniformElect && in.opcode <= opGroupNonUniformQuadSwap:
		t := o[0]
		if in.opcode == opGroupNonUniformAllEqual { // whose result is a boolean
			t = p.typeOf(o[3])
		}
		m.SubgroupExtendedTypes = m.SubgroupExtendedTypes || p.isExtendedType(t)
		if in.opcode == opGroupNonUniformBroadcast || in.opcode == opGroupNonUniformQuadBroadcast {
			m.SubgroupBroadcastDynamicID = m.SubgroupBroadcastDynamicID || !p.isConstant(o[4])
		}
	}
}

// typeOf returns the type of a value or a pointer, 0 if it is not known.
func (p *parser) typeOf(id uint32) uint32 {
	in, _ := p.definition(id)
	if operation, ok := lookup(in.opcode); ok && len(operation.shape) > 0 && operation.shape[0] == 't' {
		return in.operands[0]
	}
	return 0
}

// integerBits returns the width of a type of integers, 0 for another type.
func (p *parser) integerBits(id uint32) uint32 {
	if in, ok := p.definition(id); ok && in.opcode == opTypeInt {
		return in.operands[1]
	}
	return 0
}

// isExtendedType reports whether group operations on a type, or on vectors of it, need the feature
// shaderSubgroupExtendedTypes.
func (p *parser) isExtendedType(id uint32) bool {
	in, ok := p.definition(id)
	if ok && in.opcode == opTypeVector {
		id = in.operands[1]
		in, ok = p.definition(id)
	}
	if ok && in.opcode == opTypeFloat {
		return in.operands[1] == 16
	}
	bits := p.integerBits(id)
	return bits != 0 && bits != 32
}

// isConstant reports whether an id is defined by a constant instruction.
func (p *parser) isConstant(id uint32) bool {
	in, ok := p.definition(id)
	return ok && in.opcode >= opConstantTrue && in.opcode <= opSpecConstantOp
}
