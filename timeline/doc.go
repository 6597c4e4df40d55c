// Package timeline holds a Point, which is one value of one queue's timeline semaphore, and a
// Frontier, which is a vector clock over several queues: for each of them, the value up to which its
// work has used memory that was freed. Whoever gets the memory next has to come after that.
//
//	queue 0  ──1──2──3──▶        Frontier{0:3, 2:1}: everything that queue 0
//	queue 1  ──1──2─────▶        signalled up to 3 and queue 2 up to 1;
//	queue 2  ──1────────▶        nothing is said of queue 1.
//
// What submissions are ordered after is the affair of package sched/order, which has a clock of its own.
//
// Every operation is linear in the number of queues named, which is small.
// Values are plain data without locks: the owner guards them.
package timeline
