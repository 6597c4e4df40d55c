package construct

import (
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/tasks"
)

// Observer is told what a task does, for a tool or the race detector. Unless said otherwise its
// methods are called without locks held, and one after the other for one task. They do not panic,
// but may call runtime.Goexit, so a caller has to defer what it must do after them.
type Observer interface {
	tasks.Witness
	// Interest reports whether calls of Begin and End are wanted, and whether those of Map and
	// Op, which come between the two, are; unwanted calls may be omitted. It may be called before
	// Created. If the construct is refused, only Release is called after it.
	Interest() (run, operations bool)
	// Created says that the task is in the graph. It cannot start before Created returns.
	Created(n *tasks.Node, depend []tasks.Depend)
	// Begin says that the task starts.
	Begin()
	// Map tells how the list items of a target task are mapped. The slice is only valid during the
	// call.
	Map(items []ompt.MapItem)
	// Op tells of the begin of an operation and of its end, at which it has been initiated. At the
	// begin the observer may change the operation.
	Op(ompt.ScopeEndpoint, *Op)
	// End says that the task is about to be complete; err is its failure.
	End(err error)
	// Release says that neither the scheduler nor the graph uses the observer any more. A lock of
	// the graph may be held. The call may be omitted, for example when the end of a context cut a
	// wait short.
	Release()
}

// Detached is implemented by observers of detachable tasks.
type Detached interface {
	// Fulfilled is called just before the task's event is fulfilled.
	Fulfilled()
}

// Complete completes a task that has begun and has no work of its own. Its observer, if any, is
// told of the end first.
func Complete(n *tasks.Node, err error, w *tasks.Work) {
	defer n.Complete(err, w)
	if o, ok := n.Witness().(Observer); ok {
		o.End(err)
	}
}

// Created tells the observer of a new task, and then lets the task start. If the observer
// ends the goroutine, left is called, if not nil, and w is run.
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

// Pass runs a task that does nothing.
func Pass(n *tasks.Node, w *tasks.Work) {
	defer n.Complete(nil, w)
	if o, ok := n.Witness().(Observer); ok {
		o.Begin()
		o.End(nil)
	}
}

// Op is an operation of a target task: a data operation or, if it has no Type, the launch of
// its kernel. The task owns it until the task is complete.
type Op struct {
	ompt.DataOp
	// ID is the number of the operation, TargetID that of its region. The observer sets them.
	ID, TargetID ompt.ID
	// Kernel is the kernel's name.
	Kernel string
	// Teams is the number of workgroups.
	Teams uint64
}

// Numbers are the device numbers that operations report: that of the device and that of the
// initial device.
type Numbers struct{ Device, Host int }
