package spirv

import (
	"fmt"
	"math"
)

// storageClass is a SPIR-V storage class.
type storageClass uint32

const (
	classUniformConstant       storageClass = 0
	classInput                 storageClass = 1
	classUniform               storageClass = 2
	classWorkgroup             storageClass = 4
	classFunction              storageClass = 7
	classPushConstant          storageClass = 9
	classStorageBuffer         storageClass = 12
	classPhysicalStorageBuffer storageClass = 5349
)

var storageClassNames = map[storageClass]string{
	classUniformConstant: "UniformConstant", classInput: "Input", classUniform: "Uniform",
	3: "Output", classWorkgroup: "Workgroup", 5: "CrossWorkgroup", 6: "Private", classFunction: "Function",
	8: "Generic", classPushConstant: "PushConstant", 10: "AtomicCounter", 11: "Image",
	classStorageBuffer: "StorageBuffer", classPhysicalStorageBuffer: "PhysicalStorageBuffer",
}

func (c storageClass) String() string {
	if name, ok := storageClassNames[c]; ok {
		return name
	}
	return fmt.Sprintf("storage class %d", uint32(c))
}

// variable is a variable of the module.
type variable struct {
	id          uint32
	word        int
	class       storageClass
	initializer uint32 // id, or 0
}

func (p *parser) collectVariable(in instruction, inFunction bool) error {
	class := storageClass(in.operands[2])
	if inFunction {
		if class != classFunction {
			return in.errorf("a variable of storage class %v inside a function", class)
		}
		return nil
	}
	if class == classFunction {
		return in.errorf("a variable of storage class %v outside a function", class)
	}
	v := variable{id: in.operands[1], word: in.word, class: class}
	if len(in.operands) > 3 {
		v.initializer = in.operands[3]
		p.module.InitializesShared = p.module.InitializesShared || class == classWorkgroup
	}
	p.variables = append(p.variables, v)
	return nil
}

// pointee returns the id of the type that a variable holds.
func (p *parser) pointee(v variable) (uint32, error) {
	in := p.at(v.word)
	pointer, ok := p.definition(in.operands[0])
	switch {
	case !ok || pointer.opcode != opTypePointer:
		return 0, in.errorf("type %%%d is no pointer", in.operands[0])
	case storageClass(pointer.operands[1]) != v.class:
		return 0, in.errorf("storage class %v, but its type points to %v", v.class, storageClass(pointer.operands[1]))
	}
	return pointer.operands[2], nil
}

// maxDescriptorDimensions bounds the nesting of arrays of descriptors.
const maxDescriptorDimensions = 8

// descriptorType returns the declaration of the type of one descriptor, if the variable is
// a descriptor or nested arrays of them, and the number of descriptors, 0 if unlimited.
func (p *parser) descriptorType(v variable) (instruction, uint32, error) {
	id, err := p.pointee(v)
	if err != nil {
		return instruction{}, 0, err
	}
	in, count := p.at(v.word), uint64(1)
	for range maxDescriptorDimensions {
		declaration, ok := p.definition(id)
		if !ok {
			return in, 0, in.errorf("type %%%d is not defined", id)
		}
		switch declaration.opcode {
		case opTypeArray:
			length, err := p.arrayLength(declaration)
			if err != nil {
				return in, 0, err
			}
			if length > math.MaxUint32 || count*length > math.MaxUint32 {
				return in, 0, in.errorf("more than %d descriptors", uint32(math.MaxUint32))
			}
			count *= length
		case opTypeRuntimeArray:
			count = 0
		default:
			return declaration, uint32(count), nil
		}
		id = declaration.operands[1]
	}
	return in, 0, in.errorf("arrays of descriptors nest deeper than %d", maxDescriptorDimensions)
}

// isDescriptor reports whether variables of a class are bound as descriptors.
func (c storageClass) isDescriptor() bool {
	return c == classUniformConstant || c == classUniform || c == classStorageBuffer
}

