package spirv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// parsed parses a module of testdata.
func parsed(t testing.TB, file string) *Module {
	t.Helper()
	m, err := Parse(testModules(t)[file])
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// fold calls Fold and parses the result.
func fold(t testing.TB, m *Module, entry string, dimension int, limit uint32) *Module {
	t.Helper()
	words, err := Fold(m, entry, dimension, limit)
	if err != nil {
		t.Fatal(err)
	}
	folded, err := Parse(encode(words, binary.LittleEndian))
	if err != nil {
		t.Fatal(err)
	}
	return folded
}

func TestFoldedModulesAreValid(t *testing.T) {
	validated := 0
	for file := range testModules(t) {
		if file == "pointers.spv" {
			continue // OpenCL capabilities, which shaders must not have
		}
		m := parsed(t, file)
		for _, e := range m.EntryPoints {
			if e.Model != ModelGLCompute || e.UsesNumWorkgroups {
				continue
			}
			for dimension := range 2 {
				folded := fold(t, m, e.Name, dimension, 65535)
				t.Run(fmt.Sprintf("%s/%s/%d", file, e.Name, dimension), func(t *testing.T) { validate(t, folded) })
				validated++
			}
		}
	}
	if validated < 20 {
		t.Errorf("only %d modules were validated", validated)
	}
}

func TestFoldKeepsOneEntryPoint(t *testing.T) {
	for _, test := range []struct {
		file, entry string
		listed      int // variables in the interface
	}{
		{"fold_entries.spv", "main", 2},       // SPIR-V 1.0, which does not list Private variables
		{"fold_entries.spv", "other", 3},      // with a LocalInvocationId
		{"fold_localsizeid.spv", "main", 3},   // with a WorkgroupId that the module did not have
		{"fold_workgroup.spv", "main", 1 + 4}, // SPIR-V 1.5, which lists all old variables and the new one
	} {
		m := parsed(t, test.file)
		folded := fold(t, m, test.entry, 0, 100)
		if len(folded.EntryPoints) != 1 {
			t.Fatalf("%s: %d entry points", test.file, len(folded.EntryPoints))
		}
		before, err := m.EntryPoint(test.entry)
		if err != nil {
			t.Fatal(err)
		}
		after := folded.EntryPoints[0]
		if after.Name != test.entry || after.LocalSize != before.LocalSize || !slices.Equal(after.Bindings, before.Bindings) {
			t.Errorf("%s: %q is %+v, was %+v", test.file, test.entry, after, before)
		}
		p, err := rescan(folded)
		if err != nil {
			t.Fatal(err)
		}
		in := p.at(p.entryPoints[0])
		ids := in.operands[2+literalStringWords(in.operands[2:]):]
		if len(ids) != test.listed {
			t.Errorf("%s: the interface of %q lists %d variables, want %d", test.file, test.entry, len(ids), test.listed)
		}
		slices.Sort(ids)
		if len(slices.Compact(ids)) != test.listed {
			t.Errorf("%s: the interface of %q lists a variable twice", test.file, test.entry)
		}
	}
}

func TestFoldWithoutIndicesCopies(t *testing.T) {
	m := parsed(t, "entries.spv")
	words, err := Fold(m, "fill", 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(words, m.Words) {
		t.Error("the words differ")
	}
	if &words[0] == &m.Words[0] {
		t.Error("the words are shared")
	}
}

func TestFoldLeavesModuleAlone(t *testing.T) {
	for file := range testModules(t) {
		m := parsed(t, file)
		before := slices.Clone(m.Words)
		for _, e := range m.EntryPoints {
			compute, missing := m.EntryPoint(e.Name)
			refused := missing != nil || compute.UsesNumWorkgroups
			if _, err := Fold(m, e.Name, 1, 7); refused != (err != nil) {
				t.Errorf("%s: %q: %v", file, e.Name, err)
			}
		}
		if !slices.Equal(m.Words, before) {
			t.Errorf("%s: the module's words have changed", file)
		}
	}
}

func TestFoldRefusesBadArguments(t *testing.T) {
	m := parsed(t, "fold_both.spv")
	for _, test := range []struct {
		module    *Module
		entry     string
		dimension int
		limit     uint32
		want      string
	}{
		{m, "main", -1, 1, "dimension -1"},
		{m, "main", 2, 1, "dimension 2"},
		{m, "main", 0, 0, "limit of 0"},
		{m, "other", 0, 1, `"other"`},
		{&Module{}, "main", 0, 1, `"main"`},
		{&Module{EntryPoints: m.EntryPoints}, "main", 0, 1, "truncated"},
		{&Module{EntryPoints: m.EntryPoints, Words: make([]uint32, 5)}, "main", 0, 1, "version"},
		{&Module{EntryPoints: m.EntryPoints, Words: parsed(t, "entries.spv").Words}, "main", 0, 1, `"main"`},
	} {
		words, err := Fold(test.module, test.entry, test.dimension, test.limit)
		if err == nil || words != nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("dimension %d, limit %d, %q: %v, want %q", test.dimension, test.limit, test.entry, err, test.want)
		}
	}
	if _, err := Fold(m, "other", 0, 1); !errors.Is(err, ErrEntryPoint) {
		t.Errorf("%v is not ErrEntryPoint", err)
	}
}

// Ids of the declarations that indexed makes.
const (
	idVector = idFree + iota
	idVectorPointer
	idComponentPointer
	idIndex
	idAfterIndex
)

// indexed declares a built-in variable of three unsigned integers.
func indexed(builtIn uint32) shader {
	return shader{
		annotations: [][]uint32{op(opDecorate, idIndex, decorationBuiltIn, builtIn)},
		globals: [][]uint32{
			op(opTypeVector, idVector, idUint, 3),
			op(opTypePointer, idVectorPointer, uint32(classInput), idVector),
			op(opTypePointer, idComponentPointer, uint32(classInput), idUint),
			op(opVariable, idVectorPointer, idIndex, uint32(classInput)),
		},
		body: [][]uint32{op(opLoad, idVector, 50, idIndex)},
	}
}

func TestFoldRefusesWhatItCannotRewrite(t *testing.T) {
	with := func(change func(*shader)) shader {
		s := indexed(builtInGlobalInvocationID)
		change(&s)
		return s
	}
	body := func(instructions ...[]uint32) shader {
		return with(func(s *shader) { s.body = append(s.body, instructions...) })
	}
	tests := []struct {
		name   string
		shader shader
		want   string
	}{
		{"number of workgroups", indexed(builtInNumWorkgroups), "OpVariable: a kernel that uses NumWorkgroups cannot be folded"},
		{"argument", with(func(s *shader) {
			s.globals = append(s.globals, op(33, 60, idVoid, idVectorPointer))
			s.body = append(s.body, op(opFunctionCall, idVoid, 61, 62, idIndex))
			s.functions = [][]uint32{op(opFunction, idVoid, 62, 0, 60), op(opFunctionParameter, idVectorPointer, 63), op(opLabel, 64), op(253), op(opFunctionEnd)}
		}), "OpFunctionCall: %13 points into the built-in GlobalInvocationId"},
		{"derived argument", body(
			op(opAccessChain, idComponentPointer, 60, idIndex, idOne),
			op(opSelect, idComponentPointer, 61, idOne, 60, 60),
		), "OpSelect: %60 points into the built-in GlobalInvocationId"},
		{"phi around a loop", body(
			op(opPhi, idComponentPointer, 61, 60, idLabel),
			op(opAccessChain, idComponentPointer, 60, idIndex, idOne),
		), "OpPhi: %60 points into the built-in"},
		{"written", body(op(opStore, idIndex, 50)), "OpStore: %13"},
		{"stored", body(op(opStore, 50, idIndex)), "OpStore: %13"},
		{"copied to", body(op(opCopyMemory, idIndex, idIndex)), "OpCopyMemory: %13"},
		{"index of itself", body(op(opAccessChain, idComponentPointer, 60, idIndex, idIndex)), "OpAccessChain: %13"},
		{"pointer arithmetic", body(op(opPtrAccessChain, idComponentPointer, 60, idIndex, idOne, idOne)), "OpPtrAccessChain: %13"},
		{"pointer of another type", body(op(opAccessChain, idUint, 60, idIndex, idOne)), "OpAccessChain: %5 is no type of a pointer into GlobalInvocationId"},
		{"pointer to another type", with(func(s *shader) {
			s.globals = append(s.globals, op(opTypePointer, 60, uint32(classInput), idBool))
			s.body = append(s.body, op(opCopyObject, 60, 61, idIndex))
		}), "OpCopyObject: %60 is no type of a pointer"},
		{"unknown instruction", body(op(7000, 1, idIndex)), "Op(7000): %13 points into"},
		{"extended instruction", with(func(s *shader) {
			s.annotations = append([][]uint32{op(opExtInstImport, text("GLSL.std.450", 60)...)}, s.annotations...)
			s.body = append(s.body, op(opExtInst, idUint, 61, 60, 76, idIndex))
		}), "OpExtInst: %13"},
		{"initializer of another", with(func(s *shader) {
			s.globals = append(s.globals, op(opTypePointer, 60, uint32(classPrivate), idVectorPointer), op(opVariable, 60, 61, uint32(classPrivate), idIndex))
		}), "OpVariable: %13"},
		{"pointer in a constant", with(func(s *shader) {
			s.globals = append(s.globals, op(opSpecConstantOp, idComponentPointer, 60, opAccessChain, idIndex, idOne))
		}), "OpSpecConstantOp: %13"},
		{"initializer", with(func(s *shader) {
			s.globals[3] = op(opVariable, idVectorPointer, idIndex, uint32(classInput), idOne)
		}), "OpVariable: GlobalInvocationId has an initializer"},
		{"two components", with(func(s *shader) { s.globals[0] = op(opTypeVector, idVector, idUint, 2) }), "GlobalInvocationId is no vector of 3"},
		{"scalar", with(func(s *shader) { s.globals[1] = op(opTypePointer, idVectorPointer, uint32(classInput), idUint) }), "GlobalInvocationId is no vector of 3"},
		{"booleans", with(func(s *shader) { s.globals[0] = op(opTypeVector, idVector, idBool, 3) }), "GlobalInvocationId is no vector of integers of 32 bits"},
		{"other class", with(func(s *shader) {
			s.globals[1] = op(opTypePointer, idVectorPointer, uint32(classPrivate), idVector)
		}), "storage class Input, but its type points to Private"},
		{"type behind the variable", with(func(s *shader) {
			s.globals = [][]uint32{op(opTypeForwardPointer, idVectorPointer, uint32(classInput)), s.globals[0], s.globals[3], s.globals[1]}
		}), "GlobalInvocationId is declared before its type"},
		{"two of a kind", with(func(s *shader) {
			s.annotations = append(s.annotations, op(opDecorate, 60, decorationBuiltIn, builtInGlobalInvocationID))
			s.globals = append(s.globals, op(opVariable, idVectorPointer, 60, uint32(classInput)))
			s.body = append(s.body, op(opLoad, idVector, 61, 60))
		}), "OpVariable: a second GlobalInvocationId of one entry point, after %13"},
		{"member of a block", with(func(s *shader) {
			s.annotations = append(s.annotations, op(opMemberDecorate, 60, 1, decorationBuiltIn, builtInWorkgroupID), op(opMemberDecorate, 60, 0, decorationBuiltIn, 1))
			s.globals = append(s.globals, op(opTypeStruct, 60, idUint, idVector))
		}), "OpTypeStruct: member 1 of %60 is the built-in WorkgroupId"},
		{"size that is no composite", with(func(s *shader) {
			s.annotations = append(s.annotations, op(opDecorate, 60, decorationBuiltIn, builtInWorkgroupSize))
			s.globals = append(s.globals, op(opSpecConstantOp, idVector, 60, opUndef))
		}), "OpSpecConstantOp: %60 is decorated WorkgroupSize and is no composite"},
		{"size of other width", with(func(s *shader) {
			s.modes = [][]uint32{op(opExecutionModeID, idMain, modeLocalSizeID, 61, idOne, idOne)}
			s.globals = append(s.globals, op(opTypeInt, 60, 64, 0), op(opConstant, 60, 61, 1, 0))
		}), "OpExecutionModeId: %61 is no constant of 32 bits"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m, err := Parse(test.shader.encode())
			if err != nil {
				t.Fatal(err)
			}
			before := slices.Clone(m.Words)
			words, err := Fold(m, "main", 0, 1000)
			wantError(t, err, test.want)
			if words != nil || !slices.Equal(m.Words, before) {
				t.Error("refused, and changed something")
			}
		})
	}
}

