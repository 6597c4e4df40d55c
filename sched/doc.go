// Package sched carries target tasks out: on a Vulkan device, by turning the
// task graph into few large queue submissions whose order the device keeps
// itself, or on the initial device, by running Host variants. Explicit tasks run
// there too, deferred ones on a [Pool] with a bounded number of places.
//
//	tasks.Scope ──start──▶ enter ──────▶ place ──────▶ submit ─▶ device ─▶ finish ──▶ complete
//	                       presence      level in the  one C               copy-out,
//	                       table,        pending       call, one           unmapping
//	                       copy-in       batch         vkQueueSubmit
//
// A batch is a list of levels. A command goes to the level after the last one
// it must follow, so a batch has at most as many barriers as its critical path,
// in whatever order its tasks were made, and commands that need no order have
// none:
//
//	level 0   blur 1   blur 2   blur 3
//	─ barrier ─────────────────────────
//	level 1   edges 1  edges 2  edges 3
//	─ barrier ─────────────────────────
//	level 2   blend 1  blend 2  blend 3
//	─ barrier to the host, where it reads ─▶ signal timeline value n
//
// Batching adapts: while fewer than two batches are in flight, what is pending
// is submitted at once; otherwise it collects until one completes or a cost cap
// is reached.
//
// The host writes device memory only where no task in flight can touch it; every
// other copy goes through staging memory and a command of the device, and what
// the host reads is behind a barrier to HOST/HOST_READ. What is larger than a few
// pieces streams through a ring of them; a construct that starts such a copy waits
// for the device to empty pieces. Where device and host have one memory, large slices
// that target constructs alone map are imported and not copied at all.
//
// Device memory is a store: its history of device work, and a count of who keeps it,
// which are the presence table or the program and every task that was generated with
// it. Memory that is freed or unmapped is used again after the last of them.
//
// The package sees a device through the interface Device; vk provides one, the
// tests another that runs commands in the least convenient order.
package sched
