package spirv

import (
	"fmt"
	"testing"
)

// prologue interprets the instructions at the beginning of an entry point's function.
type prologue struct {
	*parser
	spec     map[uint32]uint32
	hardware map[uint32][3]uint32 // by built-in
	values   map[uint32][3]uint32 // by id; a scalar is the first component
	memory   map[uint32][3]uint32 // by variable of class Private
}

// run returns what the first block has stored before the first instruction that is not part
// of a prologue.
func (p *prologue) run(t *testing.T, in instruction) map[uint32][3]uint32 {
	t.Helper()
	p.values, p.memory = make(map[uint32][3]uint32), make(map[uint32][3]uint32)
	for {
		in = p.at(in.next())
		o := in.operands
		switch in.opcode {
		case opLabel, opVariable, opLine:
		case opLoad:
			d := p.decorations.of(idKey(o[2]))
			v, ok := p.hardware[d.builtIn]
			if !ok || !d.has(decorationBuiltIn) {
				return p.memory
			}
			p.values[o[1]] = v
		case opStore:
			p.memory[o[0]] = p.value(t, in, o[1])
		case opCompositeExtract:
			p.values[o[1]] = [3]uint32{p.value(t, in, o[2])[o[3]]}
		case opCompositeInsert:
			v := p.value(t, in, o[3])
			v[o[4]] = p.value(t, in, o[2])[0]
			p.values[o[1]] = v
		case opIAdd, opISub, opIMul:
			a, b := p.value(t, in, o[2])[0], p.value(t, in, o[3])[0]
			p.values[o[1]] = [3]uint32{map[uint16]uint32{opIAdd: a + b, opISub: a - b, opIMul: a * b}[in.opcode]}
		default:
			return p.memory
		}
	}
}

func (p *prologue) value(t *testing.T, in instruction, id uint32) [3]uint32 {
	t.Helper()
	if v, ok := p.values[id]; ok {
		return v
	}
	c, err := p.constantOf(in, id)
	if err != nil {
		t.Fatal(err)
	}
	v, ok := c.value(p.spec)
	if !ok {
		t.Fatalf("%%%d has no value", id)
	}
	return [3]uint32{uint32(v)}
}

func TestFoldedKernelSeesIndicesOfLaunch(t *testing.T) {
	tests := []struct {
		file, entry       string
		spec              map[uint32]uint32
		size              [3]uint32
		workgroup, global bool
	}{
		{"fold_both.spv", "main", nil, [3]uint32{1, 1, 1}, true, true},
		{"fold_both.spv", "main", map[uint32]uint32{0: 5, 1: 2}, [3]uint32{5, 2, 1}, true, true},
		{"fold_entries.spv", "main", nil, [3]uint32{4, 2, 1}, true, true},
		{"fold_entries.spv", "other", nil, [3]uint32{1, 1, 1}, true, true},
		{"fold_global.spv", "main", nil, [3]uint32{2, 3, 2}, false, true},
		{"fold_workgroup.spv", "main", nil, [3]uint32{8, 1, 1}, true, false},
		{"fold_localsizeid.spv", "main", nil, [3]uint32{3, 3, 2}, false, true},
		{"fold_localsizeid.spv", "main", map[uint32]uint32{0: 7}, [3]uint32{9, 3, 2}, false, true},
	}
	for _, test := range tests {
		for dimension := range 2 {
			for _, limit := range []uint32{1, 3, 65535} {
				t.Run(fmt.Sprintf("%s %s %v %d by %d", test.file, test.entry, test.size, dimension, limit), func(t *testing.T) {
					m := parsed(t, test.file)
					ids := builtIns(t, m)
					folded := fold(t, m, test.entry, dimension, limit)
					p, err := rescan(folded)
					if err != nil {
						t.Fatal(err)
					}
					run := prologue{parser: p, spec: test.spec}
					function, ok := p.definition(p.at(p.entryPoints[0]).operands[1])
					if !ok {
						t.Fatal("no function")
					}
					for _, logical := range []uint32{0, 1, 2, 3, 4, 7, 65534, 65535, 65536, 200000} {
						workgroup := [3]uint32{1, 1, 0}
						workgroup[dimension] = logical
						layered := [3]uint32{1, 1, logical / limit}
						layered[dimension] = logical % limit
						for _, local := range [][3]uint32{{}, {test.size[0] - 1, test.size[1] - 1, test.size[2] - 1}} {
							run.hardware = map[uint32][3]uint32{
								builtInWorkgroupID:        layered,
								builtInGlobalInvocationID: global(layered, test.size, local),
							}
							memory := run.run(t, function)
							check := func(builtIn uint32, used bool, want [3]uint32) {
								got, ok := memory[ids[builtIn]]
								if ok != used || used && got != want {
									t.Errorf("%s of workgroup %d, invocation %v is %v (%v), want %v (%v)", foldedNames[builtIn], logical, local, got, ok, want, used)
								}
							}
							check(builtInWorkgroupID, test.workgroup, workgroup)
							check(builtInGlobalInvocationID, test.global, global(workgroup, test.size, local))
						}
					}
				})
			}
		}
	}
}

// builtIns returns the ids of a module's built-in variables.
func builtIns(t *testing.T, m *Module) map[uint32]uint32 {
	t.Helper()
	p, err := rescan(m)
	if err != nil {
		t.Fatal(err)
	}
	ids := make(map[uint32]uint32)
	for _, v := range p.variables {
		if d := p.decorations.of(idKey(v.id)); d.has(decorationBuiltIn) {
			ids[d.builtIn] = v.id
		}
	}
	return ids
}

// global returns GlobalInvocationId as the specification defines it.
func global(workgroup, size, local [3]uint32) (v [3]uint32) {
	for d := range v {
		v[d] = workgroup[d]*size[d] + local[d]
	}
	return v
}
