package spirv

import "slices"

// spacing is what a merging needs for SpacedBindings: in each function that accesses a binding, where the launch's part
// of it begins, how many elements that has, and how many the binding has. The function finds it out at its
// beginning.
type spacing struct {
	// places has the place of each binding's variable among the bindings of the entry point, by id.
	places map[uint32]int
	// bindings is how many there are.
	bindings int
	// arrays has, for each pointer to all elements of a binding, the variable and the index that lead to it, by id.
	arrays map[uint32][]uint32
	// used are the variables that a function accesses, by the offset of the instruction behind which it finds that out,
	// and parts is what the function has found out of each.
	used  map[int][]uint32
	parts map[uint32]spacedPart
	// unsigned and boolean are types, and word is that of a pointer to a word of the push constants.
	unsigned, boolean, word uint32
	// words is the array of the words that say where parts are.
	words uint32
	// numbers are constants, of which the n-th is n.
	numbers []uint32
}

// spacedPart has the ids of the first element of a launch's part, of the number of its elements, and of the number of
// elements of the binding, which is an index that is in no part.
type spacedPart struct{ start, length, outside uint32 }

// findSpaced finds the bindings. Each has to be an array and nothing else: parts begin at any of its elements.
func (f *folding) findSpaced(e *EntryPoint) error {
	g := f.merging
	if len(e.Bindings) == 0 {
		return f.entry.errorf("it has no bindings")
	}
	s := &spacing{
		places: make(map[uint32]int), bindings: len(e.Bindings), arrays: make(map[uint32][]uint32),
		used: make(map[int][]uint32), words: f.newID(),
	}
	g.spacing = s
	for i, v := range f.variables {
		if !f.used[i] || !v.class.isDescriptor() {
			continue
		}
		d := f.decorations.of(idKey(v.id))
		place := slices.IndexFunc(e.Bindings, func(b Binding) bool { return b.Set == d.descriptorSet && b.Binding == d.binding })
		block, _, err := f.descriptorType(v)
		if err != nil {
			return err
		}
		// A member before the array may have no size.
		if place < 0 || len(block.operands) != 2 || e.Bindings[place].Kind != StorageBuffer || e.Bindings[place].Count != 1 || e.Bindings[place].Stride == 0 || e.Bindings[place].MinSize != 0 {
			return f.at(v.word).errorf("%%%d is more than an array in a storage buffer, or less", v.id)
		}
		s.places[v.id] = place
	}
	for function := range f.reachedFunctions() {
		prologue := f.prologueOf(function)
		for word := function.start; word < function.end; {
			in := f.at(word)
			word = in.next()
			id, o := f.spacedVariable(in)
			if id != 0 && !slices.Contains(s.used[prologue], id) {
				s.used[prologue] = append(s.used[prologue], id)
			}
			if id != 0 && in.opcode != opArrayLength && len(o) == 4 {
				s.arrays[o[1]] = o[2:]
			}
		}
	}
	return nil
}

// spacedVariable returns the variable of SpacedBindings that an instruction accesses in a way that can be rewritten, or 0.
// operands are those that the instruction would have if it did not do so through a pointer to all elements.
func (f *folding) spacedVariable(in instruction) (id uint32, operands []uint32) {
	o := in.operands
	switch in.opcode {
	case opAccessChain, opInBoundsAccessChain:
		if array := f.merging.spacing.arrays[o[2]]; array != nil {
			o = slices.Concat(o[:2], array, o[3:])
		}
	case opArrayLength:
	default:
		return 0, nil
	}
	if !f.isSpaced(o[2]) {
		return 0, nil
	}
	return o[2], o
}

// base returns the number of bytes of the words that say where parts are, with what follows them aligned like any block, and
// to align, a power of two, if that is more: vectors of doubles need 32 bytes.
func (s *spacing) base(align uint32) uint32 {
	align = max(align, 16)
	return (8*uint32(s.bindings) + align - 1) &^ (align - 1)
}

// declareSpaced appends the types and constants.
func (f *folding) declareSpaced() {
	s := f.merging.spacing
	for _, word := range f.types {
		switch in := f.at(word); {
		case in.opcode == opTypeInt && in.operands[1] == 32 && in.operands[2] == 0 && s.unsigned == 0:
			s.unsigned = in.operands[0]
		case in.opcode == opTypeBool && s.boolean == 0:
			s.boolean = in.operands[0]
		}
	}
	if s.unsigned == 0 {
		s.unsigned = f.merging.unsigned
	}
	if s.unsigned == 0 {
		s.unsigned = f.newID()
		f.emit(opTypeInt, s.unsigned, 32, 0)
	}
	if s.boolean == 0 {
		s.boolean = f.newID()
		f.emit(opTypeBool, s.boolean)
	}
	for n := range 2 * s.bindings {
		s.numbers = append(s.numbers, f.emitResult(opConstant, s.unsigned, uint32(n)))
	}
	length := f.emitResult(opConstant, s.unsigned, uint32(2*s.bindings))
	f.emit(opTypeArray, s.words, s.unsigned, length)
	s.word = f.newID()
	f.emit(opTypePointer, s.word, uint32(classPushConstant), s.unsigned)
}

// emitParts appends what a function finds out at its beginning, behind an instruction of the module.
func (f *folding) emitParts(behind int) {
	if f.merging == nil || f.merging.spacing == nil || len(f.merging.spacing.used[behind]) == 0 {
		return
	}
	s := f.merging.spacing
	s.parts = make(map[uint32]spacedPart)
	launch := f.emitLaunchNumber()
	for _, id := range s.used[behind] {
		word := func(n int) uint32 {
			pointer := f.emitResult(opAccessChain, s.word, f.merging.pushed, s.numbers[0], s.numbers[2*s.places[id]+n])
			return f.emitResult(opLoad, s.unsigned, pointer)
		}
		s.parts[id] = spacedPart{
			start:   f.emitResult(opIMul, s.unsigned, word(0), launch),
			length:  word(1),
			outside: f.emitResult(opArrayLength, s.unsigned, id, 0),
		}
	}
}

