// Package mutant builds defects into the scheduler and its choice of queues, one at a time, to
// show that the tests of order and of cost notice each (scripts/mutants). The defects exist under the build tag mutants
// alone: without it Active is constant, and the compiler leaves nothing of its callers'
// branches.
package mutant

// Name names a defect.
type Name string

const (
	// Commands begin before those of the level below them are done.
	BarrierDropped Name = "barrier-dropped"
	// Kernels of a compound task begin before those that they follow are done.
	CompoundBarrierDropped Name = "compound-barrier-dropped"
	// Barriers between levels do not make visible what copies wrote.
	CopiesUnseen Name = "copies-unseen"
	// The host is let read what no barrier made visible to it.
	HostBarrierDropped Name = "host-barrier-dropped"
	// A batch begins before another queue is where it has to be.
	WaitDropped Name = "wait-dropped"
	// A batch waits for the batch before the one that it follows.
	WaitTooLow Name = "wait-too-low"
	// A batch waits for a batch that need not ever come.
	WaitTooHigh Name = "wait-too-high"
	// A wait counts as implied by one that reaches the batch before.
	WaitImpliedTooEarly Name = "wait-implied-too-early"
	// A batch that is waited for counts as following what a later one follows.
	FrontierTooNew Name = "frontier-too-new"
	// A batch is submitted before one that was closed before it, for which it may wait.
	SubmittedOutOfOrder Name = "submitted-out-of-order"
	// A command shares the level of one that it follows, or needs a barrier and has none.
	LevelTooLow Name = "level-too-low"
	// What no barrier came after counts as ordered before later batches.
	OrderedTooHigh Name = "ordered-too-high"
	// What the device writes counts as seen by a queue before the host knew its end.
	SeenTooMuch Name = "seen-too-much"
	// The host's knowing the end of writes is taken to make them visible to kernels.
	WritesForgotten Name = "writes-forgotten"
	// Writes in flight are taken to have made those before them visible.
	EarlierWritesForgotten Name = "earlier-writes-forgotten"
	// Commands begin while a transfer of the same bytes is under way.
	TransfersForgotten Name = "transfers-forgotten"
	// A task does not come after one of its predecessors.
	PredecessorForgotten Name = "predecessor-forgotten"
	// What follows commands on several queues follows one of them.
	QueueForgotten Name = "queue-forgotten"
	// Writes of other queues count as followed by the one that comes next.
	FollowsTooMuch Name = "follows-too-much"
	// What new users of memory do is not ordered after what its last users did.
	MemoryReusedEarly Name = "memory-reused-early"
	// The host writes memory that the device still works on.
	HostWritesEarly Name = "host-writes-early"
	// The host reads memory that it does not cache.
	UncachedRead Name = "uncached-read"
	// Tasks end before the device is done with their batch.
	CompleteTooEarly Name = "complete-too-early"
	// The ends of tasks on several queues come in any order.
	ExitsUnordered Name = "exits-unordered"
	// Copies and fills within the device go to queues that only transfer.
	FillOnTransferQueue Name = "fill-on-transfer-queue"
	// Kernels have the queues of a family that draws, which take turns.
	DrawingQueues Name = "drawing-queues"
	// Barriers between levels wait for all stages and make all accesses visible.
	WiderMasks Name = "wider-masks"
)

// OffBy returns 1 if the caller is to be wrong as m says, and 0 otherwise: it is added to
// what is right.
func OffBy(m Name) uint64 {
	if Active(m) {
		return 1
	}
	return 0
}
