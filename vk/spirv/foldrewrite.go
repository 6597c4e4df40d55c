package spirv

import "slices"

const (
	opLine              = 8
	opFunctionParameter = 55
	opCompositeInsert   = 82
	opLabel             = 248
	opNoLine            = 317
)

// findPrologue finds where to insert instructions at the beginning of the entry point's
// function.
func (f *folding) findPrologue() error {
	function := &f.functions[f.functionIndex.get(f.function)-1]
	if f.prologue = f.prologueOf(function); f.prologue == 0 {
		return f.at(function.start).errorf("function %%%d has no first block", f.function)
	}
	return nil
}

// prologueOf returns the offset of the last of the variables at the beginning of a function's first block, of
// the block's label if there are none, and 0 for a function without a block.
func (f *folding) prologueOf(function *function) (prologue int) {
	for word := f.at(function.start).next(); ; {
		in := f.at(word)
		word = in.next()
		switch {
		case in.opcode == opLabel && prologue == 0, in.opcode == opVariable && prologue != 0:
			prologue = in.word
		case in.opcode == opFunctionParameter && prologue == 0:
		case in.opcode == opLine, in.opcode == opNoLine, f.isSilent(in):
		default:
			return prologue // OpFunctionEnd ends the loop at the latest
		}
	}
}

// isSilent reports whether an instruction is debug information.
func (f *folding) isSilent(in instruction) bool {
	return (in.opcode == opExtInst || in.opcode == opExtInstWithForwardRefsKHR) && f.silentSets[in.operands[2]]
}

// input returns the folded variable that an id is or is derived from, or nil.
func (f *folding) input(id uint32) *foldedInput { return f.inputs[f.roots.get(id)] }

// rewrite copies the module and changes the instructions that concern the inputs.
func (f *folding) rewrite() ([]uint32, error) {
	if err := f.findSize(); err != nil {
		return nil, err
	}
	if err := f.findPrologue(); err != nil {
		return nil, err
	}
	if f.workgroup == nil {
		f.hardware = f.newID()
	}
	for _, in := range []*foldedInput{f.workgroup, f.global, f.count} {
		if in != nil {
			in.hardware = f.newID()
		}
	}
	if f.workgroup != nil {
		f.hardware = f.workgroup.hardware
	}
	f.out = append(make([]uint32, 0, len(f.words)+128), f.words[:headerWords]...)
	lines := len(f.out) // where the lines in the source of the next instruction stand, if there are any
	for word := headerWords; word < len(f.words); {
		in := f.at(word)
		word = in.next()
		if behind := f.behindLeft(in); behind != 0 {
			f.out, word = f.out[:lines], behind
			continue
		}
		f.declareMerged(in)
		if err := f.instruction(in); err != nil {
			return nil, err
		}
		if in.word == f.prologue {
			f.emitPrologue()
		}
		f.emitParts(in.word)
		f.emitPushedLoads(in.word)
		if in.opcode != opLine && in.opcode != opNoLine {
			lines = len(f.out)
		}
	}
	if f.nextID > maxBound {
		return nil, headerError(3, "bound on ids would be %d, above %d", f.nextID, maxBound)
	}
	f.out[3] = f.nextID
	return f.out, nil
}

func (f *folding) newID() uint32 {
	f.nextID++
	return f.nextID - 1
}

// emit appends an instruction.
func (f *folding) emit(opcode uint16, operands ...uint32) {
	f.out = append(f.out, uint32(len(operands)+1)<<16|uint32(opcode))
	f.out = append(f.out, operands...)
}

// emitResult appends an instruction that has a result, and returns its id.
func (f *folding) emitResult(opcode uint16, resultType uint32, operands ...uint32) uint32 {
	id := f.newID()
	f.emit(opcode, append([]uint32{resultType, id}, operands...)...)
	return id
}

func (f *folding) copy(in instruction) { f.emit(in.opcode, in.operands...) }

