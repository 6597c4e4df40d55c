// Package ompt is the tool interface of OpenMP (OMPT): how a profiler or a
// debugger hears of what the runtime does with its devices.
//
//	program ──constructs──▶ runtime ──Vulkan──▶ device
//	                           │
//	                           └─Callbacks──▶ tool
//
// A tool is a [Callbacks] value, given to the runtime when it is opened. The
// enumerations have the names and values of the specification, so that what a
// tool records can be read beside the records of another implementation.
//
// The runtime calls a callback on the goroutine that caused the event, several
// at once where several goroutines do. A callback that is nil costs nothing.
package ompt