// spacedInstruction appends the replacement of an instruction that accesses a binding. It returns false, and has done
// nothing, for any other.
func (f *folding) spacedInstruction(in instruction) (done bool, err error) {
	s := f.merging.spacing
	id, o := f.spacedVariable(in)
	if id == 0 {
		return false, f.refuseSpaced(in)
	}
	part, ok := s.parts[id]
	if !f.merging.declared || !ok {
		return true, in.errorf("it accesses %%%d outside of a function", id)
	}
	if in.opcode == opArrayLength {
		f.emit(opCopyObject, o[0], o[1], part.length)
		return true, nil
	}
	if len(o) < 4 {
		return true, in.errorf("it is a pointer to all of %%%d", id)
	}
	for _, index := range o[3:] {
		if f.input(index) != nil || f.mergedVariable(index) != nil || f.isSpacedPointer(index) {
			return true, in.errorf("%%%d is no index", index)
		}
	}
	if len(o) > maxOperands {
		return true, in.errorf("%d operands are too many", len(o))
	}
	if !f.isInside(o[2], o[3:]) {
		return true, in.leadsOut()
	}
	if len(o) == 4 {
		f.copy(in) // what leads on from it begins at the variable
		return true, nil
	}
	if !f.isWord(o[4]) {
		return true, in.errorf("index %%%d has not 32 bits", o[4])
	}
	inside := f.emitResult(opULessThan, s.boolean, o[4], part.length)
	moved := f.emitResult(opIAdd, s.unsigned, o[4], part.start)
	index := f.emitResult(opSelect, s.unsigned, inside, moved, part.outside)
	// The access was in bounds of the launch's part at most.
	f.emit(opAccessChain, slices.Concat(o[:4], []uint32{index}, o[5:])...)
	return true, nil
}

// isSpaced reports whether an id is the variable of a binding of which each launch has a part.
func (f *folding) isSpaced(id uint32) bool {
	if f.merging == nil || f.merging.spacing == nil {
		return false
	}
	_, ok := f.merging.spacing.places[id]
	return ok
}

// isSpacedPointer reports whether an id is such a variable, or a pointer to all elements of one.
func (f *folding) isSpacedPointer(id uint32) bool {
	return f.isSpaced(id) || f.merging != nil && f.merging.spacing != nil && f.merging.spacing.arrays[id] != nil
}

// isWord reports whether a value is an integer of 32 bits.
func (f *folding) isWord(id uint32) bool {
	value, ok := f.definition(id)
	if !ok || len(value.operands) < 2 || value.operands[1] != id {
		return false
	}
	kind, ok := f.definition(value.operands[0])
	return ok && kind.opcode == opTypeInt && kind.operands[1] == 32
}

// isInside reports whether the indices of an access chain lead to a part of what its base points to, apart from an
// index into an array without a length.
func (f *folding) isInside(base uint32, path []uint32) bool {
	value, ok := f.definition(base)
	if !ok || len(value.operands) < 2 || value.operands[1] != base {
		return false
	}
	pointer, ok := f.definition(value.operands[0])
	if !ok || pointer.opcode != opTypePointer {
		return false
	}
	held := pointer.operands[2]
	if f.isSpaced(base) { // the indices of the array in its structure, and of the element if there is one
		array, ok := f.within(held, path[:1])
		whole, _ := f.definition(array)
		if !ok || whole.opcode != opTypeRuntimeArray {
			return false
		}
		held, path = whole.operands[1], path[min(2, len(path)):]
	}
	_, ok = f.within(held, path)
	return ok
}

// leadsOut returns the error for an access chain that perhaps leads out of the launch's part: what comes behind an element may
// be in the next launch's, and is out of bounds for this one's, where a device may have to keep kernels in bounds.
func (in instruction) leadsOut() error {
	return in.errorf("it could lead out of an element of a binding: indices of parts have to be constants that are in bounds")
}

// isVariable reports whether an id is a variable of the module.
func (f *folding) isVariable(id uint32) bool {
	root := f.roots.get(id)
	return root != 0 && f.variables[root-1].id == id
}

// refuseSpaced returns an error for an instruction that reads or writes all of a binding, or that moves a pointer to an
// element, or to a part of one, perhaps out of the launch's part.
func (f *folding) refuseSpaced(in instruction) error {
	var pointers []uint32
	switch o := in.operands; in.opcode {
	case opAccessChain, opInBoundsAccessChain:
		if !f.isVariable(o[2]) && f.isBindingPointer(o[0]) && !f.isInside(o[2], o[3:]) {
			return in.leadsOut()
		}
	case opLoad:
		pointers = o[2:3]
	case opStore:
		pointers = o[:1]
	case opCopyMemory:
		pointers = o[:2]
	case opPtrAccessChain, opInBoundsPtrAccessChain, opRawAccessChainNV:
		if f.isBindingPointer(o[0]) {
			return in.errorf("it moves a pointer in a binding")
		}
	}
	for _, id := range pointers {
		if f.isSpacedPointer(id) {
			return in.errorf("it accesses all of %%%d", id)
		}
	}
	return nil
}

// isBindingPointer reports whether values of a type may point into bindings.
func (f *folding) isBindingPointer(id uint32) bool {
	pointer, _ := f.definition(id)
	return pointer.opcode != opTypePointer || storageClass(pointer.operands[1]).isDescriptor()
}
