package spirv

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Merged is a variant of an entry point that does in one dispatch what several launches of it would
// do in a dispatch each.
type Merged struct {
	// Words are those of the variant's module.
	Words []uint32
	// Launches is the largest number of launches in a dispatch.
	Launches uint32
	// Stride is the distance between the push constants of two launches, in bytes, or 0 if the entry
	// point has none. Those of the first begin at Base.
	Base, Stride uint32
	// Elements has, for SpacedBindings, the size in bytes of an element of each of the entry point's bindings.
	Elements []uint32
}

// MergedBindings says what the launches of a dispatch bind.
type MergedBindings uint8

const (
	// OwnBindings: each launch has buffers of its own.
	OwnBindings MergedBindings = iota
	// SharedBindings: all launches have the same buffers.
	SharedBindings
	// SpacedBindings: what the launches have of a binding are parts of one buffer, as large as each other, which begin at
	// equal distances.
	SpacedBindings
)

// MergeOptions are the options of Merge.
type MergeOptions struct {
	// Bindings says what launches bind.
	Bindings MergedBindings
	// Launches, Descriptors and PushBytes bound the number of launches, that of the descriptors of all
	// bindings with OwnBindings, and the size of the push constants.
	Launches, Descriptors, PushBytes uint32
}

// Merge returns the variant of an entry point for dispatches of several launches, each of which has
// the same number of workgroups, and one along z. m is not changed.
//
// Launch k has the workgroups of the dispatch whose z is k. In the variant,
//
//   - with OwnBindings, each binding is an array of Merged.Launches descriptors, of which launch k uses the k-th,
//   - with SharedBindings, bindings are unchanged,
//   - with SpacedBindings, a binding has the parts of all launches. The push constants begin with two words for each of
//     the entry point's bindings: the distance between the parts of successive launches, and the number of elements of a
//     part, both in elements of the binding's array. An index beyond the part is one beyond the binding, and the
//     length of the array is that of the part,
//   - the push constants of launch k begin at Merged.Base plus k times Merged.Stride; a function loads at its
//     beginning those to which constant indices lead,
//   - WorkgroupId, GlobalInvocationId and NumWorkgroups have the values that they have in a dispatch of
//     launch k alone.
//
// All invocations of a workgroup see the same index into an array, so the capability
// StorageBufferArrayDynamicIndexing is enough. Everything inside a workgroup is unchanged.
// Merged.Launches is the largest number that the options allow. The variant has only the functions that the entry point
// reaches.
//
// The error wraps ErrEntryPoint if there is no such compute entry point. It is an *Error with the
// instruction if the options do not allow two launches, or if the entry point uses its push constants, a
// built-in, or a binding that is not shared in another way than by accessing members of them, or has other
// bindings than storage buffers, unless they are shared. Spaced bindings have to be arrays and nothing else,
// indices into them to have 32 bits, those into parts of an element to be constants that are in bounds, and pointers into
// them to come from such indices alone (no OpPtrAccessChain).
// Debug information that names bindings that become arrays (NonSemantic.Shader.DebugInfo) is such a use.
func Merge(m *Module, entry string, o MergeOptions) (Merged, error) {
	e, err := m.EntryPoint(entry)
	if err != nil {
		return Merged{}, err
	}
	p, err := rescan(m)
	if err != nil {
		return Merged{}, err
	}
	if err := p.layOutTypes(); err != nil {
		return Merged{}, err
	}
	f := newFolding(p, 0, 0)
	f.merging = &merging{launches: o.Launches, bindings: o.Bindings, variables: make(map[uint32]*mergedVariable)}
	if n := uint32(len(e.Bindings)); n > 0 && o.Bindings == OwnBindings {
		f.merging.launches = min(o.Launches, o.Descriptors/n)
	}
	if err := f.findEntryPoint(entry); err != nil {
		return Merged{}, err
	}
	if _, err := f.findInputs(); err != nil {
		return Merged{}, err
	}
	if err := f.findMerged(e, o.PushBytes); err != nil {
		return Merged{}, err
	}
	if f.merging.launches < 2 {
		return Merged{}, f.entry.errorf("%d launches, %d descriptors and %d bytes of push constants are too few for two launches", o.Launches, o.Descriptors, o.PushBytes)
	}
	f.findPushedLoads()
	words, err := f.rewrite()
	v := Merged{Words: words, Launches: f.merging.launches, Base: f.merging.base, Stride: f.merging.stride}
	if o.Bindings == SpacedBindings {
		for i := range e.Bindings {
			v.Elements = append(v.Elements, e.Bindings[i].Stride)
		}
	}
	return v, err
}

