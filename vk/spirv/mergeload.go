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
	id             uint32   // what the variant loads, 0 until it does
}

// findPushedLoads finds what the functions load from the push constants.
func (f *folding) findPushedLoads() {
	g := f.merging
	if g.block == 0 {
		return
	}
	g.loads, g.loaded = make(map[int][]*pushedLoad), make(map[uint32]uint32)
	for function := range f.reachedFunctions() {
		prologue := f.prologueOf(function)
		if prologue == 0 {
			continue
		}
		places := make(map[string]*pushedLoad) // by path
		chains := make(map[uint32]*pushedLoad)
		for word := function.start; word < function.end; {
			in := f.at(word)
			word = in.next()
			o := in.operands
			switch in.opcode {
			case opAccessChain, opInBoundsAccessChain:
				if v := g.variables[o[2]]; v != nil && v.class == classPushConstant && f.isPlain(v.held, o[3:]) {
					chains[o[1]] = f.placeOf(o, places)
				}
			case opLoad:
				l := chains[o[2]]
				if l == nil || l.value != o[0] {
					continue
				}
				if l.id == 0 {
					l.id = f.newID()
					g.loads[prologue] = append(g.loads[prologue], l)
				}
				g.loaded[o[1]] = l.id
			}
		}
	}
}

// placeOf returns what a chain with these operands leads to, the same for chains with the same path. Many loads may
// go through a chain, which may be long, so the path is looked at once for each chain, not for each load.
func (f *folding) placeOf(chain []uint32, places map[string]*pushedLoad) *pushedLoad {
	pointer, _ := f.definition(chain[0])
	if pointer.opcode != opTypePointer {
		return nil
	}
	var key []byte
	for _, index := range chain[3:] {
		key = binary.NativeEndian.AppendUint32(key, index)
	}
	l := places[string(key)]
	if l == nil {
		l = &pushedLoad{pointer: chain[0], value: pointer.operands[2], path: chain[3:]}
		places[string(key)] = l
	}
	return l
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
// the part is there whatever the program does: the indices are constants, and the arrays on the way have constant
// lengths.
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
