// Package race finds accesses of tasks that the task graph does not order: two tasks access the
// same byte, at least one of them writes, and no path leads from one to the other. It is told
// what a program does (it creates tasks with depend items and accesses, bodies begin and end,
// regions wait) and runs nothing itself.
//
//	          Create                       Begin   End
//	parent ─────●──────────────────────────────────────────●──── Waited ───▶
//	             ╲                                         ╱
//	              ╲     start (accesses are checked)      ╱
//	predecessors ──●────────●──────── body ────────●─────●  end
//
// The graph decides, not the run: two tasks that happened to run one after the other are still
// reported if no path orders them. A task follows another if a path leads to it from the other. A
// path consists of
//
//   - the creation of a task: it follows what its parent had done and waited for by then, and
//     the parent's own accesses, which are taken to come first;
//   - dependences between siblings (OpenMP 5.2 §15.9.5), which this package derives from the
//     depend items itself instead of asking package tasks, and those of transparent tasks
//     (OpenMP 6.0 §17.9.5);
//   - the end of an included task, a taskwait and the end of a taskgroup: later actions of the
//     region follow the tasks that it has waited for;
//   - the event of a detachable task (see [Task.Fulfill]).
//
// Tasks that exclude each other (mutexinoutset) do not race, and neither do tasks with inoutset
// items of the same bytes, as far as these bytes go. The same holds for the descendants of such
// tasks, which are assumed to be waited for.
//
// # How
//
// Tasks are numbered along chains: a task continues the chain of a task that it follows if that
// is the last of its chain; otherwise it begins a new chain. A set, which holds a position for
// each chain, is the vector clock of a task. For each byte the detector remembers the accesses
// with which a later one may race: the last writes, and the reads since then. For each region it
// remembers, by the byte, the tasks on which a later sibling may depend. The accesses of a task
// are checked when its place in the graph is known: at its creation if all tasks that it follows
// have ended, otherwise when the body of the last of them ends. Of two tasks that race, the one
// whose place is known later thus finds the other, or a task that follows the other and conflicts
// with it just as well.
//
// # Cost
//
// A task costs a look-up for each depend item and each access, and a merge of the clocks of the
// tasks that it follows, whose length is the width of the graph. A task that follows exporting
// tasks costs another look-up for each of them whose children it does not follow already. What
// all later tasks follow is forgotten, so memory is proportional to the tasks that are incomplete
// or were created since the last wait. The storage of remembered tasks is kept reachable, so that
// its address is not used for another. Chains are used again when none of their tasks are
// remembered.
//
// A Detector is safe for concurrent use. It calls its report function with its lock held.
package race