// instruction appends an instruction of the module or its replacement.
func (f *folding) instruction(in instruction) error {
	o := in.operands
	if done, err := f.mergedInstruction(in); done || err != nil {
		return err
	}
	switch in.opcode {
	case opEntryPoint:
		if in.word == f.entry.word {
			return f.emitEntryPoint()
		}
		return nil
	case opExecutionMode, opExecutionModeID:
		if o[0] == f.function {
			f.copy(in)
		}
		return nil
	case opName:
		if !f.isLeft(o[0]) {
			f.copy(in)
		}
		return nil
	case opDecorate, opDecorateID, opDecorateString, opDecorationGroup, opGroupDecorate,
		opMemberDecorate, opMemberDecorateString, opGroupMemberDecorate:
		f.emitAnnotation(in)
		return nil
	case opVariable:
		if v := f.input(o[1]); v != nil {
			f.emitVariables(v)
			return nil
		}
	case opAccessChain, opInBoundsAccessChain, opCopyObject:
		if v := f.input(o[2]); v != nil {
			return f.emitDerived(in, v)
		}
	case opLoad:
		f.copy(in)
		return nil
	case opCopyMemory:
		// For reading, a Private variable can be used like an Input.
		if f.input(o[0]) == nil && f.mergedVariable(o[0]) == nil && f.mergedVariable(o[1]) == nil {
			f.copy(in)
			return nil
		}
	}
	if err := f.refuseUse(in); err != nil {
		return err
	}
	f.copy(in)
	return nil
}

// emitEntryPoint appends the OpEntryPoint. Before SPIR-V 1.4 it lists variables of the
// classes Input and Output only, since then all variables.
func (f *folding) emitEntryPoint() error {
	operands := append([]uint32{f.entry.operands[0], f.function}, f.name...)
	for _, id := range f.interfaceIDs {
		if (f.input(id) == nil || f.module.Version >= 0x00010400) && !f.isUnpushed(id) {
			operands = append(operands, id)
		}
	}
	if f.merging != nil && f.merging.added && f.module.Version >= 0x00010400 {
		operands = append(operands, f.merging.pushed)
	}
	operands = append(operands, f.hardware)
	for _, v := range []*foldedInput{f.global, f.count} {
		if v != nil {
			operands = append(operands, v.hardware)
		}
	}
	if len(operands) > maxOperands {
		return f.entry.errorf("lists too many variables to add %d", 4)
	}
	f.emit(opEntryPoint, operands...)
	return nil
}

// emitAnnotation appends an annotation. Annotations of a folded variable are moved to the
// new Input, and those of what the variant does not have are left.
func (f *folding) emitAnnotation(in instruction) {
	f.emitDecorations()
	switch in.opcode {
	case opGroupDecorate:
		in.operands = append(in.operands[:1:1], slices.DeleteFunc(slices.Clone(in.operands[1:]), f.isLeft)...)
	case opDecorate, opDecorateID, opDecorateString:
		if f.isLeft(in.operands[0]) {
			return
		}
	}
	targets := 1
	switch in.opcode {
	case opGroupDecorate:
		targets = len(in.operands)
	case opDecorate, opDecorateID, opDecorateString:
	default:
		targets = 0
	}
	f.copy(in)
	copied := f.out[len(f.out)-len(in.operands):]
	for i, id := range copied[:targets] {
		if v := f.input(id); v != nil && v.id == id {
			copied[i] = v.hardware
		}
	}
}

// emitDecorations appends the annotations of new ids, if that has not been done.
func (f *folding) emitDecorations() {
	if f.decorated {
		return
	}
	f.decorated = true
	if f.workgroup == nil {
		f.emit(opDecorate, f.hardware, decorationBuiltIn, builtInWorkgroupID)
	}
	f.decorateMerged()
}

// emitVariables appends the declarations that replace a folded variable.
func (f *folding) emitVariables(v *foldedInput) {
	v.privateVector, v.privateScalar = f.newID(), f.newID()
	f.emit(opTypePointer, v.privateVector, uint32(classPrivate), v.vector)
	f.emit(opTypePointer, v.privateScalar, uint32(classPrivate), v.scalar)
	v.zero = f.emitResult(opConstantNull, v.scalar)
	v.limit = f.emitResult(opConstant, v.scalar, f.limit)
	if v == f.count {
		v.one = f.emitResult(opConstant, v.scalar, 1)
	}
	if v == f.global {
		v.sizes = f.sizeIDs
		for i, id := range v.sizes {
			if id == 0 {
				v.sizes[i] = f.emitResult(opConstant, v.scalar, f.sizes[i])
			}
		}
	}
	if v == f.typed && f.workgroup == nil {
		f.emit(opVariable, v.pointer, f.hardware, uint32(classInput))
	}
	f.emit(opVariable, v.pointer, v.hardware, uint32(classInput))
	f.emit(opVariable, v.privateVector, v.id, uint32(classPrivate))
}

