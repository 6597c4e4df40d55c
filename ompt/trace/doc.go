// Package trace has tools that show what a runtime did: when its tasks ran, on which
// queue of a device or worker of the host, what they waited for, and how much memory
// of the devices was in use.
//
//	runtime ──ompt.Callbacks──▶ Collector ──Trace──▶ Trace ──▶ WriteChrome: Perfetto, chrome://tracing
//	device ──ompt.Record──────────▲                        └─▶ WriteReport: a page that opens from disk
//
// A [Collector] may be given to one runtime, in its options. It keeps times and numbers
// while the program runs, which takes some 150 ns an event, and draws conclusions when
// it is asked for a [Trace]. A device that can be traced tells what it did by its own
// clock; of another, the trace has its target regions, from when the host began to hand
// them over until it knew that they were done. An edge is a dependence on a task that
// was not complete when the other was made; waits of the program are no edges.
//
// The other tools need no collector, and can be had beside it with [ompt.Tee]: [GoTrace]
// for Go's execution tracer, [Labels] for its CPU profiler, [Publish] for expvar.
//
// A trace holds no contents of slices, but the names of kernels and labels.
package trace
