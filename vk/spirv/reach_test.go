package spirv

import (
	"encoding/binary"
	"slices"
	"testing"
)

// namedFunctions returns the names of a module's functions, in their order.
func namedFunctions(t *testing.T, words []uint32) (functions []string) {
	t.Helper()
	p, err := rescan(&Module{Version: words[1], Words: words})
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[uint32]string)
	for word := headerWords; word < len(words); {
		in := p.at(word)
		word = in.next()
		if in.opcode == opName {
			names[in.operands[0]] = literalString(in.operands[1:])
			if _, ok := p.definition(in.operands[0]); !ok {
				t.Errorf("%q is the name of nothing", names[in.operands[0]])
			}
		}
	}
	for _, function := range p.functions {
		functions = append(functions, names[function.id])
	}
	return functions
}

// What an entry point does not reach neither prevents a variant of it nor is in that.
func TestVariantsHaveWhatTheirEntryPointsReach(t *testing.T) {
	m := parsed(t, "unreached.spv")
	want := []string{"shared", "main"}
	for _, o := range []MergeOptions{room, sharedRoom, spacedRoom} {
		v, err := Merge(m, "main", o)
		if err != nil {
			t.Errorf("bindings %d: %v", o.Bindings, err)
		} else if got := namedFunctions(t, v.Words); !slices.Equal(got, want) {
			t.Errorf("bindings %d: the functions are %q, want %q", o.Bindings, got, want)
		}
	}
	for entry, want := range map[string][]string{"main": want, "other": {"other", "taken", "shared"}} {
		words, err := Fold(m, entry, 0, 65535)
		if err != nil {
			t.Error(err)
		} else if got := namedFunctions(t, words); !slices.Equal(got, want) {
			t.Errorf("the functions of %q folded are %q, want %q", entry, got, want)
		}
	}
}

// The line in the source that stands before a function which a variant does not have is not that of the next function.
func TestVariantsHaveTheLinesOfTheirFunctions(t *testing.T) {
	m := parsed(t, "unreached.spv")
	for entry, want := range map[string][]uint32{"main": nil, "other": {1}} {
		words, err := Fold(m, entry, 0, 65535)
		if err != nil {
			t.Fatal(err)
		}
		p, err := rescan(&Module{Version: words[1], Words: words})
		if err != nil {
			t.Fatal(err)
		}
		var lines []uint32
		for word := headerWords; word < len(words); {
			in := p.at(word)
			word = in.next()
			if in.opcode == opLine {
				lines = append(lines, in.operands[1])
			}
		}
		if !slices.Equal(lines, want) {
			t.Errorf("the functions of %q are at the lines %d, want %d", entry, lines, want)
		}
	}
}

// A variant has all functions if it would name one that it does not have, or if it is not known what it names.
func TestVariantsHaveWhatTheyName(t *testing.T) {
	const other, set, note, element = 60, 61, 62, 63
	access := [][]uint32{op(opAccessChain, idUintPointer, element, idVariable, idZero, idOne), op(opStore, element, idOne)}
	for name, c := range map[string]struct {
		body, unreached [][]uint32
		functions       int
	}{
		"nothing":                 {nil, nil, 1},
		"function":                {[][]uint32{op(opExtInst, idVoid, note, set, 1, other)}, nil, 2},
		"label of a function":     {[][]uint32{op(opExtInst, idVoid, note, set, 1, other+10)}, nil, 2},
		"itself":                  {[][]uint32{op(opExtInst, idVoid, note, set, 1, idMain)}, nil, 1},
		"unknown instruction":     {[][]uint32{op(0xfff0, other)}, nil, 2},
		"unknown, in what is not": {nil, [][]uint32{op(0xfff0, 99)}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := storageBuffer()
			s.annotations = append([][]uint32{op(opExtInstImport, text("NonSemantic.Test", set)...)}, s.annotations...)
			s.body = slices.Concat(access, c.body)
			s.functions = slices.Concat([][]uint32{
				op(opFunction, idVoid, other, 0, idFunctionType),
				op(opLabel, other+10),
			}, c.unreached, [][]uint32{op(253), op(opFunctionEnd)}) // OpReturn
			v, err := Merge(parsedShader(t, s), "main", sharedRoom)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(namedFunctions(t, v.Words)); got != c.functions {
				t.Errorf("%d functions, want %d", got, c.functions)
			}
			if _, err := Parse(encode(v.Words, binary.LittleEndian)); err != nil {
				t.Error(err)
			}
		})
	}
}
