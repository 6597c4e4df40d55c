package spirv

import (
	"encoding/binary"
	"slices"
)

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
	g.loads, g.loaded, g.places = make(map[int][]pushedLoad), make(map[uint32]uint32), make(map[string]uint32)
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
				if v := g.variables[o[2]]; v != nil && v.class == classPushConstant && f.isPlain(v.held, o[3:]) {
					chains[o[1]] = in
				}
			case opLoad:
				if chain, ok := chains[o[2]]; ok {
					g.loaded[o[1]] = f.pushedLoad(prologue, chain.operands, o[0])
				}
			}
		}
	}
}

// pushedLoad returns the id of a value that the variant loads behind the instruction at prologue, through a
// chain with these operands.
func (f *folding) pushedLoad(prologue int, chain []uint32, value uint32) uint32 {
	g := f.merging
	key := binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, uint32(prologue)), value)
	for _, index := range chain[3:] {
		key = binary.NativeEndian.AppendUint32(key, index)
	}
	id := g.places[string(key)]
	if id == 0 {
		id = f.newID()
		g.places[string(key)] = id
		g.loads[prologue] = append(g.loads[prologue], pushedLoad{chain[0], value, chain[3:], id})
	}
	return id
}

// isPlain reports whether the part of a structure to which indices lead, given by their ids, is a scalar, a
// vector, a matrix or a pointer, and is there whatever the program does.
func (f *folding) isPlain(held uint32, path []uint32) bool {
	held, ok := f.within(held, path)
	if !ok {
		return false
	}
	switch part, _ := f.definition(held); part.opcode {
	case opTypeInt, opTypeFloat, opTypeVector, opTypeMatrix, opTypePointer:
		return true
	}
	return false
}

// within returns the type of the part of a type to which indices lead, given by their ids. It reports false unless
// the part is there whatever the program does: the indices are constants, and there is no array whose length is none.
func (f *folding) within(held uint32, path []uint32) (part uint32, ok bool) {
	for _, id := range path {
		whole, _ := f.definition(held)
		index, ok := f.constant(id)
		switch {
		case !ok:
			return 0, false
		case whole.opcode == opTypeStruct:
			members := whole.operands[1:]
			if index >= uint32(len(members)) {
				return 0, false
			}
			held = members[index]
		case whole.opcode == opTypeVector || whole.opcode == opTypeMatrix:
			if index >= whole.operands[2] {
				return 0, false
			}
			held = whole.operands[1]
		case whole.opcode == opTypeArray:
			if length, ok := f.constant(whole.operands[2]); !ok || index >= length {
				return 0, false
			}
			held = whole.operands[1]
		default:
			return 0, false
		}
	}
	return held, true
}

// constant returns the value of a constant of 32 bits.
func (f *folding) constant(id uint32) (value uint32, ok bool) {
	in, _ := f.definition(id)
	if in.opcode != opConstant || len(in.operands) != 3 {
		return 0, false
	}
	return in.operands[2], true
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
