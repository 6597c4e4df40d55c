// Package ompt is OpenMP's tool interface (OMPT), through which a profiler or a debugger
// observes what the runtime does with its devices and tasks.
//
//	program ──constructs──▶ runtime ──Vulkan──▶ device
//	                           │                  │
//	                           └─Callbacks─▶ tool ◀─Records─┘
//
// A tool is a [Callbacks] value that is given to the runtime in its options. Enumerations
// have the names and values of the specification, so that what a tool records is
// comparable with records of another implementation. Extensions of events, such as
// labels, are marked as such. A [Device] records by the device's own clock when each
// kernel and each transfer ran.
//
// # Order
//
// The events of a task are delivered one after the other, in this order:
//
//	task_create, dependences
//	task_dependence, for each incomplete task that it depends on
//	task_schedule (switch)
//	target_emi (begin)
//	  target_map_emi
//	  target_data_op_emi: allocations, then transfers to the device
//	  target_submit_emi
//	  target_data_op_emi: transfers from the device, then deletions
//	target_emi (end)
//	task_schedule (complete), before others see the task as complete
//
// Events of different tasks interleave. As the specification says, an operation ends when
// it has been initiated and not when the device has finished it; the device's trace tells
// that. Both events of an allocation come once its storage exists, and the events of a
// deletion before the storage can be reused. Associations and disassociations are
// reported once they have succeeded. Storage that host and device share is neither
// allocated nor moved; its map has MapFlagShared. Operations of deferred tasks have the
// asynchronous types. Transfers of memory routines have the types of OpenMP 6.0
// (transfer, transfer_rect, memset), those of regions the types that name the direction
// (transfer_to_device, transfer_from_device).
//
// When a device is finalized, also by a hard pause, all its storage goes without deletion
// events. Storage of declared variables is created before the first task and is not
// reported. A failed allocation is not an operation. A transfer of a rectangular part is
// reported with the number of bytes that it moves and the addresses of the first ones.
//
// A merged task is created but not scheduled. A data construct of the initial device
// without a depend clause is not a task.
//
// A deferred task starts on a goroutine that runs no other task, so the prior task of its
// switch is nil. A task that is never run has a task_schedule with TaskCancel instead of a
// switch.
//
// # Cost
//
// The runtime calls a callback on the goroutine that caused the event, so several callbacks
// may run concurrently. A nil callback costs nothing, and work that only serves nil
// callbacks is skipped. A task that a tool observes costs some 30 ns, and each callback 10
// to 15 ns in addition to its body (BenchmarkTool of package vkomp). A slow callback
// delays its task; slow callbacks of submissions and of completions delay other tasks of
// the device too.
package ompt