func TestFoldRefusesFunctionsThatCannotBegin(t *testing.T) {
	header := [][]uint32{
		op(opCapability, uint32(CapabilityShader)),
		op(opEntryPoint, text("main", uint32(ModelGLCompute), idMain)...),
		op(opEntryPoint, text("also", uint32(ModelGLCompute), idMain)...),
		op(opExecutionMode, idMain, modeLocalSize, 1, 1, 1),
		op(opDecorate, idIndex, decorationBuiltIn, builtInGlobalInvocationID),
		op(opTypeVoid, idVoid),
		op(opTypeInt, idUint, 32, 0),
		op(opTypeVector, idVector, idUint, 3),
		op(opTypePointer, idVectorPointer, uint32(classInput), idVector),
		op(33, idFunctionType, idVoid),
	}
	variable := [][]uint32{op(opVariable, idVectorPointer, idIndex, uint32(classInput))}
	function := func(body ...[]uint32) [][]uint32 {
		return slices.Concat([][]uint32{op(opFunction, idVoid, idMain, 0, idFunctionType)}, body, [][]uint32{op(opFunctionEnd)})
	}
	load := op(opLoad, idVector, 50, idIndex)
	for _, test := range []struct {
		name   string
		module [][]uint32
		want   string
	}{
		{"no block", slices.Concat(header, variable, function(load)), "OpFunction: function %3 has no first block"},
		{"no body", slices.Concat(header, variable, function(), [][]uint32{
			op(opFunction, idVoid, 60, 0, idFunctionType), load, op(opFunctionEnd),
		}), ""},
		{"variable behind the function", slices.Concat(header, function(op(opLabel, idLabel), op(opFunctionCall, idVoid, 51, 60), op(253)), variable, [][]uint32{
			op(opFunction, idVoid, 60, 0, idFunctionType), load, op(opFunctionEnd),
		}), "OpVariable: GlobalInvocationId is declared before its type or after the function %3"},
		{"function of two stages", slices.Concat(header, [][]uint32{op(opEntryPoint, text("main", uint32(ModelFragment), idMain)...)}, variable, function(op(opLabel, idLabel), load)),
			"OpEntryPoint: the function of compute entry point \"main\" is also one of model Fragment"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, err := Parse(assemble(idBound, test.module...))
			if err != nil {
				t.Fatal(err)
			}
			words, err := Fold(m, "main", 0, 1)
			if test.want == "" {
				if err != nil || !slices.Equal(words, m.Words) {
					t.Errorf("not a copy; %v", err)
				}
				return
			}
			wantError(t, err, test.want)
		})
	}
}

func TestFoldRefusesToPassLimits(t *testing.T) {
	code := indexed(builtInWorkgroupID).encode()
	setBound(code, maxBound)
	m, err := Parse(code)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Fold(m, "main", 0, 1)
	wantError(t, err, "header: bound on ids would be")

	s := indexed(builtInWorkgroupID)
	s.modes = [][]uint32{op(opExecutionMode, idMain, modeLocalSize, 1, 1, 1)}
	entry := text("wide", uint32(ModelGLCompute), idMain)
	for len(entry) < math.MaxUint16-1 {
		entry = append(entry, idIndex)
	}
	s.annotations = append([][]uint32{op(opEntryPoint, entry...)}, s.annotations...)
	if m, err = Parse(s.encode()); err != nil {
		t.Fatal(err)
	}
	_, err = Fold(m, "wide", 0, 1)
	wantError(t, err, "OpEntryPoint: lists too many variables")
}
