// Package observe is the stream of events of a runtime: each construct, wait and memory
// routine is announced once, where the runtime meets it, and every listener hears of it.
// There are two listeners, the tool interface (package tool) and the race detector
// (package races).
//
//	construct ──Task──────▶ each listener's observer of the task
//	          ──▶ the task: Created, Begin, Map, Op, End, Release (construct.Observer)
//	          ──Generated─▶ listeners
//
// The package promises nothing to importers outside of this module.
//
// A runtime without listeners has no Stream, and announces nothing. With one listener its
// own observers are the tasks' observers, and nothing stands between the two.
//
// # What listeners remember
//
// A listener knows a task by the observer that it has returned for it, and a taskgroup by
// its record among the group's [Notes]. An event carries both of where it comes from, its
// [Origin].
package observe
