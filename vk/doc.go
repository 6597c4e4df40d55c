// Package vk is the project's Vulkan: it finds the loader, opens devices, makes
// memory, pipelines and timelines, and turns a [Stream] of operations into one
// submission. It is the only package with C in it.
//
//	Instance ── PhysicalDevice ── Device ─┬─ Block     VkDeviceMemory, the device's or the
//	                                      │            host's own, + one VkBuffer over it
//	                                      ├─ Pipeline  compute pipeline and its layouts
//	                                      ├─ Queue ─── Submit(Stream) ──▶ timeline value
//	                                      ├─ Queue ─── …, of the same family or another
//	                                      ┆
//
// A device is opened with several queues: some compute, those of a family for
// transfers only copy and fill. Each has a timeline and a command pool of its own.
// Nothing orders two queues but waits for each other's timelines. Blocks and
// pipelines are the whole device's: a block is shared among the families in use
// (VK_SHARING_MODE_CONCURRENT where there are several), so no queue ever hands its
// ownership to another.
//
// A timeline may also belong to no queue (Device.CreateTimeline); blocks and
// semaphores go to other devices and processes as files, where the driver has the
// extensions.
//
// [Adopt] takes a VkDevice that an application made, with queues that both sides
// lock, and Device.AdoptBuffer one of its buffers. Nothing of the application's is
// ever destroyed here.
//
// Handles leave this package as plain integers ([Buffer], [Semaphore],
// [Pipeline]): callers hold no pointer into the driver. A Stream is built
// without Vulkan, so everything that decides what a queue is told can be tested
// without a device.
//
// # Who may call what
//
// Instance, PhysicalDevice and Device are safe for concurrent use; destroying an
// object while another call uses it, or while the device still works with it, is
// the caller's error, as in Vulkan. Queue.Submit locks the queue; Queue.Completed
// and Queue.Wait may run beside it and beside each other. A Stream belongs to one
// goroutine at a time.
//
// # Cost
//
// Submit makes one call into C for the whole batch: encoding a barrier, a dispatch
// or a copy of many regions costs what the driver takes for the commands, and
// nothing is allocated in steady state. Wait blocks one operating system thread.
// Flush and Invalidate are one call each for all their ranges and allocate nothing.
//
// # Without cgo
//
// The package builds with CGO_ENABLED=0; [Open] then returns an error that
// matches [ErrUnsupported].
package vk
