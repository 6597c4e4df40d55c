package sched

// mutant names a defect that the build tag mutants can give the scheduler, one at a
// time: scripts/mutants shows that the tests of order notice each. Without the tag
// mutated is constant, and the compiler leaves nothing of the places that ask it.
type mutant string

const (
	// Commands begin before those of the level below them are done.
	barrierDropped mutant = "barrier-dropped"
	// Barriers between levels do not make visible what copies wrote.
	copiesUnseen mutant = "copies-unseen"
	// The host is let read what no barrier made visible to it.
	hostBarrierDropped mutant = "host-barrier-dropped"
	// A batch begins before another queue is where it has to be.
	waitDropped mutant = "wait-dropped"
	// A batch waits for the batch before the one that it follows.
	waitTooLow mutant = "wait-too-low"
	// A batch waits for a batch that need not ever come.
	waitTooHigh mutant = "wait-too-high"
	// A wait counts as implied by one that reaches the batch before.
	waitImpliedTooEarly mutant = "wait-implied-too-early"
	// A batch that is waited for counts as following what a later one follows.
	frontierTooNew mutant = "frontier-too-new"
	// A command shares the level of one that it follows, or needs a barrier and has none.
	levelTooLow mutant = "level-too-low"
	// What no barrier came after counts as ordered before later batches.
	orderedTooHigh mutant = "ordered-too-high"
	// What the device writes counts as seen by a queue before the host knew its end.
	seenTooMuch mutant = "seen-too-much"
	// The host's knowing the end of writes is taken to make them visible to kernels.
	writesForgotten mutant = "writes-forgotten"
	// Writes in flight are taken to have made those before them visible.
	earlierWritesForgotten mutant = "earlier-writes-forgotten"
	// Commands begin while a transfer of the same bytes is under way.
	transfersForgotten mutant = "transfers-forgotten"
	// A task does not come after one of its predecessors.
	predecessorForgotten mutant = "predecessor-forgotten"
	// What follows commands on several queues follows one of them.
	queueForgotten mutant = "queue-forgotten"
	// Writes of other queues count as followed by the one that comes next.
	followsTooMuch mutant = "follows-too-much"
	// What new users of memory do is not ordered after what its last users did.
	memoryReusedEarly mutant = "memory-reused-early"
	// The host writes memory that the device still works on.
	hostWritesEarly mutant = "host-writes-early"
	// Tasks end before the device is done with their batch.
	completeTooEarly mutant = "complete-too-early"
	// The ends of tasks on several queues come in any order.
	exitsUnordered mutant = "exits-unordered"
)

// offBy is 1 where the mutant is to be, and 0 elsewhere.
func offBy(m mutant) uint64 {
	if mutated(m) {
		return 1
	}
	return 0
}
