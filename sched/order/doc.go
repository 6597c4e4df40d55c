// Package order keeps the order of a device's work: commands get a queue, and a level in its
// pending batch; batches are submitted, and land when the device is done with them. It is for
// this repository alone and promises nothing to others. It knows commands, bytes, and tasks
// that have commands; not what these are for.
//
//	what commands follow ──▶ choose ─▶ begin ──────▶ submit ─▶ device ─▶ arrive ──▶ tasks that end
//	points of predecessors   queue     waits, level  one C               batches, in
//	uses of allocations                in its batch  call                their order
//
// A command has a sync point: a level of a batch of a queue. A sync set has a point on each
// of several queues; a wait set is what commands that are to be placed follow. A clock says,
// queue by queue, up to where work has happened before something. The uses of an allocation
// have the sync sets of the commands that touched it, and a history by ranges of bytes.
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
// memory is shared between the families of the queues in use (VK_SHARING_MODE_CONCURRENT).
//
// Batching adapts: while fewer than two batches of a queue are in flight, what is
// pending is submitted at once; otherwise it collects until one completes, somebody
// waits for it, or a cost cap is reached.
//
// A batch that the device refuses is skipped. Its value is never signalled: whoever follows
// it follows what it was to wait for. The caller fails its tasks.
//
// # Locking
//
// Nothing here has a lock of its own. Queues, with all that belongs to it, and the tasks and
// uses that are given to it are guarded by the lock that Init is given, which the caller holds.
// Await and AwaitValue, which wait for the device, are called without it. NextWait gives it up
// while there is nothing to wait for.
package order
