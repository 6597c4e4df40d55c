// Package cost says how long a recorded run would take on a device that is not there: it takes a
// log of the recording layer and a profile, which has what the mechanisms of a device cost, and
// computes the makespan and what it consists of.
//
//	log ─▶ order.Read ─▶ calls of each thread ─┐
//	                     batches of each queue ┴▶ simulation ─▶ makespan, parts, critical path
//	profile: h100 ──────────────────────────────▲
//
// # What is simulated
//
// Each thread of the host makes its calls one after the other. Recording a command and submitting
// take the time that the profile says. A wait ends when what it waits for has happened, and the
// host has learned it. Threads pass on what they learn, in ways that are not in the log: a call
// begins no earlier than the calls that come before it in the log have begun, and than the host
// knew, by any thread, what the waits before it in the log have shown.
//
// Each queue executes its submissions one after the other, each when its waits are over. Commands
// without a barrier between them overlap, as far as the device has room. A barrier waits for all
// commands before it and then costs what its masks cost. Queues of one family run side by side or
// take turns, as the profile says; queues of different families run side by side.
//
// What runs at the same time shares the device: its workgroups, the bandwidth of its memory, and
// the bus in either direction. Where more is asked for than there is, all that ask get
// proportionally less.
//
// # What is assumed
//
// The log has no times. What a workgroup takes is a parameter; kernels that only copy are the
// exception, since their bytes are known. The host's own work between its calls counts as nothing:
// the makespan is that of the calls. Host accesses count where the program flushed or invalidated
// memory, because those to coherent memory are not in the log.
//
// A makespan is therefore a figure to compare runs by, rather than a prediction: what it says of
// the order, the masks, the queues and the ways of bytes is what the device would charge for them.
package cost
