// Package tasks is the task graph: which task waits for which. It resolves
// depend clauses between siblings, starts each task when nothing it must follow
// is still ahead of it, carries failures to dependents, and lets waits and
// taskgroups wait. It knows no device.
//
//	        Add                 Placed               Complete
//	created ───▶ waiting ─start─▶ started ──▶ placed ──────▶ complete
//	               ▲                            │               │
//	               │   same Domain: released ───┘               │
//	               └── any other:   released ───────────────────┘
//
// An edge is kept by the cheapest thing that can keep it. Two tasks of one
// [Domain] (target tasks of one device) can be ordered by the device itself:
// there the successor starts as soon as its predecessor is placed, and learns
// from [Node.Predecessors] what it has to be ordered after. Every other edge is
// kept by the host: the successor starts when the predecessor is complete.
// Exclusion (mutexinoutset) is kept the same two ways.
//
// Rules and terms are those of OpenMP 5.2 §12.9 (task scheduling constraints)
// and §15.9.5 (depend clause), with the transparent tasks of 6.0. Dependences
// hold between siblings, that is children of one task region, here one [Scope].
// Items match when their storage has a byte in common, which goes beyond OpenMP.
//
// # Life of a task
//
// The picture above leaves out what only the engine sees. A node goes through these
// phases, and only in these ways (see phase; a build with the tag invariants panics
// where one is not in the list):
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
// Node.Complete and a drop end a task by the same function, Node.endLocked. What becomes of
// it is its outcome: undecided until it is known that the task failed or is dropped, and
// a task that is complete and undecided has succeeded. Properties that are fixed when the
// task is added are its traits.
//
// # Cost
//
// A scope files the sections that its tasks name (see index): a section named
// again is a hash look-up, and a new one as much again. Where sections overlap in
// part their storage is cut into segments (see tangle): a task costs a search in
// logarithmic time for each segment that it touches, and has an edge from each task
// that it follows there, not from those of which that is easily seen to be implied. An
// edge is an append.
// Everything of a task is used again when it is complete: memory follows the tasks in
// flight and not those ever made, nor the addresses ever named, and a steady state
// allocates nothing.
//
// A Scope is safe for concurrent use; its tasks share one lock, with those of
// scopes that transparent tasks connect. Methods of scopes and nodes whose names end in
// Locked are called with that lock held. The data structures of a scope (index, tangle,
// poison, trail, …) are guarded by it too.
package tasks
