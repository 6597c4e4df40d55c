// Package spirv reads a compute module in SPIR-V and says what a launch has to
// know about it: the entry points, the size of their workgroups, the
// descriptors and push constants that they use, the specialization constants.
//
// # The problem
//
// A module is a flat stream of 32-bit words. What a pipeline layout needs is
// scattered over it:
//
//	header          magic, version, bound on ids
//	capabilities    what the device must support
//	entry points    name, function                   ──┐
//	execution modes size of a workgroup                │ which function
//	decorations     set, binding, offset, stride ──┐   │
//	types           structures, arrays, pointers   │   │
//	constants       specialization constants       │   │
//	variables       storage buffers, push constants◄┘   │
//	functions       loads, stores, atomics, calls ◄─────┘
//
// Parse reads it in four passes over the words: definitions and decorations;
// sizes of types; one summary of each function (the variables it touches and
// how, the functions it calls); and for each compute entry point the union of
// the summaries over its static call graph. So an entry point lists only what
// it uses itself, not what its neighbours in the module use.
//
// # Reads and writes
//
// A binding is reported as read or written when an instruction reached from
// the entry point may read or write through a pointer derived from its
// variable. Where a pointer leaves what the package follows (an argument of a
// call, a selection between pointers, an instruction it does not know), it
// counts as both. A binding that is not reported as written is therefore
// never written by the module. Accesses by device address are outside this:
// EntryPoint.UsesAddresses says that there are some.
//
// # Who calls it
//
// Anybody; it is pure Go, imports nothing of the project and keeps no state. A
// Module is immutable after Parse and may be shared between goroutines.
//
// # What it costs, and hostile input
//
// Time and memory are proportional to the number of words, never to a number
// that the module claims, apart from the limits in limits.go on what is
// multiplied by the number of entry points. No input makes Parse panic. Every
// error is an *Error that names the word offset, the instruction and what is
// wrong with it. Parse is no validator: it refuses what would make its own
// answers wrong, and leaves the rest to spirv-val and to the driver.
package spirv
