// Package foreign carries out what package interop's objects promise: it keeps the order of
// a device's tasks and of foreign work, in a stream of steps for each object, and makes the
// submissions that tie the two together.
//
//	rt.Interop ──Device.Generate──▶ construct ──┬─▶ step of object a's stream
//	                                            └─▶ step of object b's stream
//	Object.Next, Submit ───────────▶ foreign work ─▶ step of a stream
//
// A step is sent when all steps before it are sent and what signals its value has been
// submitted; a construct is sent when it is due in the streams of all its objects. See
// stream.go.
//
// The package promises nothing to importers outside of this module: programs use package
// interop.
package foreign
