// Package observe tells listeners what a runtime does: each construct, wait and memory routine is
// announced once, where the program encounters it, to all listeners. There are two listeners, the
// tool interface (package tool) and the race detector (package races).
//
//	construct ──Task──────▶ each listener's observer of the task
//	          ──▶ the task: Created, Begin, Map, Op, End, Release (construct.Observer)
//	          ──Generated─▶ listeners
//
// The package is internal to this module.
//
// A runtime without listeners has no Listeners and announces nothing. With one listener the
// listener's own observers are the observers of the tasks.
//
// # What listeners remember
//
// A listener identifies a task by the observer that it returned for the task, and a taskgroup by
// the note that it returned for the group (see [Notes]). The [Origin] of an event carries those
// of the region that encounters the construct.
package observe
