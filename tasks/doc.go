// Package tasks is the task graph: which task waits for which. It resolves
// depend clauses between siblings, starts each task when nothing it must follow
// is still ahead of it, carries failures to dependents, and lets a Taskwait
// wait for the children of a region. It knows no device.
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
//
// Rules and terms are those of OpenMP 5.2 §12.9 (task scheduling constraints)
// and §15.9.5 (depend clause): dependences hold between siblings, that is
// children of one task region, here one [Scope]; items match when their base
// addresses are equal.
//
// A Scope is safe for concurrent use. Adding a task costs a map look-up for
// each depend item and an append for each edge; a location of completed tasks
// is forgotten when the table is swept, so memory follows the tasks in flight.
package tasks
