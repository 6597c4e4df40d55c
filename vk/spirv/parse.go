package spirv

import (
	"maps"
	"strings"
)

// Parse parses the bytes of a SPIR-V module in either byte order. Every error is an *Error
// and matches ErrInvalid. The result shares no memory with code.
//
// Sizes in bytes, and numbers of descriptors, that depend on specialization constants are those for
// the constants' defaults: see ParseSpecialized.
func Parse(code []byte) (*Module, error) { return ParseSpecialized(code, nil) }

// ParseSpecialized is Parse for a pipeline that sets specialization constants. spec has their values by
// SpecId, the others have their defaults; a SpecId that the module does not have is ignored. The sizes in
// Binding, Block, Member and EntryPoint.SharedBytes are those for these values; EntryPoint.LocalSize and
// SpecConstant.Default are not. Fold and Merge keep the values of their module.
func ParseSpecialized(code []byte, spec map[uint32]uint32) (*Module, error) {
	words, err := decodeWords(code)
	if err != nil {
		return nil, err
	}
	p, err := newParser(words, maps.Clone(spec))
	if err != nil {
		return nil, err
	}
	for _, pass := range []func() error{p.scan, p.layOutTypes, p.summarizeFunctions, p.reflectEntryPoints} {
		if err := pass(); err != nil {
			return nil, err
		}
	}
	return p.module, nil
}

// newParser returns the parser of a module with these words, which begin with a header, and values of specialization
// constants.
func newParser(words []uint32, spec map[uint32]uint32) (*parser, error) {
	if err := checkHeader(words); err != nil {
		return nil, err
	}
	return &parser{
		words:    words,
		bound:    words[3],
		module:   &Module{Version: words[1], Words: words, spec: spec},
		defs:     newIDTable(words[3], len(words)),
		names:    newIDTable(words[3], len(words)),
		declared: make(map[Capability]bool),
		modes:    make(map[uint32]int),
	}, nil
}

// parser is the state of one Parse. It keeps offsets into the words and decodes an
// instruction again when it is needed.
type parser struct {
	words  []uint32
	bound  uint32
	module *Module

	// From scan.
	declared        map[Capability]bool
	defs            idTable // id to the offset of the instruction that defines it
	names           idTable // id to the offset of its OpName
	memberNames     map[uint64]int
	decorations     decorations
	references      []reference     // to ids not yet defined
	forwardPointers map[uint32]bool // declared by OpTypeForwardPointer
	silentSets      map[uint32]bool // sets of extended instructions that access no memory
	opaque          bool            // has instructions that the package does not know
	entryPoints     []int           // offsets of OpEntryPoint
	modes           map[uint32]int  // function to the offset of its LocalSize or LocalSizeId
	types           []int           // offsets of type declarations that may have a size
	specs           []int           // offsets of scalar specialization constants
	composites      []int           // offsets of composite constants
	physical        bool            // declares pointers to physical storage buffers
	variables       []variable      // of the module, not of functions
	functions       []function

	// From layOutTypes.
	layoutIndex idTable // type to 1 + its place in layouts
	layouts     []layout

	// From summarizeFunctions.
	roots         idTable // pointer to 1 + the index in variables of the variable it is derived from
	functionIndex idTable // function to 1 + its place in functions

	// From reflectEntryPoints.
	blocks map[uint32]*Block // push constant blocks by structure
	listed int               // number of bindings so far, of all entry points
}

// reference is the use of an id before its definition.
type reference struct {
	id      uint32
	word    int
	forward bool // the instruction may refer forward
}

// definition returns the instruction that defines an id.
func (p *parser) definition(id uint32) (instruction, bool) {
	word := p.defs.get(id)
	if word == 0 {
		return instruction{}, false
	}
	return p.at(int(word)), true
}

// at returns the instruction at an offset that scan has checked.
func (p *parser) at(word int) instruction {
	end := word + int(p.words[word]>>16)
	return instruction{opcode: uint16(p.words[word]), word: word, operands: p.words[word+1 : end : end]}
}

// nameOf returns the debug name of an id, or "".
func (p *parser) nameOf(id uint32) string {
	word := p.names.get(id)
	if word == 0 {
		return ""
	}
	name := literalString(p.at(int(word)).operands[1:])
	return name
}

func (p *parser) memberNameOf(id, member uint32) string {
	word, ok := p.memberNames[memberKey(id, member)]
	if !ok {
		return ""
	}
	name := literalString(p.at(word).operands[2:])
	return name
}

// scan is the first pass: it checks every instruction by itself and records definitions and
// decorations.
func (p *parser) scan() error {
	inFunction := false
	for word := headerWords; word < len(p.words); {
		in, err := decodeInstruction(p.words, word)
		if err != nil {
			return err
		}
		word = in.next()
		operation, known := lookup(in.opcode)
		if !known {
			p.opaque = true
			continue
		}
		if err := p.checkOperands(in, operation); err != nil {
			return err
		}
		switch in.opcode {
		case opFunction:
			if inFunction {
				return in.errorf("inside a function")
			}
			inFunction = true
			p.functions = append(p.functions, function{id: in.operands[1], start: in.word})
		case opFunctionEnd:
			if !inFunction {
				return in.errorf("outside a function")
			}
			inFunction = false
			p.functions[len(p.functions)-1].end = in.word
		default:
			if err := p.collect(in, inFunction); err != nil {
				return err
			}
		}
	}
	if inFunction {
		return p.at(p.functions[len(p.functions)-1].start).errorf("the module ends inside this function")
	}
	if err := p.checkReferences(); err != nil {
		return err
	}
	return p.decorations.mergeGroups(p.words, p.bound)
}