const classPrivate storageClass = 6

// emitDerived appends an instruction that derives a pointer from a folded variable, which
// is now of class Private.
func (f *folding) emitDerived(in instruction, v *foldedInput) error {
	o := in.operands
	for _, index := range o[3:] {
		if f.input(index) != nil {
			return f.refusal(in, index)
		}
	}
	pointer, ok := f.definition(o[0])
	if !ok || pointer.opcode != opTypePointer || storageClass(pointer.operands[1]) != classInput {
		return in.errorf("%%%d is no type of a pointer into %s", o[0], foldedNames[v.builtIn])
	}
	f.copy(in)
	resultType := &f.out[len(f.out)-len(o)]
	switch pointer.operands[2] {
	case v.vector:
		*resultType = v.privateVector
	case v.scalar:
		*resultType = v.privateScalar
	default:
		return in.errorf("%%%d is no type of a pointer into %s", o[0], foldedNames[v.builtIn])
	}
	return nil
}

// refuseUse returns an error for an instruction that uses a pointer into a folded variable.
// Instructions that may do so are not passed to it.
func (f *folding) refuseUse(in instruction) error {
	if f.isSilent(in) {
		return nil
	}
	for id := range in.ids {
		if f.input(id) != nil {
			return f.refusal(in, id)
		}
		if f.mergedVariable(id) != nil || f.isSpacedPointer(id) {
			return in.errorf("%%%d is a variable that can be merged only where a member of it is accessed", id)
		}
	}
	return nil
}

func (f *folding) refusal(in instruction, id uint32) error {
	return in.errorf("%%%d points into the built-in %s, which can be folded only where it is loaded", id, foldedNames[f.input(id).builtIn])
}

// emitPrologue appends the computation of the built-ins. The operands of integer arithmetic
// may differ in signedness, and so may the types of the two inputs.
func (f *folding) emitPrologue() {
	if len(f.inputs) == 0 {
		return
	}
	v := f.typed
	const z = 2
	hardware := f.emitResult(opLoad, v.vector, f.hardware)
	layer := f.emitResult(opCompositeExtract, v.scalar, hardware, z)
	skipped := f.emitResult(opIMul, v.scalar, layer, v.limit) // workgroups in the layers before
	if v := f.workgroup; v != nil {
		index := f.emitResult(opCompositeExtract, v.scalar, hardware, f.dimension)
		index = f.emitResult(opIAdd, v.scalar, index, skipped)
		f.emitStore(v, hardware, index, v.zero)
	}
	if v := f.global; v != nil {
		hardware := f.emitResult(opLoad, v.vector, v.hardware)
		skipped := f.emitResult(opIMul, v.scalar, skipped, v.sizes[0]) // in invocations
		index := f.emitResult(opCompositeExtract, v.scalar, hardware, f.dimension)
		index = f.emitResult(opIAdd, v.scalar, index, skipped)
		below := f.emitResult(opIMul, v.scalar, layer, v.sizes[1])
		depth := f.emitResult(opCompositeExtract, v.scalar, hardware, z)
		depth = f.emitResult(opISub, v.scalar, depth, below)
		f.emitStore(v, hardware, index, depth)
	}
	if v := f.count; v != nil {
		hardware := f.emitResult(opLoad, v.vector, v.hardware)
		f.emit(opStore, v.id, f.emitResult(opCompositeInsert, v.vector, v.one, hardware, z))
	}
}

// emitStore appends the store of a vector with two components replaced.
func (f *folding) emitStore(v *foldedInput, vector, index, z uint32) {
	vector = f.emitResult(opCompositeInsert, v.vector, index, vector, f.dimension)
	vector = f.emitResult(opCompositeInsert, v.vector, z, vector, 2)
	f.emit(opStore, v.id, vector)
}
