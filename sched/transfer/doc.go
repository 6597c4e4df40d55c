// Package transfer has the transfers of target tasks: whatever brings bytes from one storage to
// another. Copies of maps, updates, memory routines, pointers in the images of mapped values and
// fills are all transfers. The package knows device memory, queues and the order of commands, but
// not the presence table, and of tasks no more than the interface Task. It is internal to this
// module.
//
// A transfer has a path, the way of its bytes. It is chosen once, when the task enters, by
// facts.path in path.go, from the facts that Plan collects. Each path is a value with the steps
// that it needs, in a file of its own:
//
//	path_direct.go   the host reads and writes the device memory itself, where no task in flight
//	                 can touch it; host storage that the device uses in place needs no copy
//	path_staging.go  the host copies to or from staging memory, and a command of the device
//	                 copies between that and storage
//	path_ring.go     as staging, through a ring of a few chunks, for large copies
//	path_pinned.go   a command of the device copies between storage and the host's own bytes, which
//	                 lie in pinned storage
//	path_device.go   commands of the device alone: copies within its memory, fills
//	path_kernel.go   a kernel of the device: large copies within its memory
//
// The transfers of a task are a List, which takes them through these steps:
//
//	task enters  Resolve, Add ──▶ Plan ──────────▶ Begin ─────────▶ PlaceLocked, phase by phase
//	                              take: staging    begin, ring      record: commands
//	task ends    Add, Plan ─────▶ End ───────────▶ FreeStaging
//	                              end, ring
//
// Phases say when in the course of its task a transfer is made; the commands of one phase come
// after those of the phase before. Begin does the host's part of the transfers to the device,
// which comes before the task's commands. End does that of the transfers to the host. Memory that
// is not coherent is flushed and invalidated once for all transfers of a step. Large copies of the
// host's are gathered and made by a crew of goroutines (crew.go, bytes.go), which brings the bytes
// of rings as well.
//
// The scheduler joins transfers with what they touch: it finds the present blocks, tells other
// tasks what a task is about to change, and decides which phases are placed when.
//
// # Adding a path
//
// A new path is a value of type path in a file of its own, a case in facts.path, and a row in the
// table of path_test.go. Only if it depends on a fact that no other path depends on, factsOf in
// plan.go has to collect that as well.
//
// # Locking
//
// Resolve, Plan and PlaceLocked are called with the scheduler's lock held. Begin and End copy, so
// the goroutine that starts or ends the task calls them without it.
package transfer
