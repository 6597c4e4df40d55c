package vkomp

import "github.com/vkomp/vkomp/memory"

// DeclareUnchecked declares sections without checks on a runtime whose devices are not open.
// undo removes the declaration.
func DeclareUnchecked(rt *Runtime, items ...Arg) (undo func()) {
	before := rt.declared
	for _, a := range items {
		rt.declared = append(rt.declared, memory.Map{Section: a.at.host, Type: a.mapType})
	}
	return func() { rt.declared = before }
}
