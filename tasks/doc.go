// Package tasks is the task graph. It resolves depend clauses between siblings, starts each task
// when no predecessor is in its way, passes failures on to dependents, and implements taskwaits
// and taskgroups. It knows no device.
//
//	        Add                 Placed               Complete
//	created ───▶ waiting ─start─▶ started ──▶ placed ──────▶ complete
//	               ▲                            │               │
//	               │   same Domain: released ───┘               │
//	               └── any other:   released ───────────────────┘
//
// An edge is enforced in the cheapest way. Two tasks of one [Domain] (target tasks of one device)
// can be ordered by the device itself: there the successor starts as soon as its predecessor is
// placed, and learns from [Node.Predecessors] what it has to be ordered after. Every other edge
// is enforced by the host: the successor starts when the predecessor is complete. The same holds
// for exclusion (mutexinoutset).
//
// The rules and terms are those of OpenMP 5.2 §12.9 (task scheduling constraints) and §15.9.5
// (depend clause), with the transparent tasks of 6.0. Dependences exist between siblings, which
// are the children of one task region, here one [Scope]. Items match if their storage has a byte
// in common, which extends OpenMP.
//
// # Life of a task
//
// The picture above shows what callers see. Internally a node goes through these phases, in these
// ways only (see phase; a build with the tag invariants panics on any other transition):
//
//	free      → created                    Scope.Add
//	created   → waiting, started           Add has found the predecessors; with a Witness, at Node.Go
//	waiting   → blocked, started           the last predecessor is out of the way
//	blocked   → started                    the mutexinoutset storage is given back
//	started   → placed, finished, complete Node.Placed; Node.Complete, or the task is dropped
//	placed    → executed, complete         Node.Complete
//	finished  → complete                   its event is fulfilled, its predecessors on the device are complete
//	executed  → complete                   likewise
//	complete  → lingering, gone            it is taken out of the histories, at once if no trail needs it there
//	lingering → gone                       its trail is closed, or others have superseded it
//	gone      → free                       the last who holds the node releases it
//
// Node.Complete and a drop end a task through the same function, Node.endLocked. The outcome of a
// task is undecided until it is known that the task failed or is dropped; a complete task whose
// outcome is undecided has succeeded. Properties that are fixed when the task is added are its
// traits.
//
// # Cost
//
// A scope indexes the sections that its tasks name (see index): a known section costs a hash
// look-up, a new one twice as much. Storage of sections that overlap in part is divided into
// segments (see tangle): a task costs a search in logarithmic time for each segment that it
// touches, and has an edge from each task that it depends on there, except those that are easily
// seen to be implied. An edge is an append. Large sets of tasks without order among themselves, one
// behind the other, have edges in proportion to their sizes, not to the product (see
// Graph.JoinSets). All records of a task are reused when it is complete, so memory is proportional
// to the tasks in flight rather than to all tasks or addresses so far, and nothing is allocated in
// the steady state.
//
// A Scope is safe for concurrent use; its tasks share one lock with those of the scopes that
// transparent tasks connect. Methods of scopes and nodes whose names end in Locked are called
// with that lock held. It also guards the data structures of a scope (index, tangle, failedStorage,
// trail, …).
package tasks
