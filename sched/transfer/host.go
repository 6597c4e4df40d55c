package transfer

import (
	"cmp"

	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/trace"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// Task is the task that transfers belong to.
type Task interface {
	// Tell tells the task's observer of one end of an operation. It is called without locks.
	Tell(ompt.ScopeEndpoint, *construct.Op)
	// TimeLocked has the commands that come next in the stream, a level of the queue's pending
	// batch, be timed as the operation, until Timing.End.
	TimeLocked(q *order.Queue, stream *vk.Stream, op *construct.Op, bytes uint64) trace.Timing
	// Lane returns what places the commands of a transfer through a ring. Tasks that become
	// ready meanwhile go to w.
	Lane(x *Transfer, w *tasks.Work) Lane
}

// tell tells the task's observer of one end of an operation, nil for none.
func tell(by Task, end ompt.ScopeEndpoint, op *construct.Op) {
	if op != nil {
		by.Tell(end, op)
	}
}

// Begins reports whether Begin has something to do.
func (l *List) Begins() bool { return l.planned.has(AtEntry) || l.planned.has(ToDevice) }

// Begin does what comes before the task's commands: the host's part of the transfers to the
// device, and those of them that go chunk by chunk. It returns how many bytes of host storage
// were copied. The scheduler's lock is not held.
func (l *List) Begin(d *Device, by Task, w *tasks.Work) (copied uint64, err error) {
	for i := range l.All {
		if x := &l.All[i]; x.Phase <= ToDevice && x.path.reads != nil {
			x.path.reads(d, l, x)
		}
	}
	err = l.invalidate(d)
	for p := AtEntry; p <= ToDevice; p++ {
		if l.planned.has(p) {
			n, copying := l.beginPhase(d, p, by)
			copied += n
			err = cmp.Or(err, copying)
		}
	}
	err = cmp.Or(err, l.flush(d))
	for i := range l.All {
		x := &l.All[i]
		if err != nil || x.Phase > ToDevice || x.path.bring == nil {
			continue
		}
		tell(by, ompt.ScopeBegin, x.Op)
		if err = x.path.bring(d, l, x, by.Lane(x, w)); err == nil {
			copied += x.Size
		}
		tell(by, ompt.ScopeEnd, x.Op)
	}
	return copied, err
}

// beginPhase does the host's part of the transfers of one phase that comes before commands, and
// returns how many bytes of host storage it has copied. If one fails, the others are made
// nevertheless.
func (l *List) beginPhase(d *Device, p Phase, by Task) (copied uint64, err error) {
	for i := range l.All {
		x := &l.All[i]
		if x.Phase != p || x.path.begin == nil {
			continue
		}
		// The observer is told of a transfer that the device makes without host storage when its
		// commands are placed.
		op := x.Op
		if !x.Kind.FromHost() && !x.path.inPlace {
			op = nil
		}
		tell(by, ompt.ScopeBegin, op)
		n, copying := x.path.begin(d, l, x)
		tell(by, ompt.ScopeEnd, op)
		copied += n
		err = cmp.Or(err, copying)
	}
	return copied, err
}

// Ends reports whether End has something to do.
func (l *List) Ends() bool { return len(l.ends) > 0 }

// End does the host's part of the transfers that EndWith has listed, when the device is done with
// the task, and returns how many bytes of host storage were copied. After a failure no further
// transfer is made. The scheduler's lock is not held.
func (l *List) End(d *Device, by Task, w *tasks.Work) (copied uint64, err error) {
	for _, i := range l.ends {
		if x := &l.All[i]; x.path.reads != nil {
			x.path.reads(d, l, x)
		}
	}
	err = l.invalidate(d)
	for _, i := range l.ends {
		x := &l.All[i]
		tell(by, ompt.ScopeBegin, x.Op)
		switch {
		case err != nil:
		case x.path.bring != nil:
			err = x.path.bring(d, l, x, by.Lane(x, w))
			copied += x.Size
		default:
			var n uint64
			n, err = x.path.end(x)
			copied += n
		}
		tell(by, ompt.ScopeEnd, x.Op)
	}
	return copied, err
}
