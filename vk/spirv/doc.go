// Package spirv parses a compute module in SPIR-V and returns what a launch has to know
// about it: the entry points, the sizes of their workgroups, the descriptors and push
// constants that they use, and the specialization constants.
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
// Parse makes four passes over the words: definitions and decorations; sizes of types; a
// summary of each function (which variables it accesses and how, and which functions it
// calls); and for each compute entry point the union of the summaries over its static call
// graph. So an entry point lists only what it uses itself, not what other entry points of
// the module use.
//
// # Reads and writes
//
// A binding is reported as read or written if an instruction reachable from the entry
// point may read or write through a pointer derived from its variable. A pointer that the
// package does not follow (an argument of a call, a selection between pointers, an unknown
// instruction) counts as both read and written. A binding that is not reported as written
// is therefore never written by the module. Accesses by device address are not covered;
// EntryPoint.UsesAddresses says that there are some.
//
// # Variants
//
// Fold and Merge return variants of a module: for launches with more workgroups than a device takes in a
// dimension, and for dispatches that do several launches at once. They copy the module and replace the
// instructions that declare or use certain variables.
//
// # Who calls it
//
// Anybody; it is pure Go, imports nothing of the project and keeps no state. A
// Module is immutable after Parse and may be shared between goroutines.
//
// # What it costs, and hostile input
//
// Time and memory are proportional to the number of words, never to a number in the
// module, apart from the limits in limits.go on what is multiplied by the number of entry
// points. No input makes Parse panic. Every error is an *Error with the word offset, the
// instruction and the problem. Parse is not a validator: it rejects what would make its
// own results wrong, and leaves the rest to spirv-val and to the driver.
package spirv