// checkOperands compares an instruction with its shape and records its result.
func (p *parser) checkOperands(in instruction, operation operation) error {
	o := in.operands
	i := 0
	for _, letter := range []byte(operation.shape) {
		switch letter {
		case '-', '~':
			return nil
		case '*', '?':
			last := len(o)
			if letter == '?' {
				last = min(i+1, last)
			}
			for ; i < last; i++ {
				if err := p.checkReference(in, o[i]); err != nil {
					return err
				}
			}
			continue
		}
		if i == len(o) {
			return in.errorf("truncated: %d operands, needs more", len(o))
		}
		switch letter {
		case 'l':
			i++
		case 's':
			n := literalStringWords(o[i:])
			if n == 0 {
				return in.errorf("string literal without an end")
			}
			i += n
		case 'i':
			if err := p.checkReference(in, o[i]); err != nil {
				return err
			}
			i++
		case 't':
			if err := p.checkReference(in, o[i]); err != nil {
				return err
			}
			if definition, ok := p.definition(o[i]); ok {
				if operation, _ := lookup(definition.opcode); !operation.isType() {
					return in.errorf("result type %%%d is defined by %s, no type", o[i], operation.name)
				}
			}
			i++
		case 'r':
			id := o[i]
			if err := p.checkBound(in, id); err != nil {
				return err
			}
			if first := p.defs.get(id); first != 0 {
				return in.errorf("id %%%d is already defined at word %d", id, first)
			}
			p.defs.set(id, uint32(in.word))
			i++
		}
	}
	return nil
}

func (p *parser) checkBound(in instruction, id uint32) error {
	if id == 0 || id >= p.bound {
		return in.errorf("id %%%d is outside the bound %d", id, p.bound)
	}
	return nil
}

// checkReference checks the use of an id. An id that is not defined yet is left to
// checkReferences.
func (p *parser) checkReference(in instruction, id uint32) error {
	if err := p.checkBound(in, id); err != nil {
		return err
	}
	if defined := p.defs.get(id); (defined == 0 || int(defined) == in.word) && !isAnnotation(in.opcode) {
		p.references = append(p.references, reference{id: id, word: in.word, forward: mayReferForward(in.opcode)})
	}
	return nil
}

// checkReferences returns an error for ids that are never defined, or that are defined after
// a use that has to follow the definition. Later passes rely on this: in the order of the
// module, types, constants and pointers come after their parts.
func (p *parser) checkReferences() error {
	for _, r := range p.references {
		in := p.at(r.word)
		definition, ok := p.definition(r.id)
		switch {
		case !ok && p.opaque: // may be defined by an unknown instruction
		case !ok:
			return in.errorf("id %%%d is never defined", r.id)
		case r.forward:
		case p.forwardPointers[r.id]:
			if definition.opcode != opTypePointer {
				return definition.errorf("%%%d was declared by OpTypeForwardPointer", r.id)
			}
		default:
			return in.errorf("id %%%d is used before its definition at word %d", r.id, definition.word)
		}
	}
	p.references = nil
	return nil
}

// collect records what later passes need of an instruction.
func (p *parser) collect(in instruction, inFunction bool) error {
	o := in.operands
	switch in.opcode {
	case opCapability:
		if c := Capability(o[0]); !p.declared[c] {
			p.declared[c] = true
			p.module.Capabilities = append(p.module.Capabilities, c)
		}
	case opExtension:
		name := literalString(o)
		p.module.Extensions = append(p.module.Extensions, name)
	case opSourceExtension:
		if launches, bindings := mergedLaunches(literalString(o)); launches > 0 {
			p.module.Launches, p.module.LaunchBindings = launches, bindings
		}
	case opExtInstImport:
		if name := literalString(o[1:]); strings.HasPrefix(name, "NonSemantic.") || strings.Contains(name, "DebugInfo") {
			if p.silentSets == nil {
				p.silentSets = make(map[uint32]bool)
			}
			p.silentSets[o[0]] = true
		}
	case opEntryPoint:
		if len(p.entryPoints) == maxEntryPoints {
			return in.errorf("more than %d entry points", maxEntryPoints)
		}
		p.entryPoints = append(p.entryPoints, in.word)
	case opExecutionMode, opExecutionModeID:
		return p.collectMode(in)
	case opName:
		p.names.set(o[0], uint32(in.word))
	case opMemberName:
		if p.memberNames == nil {
			p.memberNames = make(map[uint64]int)
		}
		p.memberNames[memberKey(o[0], o[1])] = in.word
	case opDecorate, opMemberDecorate, opGroupDecorate, opGroupMemberDecorate:
		return p.decorations.scan(in)
	case opTypeForwardPointer:
		if p.forwardPointers == nil {
			p.forwardPointers = make(map[uint32]bool)
		}
		p.forwardPointers[o[0]] = true
	case opTypeBool, opTypeInt, opTypeFloat, opTypeVector, opTypeMatrix, opTypeArray, opTypeRuntimeArray, opTypeStruct:
		p.types = append(p.types, in.word)
	case opTypePointer:
		if storageClass(o[1]) == classPhysicalStorageBuffer {
			p.physical = true
		}
	case opSpecConstantTrue, opSpecConstantFalse, opSpecConstant:
		p.specs = append(p.specs, in.word)
	case opConstantComposite, opSpecConstantComposite:
		p.composites = append(p.composites, in.word)
	case opTypeUntypedPointerKHR, opUntypedVariableKHR:
		return in.errorf("untyped pointers (SPV_KHR_untyped_pointers) are not supported")
	case opVariable:
		return p.collectVariable(in, inFunction)
	}
	return nil
}
