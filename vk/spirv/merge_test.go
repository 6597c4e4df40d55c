package spirv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// validate has spirv-val check a module.
func validate(t *testing.T, m *Module) {
	t.Helper()
	val, err := exec.LookPath("spirv-val")
	if err != nil {
		t.Fatalf("spirv-val, of the package spirv-tools, is needed: %v", err)
	}
	target := []string{"--target-env", "vulkan1.2"}
	if m.Version >= 0x00010600 {
		target = []string{"--target-env", "vulkan1.3", "--allow-localsizeid"}
	}
	cmd := exec.Command(val, target...)
	cmd.Stdin = bytes.NewReader(encode(m.Words, binary.LittleEndian))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// room is what a device has for the launches of a dispatch, and sharedRoom the same for those with the same buffers.
var (
	room       = MergeOptions{Launches: 32, Descriptors: 32, PushBytes: 128}
	sharedRoom = MergeOptions{Launches: 32, PushBytes: 128, Bindings: SharedBindings}
	spacedRoom = MergeOptions{Launches: 32, PushBytes: 128, Bindings: SpacedBindings}
)

// What Merge makes of the modules of testdata is valid, and its entry point has what the original has,
// as arrays if launches have their own bindings.
func TestMergedModulesAreValid(t *testing.T) {
	for name, o := range map[string]MergeOptions{"own bindings": room, "shared bindings": sharedRoom, "spaced bindings": spacedRoom} {
		t.Run(name, func(t *testing.T) { mergeAll(t, o) })
	}
}

func mergeAll(t *testing.T, o MergeOptions) {
	merged := 0
	for file := range testModules(t) {
		if file == "pointers.spv" {
			continue // OpenCL capabilities, which shaders must not have
		}
		m := parsed(t, file)
		before := slices.Clone(m.Words)
		for _, e := range m.EntryPoints {
			if e.Model != ModelGLCompute {
				continue
			}
			v, err := Merge(m, e.Name, o)
			if err != nil {
				t.Logf("%s, %q: %v", file, e.Name, err)
				if !errors.Is(err, ErrInvalid) {
					t.Errorf("%s, %q: %v is no *Error", file, e.Name, err)
				}
				continue
			}
			t.Run(file+"/"+e.Name, func(t *testing.T) {
				merged++
				variant, err := Parse(encode(v.Words, binary.LittleEndian))
				if err != nil {
					t.Fatal(err)
				}
				validate(t, variant)
				after := variant.EntryPoints[0]
				if m.Launches != 0 || variant.Launches != v.Launches {
					t.Errorf("launches are %d before and %d after, want %d", m.Launches, variant.Launches, v.Launches)
				}
				if len(variant.EntryPoints) != 1 || after.Name != e.Name || after.LocalSize != e.LocalSize {
					t.Errorf("the entry points are %+v, was %+v", variant.EntryPoints, e)
				}
				checkMergedInterface(t, &e, &after, v, o)
			})
		}
		if !slices.Equal(m.Words, before) {
			t.Errorf("%s: the module's words have changed", file)
		}
	}
	if least := map[MergedBindings]int{OwnBindings: 16, SharedBindings: 20, SpacedBindings: 14}[o.Bindings]; merged < least {
		t.Errorf("only %d entry points were merged", merged)
	}
}

// checkMergedInterface compares the interfaces of an entry point and its variant.
func checkMergedInterface(t *testing.T, before, after *EntryPoint, v Merged, o MergeOptions) {
	t.Helper()
	want := slices.Clone(before.Bindings)
	for i := range want {
		if o.Bindings == OwnBindings {
			want[i].Count = v.Launches
		}
	}
	if !slices.Equal(after.Bindings, want) {
		t.Errorf("the bindings are %+v, want %+v", after.Bindings, want)
	}
	if (v.Stride == 0) != (before.PushConstants == nil) || (v.Base+v.Stride == 0) != (after.PushConstants == nil) {
		t.Fatalf("the stride is %d", v.Stride)
	}
	if v.Stride != 0 && (v.Stride < before.PushConstants.Size || after.PushConstants.Size < v.Base+(v.Launches-1)*v.Stride+before.PushConstants.Size || after.PushConstants.Size > 128) {
		t.Errorf("push constants of %d bytes from %d on at a stride of %d, those of a launch are %d", after.PushConstants.Size, v.Base, v.Stride, before.PushConstants.Size)
	}
	if o.Bindings != SpacedBindings && (v.Base != 0 || v.Elements != nil) || o.Bindings == SpacedBindings && (int(v.Base) < 8*len(want) || len(v.Elements) != len(want)) {
		t.Errorf("push constants of launches begin at %d, elements have %d bytes", v.Base, v.Elements)
	}
	if v.Stride%4 != 0 {
		t.Errorf("the stride is %d", v.Stride)
	}
	checkPushedInterface(t, v.Words)
	if v.Launches < 2 || v.Launches > 32 || o.Bindings == OwnBindings && int(v.Launches)*len(want) > 32 {
		t.Errorf("%d launches of %d bindings", v.Launches, len(want))
	}
}

// checkPushedInterface checks that an entry point lists one variable of push constants at most
// (VUID-StandaloneSpirv-OpEntryPoint-06673), which spirv-val does not.
func checkPushedInterface(t *testing.T, words []uint32) {
	t.Helper()
	p, err := rescan(&Module{Version: words[1], Words: words})
	if err != nil {
		t.Fatal(err)
	}
	in, listed := p.at(p.entryPoints[0]), 0
	for _, v := range p.variables {
		if v.class == classPushConstant && slices.Contains(in.operands[2+literalStringWords(in.operands[2:]):], v.id) {
			listed++
		}
	}
	if listed > 1 {
		t.Errorf("the interface lists %d variables of push constants", listed)
	}
}

func TestMergeRefusesTooLittleRoom(t *testing.T) {
	m := parsed(t, "fold_both.spv")
	e := m.EntryPoints[0]
	if len(e.Bindings) == 0 {
		t.Fatal("the module has no bindings")
	}
	two := uint32(2 * len(e.Bindings))
	for _, test := range []struct {
		o        MergeOptions
		launches uint32
	}{
		{MergeOptions{Launches: 9, Descriptors: two, PushBytes: 1 << 10}, 2},
		{MergeOptions{Launches: 9, Descriptors: two - 1, PushBytes: 1 << 10}, 0},
		{MergeOptions{Launches: 1, Descriptors: two, PushBytes: 1 << 10}, 0},
		{MergeOptions{Launches: 9, PushBytes: 1 << 10, Bindings: SharedBindings}, 9},
		{MergeOptions{Launches: 1, PushBytes: 1 << 10, Bindings: SharedBindings}, 0},
		{MergeOptions{}, 0},
	} {
		v, err := Merge(m, e.Name, test.o)
		if v.Launches != test.launches && err == nil || (err == nil) != (test.launches > 0) {
			t.Errorf("%+v: %d launches, %v", test.o, v.Launches, err)
		}
	}
	if _, err := Merge(m, "other", room); !errors.Is(err, ErrEntryPoint) {
		t.Errorf("%v is not ErrEntryPoint", err)
	}
}

// Ids of a storage buffer.
const (
	idBlock = idFree + 20 + iota
	idBlockPointer
	idBuffer
	idElementPointer
)

// buffered declares a storage buffer of one unsigned integer.
func buffered(body ...[]uint32) shader {
	return shader{
		annotations: [][]uint32{
			op(opDecorate, idBlock, decorationBlock),
			op(opMemberDecorate, idBlock, 0, decorationOffset, 0),
			op(opDecorate, idBuffer, decorationDescriptorSet, 0),
			op(opDecorate, idBuffer, decorationBinding, 0),
		},
		globals: [][]uint32{
			op(opTypeStruct, idBlock, idUint),
			op(opTypePointer, idBlockPointer, uint32(classStorageBuffer), idBlock),
			op(opTypePointer, idElementPointer, uint32(classStorageBuffer), idUint),
			op(opVariable, idBlockPointer, idBuffer, uint32(classStorageBuffer)),
		},
		body: body,
	}
}

func TestMergeRefusesWhatItCannotRewrite(t *testing.T) {
	for name, test := range map[string]struct {
		body [][]uint32
		want string
	}{
		"copied pointer":   {[][]uint32{op(opCopyObject, idBlockPointer, 60, idBuffer)}, "where a member"},
		"copied structure": {[][]uint32{op(opCopyMemory, idBuffer, idBuffer)}, "where a member"},
		"compared":         {[][]uint32{op(opPtrDiff, idUint, 60, idBuffer, idBuffer)}, "where a member"},
		"too many indices": {[][]uint32{op(opAccessChain, append([]uint32{idElementPointer, 60, idBuffer}, slices.Repeat([]uint32{idUint}, maxOperands-4)...)...)}, "too many"},
		"loaded":           {[][]uint32{op(opLoad, idBlock, 60, idBuffer)}, ""},
		"stored":           {[][]uint32{op(opLoad, idBlock, 60, idBuffer), op(opStore, idBuffer, 60)}, ""},
	} {
		m, err := Parse(buffered(test.body...).encode())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		v, err := Merge(m, "main", room)
		if test.want == "" && err != nil || test.want != "" && (err == nil || v.Words != nil || !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if _, err := Merge(m, "main", sharedRoom); err != nil {
			t.Errorf("%s, with shared bindings: %v", name, err)
		}
	}
}

// The push constants of a launch are as large as those of the pipeline, whose values of specialization constants the
// module has.
func TestMergeKeepsSpecialization(t *testing.T) {
	code, err := os.ReadFile("../../testdata/sized.spv")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []uint32{1, 3, 8} {
		m, err := ParseSpecialized(code, map[uint32]uint32{0: n})
		if err != nil {
			t.Fatal(err)
		}
		if v, err := Merge(m, "main", room); err != nil || v.Stride != 4*n || v.Launches != min(32, 128/(4*n)) {
			t.Errorf("%d values: %d launches, stride %d, %v", n, v.Launches, v.Stride, err)
		}
	}
}

// An instruction outside of functions that accesses a variable, which is not valid, has no place for what Merge
// puts before it.
func TestMergeRefusesAccessOutsideOfFunctions(t *testing.T) {
	for name, in := range map[string][]uint32{
		"chain":  op(opAccessChain, idElementPointer, 60, idBuffer, idZero),
		"load":   op(opLoad, idBlock, 60, idBuffer),
		"store":  op(opStore, idBuffer, idZero),
		"length": op(opArrayLength, idUint, 60, idBuffer, 0),
	} {
		s := buffered(op(opAccessChain, idElementPointer, 61, idBuffer, idZero), op(opStore, 61, idZero))
		s.globals = append(s.globals, in)
		m, err := Parse(s.encode())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		v, err := Merge(m, "main", room)
		if v.Words != nil {
			t.Errorf("%s: merged", name)
		}
		wantError(t, err, "outside of a function")
	}
}

// A variant whose launches have push constants cannot name others, as debug information in its functions may. One whose
// launches have none lists them as the module does.
func TestMergeRefusesNotesOfOtherPushConstants(t *testing.T) {
	m := parsed(t, "noted.spv")
	for _, o := range []MergeOptions{room, sharedRoom} {
		v, err := Merge(m, "main", o)
		if err != nil {
			t.Errorf("bindings %d: %v", o.Bindings, err)
			continue
		}
		validate(t, &Module{Version: v.Words[1], Words: v.Words})
	}
	v, err := Merge(m, "main", spacedRoom)
	if v.Words != nil {
		t.Error("merged with words that say where parts are")
	}
	wantError(t, err, "beside those of the launches")
}

// pushed declares push constants of nested structures: each holds two of the one before it.
func pushed(depth int) shader {
	const first = 30
	s := shader{
		annotations: [][]uint32{op(opDecorate, uint32(first+depth), decorationBlock)},
		globals:     [][]uint32{op(opTypeStruct, first, idUint), op(opTypePointer, 82, uint32(classPushConstant), idUint)},
		body:        [][]uint32{op(opLoad, uint32(first+depth), 90, 80)},
	}
	s.annotations = append(s.annotations, op(opMemberDecorate, first, 0, decorationOffset, 0))
	for k := 1; k <= depth; k++ {
		id := uint32(first + k)
		s.globals = append(s.globals, op(opTypeStruct, id, id-1, id-1))
		for member := range uint32(2) {
			s.annotations = append(s.annotations, op(opMemberDecorate, id, member, decorationOffset, 0)) // the members overlap
		}
	}
	s.globals = append(s.globals,
		op(opTypePointer, 81, uint32(classPushConstant), uint32(first+depth)),
		op(opVariable, 81, 80, uint32(classPushConstant)))
	return s
}

// The time that Merge takes is proportional to the module, however often a type is part of others.
func TestMergeLooksAtATypeOnce(t *testing.T) {
	m, err := Parse(pushed(45).encode())
	if err != nil {
		t.Fatal(err)
	}
	if v, err := Merge(m, "main", room); err != nil || v.Stride != 4 || v.Launches != 32 {
		t.Errorf("%d launches, stride %d: %v", v.Launches, v.Stride, err)
	}
}

// Merge either refuses what Parse accepts or returns a module that Parse accepts, with the same entry
// point on arrays.
func FuzzMerge(f *testing.F) {
	for _, code := range testModules(f) {
		f.Add(code, []byte{}, uint32(32), uint32(128), uint8(OwnBindings))
		f.Add(code, []byte{60, 0, 7, 0, 99, 0, 12, 0}, uint32(8), uint32(64), uint8(OwnBindings))
		f.Add(code, []byte{}, uint32(64), uint32(256), uint8(SharedBindings))
		f.Add(code, []byte{}, uint32(64), uint32(256), uint8(SpacedBindings))
	}
	f.Fuzz(func(t *testing.T, code, edits []byte, most, push uint32, bindings uint8) {
		m, err := Parse(edited(code, edits))
		if err != nil {
			return
		}
		for i := range min(len(m.EntryPoints), 4) {
			before := &m.EntryPoints[i]
			v, err := Merge(m, before.Name, MergeOptions{MergedBindings(bindings % 3), most, most, push})
			if err != nil || before.Model != ModelGLCompute {
				continue
			}
			merged, err := Parse(encode(v.Words, binary.LittleEndian))
			if err != nil {
				t.Fatalf("merging %q: %v", before.Name, err)
			}
			after, err := merged.EntryPoint(before.Name)
			if err != nil {
				t.Fatal(err)
			}
			if merged.Launches != v.Launches || v.Launches < 2 || len(after.Bindings) != len(before.Bindings) || after.LocalSize != before.LocalSize {
				t.Fatalf("%d launches of %q, which is %+v, was %+v", v.Launches, before.Name, after, before)
			}
		}
	})
}

// What a launch loads of the push constants in a loop, the variant loads before it where constant indices lead
// to it.
func TestMergedFunctionsLoadPushConstantsOnce(t *testing.T) {
	for file, want := range map[string]struct{ first, behind int }{
		"pushed.spv":        {7, 2}, // those of two weights are behind
		"pushedaddress.spv": {2, 0},
		"address.spv":       {3, 0},
		"saxpy.spv":         {2, 0},
	} {
		t.Run(file, func(t *testing.T) {
			m := parsed(t, file)
			inBounds := &Module{Version: m.Version, EntryPoints: m.EntryPoints, Words: slices.Clone(m.Words)}
			for _, word := range accessChains(t, m) {
				inBounds.Words[word] = m.Words[word]&^0xffff | opInBoundsAccessChain
			}
			for _, m := range []*Module{m, inBounds} {
				for _, bindings := range []MergedBindings{OwnBindings, SharedBindings} {
					v, err := Merge(m, "main", MergeOptions{Launches: 32, Descriptors: 32, PushBytes: 256, Bindings: bindings})
					if err != nil {
						t.Fatal(err)
					}
					if first, behind := pushedLoads(t, v.Words); first != want.first || behind != want.behind {
						t.Errorf("%d loads in the first blocks of functions and %d behind, want %d and %d", first, behind, want.first, want.behind)
					}
				}
			}
		})
	}
}

// Many loads through a long chain into the push constants cost no more than their words.
func TestMergeLooksAtAChainOnce(t *testing.T) {
	const nested, loads, block, pointer, blockPointer, variable, chain = 4000, 4000, idFree, idFree + 1, idFree + 2, idFree + 3, idFree + 4
	var s shader
	held, free := uint32(idUint), uint32(chain+1)
	path := []uint32{pointer, chain, variable}
	for range nested {
		s.annotations = append(s.annotations, op(opMemberDecorate, free, 0, decorationOffset, 0))
		s.globals = append(s.globals, op(opTypeStruct, free, held))
		path = append(path, idZero)
		held, free = free, free+1
	}
	s.annotations = append(s.annotations, op(opMemberDecorate, block, 0, decorationOffset, 0), op(opDecorate, block, decorationBlock))
	s.globals = append(s.globals,
		op(opTypeStruct, block, held),
		op(opTypePointer, pointer, uint32(classPushConstant), idUint),
		op(opTypePointer, blockPointer, uint32(classPushConstant), block),
		op(opVariable, blockPointer, variable, uint32(classPushConstant)))
	s.body = [][]uint32{op(opAccessChain, append(path, idZero)...)}
	for range loads {
		s.body = append(s.body, op(opLoad, idUint, free, chain))
		free++
	}
	code := s.encode()
	setBound(code, free)
	m, err := Parse(code)
	if err != nil {
		t.Fatal(err)
	}
	bytes := allocated(func() {
		if _, err := Merge(m, "main", sharedRoom); err != nil {
			t.Error(err)
		}
	})
	if limit := 64 * uint64(len(code)); bytes > limit {
		t.Errorf("%d bytes allocated for a module of %d, want at most %d", bytes, len(code), limit)
	}
}

// Only what is there whatever the program does is loaded without being asked for.
func TestOnlyPlainPartsOfPushConstantsAreLoadedOnce(t *testing.T) {
	p, err := rescan(parsed(t, "pushed.spv"))
	if err != nil {
		t.Fatal(err)
	}
	f := newFolding(p, 0, 0)
	push := uint32(0) // the structure
	for _, v := range p.variables {
		if v.class == classPushConstant {
			if push, err = p.pointee(v); err != nil {
				t.Fatal(err)
			}
		}
	}
	ids := make(map[uint32]uint32) // of constants, by value
	last := uint32(0)              // of the specialization constant, whose value is 2
	for word := headerWords; word < p.functions[0].start; word = p.at(word).next() {
		switch in := p.at(word); in.opcode {
		case opConstant:
			ids[in.operands[2]] = in.operands[1]
		case opSpecConstant:
			last = in.operands[1]
		}
	}
	for _, c := range []struct {
		path []uint32 // values
		want bool
	}{
		{[]uint32{0}, true}, {[]uint32{1}, true}, {[]uint32{3}, true}, // a scalar, a vector, a matrix
		{[]uint32{2}, false}, {[]uint32{4}, false}, {nil, false}, // structures and an array
		{[]uint32{32}, false},                           // no member
		{[]uint32{1, 2}, true}, {[]uint32{1, 3}, false}, // components of a vector of three
		{[]uint32{3, 1}, true}, {[]uint32{3, 2}, false}, // columns of a matrix of two
		{[]uint32{4, 2}, true}, {[]uint32{4, 3}, false}, // elements of an array of three
		{[]uint32{2, 1, 1}, true}, {[]uint32{0, 0}, false}, // in a structure, and in a scalar
	} {
		path := make([]uint32, len(c.path))
		for i, value := range c.path {
			if path[i] = ids[value]; path[i] == 0 {
				t.Fatalf("there is no constant %d", value)
			}
		}
		if got := f.isPlain(push, path); got != c.want {
			t.Errorf("%v: %t, want %t", c.path, got, c.want)
		}
	}
	if f.isPlain(push, []uint32{ids[4], last}) {
		t.Error("an element that a specialization constant chooses")
	}
}

// accessChains returns the offsets of a module's access chains.
func accessChains(t *testing.T, m *Module) (words []int) {
	t.Helper()
	p, err := rescan(m)
	if err != nil {
		t.Fatal(err)
	}
	for word := headerWords; word < len(p.words); word = p.at(word).next() {
		if p.at(word).opcode == opAccessChain {
			words = append(words, word)
		}
	}
	return words
}

// pushedLoads counts the loads of push constants in the first blocks of functions, and those behind.
func pushedLoads(t *testing.T, words []uint32) (first, behind int) {
	t.Helper()
	p, err := rescan(&Module{Words: words})
	if err != nil {
		t.Fatal(err)
	}
	for _, function := range p.functions {
		chains, blocks := map[uint32]bool{}, 0
		for word := function.start; word < function.end; {
			in := p.at(word)
			word = in.next()
			switch in.opcode {
			case opLabel:
				blocks++
			case opAccessChain, opInBoundsAccessChain:
				base, _ := p.definition(in.operands[2])
				chains[in.operands[1]] = base.opcode == opVariable && storageClass(base.operands[2]) == classPushConstant
			case opLoad:
				if chains[in.operands[2]] && blocks == 1 {
					first++
				} else if chains[in.operands[2]] {
					behind++
				}
			}
		}
	}
	return first, behind
}
