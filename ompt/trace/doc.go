// Package trace has tools that show what a runtime did: when its tasks ran and on which
// queue of a device or worker of the host, what they waited for, and how much device
// memory was in use.
//
//	runtime ──ompt.Callbacks──▶ Collector ──Trace──▶ Trace ──▶ WriteChrome: Perfetto, chrome://tracing
//	device ──ompt.Record──────────▲                        └─▶ WriteReport: a page that opens from disk
//
// A [Collector] belongs to one runtime and is given in its options. While the program runs
// it only records times and numbers, which takes some 150 ns for each event; it evaluates
// them when it is asked for a [Trace]. For a device that can be traced the trace has the
// times of the device's own clock; for another it has the target regions, from when the
// host began to submit them until it knew that they had finished. An edge is a dependence
// on a task that was not complete when the dependent task was created; waits of the
// program are not edges.
//
// The other tools need no collector and can be combined with it by [ompt.Tee]: [GoTrace]
// for Go's execution tracer, [Labels] for its CPU profiler, [Publish] for expvar. These and
// [ompt.Log] leave to each other what they set in the Data of tasks and target regions, and none
// sets a HostOpID. A tool of the program's own that is combined with a collector, GoTrace or Labels
// must leave Data and HostOpID alone.
//
// A trace contains names of kernels and labels, but no contents of slices.
package trace
