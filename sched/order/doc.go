// Package order keeps the order of a device's work. A command is placed on a queue, on a level of
// the queue's pending batch; batches are submitted, and complete later. The package knows
// commands, ranges of bytes and tasks that have commands, but not what these are for. It is
// internal to this module.
//
//	what commands follow ──▶ choose ─▶ begin ───────▶ close ─▶ submit ─▶ device ─▶ arrive ──▶ tasks that end
//	points of predecessors   queue     waits, level   its      one C               batches, in
//	uses of allocations                in its batch   order    call                their order
//
// A command has a sync point: a level of a batch of a queue. A sync set has a point on each of
// several queues; a wait set is what commands that are about to be placed follow. A clock has for
// each queue the value up to which its work happened before something. The uses of an allocation
// have the sync sets of the commands that accessed it, and a history by ranges of bytes.
//
// A batch is a list of levels. A command goes to the level after that of the last command that it
// must follow. A batch therefore has no more barriers than its critical path requires, in
// whatever order its tasks were created, and commands that need no order have none:
//
//	level 0   blur 1   blur 2   blur 3
//	─ barrier ─────────────────────────
//	level 1   edges 1  edges 2  edges 3
//	─ barrier ─────────────────────────
//	level 2   blend 1  blend 2  blend 3
//	─ barrier to the host, where it reads ─▶ signal timeline value n
//
// A device has several queues. Each has a pending batch and a timeline, whose values its batches
// signal. A command goes to the queue on which it is estimated to finish first. Following a
// command of another queue costs a semaphore wait, and using an idle queue costs a submission, so
// a few small tasks stay on one queue. So do kernels without loops, as a rule (see
// home.go). Large copies go to a queue that only transfers. Before a
// batch waits for another, the latter is submitted, and so is what the waiting queue has
// collected by then. No wait therefore reaches the driver before its signal, and no command waits
// for more than it must:
//
//	queue 0   [blur 1 blur 2 │ edges]──3──────────────▶
//	                                  ╲ wait 0:3
//	queue 1   [blur 3]──7──────────────[blend]──8─────▶
//
// A batch has a vector clock of what it follows on other queues by its waits and, in turn, by
// theirs. What the clock covers needs no further wait. What the host has seen complete needs no
// wait either, only a later barrier on the queue that makes it visible. All memory is shared
// between the families of the queues in use (VK_SHARING_MODE_CONCURRENT).
//
// Batching adapts to the load: while fewer than two batches of a queue are in flight, pending
// commands are submitted at once. Otherwise they are collected until a batch completes, a
// goroutine waits for them, or their cost reaches a limit.
//
// # The life of a batch
//
//	pending ──Close──▶ closed ──SubmitClosed──▶ submitted ──Arrive──▶ complete
//	   │                  │                                               │
//	   └──────────────────┴──▶ refused ──TakeRefused──▶ recycled ◀────────┘
//
// A pending batch collects commands. Close settles its content, its waits and its place in the order of
// all submissions, and from then on it counts as in flight. Whoever has closed a batch calls
// SubmitClosed, where one goroutine at a time encodes closed batches and gives them to the device,
// without the lock, while others place commands in the next batches.
//
// A batch that the device refuses is skipped, and so is all that has been placed behind it meanwhile:
// commands that follow those of a refused batch never run. Its value is never signalled, so what is
// placed later and follows it follows instead what the batch was to wait for. The caller fails the tasks.
//
// # Locking
//
// The package has no locks. Queues, its parts, and the tasks and uses passed to it are guarded by
// the lock that is passed to Init, which the caller must hold. Await, which waits for the device, is
// called without it. SubmitClosed and SubmitNow unlock it while they encode and submit: the content of
// closed batches does not change, and Queues.submitting keeps others from submitting meanwhile. NextWait,
// NextDrive and AwaitSubmission unlock it while they wait.
package order
