// Package trace records when a device executes the commands of target tasks, for a tool that asks
// for it through an [ompt.Device]. It knows the queues of the device and their batches (package
// order), and the operations that observers are told of (construct.Op), but neither tasks nor the
// scheduler that places their commands. It is internal to this module.
//
// While a [Trace] runs, each command is between two timestamps, and has a stamp. [Stamps] makes a record
// of a stamp when two things are known: the times, which are read when the command's batch is complete,
// and the numbers of the operation, which an observer may change until its task is complete. They become
// known in either order:
//
//	Begin, dispatch, copy or fill, Timing.End
//	   │
//	   ▼
//	the batch is closed: timestamps between its levels (see timedBatch)
//	   │
//	   ├───────────────────────────┐
//	   ▼                           ▼
//	Read: the batch is          Complete: the
//	complete, or                task is complete
//	Drop: it does not run          │
//	   │                           │
//	   └─────────────┬─────────────┘
//	                 ▼
//	record, or nothing where the command did not run
//	                 │
//	                 ▼
//	goroutine of the Trace: request, fill, complete buffers of the tool
//
// Timestamps order nothing: commands that run together without a trace run together with one, as
// far as the device's timestamps allow. Copies that the host makes itself have no record, nor have
// the commands of queues without timestamps.
//
// # Precision
//
// A timestamp can cost a device more than a short command. So there is one timestamp between two levels,
// which is the end of the first and the begin of the second, and short launches of one kernel that
// follow each other share the time between two timestamps (see share.go). What the records say of the
// order holds all the same: no command begins before the end of one that it follows.
//
// # Locking
//
// The lock of the [Source] guards the queues, the stamps and the state of the trace. Methods of
// Stamps and Timing are called with it held, those of Trace without it. The functions of the tool
// are called by the goroutine of the trace, without locks held.
package trace
