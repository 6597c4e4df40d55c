package spirv

import (
	"cmp"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// parseAny parses arbitrary bytes and checks the invariants of every result. It returns the
// result, nil after an error.
func parseAny(t *testing.T, code []byte) *Module {
	t.Helper()
	m, err := Parse(code)
	if err != nil {
		var e *Error
		if m != nil || !errors.As(err, &e) || !errors.Is(err, ErrInvalid) {
			t.Fatalf("Parse returned %v, %v", m, err)
		}
		if e.Op == "" || e.Msg == "" || e.Word < 0 || e.Word > len(code)/4 {
			t.Fatalf("%v names no place in %d words", err, len(code)/4)
		}
		return nil
	}
	if 4*len(m.Words) != len(code) || m.Words[0] != magic {
		t.Fatalf("%d words of %d bytes", len(m.Words), len(code))
	}
	for i := range m.EntryPoints {
		checkEntryPoint(t, &m.EntryPoints[i])
		e, err := m.EntryPoint(m.EntryPoints[i].Name)
		if err == nil && e.Model != ModelGLCompute || err != nil && !errors.Is(err, ErrEntryPoint) {
			t.Fatalf("EntryPoint returned %v, %v", e, err)
		}
	}
	return m
}

func checkEntryPoint(t *testing.T, e *EntryPoint) {
	t.Helper()
	if e.Model != ModelGLCompute {
		if e.Bindings != nil || e.PushConstants != nil || e.LocalSize != [3]uint32{} {
			t.Fatalf("%v is reflected: %+v", e.Model, e)
		}
		return
	}
	if size := e.WorkgroupSize(nil); size != e.LocalSize {
		t.Fatalf("WorkgroupSize is %v without constants, LocalSize %v", size, e.LocalSize)
	}
	for i, n := range e.LocalSize {
		if n == 0 && !e.size[i].specialized {
			t.Fatalf("LocalSize %v", e.LocalSize)
		}
		if id := e.LocalSizeSpec[i]; id != nil && e.size[i].nodes[0].bits == 32 {
			if size := e.WorkgroupSize(map[uint32]uint32{*id: 77}); size[i] != 77 {
				t.Fatalf("WorkgroupSize %v with constant %d at 77", size, *id)
			}
		}
	}
	ascending := func(a, b Binding) int {
		return cmp.Or(cmp.Compare(a.Set, b.Set), cmp.Compare(a.Binding, b.Binding))
	}
	for i, b := range e.Bindings {
		if i > 0 && ascending(e.Bindings[i-1], b) >= 0 {
			t.Fatalf("bindings out of order: %+v", e.Bindings)
		}
		if (b.NonWritable || !b.Written) && !b.ReadOnly || (b.NonReadable || !b.Read) && !b.WriteOnly {
			t.Fatalf("%+v", b)
		}
		if b.MinSize > 2*maxTypeSize {
			t.Fatalf("%+v", b)
		}
	}
	if p := e.PushConstants; p != nil {
		for _, m := range p.Members {
			if uint64(m.Offset)+uint64(m.Size) > uint64(p.Size) {
				t.Fatalf("member %+v of a block of %d bytes", m, p.Size)
			}
		}
	}
}

func TestEveryPrefixIsAnErrorOrAModule(t *testing.T) {
	for file, code := range testModules(t) {
		if parseAny(t, code) == nil {
			t.Errorf("%s is refused", file)
		}
		modules := 0
		for n := range code {
			if m := parseAny(t, code[:n]); m != nil {
				modules++
				if n%4 != 0 {
					t.Errorf("%s: %d bytes are a module", file, n)
				}
			}
		}
		if modules == len(code) {
			t.Errorf("%s: no prefix is refused", file)
		}
	}
}

func TestDamagedModulesAreErrorsOrModules(t *testing.T) {
	for file, code := range testModules(t) {
		refused := 0
		try := func(damaged []byte) {
			if parseAny(t, damaged) == nil {
				refused++
			}
		}
		for i := range code {
			damaged := slices.Clone(code)
			damaged[i] ^= 1 << ((i*5 + i/8) % 8)
			try(damaged)
		}
		for i := 0; i < len(code); i += 4 {
			word := binary.LittleEndian.Uint32(code[i:])
			for _, value := range []uint32{0, word + 1, word + 0x10000, 0xffffffff} {
				damaged := slices.Clone(code)
				binary.LittleEndian.PutUint32(damaged[i:], value)
				try(damaged)
			}
		}
		if refused == 0 {
			t.Errorf("%s: no damage is refused", file)
		}
	}
}

func TestByteOrderMakesNoDifference(t *testing.T) {
	for file, code := range testModules(t) {
		little, err := Parse(code)
		if err != nil {
			t.Fatal(err)
		}
		big, err := Parse(encode(little.Words, binary.BigEndian))
		if err != nil {
			t.Fatal(file, err)
		}
		if diff := gocmp.Diff(little, big, gocmp.AllowUnexported(Module{}, EntryPoint{}, constant{}, node{})); diff != "" {
			t.Error(file, diff)
		}
	}
}

// allocated returns the number of bytes that a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestMemoryFollowsWordsNotClaims(t *testing.T) {
	// 64 structures of which each is a pair of the previous one, arrays of arrays that
	// multiply, and a bound of four million ids, all in less than 600 words.
	var instructions [][]uint32
	instructions = append(instructions, op(opTypeInt, 1, 32, 0), op(opConstant, 1, 2, 0xffffffff))
	for i := uint32(0); i < 64; i++ {
		element := 1000*i + 1
		instructions = append(instructions,
			op(opTypeStruct, 1000*i+1001, element, element),
			op(opTypeArray, 1000*i+1002, element, 2))
	}
	code := assemble(maxBound, instructions...)
	bytes := allocated(func() {
		if _, err := Parse(code); err != nil {
			t.Error(err)
		}
	})
	if limit := uint64(256 << 10); bytes > limit {
		t.Errorf("%d bytes allocated for a module of %d, want at most %d", bytes, len(code), limit)
	}
}

