package spirv

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestMergeRefusesWhatIsNotSpaced(t *testing.T) {
	const long, one64, arrayPointer = idAfterBuffer + 40, idAfterBuffer + 41, idAfterBuffer + 42
	longs := [][]uint32{op(opTypeInt, long, 64, 0), op(opConstant, long, one64, 1, 0)}
	arrays := [][]uint32{op(opTypePointer, arrayPointer, uint32(classStorageBuffer), idArray)}
	all := op(opAccessChain, arrayPointer, 60, idVariable, idZero)
	chain := func(result uint32, indices ...uint32) []uint32 {
		return op(opAccessChain, append([]uint32{idUintPointer, result, idVariable}, indices...)...)
	}
	for name, test := range map[string]struct {
		globals, body [][]uint32
		want          string
	}{
		"element":                {nil, [][]uint32{chain(60, idZero, idTwo), op(opStore, 60, idOne)}, ""},
		"length":                 {nil, [][]uint32{op(opArrayLength, idUint, 60, idVariable, 0)}, ""},
		"no access":              {nil, nil, ""},
		"all elements":           {arrays, [][]uint32{all}, ""},
		"element of all":         {arrays, [][]uint32{all, op(opAccessChain, idUintPointer, 61, 60, idTwo), op(opStore, 61, idOne)}, ""},
		"all elements, loaded":   {arrays, [][]uint32{all, op(opLoad, idArray, 61, 60)}, "accesses all"},
		"all elements, copied":   {arrays, [][]uint32{all, op(opCopyObject, arrayPointer, 61, 60)}, "where a member"},
		"all elements, moved":    {arrays, [][]uint32{all, op(opPtrAccessChain, idUintPointer, 61, 60, idOne, idOne)}, "moves a pointer"},
		"all elements, an index": {arrays, [][]uint32{all, chain(61, idZero, 60)}, "no index"},
		"no member":              {arrays, [][]uint32{op(opAccessChain, arrayPointer, 60, idVariable, idOne)}, "lead out"},
		"all":                    {nil, [][]uint32{op(opAccessChain, idStructPointer, 60, idVariable)}, "all of"},
		"too many indices":       {arrays, [][]uint32{all, op(opAccessChain, append([]uint32{idUintPointer, 61, 60}, slices.Repeat([]uint32{idZero}, maxOperands-3)...)...)}, "too many"},
		"long index of all":      {slices.Concat(arrays, longs), [][]uint32{all, op(opAccessChain, idUintPointer, 61, 60, one64)}, "32 bits"},
		"long index":             {longs, [][]uint32{chain(60, idZero, one64)}, "32 bits"},
		"index that is a type":   {nil, [][]uint32{chain(60, idZero, idUint)}, "32 bits"},
		"index that is a buffer": {nil, [][]uint32{chain(60, idZero, idVariable)}, "no index"},
		"loaded":                 {nil, [][]uint32{op(opLoad, idStruct, 60, idVariable)}, "accesses all"},
		"stored":                 {nil, [][]uint32{op(opStore, idVariable, idOne)}, "accesses all"},
		"copied":                 {nil, [][]uint32{op(opCopyMemory, idVariable, idVariable)}, "accesses all"},
		"copied pointer":         {nil, [][]uint32{op(opCopyObject, idStructPointer, 60, idVariable)}, "where a member"},
		"moved pointer":          {nil, [][]uint32{chain(60, idZero, idOne), op(opPtrAccessChain, idUintPointer, 61, 60, idOne)}, "moves a pointer"},
		"outside of functions":   {[][]uint32{chain(60, idZero, idOne)}, [][]uint32{chain(61, idZero, idOne)}, "outside of a function"},
	} {
		s := storageBuffer()
		s.globals = append(s.globals, test.globals...)
		// So that there is an access.
		s.body = append(test.body, chain(62, idZero, idOne), op(opStore, 62, idOne))
		m, err := Parse(s.encode())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		v, err := Merge(m, "main", spacedRoom)
		if test.want == "" && err != nil || test.want != "" && (err == nil || v.Words != nil || !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if test.want != "" {
			continue
		}
		if v.Base != 16 || v.Stride != 0 || v.Launches != 32 || len(v.Elements) != 1 || v.Elements[0] != 4 {
			t.Errorf("%s: %d launches, push constants from %d on at a stride of %d, elements of %d", name, v.Launches, v.Base, v.Stride, v.Elements)
		}
		variant, err := Parse(encode(v.Words, binary.LittleEndian))
		if err != nil {
			t.Fatal(err)
		}
		if variant.Launches != 32 || variant.LaunchBindings != SpacedBindings || variant.EntryPoints[0].PushConstants.Size != 8 {
			t.Errorf("%s: %d launches of %d, push constants %+v", name, variant.Launches, variant.LaunchBindings, variant.EntryPoints[0].PushConstants)
		}
	}
	// A buffer that is more than an array, or less.
	if _, err := Merge(parsedShader(t, buffered(op(opLoad, idBlock, 60, idBuffer))), "main", spacedRoom); err == nil || !strings.Contains(err.Error(), "more than an array") {
		t.Errorf("a structure: %v", err)
	}
	two := storageBuffer() // the first member is an empty structure
	two.annotations = append(two.annotations, op(opMemberDecorate, idStruct, 1, decorationOffset, 0))
	two.globals = slices.Insert(two.globals, 0, op(opTypeStruct, idAfterBuffer))
	two.globals[2] = op(opTypeStruct, idStruct, idAfterBuffer, idArray)
	two.body = [][]uint32{op(opAccessChain, idUintPointer, 60, idVariable, idOne, idZero), op(opStore, 60, idOne)}
	if _, err := Merge(parsedShader(t, two), "main", spacedRoom); err == nil || !strings.Contains(err.Error(), "more than an array") {
		t.Errorf("an array behind an empty structure: %v", err)
	}
	if _, err := Merge(parsedShader(t, shader{}), "main", spacedRoom); err == nil || !strings.Contains(err.Error(), "no bindings") {
		t.Errorf("no buffer: %v", err)
	}
}

// Behind an element that has parts may be one of another launch, so indices of parts have to be constants that are in bounds.
func TestMergeRefusesWhatLeadsOutOfSpacedElements(t *testing.T) {
	const pair, pairPointer, null, element, part, dynamic, pointed = idAfterBuffer, idAfterBuffer + 1, idAfterBuffer + 2, 60, 61, 62, 63
	chain := func(kind, result, base uint32, indices ...uint32) []uint32 {
		return op(opAccessChain, append([]uint32{kind, result, base}, indices...)...)
	}
	first := chain(idUintPointer, element, idVariable, idZero, idZero, idOne)
	load := op(opLoad, idUint, dynamic, element)
	for name, test := range map[string]struct {
		body [][]uint32
		ok   bool
	}{
		"constant":                         {[][]uint32{first}, true},
		"no constant":                      {[][]uint32{first, load, chain(idUintPointer, part, idVariable, idZero, idZero, dynamic)}, false},
		"beyond the element":               {[][]uint32{chain(idUintPointer, part, idVariable, idZero, idZero, idTwo)}, false},
		"null":                             {[][]uint32{chain(idUintPointer, part, idVariable, idZero, idZero, null)}, false},
		"of a pointer, constant":           {[][]uint32{chain(pairPointer, pointed, idVariable, idZero, idTwo), chain(idUintPointer, part, pointed, idOne)}, true},
		"of a pointer, no constant":        {[][]uint32{first, load, chain(pairPointer, pointed, idVariable, idZero, idTwo), chain(idUintPointer, part, pointed, dynamic)}, false},
		"of a pointer, beyond":             {[][]uint32{chain(pairPointer, pointed, idVariable, idZero, idTwo), chain(idUintPointer, part, pointed, idTwo)}, false},
		"element that is no constant":      {[][]uint32{first, load, chain(idUintPointer, part, idVariable, idZero, dynamic, idOne)}, true},
		"of something else than a pointer": {[][]uint32{chain(idUintPointer, part, idZero, idOne)}, false},
	} {
		s := storageBuffer()
		s.annotations[0] = op(opDecorate, idArray, decorationArrayStride, 8)
		s.annotations = append(s.annotations, op(opDecorate, pair, decorationArrayStride, 4))
		s.globals[0] = op(opTypeRuntimeArray, idArray, pair)
		s.globals = slices.Concat([][]uint32{op(opTypeArray, pair, idUint, idTwo)}, s.globals, [][]uint32{
			op(opTypePointer, pairPointer, uint32(classStorageBuffer), pair), op(opConstantNull, idUint, null),
		})
		s.body = append(test.body, chain(idUintPointer, 64, idVariable, idZero, idOne, idZero), op(opStore, 64, idOne))
		m := parsedShader(t, s)
		if _, err := Merge(m, "main", spacedRoom); test.ok && err != nil || !test.ok && (err == nil || !strings.Contains(err.Error(), "lead out of an element")) {
			t.Errorf("%s: %v, want none %v", name, err, test.ok)
		}
		for _, o := range []MergeOptions{room, sharedRoom} {
			if _, err := Merge(m, "main", o); err != nil {
				t.Errorf("%s, bindings %d: %v", name, o.Bindings, err)
			}
		}
	}
}

func parsedShader(t *testing.T, s shader) *Module {
	t.Helper()
	m, err := Parse(s.encode())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Other variables of push constants come behind that of the launches.
func TestPushConstantsOfLaunchesAreDeclaredFirst(t *testing.T) {
	const block, blockPointer, unused, also = idAfterBuffer, idAfterBuffer + 1, idAfterBuffer + 2, idAfterBuffer + 3
	s := storageBuffer()
	s.annotations = append(s.annotations, op(opMemberDecorate, block, 0, decorationOffset, 0), op(opDecorate, block, decorationBlock))
	s.globals = append(s.globals, op(opTypeStruct, block, idUint), op(opTypePointer, blockPointer, uint32(classPushConstant), block),
		op(opVariable, blockPointer, unused, uint32(classPushConstant)), op(opVariable, blockPointer, also, uint32(classPushConstant)))
	s.body = [][]uint32{op(opAccessChain, idUintPointer, 60, idVariable, idZero, idOne), op(opStore, 60, idOne)}
	v, err := Merge(parsedShader(t, s), "main", spacedRoom)
	if err != nil {
		t.Fatal(err)
	}
	variant, err := Parse(encode(v.Words, binary.LittleEndian))
	if err != nil {
		t.Fatal(err)
	}
	p, err := rescan(variant)
	if err != nil {
		t.Fatal(err)
	}
	var pushed []uint32
	for _, v := range p.variables {
		if v.class == classPushConstant {
			pushed = append(pushed, v.id)
		}
	}
	if len(pushed) != 3 || slices.Index(pushed, unused) != 1 || slices.Index(pushed, also) != 2 {
		t.Errorf("push constants in the order %d, want those of the launches, %d and %d", pushed, unused, also)
	}
}
