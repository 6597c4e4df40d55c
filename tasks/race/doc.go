// Package race finds accesses of tasks that the task graph does not order: two
// tasks touch the same byte, one of them writes, and no path leads from one to the
// other. It is told what a program does (tasks made with their depend items and
// accesses, bodies that begin and end, waits) and runs nothing.
//
//	          Create                       Begin   End
//	parent ─────●──────────────────────────────────────────●──── Waited ───▶
//	             ╲                                         ╱
//	              ╲     start (accesses are checked)      ╱
//	predecessors ──●────────●──────── body ────────●─────●  end
//
// What decides is the graph and not the run: where two tasks happened to run in
// order they are reported all the same if nothing but luck kept them so. A path is
// made of
//
//   - the making of a task: it follows what its parent had done and waited for by
//     then, and the parent's own accesses, which are taken to come first;
//   - dependences between siblings (OpenMP 5.2 §15.9.5), found anew here from the
//     depend items and not taken from the graph that is being carried out, and those
//     that transparent tasks add (OpenMP 6.0 §17.9.5);
//   - the end of an included task, a taskwait and the end of a taskgroup: what the
//     region does later follows what it has waited for;
//   - the event of a detachable task: see [Task.Fulfill].
//
// Tasks that exclude each other (mutexinoutset) do not race, nor do those that name the
// same bytes as an inoutset, on these; nor does what such tasks make, which is taken to
// be waited for.
//
// # How
//
// Tasks are numbered along chains: a task goes on with the chain of one that it
// follows if that is the chain's last, else it begins another. A set, the positions
// of all chains that a task follows, is its vector clock. Every byte has the accesses
// that a later one may race with: the last writes, and the reads since; every region
// has, by the byte, the tasks that a later sibling's depend item would follow. A task
// is checked when its place in the graph is settled: when it is made if all that it
// follows is, and else when the last body that it follows has ended. So of two tasks
// that race the second to be settled finds the first, or one that the first precedes
// and that is no less in its way.
//
// # Cost
//
// A task costs a look-up for each depend item and each access, and the merge of the
// clocks of what it follows, which are as long as the graph is wide. A task that follows
// exporting ones has a look-up more for each of these whose children it does not follow
// already. What everything later follows is dropped: memory follows the tasks that are
// not complete and those since the last wait, whose storage is kept reachable meanwhile,
// so that its address means nothing else. Chains are used again when nothing remembers
// their tasks.
//
// A Detector is safe for concurrent use. It calls the function that hears of
// conflicts with its lock held.
package race