// merging is what a folding needs for Merge.
type merging struct {
	launches, base, stride uint32
	align                  uint32 // of the push constants of a launch, in bytes
	bindings               MergedBindings
	// spacing is for SpacedBindings, or nil.
	spacing *spacing
	// variables are those of which each launch has one, by id, and order has them in the order of the
	// module.
	variables map[uint32]*mergedVariable
	order     []*mergedVariable
	// block is the structure of the push constants of a launch, which is part of another one in the
	// variant, and outer that one, which the variable pushed holds. They are 0 without push constants. added says
	// that the module has no such variable.
	block, outer, pushed uint32
	added                bool
	// unpushed are the declarations of other variables of push constants.
	unpushed []instruction
	// member is a constant, the index of the member of outer that has the push constants of the launches.
	member uint32
	// unsigned is the type of unsigned words if the module has none and the variant has.
	unsigned uint32
	// loads are the push constants that functions load at their beginning, by the offset of the instruction
	// behind which they do, and loaded has the id of what is loaded there for each load of the module.
	loads  map[int][]*pushedLoad
	loaded map[uint32]uint32
	// marked, declared and folding.decorated say how far the rewriting has come: see declareMerged.
	marked, declared bool
}

// mergedVariable is a variable that holds in the variant an array of what it held before.
type mergedVariable struct {
	variable
	single uint32 // type of a pointer to what it held
	held   uint32 // type of that
	array  uint32 // type of the array
}

// mergedVariable returns the variable with an id if each launch has one, or nil.
func (f *folding) mergedVariable(id uint32) *mergedVariable {
	if f.merging == nil {
		return nil
	}
	return f.merging.variables[id]
}

// isUnpushed reports whether an id is a variable of push constants that the entry point does not use, in a variant with push
// constants of the launches. It must neither list nor name another one beside these.
func (f *folding) isUnpushed(id uint32) bool {
	return f.merging != nil && f.merging.outer != 0 && f.merging.variables[id] == nil && f.isVariable(id) &&
		f.variables[f.roots.get(id)-1].class == classPushConstant
}

// isDeclaredLater reports whether an id is a variable that the variant declares with those of the launches, before the first
// function. With the push constants of the launches these are all variables of push constants: the validation layer (1.3.239)
// ends the process where one that the entry point does not list comes before the one that it lists.
func (f *folding) isDeclaredLater(id uint32) bool {
	return f.mergedVariable(id) != nil || f.isUnpushed(id)
}

