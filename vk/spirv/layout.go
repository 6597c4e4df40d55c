package spirv

import (
	"fmt"
	"math"
	"math/bits"
)

// layout is the size of a type in a block, with the explicit offsets and strides of the
// module.
type layout struct {
	size    uint64 // bytes; without the runtime array at the end of a structure
	runtime bool   // is or ends in a runtime array
	stride  uint32 // of the runtime array, bytes

	kind       ScalarKind
	width      uint32 // bytes of one scalar
	components uint32 // scalars

	// align is the base alignment, in bytes (std430), and largest the size of the largest scalar.
	align, largest uint32

	// A matrix has no size of its own: the stride of its vectors is a decoration of the
	// structure member.
	columns, rows uint32

	// plain is the size of the parts, whether or not the type has a layout: bytes that a variable takes
	// which is not in a block, at least.
	plain uint64

	// All members of the structure have the decoration.
	nonWritable, nonReadable bool

	// Why the type has no layout, or "", and the instruction concerned. Most types need
	// none; it is an error only for types in a block.
	problem     string
	problemWord int
}

// noLayout returns the layout of a type that has none because of an instruction.
func (in instruction) noLayout(format string, args ...any) layout {
	return layout{problem: fmt.Sprintf(format, args...), problemWord: in.word}
}

// layoutError returns the error for a layout's problem.
func (p *parser) layoutError(l layout) error {
	return p.at(l.problemWord).errorf("%s", l.problem)
}

// layOutTypes is the second pass: it computes the layout of every type in the order of the
// module, so that the parts of a type come before it.
func (p *parser) layOutTypes() error {
	p.layoutIndex = newIDTable(p.bound, len(p.words))
	p.layouts = make([]layout, 0, len(p.types))
	for _, word := range p.types {
		in := p.at(word)
		l := p.layOut(in)
		l.plain = p.plainSize(in)
		p.layouts = append(p.layouts, l)
		p.layoutIndex.set(in.operands[0], uint32(len(p.layouts)))
	}
	return nil
}

// layoutOf returns the layout of a type; in is the instruction that uses it.
func (p *parser) layoutOf(in instruction, id uint32) layout {
	if i := p.layoutIndex.get(id); i != 0 {
		return p.layouts[i-1]
	}
	definition, ok := p.definition(id)
	switch {
	case !ok:
		return in.noLayout("type %%%d is not defined", id)
	case definition.opcode == opTypePointer && storageClass(definition.operands[1]) == classPhysicalStorageBuffer:
		return layout{size: 8, kind: ScalarAddress, width: 8, components: 1, align: 8, largest: 8}
	}
	return in.noLayout("%%%d is an %s, which has no size in memory", id, operationName(definition.opcode))
}

// plainSizeOf returns layout.plain of a type, 0 for one that has no size.
func (p *parser) plainSizeOf(id uint32) uint64 {
	if i := p.layoutIndex.get(id); i != 0 {
		return p.layouts[i-1].plain
	}
	return 0
}

// plainSize computes layout.plain, from those of the type's parts.
func (p *parser) plainSize(in instruction) (size uint64) {
	o := in.operands
	switch in.opcode {
	case opTypeBool:
		return 4
	case opTypeInt, opTypeFloat:
		return uint64(o[1] / 8)
	case opTypeVector, opTypeMatrix:
		return saturatingMul(p.plainSizeOf(o[1]), uint64(o[2]))
	case opTypeArray:
		if length, err := p.arrayLength(in); err == nil {
			return saturatingMul(p.plainSizeOf(o[1]), length)
		}
	case opTypeStruct:
		for _, member := range o[1:] {
			size = saturatingAdd(size, p.plainSizeOf(member))
		}
	}
	return size
}

func (p *parser) layOut(in instruction) layout {
	o := in.operands
	switch in.opcode {
	case opTypeBool:
		return in.noLayout("a boolean has no size in memory")
	case opTypeInt, opTypeFloat:
		width := o[1]
		if width != 8 && width != 16 && width != 32 && width != 64 {
			return in.noLayout("a width of %d bits has no size in memory", width)
		}
		kind := ScalarFloat
		if in.opcode == opTypeInt {
			kind = ScalarUint
			if o[2] != 0 {
				kind = ScalarInt
			}
		}
		return layout{size: uint64(width / 8), kind: kind, width: width / 8, components: 1, align: width / 8, largest: width / 8}
	case opTypeVector:
		component := p.layoutOf(in, o[1])
		if component.problem != "" {
			return component
		}
		if component.components != 1 || component.kind == ScalarNone {
			return in.noLayout("component type %%%d is no scalar", o[1])
		}
		component.size *= uint64(o[2])
		component.components, component.align = o[2], vectorAlign(component.width, o[2])
		return component
	case opTypeMatrix:
		column := p.layoutOf(in, o[1])
		if column.problem != "" {
			return column
		}
		if column.kind == ScalarNone || column.columns != 0 || column.size != uint64(column.width)*uint64(column.components) {
			return in.noLayout("column type %%%d is no vector", o[1])
		}
		return layout{
			kind: column.kind, width: column.width, components: saturate(uint64(column.components) * uint64(o[2])),
			columns: o[2], rows: column.components,
			// Of its columns or of its rows: no vector of the component needs more.
			align: vectorAlign(column.width, 4), largest: column.width,
		}
	case opTypeArray, opTypeRuntimeArray:
		return p.layOutArray(in)
	default:
		return p.layOutStruct(in)
	}
}

