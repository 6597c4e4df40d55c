package spirv

import (
	"cmp"
	"slices"
)

// constantOf collects the operations that compute an integer or boolean constant; in is the
// instruction that uses it.
func (p *parser) constantOf(in instruction, id uint32) (constant, error) {
	f := folder{p: p}
	if _, err := f.fold(in, id, 0); err != nil {
		return constant{}, err
	}
	return f.constant, nil
}

// folder builds one constant. Shared operands become one node, and the number of nodes is
// bounded.
type folder struct {
	p        *parser
	constant constant
	index    map[uint32]uint8 // id to node
}

// fold returns the index of a constant's node, which it appends if there is none.
func (f *folder) fold(in instruction, id uint32, depth int) (uint8, error) {
	if i, ok := f.index[id]; ok {
		return i, nil
	}
	definition, ok := f.p.definition(id)
	switch {
	case !ok:
		return 0, in.errorf("constant %%%d is not defined", id)
	case depth == maxConstantNodes:
		return 0, in.errorf("constant %%%d nests too many operations", id)
	}
	var n node
	var err error
	switch definition.opcode {
	case opConstantTrue, opConstantFalse, opSpecConstantTrue, opSpecConstantFalse, opConstant, opSpecConstant, opConstantNull:
		n, err = f.p.constantNode(definition)
		f.constant.specialized = f.constant.specialized || n.spec != nil
	case opSpecConstantOp:
		if definition.operands[2] == opCompositeExtract {
			return f.foldExtract(definition, depth)
		}
		n, err = f.operationNode(definition, depth)
	default:
		return 0, in.errorf("%%%d is an %s, which is no integer constant", id, operationName(definition.opcode))
	}
	if err != nil {
		return 0, err
	}
	return f.append(definition, id, n)
}

func (f *folder) append(in instruction, id uint32, n node) (uint8, error) {
	if len(f.constant.nodes) == maxConstantNodes {
		return 0, in.errorf("constant %%%d is made of more than %d operations", id, maxConstantNodes)
	}
	if f.index == nil {
		f.index = make(map[uint32]uint8)
	}
	place := uint8(len(f.constant.nodes))
	f.index[id] = place
	f.constant.nodes = append(f.constant.nodes, n)
	return place, nil
}

// operationNode folds the operands of an OpSpecConstantOp.
func (f *folder) operationNode(in instruction, depth int) (n node, err error) {
	opcode, args := in.operands[2], in.operands[3:]
	count := operands(opcode)
	switch {
	case count == 0:
		return n, in.errorf("%s is not folded here", operationName(uint16(min(opcode, 0xffff))))
	case len(args) != count:
		return n, in.errorf("%s has %d operands, not %d", operationName(uint16(opcode)), len(args), count)
	}
	n.opcode = uint16(opcode)
	if n.bits, err = f.p.scalarBits(in, in.operands[0]); err != nil {
		return n, err
	}
	for i, id := range args {
		if n.args[i], err = f.fold(in, id, depth+1); err != nil {
			return n, err
		}
	}
	n.source = f.constant.nodes[n.args[0]].bits
	return n, nil
}

// foldExtract folds the component of a constant composite that an OpCompositeExtract
// extracts.
func (f *folder) foldExtract(in instruction, depth int) (uint8, error) {
	if len(in.operands) < 5 || len(in.operands) > 4+maxConstantNodes {
		return 0, in.errorf("OpCompositeExtract has %d operands", len(in.operands)-3)
	}
	id := in.operands[3]
	for _, index := range in.operands[4:] {
		composite, ok := f.p.definition(id)
		if !ok {
			return 0, in.errorf("constant %%%d is not defined", id)
		}
		switch composite.opcode {
		case opConstantComposite, opSpecConstantComposite:
		case opConstantNull:
			bits, err := f.p.scalarBits(in, in.operands[0])
			if err != nil {
				return 0, err
			}
			return f.append(in, in.operands[1], node{opcode: opConstant, bits: bits})
		default:
			return 0, in.errorf("%%%d is an %s, from which no component is folded here", id, operationName(composite.opcode))
		}
		if uint64(index) >= uint64(len(composite.operands)-2) {
			return 0, in.errorf("composite %%%d has no component %d", id, index)
		}
		id = composite.operands[2+index]
	}
	place, err := f.fold(in, id, depth+1)
	if err == nil {
		f.index[in.operands[1]] = place
	}
	return place, err
}

// constantNode returns the node of a scalar constant that has a value of its own.
func (p *parser) constantNode(in instruction) (node, error) {
	n := node{opcode: opConstant}
	var err error
	if n.bits, err = p.scalarBits(in, in.operands[0]); err != nil {
		return n, err
	}
	switch in.opcode {
	case opConstantTrue, opSpecConstantTrue:
		n.value = 1
	case opConstant, opSpecConstant:
		if n.value, err = in.literal(n.bits); err != nil {
			return n, err
		}
	}
	switch in.opcode {
	case opSpecConstant, opSpecConstantTrue, opSpecConstantFalse:
		if d := p.decorations.of(idKey(in.operands[1])); d.has(decorationSpecID) {
			id := d.specID
			n.spec = &id
		}
	}
	return n, nil
}

// literal returns the value of an OpConstant or OpSpecConstant of a width.
func (in instruction) literal(bits uint8) (uint64, error) {
	value := uint64(in.operands[2])
	if bits > 32 {
		if len(in.operands) < 4 {
			return 0, in.errorf("truncated: a value of %d bits takes 2 words", bits)
		}
		value |= uint64(in.operands[3]) << 32
	}
	return truncate(value, bits), nil
}

// scalarBits returns the width of an integer or boolean type; in is the
// instruction whose result has it.
func (p *parser) scalarBits(in instruction, id uint32) (uint8, error) {
	definition, ok := p.definition(id)
	if ok && definition.opcode == opTypeBool {
		return 1, nil
	}
	if ok && definition.opcode == opTypeInt {
		switch width := definition.operands[1]; width {
		case 8, 16, 32, 64:
			return uint8(width), nil
		}
	}
	return 0, in.errorf("type %%%d is neither boolean nor an integer of 8, 16, 32 or 64 bits", id)
}

// collectSpecConstants returns the scalar specialization constants with a SpecId, sorted by
// it. glslang declares some of them twice; equal declarations become one.
func (p *parser) collectSpecConstants() ([]SpecConstant, error) {
	var list []SpecConstant
	for _, word := range p.specs {
		in := p.at(word)
		typeID, id := in.operands[0], in.operands[1]
		d := p.decorations.of(idKey(id))
		if !d.has(decorationSpecID) {
			continue
		}
		c := SpecConstant{ID: d.specID, Name: p.nameOf(id)}
		switch in.opcode {
		case opSpecConstantTrue:
			c.Default = 1
			fallthrough
		case opSpecConstantFalse:
			c.Kind, c.Size = ScalarBool, 4
		default:
			l := p.layoutOf(in, typeID)
			switch {
			case l.problem != "":
				return nil, p.layoutError(l)
			case l.kind != ScalarInt && l.kind != ScalarUint && l.kind != ScalarFloat || l.components != 1 || l.columns != 0 || l.runtime:
				return nil, in.errorf("type %%%d is no number", typeID)
			}
			c.Kind, c.Size = l.kind, l.width
			var err error
			if c.Default, err = in.literal(uint8(8 * l.width)); err != nil {
				return nil, err
			}
		}
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(a, b SpecConstant) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(list, func(a, b SpecConstant) bool {
		return a.ID == b.ID && a.Size == b.Size && a.Kind == b.Kind && a.Default == b.Default
	}), nil
}