// findMerged finds the bindings and the push constants, and how many launches they allow.
func (f *folding) findMerged(e *EntryPoint, pushBytes uint32) error {
	g := f.merging
	if g.bindings == SpacedBindings {
		if err := f.findSpaced(e); err != nil {
			return err
		}
		g.outer = f.newID()
	}
	for i, v := range f.variables {
		if !f.used[i] || v.class != classPushConstant && (g.bindings != OwnBindings || !v.class.isDescriptor()) {
			continue
		}
		in := f.at(v.word)
		held, err := f.pointee(v)
		if err != nil {
			return err
		}
		if declaration, ok := f.definition(held); !ok || declaration.opcode != opTypeStruct {
			return in.errorf("%%%d holds no structure", v.id)
		}
		if v.class == classUniform && !f.decorations.of(idKey(held)).has(decorationBufferBlock) {
			return in.errorf("%%%d is a uniform buffer", v.id)
		}
		if start := f.functions[0].start; v.word > start || int(f.defs.get(in.operands[0])) > v.word {
			return in.errorf("%%%d is declared before its type or after a function", v.id)
		}
		if v.class == classPushConstant {
			if err := f.findPushed(in, held); err != nil {
				return err
			}
		}
		own := &mergedVariable{variable: v, single: in.operands[0], held: held, array: f.newID()}
		g.variables[v.id] = own
		g.order = append(g.order, own)
	}
	if g.spacing != nil {
		g.base = g.spacing.base(g.align)
	}
	if g.base > pushBytes {
		g.launches = 0
	} else if g.stride > 0 {
		g.launches = min(g.launches, (pushBytes-g.base)/g.stride)
	}
	if g.outer != 0 && g.pushed == 0 {
		g.pushed, g.added = f.newID(), true
	}
	return nil
}

// findPushed finds the distance between the push constants of two launches. A block must not be part
// of another one, so the structure loses its decoration to one that has an array of it, and nothing
// else may hold it.
func (f *folding) findPushed(in instruction, held uint32) error {
	l := f.layoutOf(in, held)
	if l.problem != "" {
		return f.layoutError(l)
	}
	for _, v := range f.variables {
		if other, err := f.pointee(v); err == nil && other == held && v.word != in.word {
			return in.errorf("another variable, %%%d, holds its structure, too", v.id)
		}
	}
	for _, word := range f.decorations.groups {
		if group := f.at(word); slices.Contains(group.operands[1:], held) {
			return group.errorf("%%%d, the structure of the push constants, is in a group", held)
		}
	}
	// The sizes of push constants are whole words.
	g := f.merging
	g.align = max(l.align, 4)
	align := uint64(g.align)
	stride := (l.size + align - 1) / align * align
	if l.runtime || stride == 0 || stride > math.MaxUint16 {
		return in.errorf("push constants of %d bytes", stride)
	}
	g.stride, g.block, g.pushed = uint32(stride), held, in.operands[1]
	if g.outer == 0 {
		g.outer = f.newID()
	}
	return nil
}

// declareMerged appends what comes before an instruction of the module: capabilities before the first
// one, annotations at the end of their section, and variables before the functions.
func (f *folding) declareMerged(in instruction) {
	g := f.merging
	if g == nil {
		return
	}
	const indexing = CapabilityStorageBufferArrayDynamicIndexing
	bindings := func(v *mergedVariable) bool { return v.class.isDescriptor() }
	if in.word == headerWords && !f.declared[indexing] && slices.ContainsFunc(g.order, bindings) {
		f.emit(opCapability, uint32(indexing))
	}
	if !g.marked && !isBeforeNames(in.opcode) {
		g.marked = true
		f.emit(opSourceExtension, stringLiteral(mergedMarks[g.bindings]+strconv.FormatUint(uint64(g.launches), 10))...)
	}
	if !isBeforeTypes(in.opcode) {
		f.emitDecorations()
	}
	if in.opcode == opFunction && !g.declared {
		g.declared = true
		f.emitMergedVariables()
	}
}

const (
	opSourceContinued = 2
	opSource          = 3
	opSourceExtension = 4
	opString          = 7
	opMemoryModel     = 14
	opModuleProcessed = 330
)

// mergedMarks begin the OpSourceExtension of a variant, by what its launches bind, and the number of launches follows.
var mergedMarks = [...]string{
	OwnBindings:    "vkomp: launches with their own bindings in a dispatch: ",
	SharedBindings: "vkomp: launches with the same bindings in a dispatch: ",
	SpacedBindings: "vkomp: launches with spaced bindings in a dispatch: ",
}

