// Package sched carries target tasks out on a Vulkan device, by turning the task graph into
// few large queue submissions whose order the device keeps itself. It is for this repository
// alone. Its rooms know nothing of the scheduler: sched/construct has what all constructs
// have in common, sched/kernel reads kernels and plans launches, sched/pipeline compiles kernels
// for a device and keeps their pipelines, sched/order keeps the order of the device's work,
// sched/trace records for a tool when it was done, sched/allocation has the device's memory,
// sched/host runs tasks on the host, and sched/protect calls functions of the program.
//
//	tasks.Scope ──start──▶ enter ──────▶ place ──────▶ submit ─▶ device ─▶ finish ──▶ complete
//	                       presence      queue, level  one C               copy-out,
//	                       table,        in its pend-  call, one           unmapping
//	                       copy-in       ing batch     vkQueueSubmit
//
// The scheduler's lock is held for all of these but the host's copies and the submission. While many
// tasks are created, they start in groups, which a goroutine of its own submits: see intake.
//
// What has to come before what, on which queue a command goes, and when a batch is submitted,
// is the affair of sched/order: its documentation has the pictures.
//
// Copies of maps, updates, memory routines and fills are transfers (sched/transfer), which choose
// the way of their bytes when the task enters. Each phase of a task's transfers is placed before
// or after its kernel:
//
//	enter ──▶ plan ──▶ host's part ──▶ commands ──▶ device ──▶ host's part ──▶ give back
//
// planning.go finds what a task's maps and updates transfer, announce.go tells other tasks of it,
// place.go places the commands, and lane.go those of copies that go chunk by chunk.
//
// What the host reads is behind a barrier to HOST/HOST_READ. Where device and host have one
// memory, large slices that target constructs alone map are imported and not copied at all.
//
// Tasks whose commands are complete have their exits in the order of the submissions,
// over all queues, in which nothing comes before what it follows.
//
// The storage of a present block is an allocation (sched/allocation), and so is what a memory
// routine allocates. Each task that was generated with it keeps it until the task is complete.
//
// # Life of a target task
//
// A target goes through these states, and only in these ways (see taskState; a build with
// the tag invariants panics where one is not in the list):
//
//	idle      → created                             it is given a task
//	created   → compiling, parked, starved, entered, complete, idle
//	compiling → parked, starved, entered, complete, idle
//	parked    → parked, starved, entered, complete, idle
//	starved   → created                             another task has given memory back
//	entered   → placed, exiting                     its commands have their places
//	placed    → exiting                             its commands are complete, or it has failed
//	exiting   → late, complete                      late: copies to the host that nobody foresaw;
//	                                                complete: its observer, if any, has heard of its end
//	late      → complete                            likewise
//	complete  → idle                                nobody refers to it
//
// A task that has not entered starts anew when what it waits for is there, or is refused
// (complete), or dropped by the task graph (idle). Every task that starts is ended by
// Scheduler.endLocked, with its outcome: the end of a task which has entered and fails is put off
// until nothing of the device uses what the task has.
//
// A kernel on storage that is present and stays so has no target, unless something out of the ordinary
// happens to it: see resident. A target can have many kernels, those of a Compound.
//
// Methods whose names end in Locked are called with the lock of what they work on held: of a
// trace or a target that is the scheduler's.
//
// The package sees a device through the interface Device; vk provides one, the
// tests another that runs commands in the least convenient order.
package sched
