package spirv

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Fold returns the words of a variant of m for launches that have more workgroups along one
// dimension, 0 for x or 1 for y, than the limit of a dispatch. m is not changed.
//
// A launch of g workgroups along the dimension and one along z becomes layers of limit
// workgroups along z. If the last layer is shorter, it is a dispatch of its own whose base
// is along z:
//
//	workgroups 0 … g-1 of the launch         what the device counts
//
//	0 … limit-1                               0 … limit-1    z = 0
//	limit … 2*limit-1                         0 … limit-1    z = 1
//	2*limit … g-1                             0 …            z = 2
//
// In the variant, WorkgroupId and GlobalInvocationId have the values of the original
// launch; their z is 0. Everything inside a workgroup, such as LocalInvocationId,
// LocalInvocationIndex and subgroups, is unchanged. Workgroup sizes that depend on
// specialization constants still do. Indices wrap at 32 bits.
//
// For an entry point that uses neither built-in the result is a copy of the module.
// Otherwise the result has only the requested entry point and the functions that it reaches, with a few
// more instructions at the beginning of its own.
//
// The error wraps ErrEntryPoint if there is no such compute entry point. It is an *Error
// with the instruction if the entry point uses NumWorkgroups, which would differ from that
// of the launch, or if it uses one of the built-ins other than by loading it or a component
// of it.
func Fold(m *Module, entry string, dimension int, limit uint32) ([]uint32, error) {
	if dimension != 0 && dimension != 1 {
		return nil, fmt.Errorf("spirv: Fold: dimension %d is neither 0 nor 1", dimension)
	}
	if limit == 0 {
		return nil, fmt.Errorf("spirv: Fold: a limit of 0 workgroups")
	}
	if _, err := m.EntryPoint(entry); err != nil {
		return nil, err
	}
	p, err := rescan(m)
	if err != nil {
		return nil, err
	}
	f := newFolding(p, uint32(dimension), limit)
	if err := f.findEntryPoint(entry); err != nil {
		return nil, err
	}
	used, err := f.findInputs()
	switch {
	case err != nil:
		return nil, err
	case !used:
		return slices.Clone(p.words), nil
	}
	return f.rewrite()
}

func newFolding(p *parser, dimension, limit uint32) *folding {
	return &folding{parser: p, dimension: dimension, limit: limit, nextID: p.bound, inputs: make(map[uint32]*foldedInput)}
}

// rescan repeats the passes of Parse whose results Fold needs.
func rescan(m *Module) (*parser, error) {
	words := m.Words
	if len(words) < headerWords {
		return nil, headerError(len(words), "truncated: %d words of %d", len(words), headerWords)
	}
	p, err := newParser(words, m.spec)
	if err != nil {
		return nil, err
	}
	if err := p.scan(); err != nil {
		return nil, err
	}
	return p, p.summarizeFunctions()
}

const (
	builtInWorkgroupID        = 26
	builtInGlobalInvocationID = 28
)

var foldedNames = map[uint32]string{
	builtInNumWorkgroups: "NumWorkgroups", builtInWorkgroupID: "WorkgroupId", builtInGlobalInvocationID: "GlobalInvocationId",
}

// folding is the state of one Fold or Merge.
type folding struct {
	*parser
	dimension, limit uint32
	merging          *merging // nil for Fold

	entry        instruction
	name         []uint32 // the entry point's name, as in the module
	interfaceIDs []uint32 // ids of the variables that the entry point lists
	function     uint32   // id

	reached []bool // whether the variant has a function, by index
	used    []bool // whether the entry point, or what it calls, uses a variable, by index

	// By built-in, nil when not used. count, which is NumWorkgroups, is for Merge only.
	workgroup, global, count *foldedInput
	inputs                   map[uint32]*foldedInput // by root, as in parser.roots

	// Size of a workgroup along the dimension and along z. It is an id or, if that is
	// 0, a literal.
	sizeIDs, sizes [2]uint32

	prologue  int          // offset of the instruction after which the prologue is inserted
	hardware  uint32       // id of the Input WorkgroupId
	typed     *foldedInput // the input whose types that one has
	decorated bool         // the first annotation has been written

	out    []uint32
	nextID uint32
}

// foldedInput is a variable of storage class Input that becomes two variables in the
// rewritten module: an Input with a new id, which the device sets, and a Private variable
// with the old id, which the prologue sets.
type foldedInput struct {
	variable
	builtIn        uint32
	pointer        uint32 // type of the variable
	vector, scalar uint32 // types of its value and of a component
	hardware       uint32 // id of the new Input

	// Ids that are declared before the variable.
	privateVector, privateScalar uint32 // types of pointers
	limit, zero, one             uint32 // constants
	sizes                        [2]uint32
}

func (f *folding) findEntryPoint(entry string) error {
	found := false
	for _, word := range f.entryPoints {
		in := f.at(word)
		if name := literalString(in.operands[2:]); name == entry && ExecutionModel(in.operands[0]) == ModelGLCompute {
			f.entry, found = in, true
		}
	}
	if !found {
		return fmt.Errorf("%w: %.64q", ErrEntryPoint, entry)
	}
	f.function = f.entry.operands[1]
	end := 2 + literalStringWords(f.entry.operands[2:])
	f.name, f.interfaceIDs = f.entry.operands[2:end], f.entry.operands[end:]
	for _, word := range f.entryPoints {
		in := f.at(word)
		if model := ExecutionModel(in.operands[0]); in.operands[1] == f.function && model != ModelGLCompute {
			return in.errorf("the function of compute entry point %.64q is also one of model %v", entry, model)
		}
	}
	return f.findReached()
}