// mergedLaunches returns what a variant's OpSourceExtension says, or 0 launches for another one.
func mergedLaunches(text string) (launches uint32, bindings MergedBindings) {
	for bindings, mark := range mergedMarks {
		if number, ok := strings.CutPrefix(text, mark); ok {
			launches, _ := strconv.ParseUint(number, 10, 32)
			return uint32(launches), MergedBindings(bindings)
		}
	}
	return 0, OwnBindings
}

// isBeforeNames reports whether an instruction stands in a section before that of debug information.
func isBeforeNames(opcode uint16) bool {
	switch opcode {
	case opCapability, opExtension, opExtInstImport, opMemoryModel, opEntryPoint, opExecutionMode, opExecutionModeID:
		return true
	}
	return false
}

// isBeforeTypes reports whether an instruction stands in a section before that of types.
func isBeforeTypes(opcode uint16) bool {
	switch opcode {
	case opString, opSource, opSourceContinued, opSourceExtension, opName, opMemberName, opModuleProcessed,
		opDecorate, opDecorateID, opDecorateString, opDecorationGroup, opGroupDecorate,
		opMemberDecorate, opMemberDecorateString, opGroupMemberDecorate:
		return true
	}
	return isBeforeNames(opcode)
}

// decorateMerged appends the annotations of the push constants.
func (f *folding) decorateMerged() {
	g := f.merging
	if g == nil || g.outer == 0 {
		return
	}
	f.emit(opDecorate, g.outer, decorationBlock)
	f.emit(opMemberDecorate, g.outer, 0, decorationOffset, 0)
	if s := g.spacing; s != nil {
		f.emit(opDecorate, s.words, decorationArrayStride, 4)
		if g.block != 0 {
			f.emit(opMemberDecorate, g.outer, 1, decorationOffset, g.base)
		}
	}
	for _, v := range g.order {
		if v.held == g.block {
			f.emit(opDecorate, v.array, decorationArrayStride, g.stride)
		}
	}
}

// emitMergedVariables appends the declarations of the variables, and of the input that tells the
// launch, if it is not declared.
func (f *folding) emitMergedVariables() {
	g := f.merging
	if f.typed == nil {
		f.emitInput()
	}
	g.member = f.emitResult(opConstant, f.typed.scalar, 0)
	launches := f.emitResult(opConstant, f.typed.scalar, g.launches)
	var pushed []uint32 // the members of outer
	if s := g.spacing; s != nil {
		f.declareSpaced()
		g.member, pushed = s.numbers[1], []uint32{s.words}
	}
	for _, v := range g.order {
		f.emit(opTypeArray, v.array, v.held, launches)
		if v.class == classPushConstant {
			pushed = append(pushed, v.array)
		} else {
			f.emitVariable(v.id, v.class, v.array)
		}
	}
	if g.outer != 0 {
		f.emit(opTypeStruct, append([]uint32{g.outer}, pushed...)...)
		f.emitVariable(g.pushed, classPushConstant, g.outer)
	}
	for _, in := range g.unpushed {
		f.copy(in)
	}
}

// emitVariable appends the declaration of a variable that holds a type.
func (f *folding) emitVariable(id uint32, class storageClass, held uint32) {
	pointer := f.newID()
	f.emit(opTypePointer, pointer, uint32(class), held)
	f.emit(opVariable, pointer, id, uint32(class))
}

// emitInput appends the declaration of the Input WorkgroupId in a module that uses no index. A type
// must not be declared twice.
func (f *folding) emitInput() {
	v := &foldedInput{}
	for _, word := range f.types {
		switch in := f.at(word); {
		case in.opcode == opTypeInt && in.operands[1] == 32 && v.scalar == 0:
			v.scalar = in.operands[0]
		case in.opcode == opTypeVector && in.operands[1] == v.scalar && in.operands[2] == 3:
			v.vector = in.operands[0]
		}
	}
	if v.scalar == 0 {
		v.scalar = f.newID()
		f.emit(opTypeInt, v.scalar, 32, 0)
		f.merging.unsigned = v.scalar
	}
	if v.vector == 0 {
		v.vector = f.newID()
		f.emit(opTypeVector, v.vector, v.scalar, 3)
	}
	v.pointer = f.newID()
	f.emit(opTypePointer, v.pointer, uint32(classInput), v.vector)
	f.emit(opVariable, v.pointer, f.hardware, uint32(classInput))
	f.typed = v
}

