package spirv

import (
	"encoding/binary"
	"reflect"
	"testing"
)

// edited returns a module in which every 4 bytes of edits have replaced a word by a number, because
// random changes of bytes rarely leave a module well-formed.
func edited(code, edits []byte) []byte {
	for words := len(code) / 4; len(edits) >= 4 && words > headerWords; edits = edits[4:] {
		at := headerWords + int(binary.LittleEndian.Uint16(edits))%(words-headerWords)
		value := uint32(binary.LittleEndian.Uint16(edits[2:]))
		if value >= 0x8000 { // another opcode for the instruction, of the same length
			value = binary.LittleEndian.Uint32(code[4*at:])&^0xffff | value&0x7fff
		}
		code = append([]byte(nil), code...)
		binary.LittleEndian.PutUint32(code[4*at:], value)
	}
	return code
}

// Fold either refuses what Parse accepts or returns a module that Parse accepts and that has
// the same entry point.
func FuzzFold(f *testing.F) {
	for _, code := range testModules(f) {
		f.Add(code, []byte{}, uint32(65535), false)
		f.Add(code, []byte{60, 0, 7, 0, 99, 0, 12, 0}, uint32(1), true)
	}
	f.Fuzz(func(t *testing.T, code, edits []byte, limit uint32, alongY bool) {
		m, err := Parse(edited(code, edits))
		if err != nil {
			return
		}
		dimension := 0
		if alongY {
			dimension = 1
		}
		for i := range min(len(m.EntryPoints), 4) {
			before := &m.EntryPoints[i]
			words, err := Fold(m, before.Name, dimension, limit)
			if err != nil {
				continue
			}
			folded, err := Parse(encode(words, binary.LittleEndian))
			if err != nil {
				t.Fatalf("folding %q: %v", before.Name, err)
			}
			after, err := folded.EntryPoint(before.Name)
			if err != nil {
				t.Fatal(err)
			}
			if before.Model == ModelGLCompute && !reflect.DeepEqual(after, before) {
				t.Fatalf("%q is %+v, was %+v", before.Name, after, before)
			}
		}
	})
}
