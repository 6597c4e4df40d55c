// Package timeline holds the types with which all packages describe order on a
// device: a Point is one value of one queue's timeline semaphore, and a Frontier
// is a vector clock over several queues.
//
//	queue 0  ──1──2──3──▶        Frontier{0:3, 2:1}: everything that queue 0
//	queue 1  ──1──2─────▶        signalled up to 3 and queue 2 up to 1 has
//	queue 2  ──1────────▶        happened; nothing is said of queue 1.
//
// A frontier says what a submission is ordered after. Work that waits for two
// frontiers waits for their join. A wait whose point the frontier already covers
// can be dropped; this way a chain of tasks across queues has one semaphore wait
// for each change of queue rather than one for each dependence.
//
// Every operation is linear in the number of queues named, which is small.
// Values are plain data without locks: the owner guards them.
package timeline
