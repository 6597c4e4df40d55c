// Package timeline holds the vocabulary that every room shares to speak of
// order on a device: a Point is one value of one queue's timeline semaphore,
// and a Frontier is a vector clock over several queues.
//
//	queue 0  ──1──2──3──▶        Frontier{0:3, 2:1}: everything that queue 0
//	queue 1  ──1──2─────▶        signalled up to 3 and queue 2 up to 1 has
//	queue 2  ──1────────▶        happened; nothing is said of queue 1.
//
// A frontier says what a submission is ordered after. Work that waits for two
// frontiers waits for their join, and a wait whose point the frontier already
// covers can be dropped: that is what keeps a chain across queues at one
// semaphore wait a link rather than one an edge.
//
// Every operation is linear in the number of queues named, which is small.
// Values are plain data without locks: whoever holds one guards it.
package timeline
