// Package order checks the order of a recorded run: any two conflicting accesses must be ordered
// by what was submitted, rather than by what the driver happened to do.
//
//	program -> recording layer -> driver            bin/layers/libVkLayer_vkomp_record.so
//	                │ log
//	                ▼
//	lines ─▶ objects, accesses ─▶ needs: "after command 7 of queue 2, its writes visible"
//	    └──▶ synchronization ──▶ knowledge of each queue, stage and access ──▶ violations
//
// # What orders commands
//
// The checker assumes no implicit order: each command counts as a thread of its own. A command is
// after another only through barriers, semaphores, fences, idle waits and submissions whose
// scopes match (Vulkan 1.3 §7). Each scope is a prefix of what was submitted to a queue,
// restricted to stages, so knowledge is a vector with an entry for each queue and stage. Each
// queue has four such vectors for each stage of later commands: what has executed, what of it is
// available, and what is visible to reads and to writes. A write before an access needs a memory
// dependency, a read before a write an execution dependency.
//
//   - A barrier takes the knowledge of its source stages, and what its queue has executed so far in
//     them, makes available what its source accesses name, and passes it to its destination
//     stages, visible to its destination accesses.
//   - A signal takes all of that and makes available what of it the device did. A wait passes it to
//     the stages of its mask, visible.
//   - The host learns what a signal took through a wait, a counter's value or a fence. Writes of a
//     device are visible to it only after a barrier to HOST/HOST_READ before the signal, and it
//     may overwrite them only after one to HOST_WRITE.
//   - A submission passes on everything that the host knows, and its own writes.
//
// The runtime submits a batch only after what it waits for, and a wait before its signal is a violation.
// Foreign work need not keep to that, nor does the own queue of an interop object (Options.Foreign): there a
// batch begins when the signals of its waits have been submitted and the batches before it on its queue have
// begun. It is held back until then, and follows what the host knew when it was submitted. One that never
// begins hangs. A binary semaphore's signal has to be submitted first in any case.
//
// The host is treated as one agent, in the order of the log: synchronization between its threads
// is the program's responsibility. vkFlushMappedMemoryRanges counts as a write of the host and
// vkInvalidateMappedMemoryRanges as a read, so runs should be recorded with MemoryNonCoherent;
// accesses to coherent memory are not in the log. A dispatch accesses the whole ranges of its
// descriptors, read or written as the kernel's SPIR-V says, but for the elements that a member
// vkomp_offset_<binding> of its push constants skips; accesses by device address are counted but
// not checked. Uniform buffers count as storage buffers that are read. Bytes are
// identified by VkDeviceMemory and offset, imported memory by its host address, whichever device
// uses it: memory that is reused is the same bytes.
//
// What commands use may be destroyed only when the host knows that they have ended: memory, buffers and
// pipelines; and what a batch uses only when the host knows that all of the batch has ended: semaphores,
// fences, command buffers, and devices. A command buffer may not be reset, nor begun again, before
// either. The log does not have descriptor sets. Whether a fence or a binary semaphore is free when it is
// used again is not checked.
//
// The values of a timeline must be reached in their order: where two queues signal it, or a queue and the
// host, the signal of the smaller value must come before the other.
//
// A clauses file has the program's depend clauses, one task on each line. A naive engine derives
// the edges from them, and Check verifies each edge between the tasks' dispatches:
//
//	graph 7                        the third push constant of its dispatches
//	task 0 3 out=3                 step and point, the first two; keys of dependence objects,
//	task 1 3 in=2,3,4 inout=9      which belong to the graph
//	task 2 0 host in=3 out=4       runs on the host, with copies: tasks after its output
//	                               have edges from everything before the task
//
// A task that does not run on the host must have a dispatch, unless the log was cut short: in a
// whole one every device has been destroyed at the end. Dispatches without a task are allowed. An
// incomplete last line is ignored, here and in the log.
//
// Read returns what the host and the queues did in a run, for other questions about it: package
// cost says what it would cost on a device.
//
// # How the checker is tested
//
// Mutate changes a log's synchronization, one change at a time, and checks the result. An oracle
// that shares nothing with the checker except the meaning of masks judges small logs by brute
// force.
//
// A barrier, wait or signal that can be removed without losing an order is wasted, and is
// counted. What the host happened to have seen in a run, however, is not an order that a
// scheduler can rely on. So each removal is checked twice more: once with submissions that pass
// on nothing of what the host has seen, while the host reads and writes as soon as the first
// signal after the operations it depends on; and once with submissions that pass on the execution
// of what the host has seen but no visibility, the narrower reading of Vulkan 1.3 §7.9. Orders
// lost only there are counted separately. A change does not move the beginning of a batch: if it would begin
// later, an order counts as lost.
//
// # The log
//
// The log is text with a line for each call. Fields are separated by blanks, items of a field by
// colons; numbers are decimal, those marked x hexadecimal. Objects are identified by numbers of
// their kind, which are never reused. A submission, a signal by the host, a flush, a destruction and
// the loss of what was recorded are written before the call, everything else after it has returned. An
// incomplete last line is ignored.
//
//	vkomp-order 1                              the version; always first
//	thread N                                   the following calls are by this thread of the host
//	device D NAME
//	queue Q D FAMILY INDEX FLAGSx
//	buffer B D SIZE exclusive|concurrent
//	memory M D SIZE PROPERTIESx HOSTx          HOST: host address if imported, else 0
//	bind B M OFFSET
//	module S D CODEx
//	pipeline P D S ENTRY
//	semaphore T D timeline|binary VALUE
//	fence F D SIGNALLED
//	commands C D                               contents of a command buffer, when it ended
//	  p P                                      bind a pipeline
//	  r SET BINDING:B:OFFSET:SIZE ...          bind a set, resolved; B 0: no buffer
//	  R SET BINDING:B:OFFSET:SIZE ...          push descriptors
//	  k OFFSET WORDx,...                       push constants
//	  d BASEX BASEY BASEZ X Y Z                dispatch; of a kernel that spirv.Merge has made, of Z
//	                                           launches: launch k has element k of each binding that
//	                                           is an array, or part k where the push constants begin
//	                                           with where parts are, and its share of the push
//	                                           constants, and no launch is ordered with another
//	  i B OFFSET                               dispatch indirect
//	  c SRC DST FROM:TO:SIZE ...               copy
//	  f B OFFSET SIZE                          fill
//	  u B OFFSET SIZE                          update
//	  b SRCx:DSTx:SRCACCESSx:DSTACCESSx:0 ...  barrier: stages and accesses, of all memory;
//	                                           1:B:OFFSET:SIZE of a buffer, 2 of an image
//	  ? NAME                                   an unknown command
//	end                                        (the lines of contents are not indented)
//	discard C                                  its contents are lost: it is reset, or begun again
//	submit Q w T:VALUE:STAGESx ... c C ... s T:VALUE:STAGESx ... | w ... f F
//	failed                                     the call on the line before failed
//	wait HOW T:VALUE ...                       vkWaitSemaphores; HOW: m was already satisfied,
//	fences HOW F ...                           b blocked, t timed out, n only queried
//	idle HOW Q ...
//	count T VALUE                              vkGetSemaphoreCounterValue showed a new value
//	signal T VALUE                             vkSignalSemaphore
//	flush M OFFSET SIZE
//	invalidate M OFFSET SIZE
//	map M OFFSET SIZE
//	unmap M
//	reset F ...
//	unknown NAME                               an unknown call
//	destroy KIND N
//
// # What it costs
//
// Check reads the log once. Its memory is proportional to what is live: objects, ranges of memory
// with different histories, signals that the host has not seen, and graphs of clauses that are
// not complete. A Check uses one goroutine.
package order