// binding describes a variable that is bound as a descriptor.
func (p *parser) binding(v variable) (Binding, error) {
	in := p.at(v.word)
	d := p.decorations.of(idKey(v.id))
	if !d.has(decorationDescriptorSet) || !d.has(decorationBinding) {
		return Binding{}, in.errorf("%v variable %%%d %s has no DescriptorSet and Binding", v.class, v.id, quoted(p.nameOf(v.id)))
	}
	declaration, count, err := p.descriptorType(v)
	if err != nil {
		return Binding{}, err
	}
	b := Binding{
		Set: d.descriptorSet, Binding: d.binding, Name: p.nameOf(v.id), Count: count,
		NonWritable: d.has(decorationNonWritable), NonReadable: d.has(decorationNonReadable),
	}
	if v.class == classUniformConstant {
		b.Kind = p.opaqueKind(declaration)
		return b, nil
	}
	if declaration.opcode != opTypeStruct {
		return Binding{}, in.errorf("%v variable %%%d %s holds an %s, not a structure", v.class, v.id, quoted(b.Name), operationName(declaration.opcode))
	}
	structID := declaration.operands[0]
	if b.Name == "" {
		b.Name = p.nameOf(structID)
	}
	switch d := p.decorations.of(idKey(structID)); {
	case d.has(decorationBufferBlock), d.has(decorationBlock) && v.class == classStorageBuffer:
		b.Kind = StorageBuffer
	case d.has(decorationBlock):
		b.Kind = UniformBuffer
	default:
		return Binding{}, in.errorf("%v variable %%%d %s: its structure %%%d is no Block", v.class, v.id, quoted(b.Name), structID)
	}
	l := p.layoutOf(in, structID)
	if l.problem != "" {
		return Binding{}, p.layoutError(l)
	}
	b.MinSize, b.Stride = l.size, l.stride
	b.NonWritable = b.NonWritable || l.nonWritable
	b.NonReadable = b.NonReadable || l.nonReadable
	return b, nil
}

// Operands of OpTypeImage.
const (
	dimBuffer      = 5
	dimSubpassData = 6
	sampledStorage = 2 // used without a sampler
)

// opaqueKind returns the kind of a descriptor other than a buffer.
func (p *parser) opaqueKind(declaration instruction) BindingKind {
	switch declaration.opcode {
	case opTypeSampler:
		return Sampler
	case opTypeAccelerationStructureKHR:
		return AccelerationStructure
	case opTypeSampledImage:
		image, ok := p.definition(declaration.operands[1])
		if ok && image.opcode == opTypeImage && image.operands[2] == dimBuffer {
			return UniformTexelBuffer
		}
		return CombinedImageSampler
	case opTypeImage:
		dim, storage := declaration.operands[2], declaration.operands[6] == sampledStorage
		switch {
		case dim == dimSubpassData:
			return InputAttachment
		case dim == dimBuffer && storage:
			return StorageTexelBuffer
		case dim == dimBuffer:
			return UniformTexelBuffer
		case storage:
			return StorageImage
		}
		return SampledImage
	}
	return Other
}

// pushConstants describes a variable of storage class PushConstant.
func (p *parser) pushConstants(v variable) (*Block, error) {
	in := p.at(v.word)
	id, err := p.pointee(v)
	if err != nil {
		return nil, err
	}
	if b := p.blocks[id]; b != nil {
		return b, nil
	}
	declaration, ok := p.definition(id)
	if !ok || declaration.opcode != opTypeStruct {
		return nil, in.errorf("PushConstant variable %%%d %s holds no structure", v.id, quoted(p.nameOf(v.id)))
	}
	l := p.layoutOf(in, id)
	switch {
	case l.problem != "":
		return nil, p.layoutError(l)
	case l.runtime:
		return nil, declaration.errorf("push constants end in an array without a length")
	case l.size > math.MaxUint32-3: // so that whole words have a size
		return nil, declaration.errorf("push constants take %d bytes", l.size)
	}
	b := &Block{Name: p.nameOf(id), Size: uint32(l.size), Members: p.members(declaration, 0)}
	if b.Name == "" {
		b.Name = p.nameOf(v.id)
	}
	if len(b.Members) == 1 {
		if only, ok := p.definition(declaration.operands[1]); ok && only.opcode == opTypeStruct {
			b.Inner = p.members(only, b.Members[0].Offset)
		}
	}
	if p.blocks == nil {
		p.blocks = make(map[uint32]*Block)
	}
	p.blocks[id] = b
	return b, nil
}

// members describes the members of a structure that begins at an offset of a block.
func (p *parser) members(declaration instruction, offset uint32) []Member {
	id := declaration.operands[0]
	members := make([]Member, len(declaration.operands)-1)
	for i, memberType := range declaration.operands[1:] {
		d := p.decorations.of(memberKey(id, uint32(i)))
		m := p.memberLayout(declaration, d, memberType)
		members[i] = Member{
			Name: p.memberNameOf(id, uint32(i)), Offset: offset + d.offset, Size: uint32(m.size),
			Kind: m.kind, Width: m.width, Components: m.components,
		}
		if m.kind == ScalarNone {
			members[i].Align, members[i].ScalarAlign = m.align, m.largest
		}
	}
	return members
}

// quoted quotes a name for an error message and truncates it.
func quoted(name string) string { return fmt.Sprintf("%.64q", name) }
