// Package order checks that a recorded run kept its order: that any two accesses
// which conflict were ordered by what was submitted, not by what the driver did.
//
//	program -> recording layer -> driver            bin/layers/libVkLayer_vkomp_record.so
//	                │ log
//	                ▼
//	lines ─▶ objects, accesses ─▶ needs: "after command 7 of queue 2, its writes visible"
//	    └──▶ synchronization ──▶ knowledge of each queue, stage and access ──▶ violations
//
// # What orders
//
// Program order orders nothing: each command is a thread of its own. A command is
// after another only through barriers, semaphores, fences, idle waits and
// submissions whose scopes match (Vulkan 1.3 §7). As each scope is a prefix of what
// was submitted to a queue, restricted to stages, knowledge is a vector with an
// entry for each queue and stage. Each queue has four for each stage of later
// commands: what has executed, what of it is available, and what is visible to
// reads and to writes. A write before an access needs a memory dependency, a read
// before a write one of execution.
//
//   - A barrier takes the knowledge of its source stages and what its queue did so
//     far in them, makes available what its source accesses name, and gives it to
//     its destination stages, visible to its destination accesses.
//   - A signal takes all that, and makes all of it available; a wait gives it to the
//     stages of its mask, visible.
//   - The host learns what a signal took from a wait, a counter's value or a fence.
//     It sees writes of a device only behind a barrier to HOST/HOST_READ that the
//     signal covers, and may write over them behind one to HOST_WRITE.
//   - A submission gives all that the host knows, and its own writes.
//
// The host is one agent, in the order of the log: what its threads do among
// themselves is the program's affair. vkFlushMappedMemoryRanges is a write by it,
// vkInvalidateMappedMemoryRanges a read, so record with MemoryNonCoherent; accesses
// to coherent memory leave no trace. Accesses of a dispatch are its descriptors'
// whole ranges, read or written as the kernel's SPIR-V says; those by device
// address are not seen, and counted. Uniform buffers count as storage buffers that
// are read. Bytes are compared within a VkDeviceMemory, imported ones by the host's
// address, whichever device uses them: memory that is used again is the same bytes.
//
// A clauses file has the program's depend clauses, a task a line, from which a naive
// engine derives the edges, and Check sees whether each was kept between the tasks'
// dispatches:
//
//	graph 7                        the third push constant of its dispatches
//	task 0 3 out=3                 step and point, their first two; dependence objects
//	task 1 3 in=2,3,4 inout=9      ... which are the graph's own
//	task 2 0 host in=3 out=4       runs on the host, with copies: edges to who is
//	                               after its out are from all that is before it
//
// # How we know that it reports what it should
//
// Mutate changes a log's synchronization, one change at a time, and checks what is
// left. An oracle that shares nothing with the checker but the meaning of masks
// judges small logs by brute force.
//
// A removed barrier, wait or signal that loses nothing is waste, and counted. But
// what a host happened to do in a run is no order that whoever submits could have
// relied on, so each is removed twice more: where a submission gives nothing of what
// the host had seen, and the host reads and writes as soon as the first signal behind
// what it comes after; and where a submission gives the end of what the host had
// seen but makes none of it visible, the narrower reading of Vulkan 1.3 §7.9. What
// is missed there counts apart.
//
// # The log
//
// Text, a line for each call, fields separated by blanks, items of a field by
// colons; numbers are decimal, but those marked x hexadecimal. Objects are named by
// numbers of their kind, never used twice. A submission, a signal by the host, a
// flush and a destruction are written before the call goes down, everything else
// after it came back. A last line without its end is left out.
//
//	vkomp-order 1                              the version; always first
//	thread N                                   what follows is by this thread of the host
//	device D NAME
//	queue Q D FAMILY INDEX FLAGSx
//	buffer B D SIZE exclusive|concurrent
//	memory M D SIZE PROPERTIESx HOSTx          HOST: where it is imported from, else 0
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
//	  d BASEX BASEY BASEZ X Y Z                dispatch
//	  i B OFFSET                               dispatch indirect
//	  c SRC DST FROM:TO:SIZE ...               copy
//	  f B OFFSET SIZE                          fill
//	  u B OFFSET SIZE                          update
//	  b SRCx:DSTx:SRCACCESSx:DSTACCESSx:0 ...  barrier: stages and accesses, of all memory;
//	                                           1:B:OFFSET:SIZE of a buffer, 2 of an image
//	  ? NAME                                   a command that is not understood
//	end                                        (the lines of contents are not indented)
//	submit Q w T:VALUE:STAGESx ... c C ... s T:VALUE:STAGESx ... | w ... f F
//	failed                                     the call on the line before failed
//	wait HOW T:VALUE ...                       vkWaitSemaphores; HOW: m everything was there,
//	fences HOW F ...                           b it blocked, t it gave up, n it only looked
//	idle HOW Q ...
//	count T VALUE                              vkGetSemaphoreCounterValue showed a new value
//	signal T VALUE                             vkSignalSemaphore
//	flush M OFFSET SIZE
//	invalidate M OFFSET SIZE
//	map M OFFSET SIZE
//	unmap M
//	reset F ...
//	unknown NAME                               a call that is not understood
//	destroy KIND N
//
// # What it costs
//
// Check reads the log once. Its memory is bounded by what is live: objects, the
// pieces of memory with different histories, signals that the host has not seen
// reached; of clauses, the graphs that are not done. A Check is for one goroutine.
package order
