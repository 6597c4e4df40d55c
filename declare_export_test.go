package vkomp

import "github.com/vkomp/vkomp/memory"

// DeclareUnchecked declares sections on a runtime none of whose devices is open,
// whatever they are, and returns what takes that back.
func DeclareUnchecked(rt *Runtime, items ...Arg) (undo func()) {
	before := rt.declared
	for _, a := range items {
		rt.declared = append(rt.declared, memory.Map{Section: a.at.host, Type: a.mapType})
	}
	return func() { rt.declared = before }
}
