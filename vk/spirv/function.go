package spirv

// function is the summary of one function.
type function struct {
	id         uint32
	start, end int // offsets of OpFunction and OpFunctionEnd

	uses      []use  // variables of the module, each once
	calls     []call // each callee once
	addresses bool   // makes pointers to physical storage buffers
	loops     bool   // has a loop
}

// use is how a function uses a variable.
type use struct {
	variable uint32 // index in parser.variables
	access   access
}

// access is a set of accesses. The empty set is static use without access.
type access uint8

const (
	accessRead access = 1 << iota
	accessWrite
)

type call struct {
	function uint32 // index in parser.functions
	word     int    // offset of the OpFunctionCall
}

// summarizeFunctions is the third pass. It visits every function body once, follows
// pointers from the module's variables, and records the accesses through them.
//
// A pointer that is derived in steps belongs to the variable at its root. If a pointer is
// an operand of an instruction that is not followed, its variable counts as read and
// written there, so that the instruction's result need not be followed.
func (p *parser) summarizeFunctions() error {
	p.roots = newIDTable(p.bound, len(p.words))
	for i, v := range p.variables {
		p.roots.set(v.id, uint32(i)+1)
	}
	p.functionIndex = newIDTable(p.bound, len(p.words))
	for i := range p.functions {
		p.functionIndex.set(p.functions[i].id, uint32(i)+1)
	}
	s := summarizer{
		parser:    p,
		usePlace:  make([]int, len(p.variables)),
		callPlace: make([]bool, len(p.functions)),
	}
	for i := range p.functions {
		if err := s.summarize(&p.functions[i]); err != nil {
			return err
		}
	}
	return nil
}

type summarizer struct {
	*parser
	function  *function
	usePlace  []int  // variable to 1 + its index in function.uses
	callPlace []bool // function to whether it is in function.calls
	late      []int  // offsets of the function's instructions that may refer forward
}

func (s *summarizer) summarize(f *function) error {
	s.function = f
	for word := s.at(f.start).next(); word < f.end; {
		in := s.at(word)
		word = in.next()
		if err := s.instruction(in); err != nil {
			return err
		}
	}
	for _, word := range s.late {
		s.escapeLate(s.at(word))
	}
	s.late = s.late[:0]
	for _, u := range f.uses {
		s.usePlace[u.variable] = 0
	}
	for _, c := range f.calls {
		s.callPlace[c.function] = false
	}
	return nil
}

// note records an access to the variable from which an id is derived.
func (s *summarizer) note(id uint32, a access) {
	for {
		root := s.roots.get(id)
		if root == 0 {
			return
		}
		place := &s.usePlace[root-1]
		known := *place != 0
		if !known {
			s.function.uses = append(s.function.uses, use{variable: root - 1})
			*place = len(s.function.uses)
		}
		u := &s.function.uses[*place-1]
		u.access |= a
		// The initial value of a variable may be a pointer to another one.
		id, a = s.variables[root-1].initializer, accessRead|accessWrite
		if known || id == 0 {
			return
		}
	}
}

// derive records that the result of an instruction is a pointer derived from base.
func (s *summarizer) derive(result, base uint32) {
	if root := s.roots.get(base); root != 0 {
		s.roots.set(result, root)
		s.note(base, 0)
	}
}

// instruction records the accesses of one instruction.
func (s *summarizer) instruction(in instruction) error {
	o := in.operands
	operation, known := lookup(in.opcode)
	if !known {
		s.late = append(s.late, in.word)
		return nil
	}
	s.noteAddresses(in, operation)
	s.noteFeatures(in)
	switch in.opcode {
	case opFunctionCall:
		return s.call(in)
	case opLoopMerge:
		s.function.loops = true
	case opAccessChain, opInBoundsAccessChain, opPtrAccessChain, opInBoundsPtrAccessChain, opRawAccessChainNV,
		opCopyObject, opImageTexelPointer, opImage:
		s.derive(o[1], o[2])
	case opSampledImage:
		s.derive(o[1], o[2])
		s.note(o[3], accessRead)
	case opLoad:
		s.load(o[1], o[2])
	case opStore:
		s.note(o[0], accessWrite)
		s.note(o[1], accessRead|accessWrite)
	case opCopyMemory, opCopyMemorySized:
		s.note(o[0], accessWrite)
		s.note(o[1], accessRead)
	case opArrayLength:
		s.note(o[2], 0)
	case opPtrEqual, opPtrNotEqual, opPtrDiff:
		s.note(o[2], 0)
		s.note(o[3], 0)
	case opAtomicLoad, opCooperativeMatrixLoadKHR, opCooperativeMatrixLoadNV:
		s.note(o[2], accessRead)
	case opAtomicStore, opAtomicFlagClear, opCooperativeMatrixStoreKHR, opCooperativeMatrixStoreNV, opImageWrite:
		s.note(o[0], accessWrite)
	case opPhi, opExtInst, opExtInstWithForwardRefsKHR:
		s.late = append(s.late, in.word)
	default:
		switch {
		case readsImage(in.opcode):
			s.note(o[2], accessRead)
		case queriesImage(in.opcode):
			s.note(o[2], 0)
		default:
			for id := range in.ids {
				s.note(id, accessRead|accessWrite)
			}
		}
	}
	return nil
}

// load records an OpLoad. Loading an image or sampler only takes a handle; the uses of the
// handle count.
func (s *summarizer) load(result, pointer uint32) {
	root := s.roots.get(pointer)
	if root != 0 && s.variables[root-1].class == classUniformConstant {
		s.derive(result, pointer)
		return
	}
	s.note(pointer, accessRead)
}

// escapeLate counts the pointers among an instruction's operands as read and written, once
// the whole function is known. It may name pointers that are derived after it, as OpPhi
// does in a loop. In an unknown instruction every word may be an id; OpPhi has only ids
// besides type and result.
func (s *summarizer) escapeLate(in instruction) {
	switch in.opcode {
	case opExtInst, opExtInstWithForwardRefsKHR:
		if !s.silentSets[in.operands[2]] {
			s.escape(in.operands[4:])
		}
	default:
		s.escape(in.operands)
	}
}

func readsImage(opcode uint16) bool {
	return opcode >= opImageSampleImplicitLod && opcode <= opImageRead ||
		opcode >= opImageSparseSampleImplicitLod && opcode <= opImageSparseDrefGather ||
		opcode == opImageSparseRead
}

func queriesImage(opcode uint16) bool {
	return opcode >= opImageQueryFormat && opcode <= opImageQuerySamples
}

// escape counts pointers among ids as read and written.
func (s *summarizer) escape(ids []uint32) {
	for _, id := range ids {
		s.note(id, accessRead|accessWrite)
	}
}

// noteAddresses records an instruction that makes a pointer to a physical storage buffer.
func (s *summarizer) noteAddresses(in instruction, operation operation) {
	if !s.physical || s.function.addresses || len(operation.shape) == 0 || operation.shape[0] != 't' {
		return
	}
	resultType, ok := s.definition(in.operands[0])
	if ok && resultType.opcode == opTypePointer && storageClass(resultType.operands[1]) == classPhysicalStorageBuffer {
		s.function.addresses = true
	}
}

func (s *summarizer) call(in instruction) error {
	callee := s.functionIndex.get(in.operands[2])
	if callee == 0 {
		return in.errorf("%%%d is no function", in.operands[2])
	}
	if !s.callPlace[callee-1] {
		s.callPlace[callee-1] = true
		s.function.calls = append(s.function.calls, call{function: callee - 1, word: in.word})
	}
	s.escape(in.operands[3:])
	return nil
}