// findInputs finds the variables to fold. It returns false if the entry point uses none.
func (f *folding) findInputs() (used bool, err error) {
	if err := f.refuseMembers(); err != nil {
		return false, err
	}
	listed := make(map[uint32]bool, len(f.interfaceIDs))
	for _, id := range f.interfaceIDs {
		listed[id] = true
	}
	for i, v := range f.variables {
		d := f.decorations.of(idKey(v.id))
		if v.class != classInput || !d.has(decorationBuiltIn) || !f.used[i] && !listed[v.id] {
			continue
		}
		place := &f.workgroup
		switch d.builtIn {
		case builtInNumWorkgroups:
			if f.merging != nil {
				place = &f.count
				break
			}
			if f.used[i] {
				return false, f.at(v.word).errorf("a kernel that uses NumWorkgroups cannot be folded")
			}
			continue
		case builtInWorkgroupID:
		case builtInGlobalInvocationID:
			place = &f.global
		default:
			continue
		}
		if *place != nil {
			return false, f.at(v.word).errorf("a second %s of one entry point, after %%%d", foldedNames[d.builtIn], (*place).id)
		}
		if *place, err = f.newInput(v, d.builtIn); err != nil {
			return false, err
		}
		f.inputs[uint32(i)+1] = *place
		used = used || f.used[i]
	}
	f.typed = cmp.Or(f.workgroup, f.global, f.count)
	return used, nil
}

// refuseMembers returns an error if a structure has a member with one of the built-ins.
func (f *folding) refuseMembers() error {
	first, builtIn := uint64(math.MaxUint64), uint32(0)
	for key, i := range f.decorations.index {
		d := &f.decorations.sums[i]
		if uint32(key) == 0 || !d.has(decorationBuiltIn) || foldedNames[d.builtIn] == "" {
			continue
		}
		if key < first {
			first, builtIn = key, d.builtIn
		}
	}
	if builtIn == 0 {
		return nil
	}
	id := uint32(first >> 32)
	in, ok := f.definition(id)
	if !ok {
		in = f.entry
	}
	return in.errorf("member %d of %%%d is the built-in %s, which only a variable of its own can be folded as", uint32(first)-1, id, foldedNames[builtIn])
}

// newInput checks that a variable is as the rewriting assumes: a vector of three 32-bit
// integers, declared after its types and before the function.
func (f *folding) newInput(v variable, builtIn uint32) (*foldedInput, error) {
	in := f.at(v.word)
	vector, err := f.pointee(v)
	if err != nil {
		return nil, err
	}
	declaration, ok := f.definition(vector)
	if !ok || declaration.opcode != opTypeVector || declaration.operands[2] != 3 {
		return nil, in.errorf("%s is no vector of 3 components", foldedNames[builtIn])
	}
	component, ok := f.definition(declaration.operands[1])
	if !ok || component.opcode != opTypeInt || component.operands[1] != 32 {
		return nil, in.errorf("%s is no vector of integers of 32 bits", foldedNames[builtIn])
	}
	// With a forward declaration, the type of a pointer may come after its variable.
	start := f.functions[f.functionIndex.get(f.function)-1].start
	if declaration.word > v.word || int(f.defs.get(in.operands[0])) > v.word || v.word > start {
		return nil, in.errorf("%s is declared before its type or after the function %%%d", foldedNames[builtIn], f.function)
	}
	if v.initializer != 0 {
		return nil, in.errorf("%s has an initializer", foldedNames[builtIn])
	}
	return &foldedInput{
		variable: v, builtIn: builtIn,
		pointer: in.operands[0], vector: vector, scalar: component.operands[0],
	}, nil
}

// findSize finds the source of the workgroup size, in the specification's order of
// precedence.
func (f *folding) findSize() error {
	if f.global == nil {
		return nil
	}
	source, err := f.findWorkgroupSize()
	if err != nil {
		return err
	}
	if err := f.refuseSize(source); err != nil {
		return err
	}
	if source.operands == nil {
		word, ok := f.modes[f.function]
		if !ok {
			return f.entry.errorf("the entry point has no local size")
		}
		source = f.at(word)
	}
	size := source.operands[2:]
	for i, d := range [2]uint32{f.dimension, 2} {
		if source.opcode == opExecutionMode {
			f.sizes[i] = size[d]
			continue
		}
		f.sizeIDs[i] = size[d]
		if !f.isIntegerConstant(size[d]) {
			return source.errorf("%%%d is no constant of 32 bits", size[d])
		}
	}
	return nil
}

// refuseSize returns an error for a WorkgroupSize other than the composite source.
func (f *folding) refuseSize(source instruction) error {
	var ids []uint32
	for key, i := range f.decorations.index {
		d := &f.decorations.sums[i]
		if uint32(key) == 0 && d.has(decorationBuiltIn) && d.builtIn == builtInWorkgroupSize {
			ids = append(ids, uint32(key>>32))
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		if in, ok := f.definition(id); ok && (source.operands == nil || in.word != source.word) {
			return in.errorf("%%%d is decorated WorkgroupSize and is no composite constant", id)
		}
	}
	return nil
}

func (f *folding) isIntegerConstant(id uint32) bool {
	in, ok := f.definition(id)
	if !ok || in.word > f.functions[f.functionIndex.get(f.function)-1].start {
		return false
	}
	switch in.opcode {
	case opConstant, opConstantNull, opSpecConstant, opSpecConstantOp:
		bits, err := f.scalarBits(in, in.operands[0])
		return err == nil && bits == 32
	}
	return false
}