func TestEntryPointsTimesBindingsAreBounded(t *testing.T) {
	const variables, entries = 400, 200
	s := storageBuffer()
	s.globals = s.globals[:4]
	for i := range uint32(variables) {
		s.annotations = append(s.annotations, op(opDecorate, 100+i, decorationDescriptorSet, 0), op(opDecorate, 100+i, decorationBinding, i))
		s.globals = append(s.globals, op(opVariable, idStructPointer, 100+i, uint32(classStorageBuffer)))
		s.body = append(s.body, op(opArrayLength, idUint, 1000+i, 100+i, 0))
	}
	s.modes = [][]uint32{op(opExecutionMode, idMain, modeLocalSize, 1, 1, 1)}
	for i := range uint32(entries) {
		id := 3000 + 10*i
		s.modes = append(s.modes, op(opEntryPoint, text("e"+string(rune('0'+i)), uint32(ModelGLCompute), id)...), op(opExecutionMode, id, modeLocalSize, 1, 1, 1))
		s.functions = append(s.functions, op(opFunction, idVoid, id, 0, idFunctionType), op(248, id+1), op(opFunctionCall, idVoid, id+2, idMain), op(253), op(opFunctionEnd))
	}
	code := s.encode()
	setBound(code, 10000)
	_, err := Parse(code)
	wantError(t, err, "the entry points list more than 65536 bindings")
}

func TestEntryPointsAreBounded(t *testing.T) {
	var s shader
	s.modes = [][]uint32{op(opExecutionMode, idMain, modeLocalSize, 1, 1, 1)}
	for i := range maxEntryPoints - 1 {
		s.modes = append(s.modes, op(opEntryPoint, text("e"+string(rune(0x100+i)), uint32(ModelGLCompute), idMain)...))
	}
	if m := parseAny(t, s.encode()); m == nil || len(m.EntryPoints) != maxEntryPoints {
		t.Fatalf("%d entry points are refused", maxEntryPoints)
	}
	s.modes = append(s.modes, op(opEntryPoint, text("one more", uint32(ModelGLCompute), idMain)...))
	_, err := Parse(s.encode())
	wantError(t, err, "OpEntryPoint: more than 1024 entry points")
}

func TestDeepCallGraphIsWalked(t *testing.T) {
	// Each of 20,000 functions calls the next twice; the last uses the buffer.
	const depth = 20000
	s := storageBuffer()
	s.body = [][]uint32{op(opFunctionCall, idVoid, 41, 100)}
	for i := range uint32(depth) {
		id := 100 + 10*i
		s.functions = append(s.functions, op(opFunction, idVoid, id, 0, idFunctionType), op(248, id+1))
		if i < depth-1 {
			s.functions = append(s.functions, op(opFunctionCall, idVoid, id+2, id+10), op(opFunctionCall, idVoid, id+3, id+10))
		} else {
			s.functions = append(s.functions, op(opArrayLength, idUint, id+2, idVariable, 0))
		}
		s.functions = append(s.functions, op(253), op(opFunctionEnd))
	}
	code := s.encode()
	setBound(code, 100+10*depth)
	m, err := Parse(code)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.EntryPoints[0].Bindings) != 1 {
		t.Error("the buffer at the end of the calls is not found")
	}
}
