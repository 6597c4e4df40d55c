package spirv

import "math"

// The decorations that reflection reads, with the specification's numbers.
const (
	decorationSpecID        = 1
	decorationBlock         = 2
	decorationBufferBlock   = 3
	decorationRowMajor      = 4
	decorationArrayStride   = 6
	decorationMatrixStride  = 7
	decorationBuiltIn       = 11
	decorationNonWritable   = 24
	decorationNonReadable   = 25
	decorationBinding       = 33
	decorationDescriptorSet = 34
	decorationOffset        = 35
)

var decorationNames = map[uint32]string{
	decorationSpecID: "SpecId", decorationArrayStride: "ArrayStride", decorationMatrixStride: "MatrixStride",
	decorationBuiltIn: "BuiltIn", decorationBinding: "Binding", decorationDescriptorSet: "DescriptorSet",
	decorationOffset: "Offset",
}

// Values of the decoration BuiltIn.
const (
	builtInNumWorkgroups = 24
	builtInWorkgroupSize = 25
)

// decoration is the union of the decorations of one id or member.
type decoration struct {
	set uint64 // bit n: has the decoration with number n

	specID, arrayStride, matrixStride, builtIn, binding, descriptorSet, offset uint32
}

func (d *decoration) has(number uint32) bool { return d.set&(1<<number) != 0 }

// value returns the field for the literal of a decoration, nil if it has none.
func (d *decoration) value(number uint32) *uint32 {
	switch number {
	case decorationSpecID:
		return &d.specID
	case decorationArrayStride:
		return &d.arrayStride
	case decorationMatrixStride:
		return &d.matrixStride
	case decorationBuiltIn:
		return &d.builtIn
	case decorationBinding:
		return &d.binding
	case decorationDescriptorSet:
		return &d.descriptorSet
	case decorationOffset:
		return &d.offset
	}
	return nil
}

// add adds one decoration. in is the instruction for errors, literals are the operands
// after the decoration's number.
func (d *decoration) add(in instruction, number uint32, literals []uint32) error {
	switch number {
	case decorationBlock, decorationBufferBlock, decorationRowMajor, decorationNonWritable, decorationNonReadable:
		d.set |= 1 << number
		return nil
	}
	value := d.value(number)
	if value == nil {
		return nil
	}
	if len(literals) == 0 {
		return in.errorf("%s without its value", decorationNames[number])
	}
	if d.has(number) && *value != literals[0] {
		return in.errorf("%s is %d here and %d before", decorationNames[number], literals[0], *value)
	}
	d.set |= 1 << number
	*value = literals[0]
	return nil
}

// merge adds the decorations of a group.
func (d *decoration) merge(in instruction, group *decoration) error {
	for number := uint32(0); number < 64; number++ {
		if !group.has(number) {
			continue
		}
		var literals []uint32
		if value := group.value(number); value != nil {
			literals = []uint32{*value}
		}
		if err := d.add(in, number, literals); err != nil {
			return err
		}
	}
	return nil
}

// decorations holds the decorations of a module's ids and structure members. Its size is
// linear in the number of decorating instructions. Decorations of a group are united first
// and then merged into each target, so that groups do not multiply the work.
type decorations struct {
	index  map[uint64]int32 // by idKey or memberKey, into sums
	sums   []decoration
	groups []int // offsets of OpGroupDecorate and OpGroupMemberDecorate
}

func idKey(id uint32) uint64 { return uint64(id) << 32 }

func memberKey(id, member uint32) uint64 { return uint64(id)<<32 | uint64(member+1) }

// of returns the decorations under a key, for reading only.
func (d *decorations) of(key uint64) *decoration {
	if i, ok := d.index[key]; ok {
		return &d.sums[i]
	}
	return &undecorated
}

var undecorated decoration

// at returns the decorations under a key, to which the caller adds.
func (d *decorations) at(key uint64) *decoration {
	if i, ok := d.index[key]; ok {
		return &d.sums[i]
	}
	if d.index == nil {
		d.index = make(map[uint64]int32)
	}
	d.index[key] = int32(len(d.sums))
	d.sums = append(d.sums, decoration{})
	return &d.sums[len(d.sums)-1]
}

func reflected(number uint32) bool {
	const all = 1<<decorationSpecID | 1<<decorationBlock | 1<<decorationBufferBlock | 1<<decorationRowMajor |
		1<<decorationArrayStride | 1<<decorationMatrixStride | 1<<decorationBuiltIn | 1<<decorationNonWritable |
		1<<decorationNonReadable | 1<<decorationBinding | 1<<decorationDescriptorSet | 1<<decorationOffset
	return number < 64 && all&(uint64(1)<<number) != 0
}

// scan records one annotation.
func (d *decorations) scan(in instruction) error {
	o := in.operands
	switch in.opcode {
	case opDecorate:
		if reflected(o[1]) {
			return d.at(idKey(o[0])).add(in, o[1], o[2:])
		}
	case opMemberDecorate:
		if o[1] == math.MaxUint32 {
			return in.errorf("member index %d is beyond any structure", o[1])
		}
		if reflected(o[2]) {
			return d.at(memberKey(o[0], o[1])).add(in, o[2], o[3:])
		}
	case opGroupDecorate, opGroupMemberDecorate:
		d.groups = append(d.groups, in.word)
	}
	return nil
}

// mergeGroups adds each group's decorations to its targets. bound is the module's id bound.
func (d *decorations) mergeGroups(words []uint32, bound uint32) error {
	for _, word := range d.groups {
		in, err := decodeInstruction(words, word)
		if err != nil {
			return err
		}
		group := *d.of(idKey(in.operands[0]))
		targets := in.operands[1:]
		if in.opcode == opGroupDecorate {
			for _, id := range targets {
				if err := d.at(idKey(id)).merge(in, &group); err != nil {
					return err
				}
			}
			continue
		}
		if len(targets)%2 != 0 {
			return in.errorf("target %%%d without a member index", targets[len(targets)-1])
		}
		for i := 0; i < len(targets); i += 2 {
			id, member := targets[i], targets[i+1]
			if id == 0 || id >= bound {
				return in.errorf("id %%%d is outside the bound %d", id, bound)
			}
			if member == math.MaxUint32 {
				return in.errorf("member index %d is beyond any structure", member)
			}
			if err := d.at(memberKey(id, member)).merge(in, &group); err != nil {
				return err
			}
		}
	}
	return nil
}
