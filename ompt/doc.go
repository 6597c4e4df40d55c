// Package ompt is the tool interface of OpenMP (OMPT): how a profiler or a
// debugger hears of what the runtime does with its devices and tasks.
//
//	program ──constructs──▶ runtime ──Vulkan──▶ device
//	                           │                  │
//	                           └─Callbacks─▶ tool ◀─Records─┘
//
// A tool is a [Callbacks] value, given to the runtime when it is opened. The
// enumerations have the names and values of the specification, so that what a
// tool records can be read beside the records of another implementation; what an
// event has beyond the specification, such as labels, says so. A [Device] records
// by the device's own clock when each kernel and each transfer ran.
//
// # Order
//
// The events of a task come one after the other, and in this order:
//
//	task_create, dependences
//	task_dependence, for each task that it follows and that is not complete
//	task_schedule (switch)
//	target_emi (begin)
//	  target_map_emi
//	  target_data_op_emi: allocations, then transfers to the device
//	  target_submit_emi
//	  target_data_op_emi: transfers from the device, then deletions
//	target_emi (end)
//	task_schedule (complete), before the task is complete for anybody else
//
// Those of different tasks interleave. An operation ends when it has been initiated,
// as the specification has it, and not when the device is done: that is in the
// device's trace. Allocations are told when their storage is there, both ends at
// once; deletions before the storage can be another's. Associations and their ends
// are told when they have succeeded. Storage that host and device share in place is
// neither allocated nor moved, and its map has MapFlagShared. Operations of deferred
// tasks have the asynchronous types. A memory routine's transfers have the types of
// OpenMP 6.0 (transfer, transfer_rect, memset), a region's those that say in which
// direction (transfer_to_device, transfer_from_device).
//
// A device's end takes all its storage with it, without deletions: that of a hard pause
// too. Storage that is declared comes before the first task, and is not told. An
// allocation that fails is no operation. A transfer of parts of arrays is told as the
// bytes that it moves, from the first to the first.
//
// A merged task is created and not scheduled. A data construct of the initial device
// without a depend clause is no task.
//
// A deferred task starts on a goroutine that runs no other task: the prior task of its
// switch is nil. A task that is never run has no switch, but a task_schedule with
// TaskCancel.
//
// # Cost
//
// The runtime calls a callback on the goroutine that caused the event, several
// at once where several goroutines do. A callback that is nil costs nothing, and what
// only serves callbacks that are nil is left out. A task that the tool hears of costs some
// 30 ns, and each callback 10 to 15 ns beyond its body (BenchmarkTool of package vkomp). A
// slow one holds its task up, and one of a submit, or of what ends a task, others of the
// device.
package ompt
