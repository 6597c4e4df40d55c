package construct

import (
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/tasks"
)

// Observer hears what a task does, for a tool. Its methods are called without locks
// held unless they say so, those of one task one after the other. They do not panic, and
// may end the goroutine (runtime.Goexit): what has to be done after them is deferred.
type Observer interface {
	tasks.Witness
	// Interest says whether Begin and End are of interest, and whether Map and Op are, which
	// come between the two: what is not may be left out. It may be asked before Created, and of
	// a construct that is refused nothing follows but Release.
	Interest() (run, operations bool)
	// Created: the task is in the graph; it cannot start before this returns.
	Created(n *tasks.Node, depend []tasks.Depend)
	// Begin: the task starts.
	Begin()
	// Map tells how a target task's items are mapped. They are the caller's again when
	// Map returns.
	Map(items []ompt.MapItem)
	// Op tells of an operation, at its begin and at its end, which is when it has been
	// initiated. At the begin the observer may change it.
	Op(ompt.ScopeEndpoint, *Op)
	// End: the task is about to be complete, err is its failure.
	End(err error)
	// Release: nobody of the scheduler or the graph asks for the task any more. A lock of
	// the graph may be held. It may be left out: where a wait was cut short, say.
	Release()
}

// Complete completes a task without work of its own that has begun: its observer, if any,
// hears of its end before.
func Complete(n *tasks.Node, err error, w *tasks.Work) {
	defer n.Complete(err, w)
	if o, ok := n.Witness().(Observer); ok {
		o.End(err)
	}
}

// Created has the observer of a new task hear of it, and then lets the task start. Where
// the observer ends the goroutine, left is called, which may be nil, and w is run.
func Created(o Observer, n *tasks.Node, depend []tasks.Depend, w *tasks.Work, left func()) {
	over := false
	defer func() {
		if !over && left != nil {
			left()
		}
		n.Go(w)
		if !over {
			w.Run()
		}
	}()
	o.Created(n, depend)
	over = true
}

// Pass carries out a task that does nothing.
func Pass(n *tasks.Node, w *tasks.Work) {
	defer n.Complete(nil, w)
	if o, ok := n.Witness().(Observer); ok {
		o.Begin()
		o.End(nil)
	}
}

// Op is an operation of a target task: a data operation, or, without a Type, the submit
// of its kernel. It is the task's until that is complete.
type Op struct {
	ompt.DataOp
	// ID is the operation's number, TargetID its region's: the observer's to set.
	ID, TargetID ompt.ID
	// Kernel is the kernel's name, Teams the number of workgroups.
	Kernel string
	Teams  uint64
}

// Numbers are those of devices in operations.
type Numbers struct{ Device, Host int }
