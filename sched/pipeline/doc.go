// Package pipeline keeps the pipelines of kernels on a device. It knows kernels, and a device that
// compiles them, but neither the tasks that need pipelines nor the scheduler that starts these. It
// is internal to this module.
//
// A driver may take any time to compile a kernel. Pipelines are therefore compiled in the
// background, each on a goroutine of its own, and all that need one meanwhile share the
// [Compilation]. A pipeline that is needed is compiled at once. Before that, AheadLocked queues it,
// and of those in the queue as many are compiled at the same time as there are processors:
//
//	Use ──▶ Kernel ── Ready ──────────────────────────────▶ pipeline
//	           │                                               ▲
//	           ├──── CompileLocked ──▶ Compilation ── Done ────┤
//	           │                       goroutine: Device.CreatePipeline
//	           │                                               │
//	           └──── AheadLocked ───▶ queue ──▶ Compilation ───┘
//
// A compilation ahead that fails is kept for the first that needs the pipeline, who gets the error.
// The next one tries again. Only want of memory is not kept: the first that needs the pipeline tries
// again.
//
// Pipelines are destroyed with the last reference to their [Kernel]. The [Cache] has one until the
// kernel is closed, each task from its making to its end, and each compilation.
//
// # Locking
//
// The lock that Init is given guards the cache. Methods whose names end in Locked are called with
// it held, and Cache.Release and Cache.Destroy without it. The others may be called either way.
package pipeline
