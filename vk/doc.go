// Package vk wraps Vulkan for the scheduler: it finds the loader, opens devices,
// creates memory, pipelines and timelines, and turns a [Stream] of operations into a
// submission. It is the only package with C code.
//
//	Instance ── PhysicalDevice ── Device ─┬─ Block     VkDeviceMemory, the device's or the
//	                                      │            host's own, + one VkBuffer over it
//	                                      ├─ Pipeline  compute pipeline and its layouts
//	                                      ├─ Queue ─── Submit(Stream) ──▶ timeline value
//	                                      ├─ Queue ─── …, of the same family or another
//	                                      ┆
//
// A device is opened with several queues. Some support compute; those of transfer
// families only copy and fill. Each has a timeline and a command pool of its own. Two
// queues are ordered only by waits for each other's timelines. Blocks and pipelines
// belong to the whole device: a block is shared among the families in use
// (VK_SHARING_MODE_CONCURRENT if there are several), so that no queue family ownership
// transfer is needed.
//
// A timeline can also be created without a queue (Device.CreateTimeline). Blocks and
// semaphores can be shared with other devices and processes through file descriptors if
// the driver has the extensions.
//
// [Adopt] opens a VkDevice that an application created, with queues that both sides
// lock, and Device.AdoptBuffer one of its buffers. Nothing that belongs to the
// application is ever destroyed here.
//
// Handles leave this package as plain integers ([Buffer], [Semaphore], [Pipeline]), so
// that callers hold no pointer into the driver. A Stream is built without Vulkan, so
// that code which decides what a queue executes can be tested without a device.
//
// # Who may call what
//
// Instance, PhysicalDevice and Device are safe for concurrent use. As in Vulkan, the
// caller must not destroy an object while another call or the device uses it.
// Queue.Submit locks the queue; Queue.Completed and Queue.Wait may run concurrently with
// it and with each other. A Stream belongs to one goroutine at a time.
//
// # Cost
//
// Submit makes one call into C for the whole batch and allocates nothing in the steady
// state, so that a barrier, a dispatch or a copy of many regions costs what the driver
// needs for the commands. Wait blocks one operating system thread. Flush and Invalidate
// make one call each for all their ranges and allocate nothing.
//
// # Without cgo
//
// The package builds with CGO_ENABLED=0; [Open] then returns an error that
// matches [ErrUnsupported].
package vk
