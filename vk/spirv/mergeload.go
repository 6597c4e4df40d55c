package spirv

import "slices"

// pushedLoad is a scalar, vector, matrix or pointer among the push constants that a function loads. In the variant
// the function loads it once, at its beginning. A compiler takes a push constant of the original from where
// it stands whenever it is used, but one at a place that depends on the launch it loads, in each round of a
// loop anew: on an NVIDIA H200, a loop as long as a push constant says took four times as long.
type pushedLoad struct {
	pointer, value uint32   // types of the pointer to it, and of the value
	path           []uint32 // ids of the indices in the push constants of a launch, which are constants
	id             uint32   // what the variant loads
}

// findPushedLoads finds what the functions load from the push constants.
func (f *folding) findPushedLoads() {
	g := f.merging
	if g.block == 0 {
		return
	}
	g.loads, g.loaded = make(map[int][]pushedLoad), make(map[uint32]uint32)
	for i := range f.functions {
		function := &f.functions[i]
		prologue := f.prologueOf(function)
		if prologue == 0 {
			continue
		}
		chains := make(map[uint32]instruction)
		for word := function.start; word < function.end; {
			in := f.at(word)
			word = in.next()
			o := in.operands
			switch in.opcode {
			case opAccessChain, opInBoundsAccessChain:
				if v := g.variables[o[2]]; v != nil && v.class == classPushConstant && f.isSmall(v.held, o[3:]) {
					chains[o[1]] = in
				}
			case opLoad:
				if chain, ok := chains[o[2]]; ok && len(o) == 3 {
					g.loaded[o[1]] = f.pushedLoad(prologue, chain.operands, o[0])
				}
			}
		}
	}
}

// pushedLoad returns the id of a value that the variant loads behind the instruction at prologue, through a
// chain with these operands.
func (f *folding) pushedLoad(prologue int, chain []uint32, value uint32) uint32 {
	loads := f.merging.loads[prologue]
	i := slices.IndexFunc(loads, func(l pushedLoad) bool { return l.value == value && slices.Equal(l.path, chain[3:]) })
	if i < 0 {
		i = len(loads)
		loads = append(loads, pushedLoad{chain[0], value, chain[3:], f.newID()})
		f.merging.loads[prologue] = loads
	}
	return loads[i].id
}

// isSmall reports whether the part of a structure to which constants lead, given by their ids, is a scalar,
// a vector, a matrix or a pointer, and no element of an array, of which there may be none.
func (f *folding) isSmall(held uint32, path []uint32) bool {
	for _, id := range path {
		whole, _ := f.definition(held)
		index, ok := f.definition(id)
		switch {
		case !ok || index.opcode != opConstant || len(index.operands) != 3:
			return false
		case whole.opcode == opTypeStruct && int(index.operands[2]) < len(whole.operands)-1:
			held = whole.operands[1+index.operands[2]]
		case (whole.opcode == opTypeVector || whole.opcode == opTypeMatrix) && index.operands[2] < whole.operands[2]:
			held = whole.operands[1]
		default:
			return false
		}
	}
	switch part, _ := f.definition(held); part.opcode {
	case opTypeInt, opTypeFloat, opTypeVector, opTypeMatrix, opTypePointer:
		return true
	}
	return false
}

// emitPushedLoads appends what a function loads at its beginning, behind an instruction of the module.
func (f *folding) emitPushedLoads(behind int) {
	if f.merging == nil || len(f.merging.loads[behind]) == 0 {
		return
	}
	for _, v := range f.merging.order {
		if v.class != classPushConstant {
			continue
		}
		place := append([]uint32{v.id}, f.emitLaunch(v)...)
		for _, l := range f.merging.loads[behind] {
			pointer := f.emitResult(opAccessChain, l.pointer, append(slices.Clip(place), l.path...)...)
			f.emit(opLoad, l.value, l.id, pointer)
		}
	}
}
