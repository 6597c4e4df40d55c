package spirv

import "testing"

func FuzzParse(f *testing.F) {
	for _, code := range testModules(f) {
		f.Add(code)
	}
	f.Add(storageBuffer().encode())
	f.Add(assemble(maxBound, op(opTypeVoid, maxBound-1)))
	f.Fuzz(func(t *testing.T, code []byte) { parseAny(t, code) })
}
