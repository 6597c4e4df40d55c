package transfer

import (
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/trace"
	"github.com/vkomp/vkomp/tasks"
)

// Task is the task that transfers belong to.
type Task interface {
	// Tell tells the task's observer of one end of an operation. It is called without locks.
	Tell(ompt.ScopeEndpoint, *construct.Op)
	// TimeLocked has the commands that come next on a level of the queue's pending batch be timed as
	// the operation, until Timing.End.
	TimeLocked(q *order.Queue, level int32, op *construct.Op, bytes uint64) trace.Timing
	// Lane returns what places the commands of transfers through a ring. Tasks that become ready
	// meanwhile go to w. It is valid until the next call.
	Lane(w *tasks.Work) Lane
}

// tell tells the task's observer of one end of an operation, nil for none.
func tell(by Task, end ompt.ScopeEndpoint, op *construct.Op) {
	if op != nil {
		by.Tell(end, op)
	}
}

// first returns a, or b if a is nil. Small copies call it several times: cmp.Or does the same, but it
// compares the values of the interfaces, which took 3 % of the time of a copy of 64 bytes.
func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// Begins reports whether Begin has something to do.
func (l *List) Begins() bool { return l.planned.has(AtEntry) || l.planned.has(ToDevice) }

// Begin does what comes before the task's commands: the host's part of the transfers to the
// device, and those of them that go through a ring. It returns how many bytes of host storage
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
			err = first(err, copying)
		}
	}
	err = first(err, l.flush(d))
	for i := range l.All {
		x := &l.All[i]
		if err != nil || x.Phase > ToDevice || !x.path.ring {
			continue
		}
		copied += x.Size
		err = l.stream(d, x, by, w)
	}
	return copied, l.bringStreamed(d, by, w, err)
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
		if !x.Kind.FromHost() {
			// It may read or overwrite what others bring.
			err = first(err, l.copyGathered(d))
		}
		n, copying := x.path.begin(d, l, x)
		if op != nil {
			copying = first(copying, l.copyGathered(d))
		}
		tell(by, ompt.ScopeEnd, op)
		copied += n
		err = first(err, copying)
	}
	return copied, first(err, l.copyGathered(d))
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
		switch {
		case err != nil:
			tell(by, ompt.ScopeBegin, x.Op)
			tell(by, ompt.ScopeEnd, x.Op)
		case x.path.ring:
			copied += x.Size
			err = l.stream(d, x, by, w)
		default:
			tell(by, ompt.ScopeBegin, x.Op)
			var n uint64
			n, err = x.path.end(d, l, x)
			copied += n
			if x.Op != nil {
				err = first(err, l.copyGathered(d))
			}
			tell(by, ompt.ScopeEnd, x.Op)
		}
	}
	return copied, l.bringStreamed(d, by, w, first(l.copyGathered(d), err))
}

// stream brings the bytes of a transfer through the ring. Unless an observer has to be told of it,
// that is left to bringStreamed.
func (l *List) stream(d *Device, x *Transfer, by Task, w *tasks.Work) error {
	l.streamed = append(l.streamed, x)
	if x.Op == nil {
		return nil
	}
	tell(by, ompt.ScopeBegin, x.Op)
	err := l.bringStreamed(d, by, w, nil)
	tell(by, ompt.ScopeEnd, x.Op)
	return err
}

// bringStreamed brings the bytes of the transfers that stream has left, unless there is an error
// already: all together, or one after the other if some write the same bytes.
func (l *List) bringStreamed(d *Device, by Task, w *tasks.Work, err error) error {
	if len(l.streamed) == 0 {
		return err
	}
	defer empty(&l.streamed)
	if err != nil {
		return err
	}
	some, lane := len(l.streamed), by.Lane(w)
	if some > 1 && !l.streamedApart() {
		some = 1
	}
	for i := 0; i < len(l.streamed) && err == nil; i += some {
		err = l.bring(d, l.streamed[i:i+some], lane)
	}
	return err
}

// streamedApart reports whether no two of the transfers that stream has left write the same bytes.
func (l *List) streamedApart() bool {
	if l.streamed[0].Dst != nil {
		return l.apart(ToDevice)
	}
	written := make([]addresses, 0, 16)
	for _, x := range l.streamed {
		written = append(written, addresses{uintptr(x.Host.Ptr), uintptr(x.Host.Ptr) + uintptr(x.Size)})
	}
	return disjoint(written)
}
