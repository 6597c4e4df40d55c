// Package foreign implements the objects of package interop. For each object it keeps the
// sequence of foreign work and of constructs' tasks, and makes the submissions that order the
// ones after the others.
//
//	rt.Interop ──Device.Generate──▶ construct ──┬─▶ step of object a's sequence
//	                                            └─▶ step of object b's sequence
//	Object.Next, Submit ───────────▶ foreign work ─▶ step of one sequence
//
// A step is sent when all steps before it are sent and what signals its value has been
// submitted. A construct is sent when it has come first in the sequences of all its objects.
// sequence.go has the order, work.go the foreign work in it, construct.go the constructs, and
// hostsignal.go, finish.go and loss.go what the host does where others do not signal.
//
// The package promises nothing to importers outside of this module: programs use package
// interop.
package foreign
