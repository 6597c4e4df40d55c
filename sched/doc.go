// Package sched carries target tasks out on a Vulkan device, by turning the task graph into
// few large queue submissions whose order the device keeps itself. It is for this repository
// alone. Its rooms know nothing of the scheduler: sched/construct has what all constructs
// have in common, sched/order keeps the order of the device's work, sched/host runs what runs
// on the host, sched/protect calls code of the program's.
//
//	tasks.Scope ──start──▶ enter ──────▶ place ──────▶ submit ─▶ device ─▶ finish ──▶ complete
//	                       presence      queue, level  one C               copy-out,
//	                       table,        in its pend-  call, one           unmapping
//	                       copy-in       ing batch     vkQueueSubmit
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
// A device has several queues, each with a pending batch, and a timeline whose values
// its batches signal. A command goes to the queue on which it is estimated to finish
// first: following a command of another queue costs a semaphore wait, and waking an
// idle queue a submission, so that a few small tasks stay where they are. Large copies
// go to a queue that only transfers. What is to be waited for is submitted first, and
// so is what the waiting queue has collected by then; so no wait reaches the driver
// before its signal, and nothing waits for more than it must:
//
//	queue 0   [blur 1 blur 2 │ edges]──3──────────────▶
//	                                  ╲ wait 0:3
//	queue 1   [blur 3]──7──────────────[blend]──8─────▶
//
// A batch carries a vector clock of what it follows on other queues by its waits and
// by theirs. What that covers needs no further wait; what the host has seen the end of
// needs none at all, only some barrier later on the queue that makes it visible. All
// blocks are shared between the families of the queues in use (VK_SHARING_MODE_CONCURRENT).
//
// Batching adapts: while fewer than two batches of a queue are in flight, what is
// pending is submitted at once; otherwise it collects until one completes, somebody
// waits for it, or a cost cap is reached.
//
// The host writes device memory only where no task in flight can touch it; every
// other copy goes through staging memory and a command of the device, and what
// the host reads is behind a barrier to HOST/HOST_READ. What is larger than a few
// pieces streams through a ring of them; a construct that starts such a copy waits
// for the device to empty pieces. Where device and host have one memory, large slices
// that target constructs alone map are imported and not copied at all.
//
// Tasks whose commands are complete have their exits in the order of the submissions,
// over all queues, in which nothing comes before what it follows.
//
// Device memory is a store: its history of device work by ranges of bytes, so that
// tasks on different parts of a block have nothing to do with each other, and a count
// of who keeps it,
// which are the presence table or the program and every task that was generated with
// it. Memory that is freed or unmapped is used again after the last of them.
//
// The package sees a device through the interface Device; vk provides one, the
// tests another that runs commands in the least convenient order.
package sched