func (p *parser) layOutArray(in instruction) layout {
	id, element := in.operands[0], p.layoutOf(in, in.operands[1])
	if element.problem != "" {
		return element
	}
	if element.runtime {
		return in.noLayout("element type %%%d has no fixed size", in.operands[1])
	}
	d := p.decorations.of(idKey(id))
	if !d.has(decorationArrayStride) {
		return in.noLayout("%%%d has no ArrayStride", id)
	}
	if d.arrayStride == 0 {
		return in.noLayout("the ArrayStride of %%%d is 0", id)
	}
	array := layout{kind: element.kind, width: element.width, align: element.align, largest: element.largest}
	if in.opcode == opTypeRuntimeArray {
		array.runtime, array.stride = true, d.arrayStride
		return array
	}
	length, err := p.arrayLength(in)
	if err != nil {
		return in.noLayout("%s", err.(*Error).Msg)
	}
	high, size := bits.Mul64(length, uint64(d.arrayStride))
	if high != 0 || size > maxTypeSize {
		return in.noLayout("%d elements of %d bytes are too large", length, d.arrayStride)
	}
	array.size = size
	array.components = saturate(saturatingMul(uint64(element.components), length))
	return array
}

// arrayLength returns the number of elements of an OpTypeArray. It is never zero.
func (p *parser) arrayLength(in instruction) (uint64, error) {
	c, err := p.constantOf(in, in.operands[2])
	if err != nil {
		return 0, err
	}
	length, ok := c.value(p.module.spec)
	if !ok || length == 0 {
		return 0, in.errorf("length %%%d is 0 or undefined", in.operands[2])
	}
	return length, nil
}

func (p *parser) layOutStruct(in instruction) layout {
	id, members := in.operands[0], in.operands[1:]
	s := layout{nonWritable: len(members) > 0, nonReadable: len(members) > 0, align: 1, largest: 1}
	for i, memberType := range members {
		d := p.decorations.of(memberKey(id, uint32(i)))
		s.nonWritable = s.nonWritable && d.has(decorationNonWritable)
		s.nonReadable = s.nonReadable && d.has(decorationNonReadable)
		if !d.has(decorationOffset) {
			return in.noLayout("member %d of %%%d has no Offset", i, id)
		}
		member := p.memberLayout(in, d, memberType)
		switch {
		case member.problem != "":
			return member
		case member.runtime && i != len(members)-1:
			return in.noLayout("member %d of %%%d has no fixed size and is not the last", i, id)
		}
		s.runtime, s.stride = member.runtime, member.stride
		s.size = max(s.size, uint64(d.offset)+member.size)
		s.align, s.largest = max(s.align, member.align), max(s.largest, member.largest)
	}
	if s.size > maxTypeSize {
		return in.noLayout("%d bytes are too large", s.size)
	}
	return s
}

// memberLayout returns the layout of a structure member of that type; in declares the
// structure, d holds the decorations of the member.
func (p *parser) memberLayout(in instruction, d *decoration, id uint32) layout {
	member := p.layoutOf(in, id)
	if member.problem != "" || member.columns == 0 {
		return member
	}
	if !d.has(decorationMatrixStride) {
		return in.noLayout("a member is the matrix %%%d and has no MatrixStride", id)
	}
	vectors, components := member.columns, member.rows
	if d.has(decorationRowMajor) {
		vectors, components = components, vectors
	}
	member.align = vectorAlign(member.width, components)
	member.size = uint64(d.matrixStride) * uint64(vectors)
	if member.size > maxTypeSize {
		return in.noLayout("a matrix of %d bytes is too large", member.size)
	}
	return member
}

// vectorAlign returns the base alignment of a vector, or of a scalar as one of a single component, in bytes.
func vectorAlign(width, components uint32) uint32 {
	if components > 2 {
		components = 4
	}
	return width * components
}

func saturatingMul(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high != 0 {
		return math.MaxUint64
	}
	return low
}

func saturatingAdd(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

func saturate(n uint64) uint32 { return uint32(min(n, math.MaxUint32)) }