// mergedInstruction appends the replacement of an instruction that declares, decorates or uses a
// merged variable. It returns false, and has done nothing, for any other.
func (f *folding) mergedInstruction(in instruction) (done bool, err error) {
	g := f.merging
	if g == nil {
		return false, nil
	}
	if g.spacing != nil {
		if done, err := f.spacedInstruction(in); done || err != nil {
			return done, err
		}
	}
	o := in.operands
	switch in.opcode {
	case opDecorate:
		return o[0] == g.block && o[1] == decorationBlock, nil
	case opVariable:
		if f.isDeclaredLater(o[1]) {
			if f.mergedVariable(o[1]) == nil {
				g.unpushed = append(g.unpushed, in)
			}
			return true, nil
		}
	case opAccessChain, opInBoundsAccessChain:
		if v := f.mergedVariable(o[2]); v != nil {
			if !g.declared {
				return true, in.outsideFunctions(v)
			}
			for _, index := range o[3:] {
				if f.input(index) != nil || f.mergedVariable(index) != nil {
					return true, in.errorf("%%%d is no index", index)
				}
			}
			if len(o) > maxOperands-2 {
				return true, in.errorf("%d operands are too many to add 2", len(o))
			}
			operands := append([]uint32{o[0], o[1], o[2]}, f.emitLaunch(v)...)
			f.emit(in.opcode, append(operands, o[3:]...)...)
			return true, nil
		}
	case opArrayLength, opLoad:
		if id := g.loaded[o[1]]; id != 0 {
			f.emit(opCopyObject, o[0], o[1], id)
			return true, nil
		}
		return f.replaceOperand(in, 2)
	case opStore:
		if f.mergedVariable(o[1]) == nil {
			return f.replaceOperand(in, 0)
		}
	default:
		switch {
		case !f.isSilent(in):
		case !g.declared && slices.ContainsFunc(o, f.isDeclaredLater):
			return true, in.errorf("it names a variable that is declared after it in the variant")
		case slices.ContainsFunc(o, f.isUnpushed):
			return true, in.errorf("it names push constants beside those of the launches")
		}
	}
	return false, nil
}

// outsideFunctions returns the error for an instruction that accesses a variable before the first function.
func (in instruction) outsideFunctions(v *mergedVariable) error {
	return in.errorf("it accesses %%%d outside of a function", v.id)
}

// replaceOperand appends an instruction with an operand that is a merged variable replaced by a pointer
// to what the launch has.
func (f *folding) replaceOperand(in instruction, operand int) (done bool, err error) {
	v := f.mergedVariable(in.operands[operand])
	if v == nil {
		return false, nil
	}
	if !f.merging.declared {
		return true, in.outsideFunctions(v)
	}
	operands := slices.Clone(in.operands)
	operands[operand] = f.emitResult(opAccessChain, v.single, append([]uint32{v.id}, f.emitLaunch(v)...)...)
	f.emit(in.opcode, operands...)
	return true, nil
}

// emitLaunch appends the computation of the launch's number, and returns the indices of what it has of
// a variable.
func (f *folding) emitLaunch(v *mergedVariable) []uint32 {
	index := f.emitLaunchNumber()
	if v.class == classPushConstant {
		return []uint32{f.merging.member, index}
	}
	return []uint32{index}
}

// emitLaunchNumber appends the computation of the launch's number, and returns its id.
func (f *folding) emitLaunchNumber() uint32 {
	return f.emitResult(opCompositeExtract, f.typed.scalar, f.emitResult(opLoad, f.typed.vector, f.hardware), 2)
}
