package transfer

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/trace"
	"github.com/vkomp/vkomp/tasks"
)

// task is a Task that writes down what its observer is told.
type task struct {
	*rig
	told []string
	// timed counts the commands with an operation.
	timed int
	// quiet says that the transfers have no operations, and the observer is told nothing.
	quiet bool
	// ended, if not nil, is called with the label of an operation that ends.
	ended func(label string)
}

func (t *task) Tell(end ompt.ScopeEndpoint, op *construct.Op) {
	t.told = append(t.told, fmt.Sprint(op.Label, " ", end))
	if t.ended != nil && end == ompt.ScopeEnd {
		t.ended(op.Label)
	}
}

func (t *task) TimeLocked(*order.Queue, int32, *construct.Op, uint64) trace.Timing {
	t.timed++
	return trace.Timing{}
}

func (t *task) Lane(*tasks.Work) Lane { return t.rig }

// run takes the list through the life of a task.
func (t *task) run() {
	t.t.Helper()
	must := func(step string, err error) {
		t.t.Helper()
		if err != nil {
			t.t.Fatalf("%s: %v", step, err)
		}
	}
	l, d := &t.list, &t.d
	for i := range l.All {
		must("plan", l.Plan(d, &l.All[i], Situation{}))
		if !t.quiet {
			l.All[i].Op = &construct.Op{DataOp: ompt.DataOp{Label: l.All[i].Label}}
		}
	}
	if l.Begins() {
		_, err := l.Begin(d, t, nil)
		must("begin", err)
	}
	var s order.WaitSet
	for p := AtEntry; p <= AtExit; p++ {
		if l.Recorded(p) {
			at, _, err := l.PlaceLocked(d, p, &s, false, t)
			must("place", err)
			s.SetAll(new(order.SyncSet))
			s.Add(at)
		}
	}
	q := d.Queues.All()[0]
	must("submit", d.Queues.SubmitNow(q, func() {}))
	value, err := t.soft.Completed(0)
	must("completed", err)
	d.Queues.Arrive(q, value)
	l.EndWithRequested()
	if l.Ends() {
		_, err := l.End(d, t, nil)
		must("end", err)
	}
}

// The transfers that a construct requests are made in the phases of their kinds, whatever their
// paths are, and the observer is told of each with begin and end.
func TestRequestedTransfersAreMadeInPhases(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			r := newRig(t, m)
			var pointers allocation.Pointers
			pointers.Init(0)
			a, b := r.device(128), r.device(128)
			from, to, back := make([]byte, 128), make([]byte, 64), make([]byte, 128)
			for i := range from {
				from[i] = byte(i)
			}
			// The copies to the host come last, although they are requested first.
			err := r.list.Resolve(&pointers, []Request{
				{Kind: CopyToHost, Host: section(to), Src: pointers.To(b), Size: 64, Label: "home"},
				{Kind: CopyToHost, Host: section(back), Src: pointers.To(a), Size: 128, Label: "back"},
				{Kind: CopyToDevice, Host: section(from), Dst: pointers.To(a), Size: 128, Label: "in"},
				{Kind: Fill, Dst: pointers.To(b), Size: 0, Label: "nothing"},
				{Kind: Fill, Dst: pointers.To(b).Add(8), Size: 8, Value: 7, Label: "fill"},
			})
			if err != nil {
				t.Fatal(err)
			}
			by := &task{rig: r}
			by.run()
			if !slices.Equal(back, from) {
				t.Errorf("%v, want %v", back, from)
			}
			for i, got := range to[8:16] {
				if got != 7 {
					t.Errorf("byte %d is %d, want 7", 8+i, got)
				}
			}
			for _, label := range []string{"in", "home", "back"} {
				begin, end := slices.Index(by.told, fmt.Sprint(label, " ", ompt.ScopeBegin)), slices.Index(by.told, fmt.Sprint(label, " ", ompt.ScopeEnd))
				if begin < 0 || end < begin {
					t.Errorf("the observer was told %v", by.told)
				}
			}
			commands := 0
			for i := range r.list.All {
				if x := &r.list.All[i]; x.ByCommand() {
					commands++
				}
			}
			if by.timed != commands {
				t.Errorf("%d commands were timed, of %d", by.timed, commands)
			}
		})
	}
}

// Requested transfers that write the same bytes are made in their order, and others side by side.
func TestTransfersToTheSameBytesAreOrdered(t *testing.T) {
	for _, c := range []struct {
		name   string
		second uint64
		levels int
	}{{"apart", 32, 1}, {"overlapping", 31, 2}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, modes[1])
			var pointers allocation.Pointers
			pointers.Init(0)
			p := pointers.To(r.device(64))
			if err := r.list.Resolve(&pointers, []Request{{Kind: Fill, Dst: p, Size: 32, Value: 1}, {Kind: Fill, Dst: p.Add(int64(c.second)), Size: 32, Value: 2}}); err != nil {
				t.Fatal(err)
			}
			for i := range r.list.All {
				if err := r.list.Plan(&r.d, &r.list.All[i], Situation{}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := r.list.Begin(&r.d, &task{rig: r}, nil); err != nil {
				t.Fatal(err)
			}
			if _, _, err := r.list.PlaceLocked(&r.d, ToDevice, new(order.WaitSet), false, &task{rig: r}); err != nil {
				t.Fatal(err)
			}
			b, levels := r.d.Queues.All()[0].Pending(), 0
			for b.Level(int32(levels)).Len() > 0 {
				levels++
			}
			if levels != c.levels {
				t.Errorf("%d levels, want %d", levels, c.levels)
			}
			if err := r.d.Queues.SubmitNow(r.d.Queues.All()[0], func() {}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Copies to blocks that the task has made need not follow what the task follows; others must.
func TestCopiesToFreshBlocksGoAhead(t *testing.T) {
	for _, c := range []struct {
		name              string
		fresh, may, ahead bool
	}{
		{"fresh", true, true, true},
		{"present before", false, true, false},
		{"fresh, and no kernel follows", true, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, modes[1])
			host := make([]byte, 64)
			x := r.list.Add(CopyIn)
			x.Fresh, x.Host, x.Dst, x.Size = c.fresh, section(host), r.device(64), 64
			if err := r.list.Plan(&r.d, x, Situation{}); err != nil {
				t.Fatal(err)
			}
			if _, err := r.list.Begin(&r.d, &task{rig: r}, nil); err != nil {
				t.Fatal(err)
			}
			// What the task follows is at level 2 of the pending batch.
			r.d.Queues.All()[0].Pending().Level(2)
			var s order.WaitSet
			s.Set(order.SyncPoint{Value: 1, Level: 2})
			at, ahead, err := r.list.PlaceLocked(&r.d, AtEntry, &s, c.may, &task{rig: r})
			if err != nil {
				t.Fatal(err)
			}
			if ahead != c.ahead || at.Level > 2 == c.ahead {
				t.Errorf("ahead %v, at level %d", ahead, at.Level)
			}
		})
	}
}

// A list of which planning has failed is as it was before.
func TestUndoLeavesWhatWasRequested(t *testing.T) {
	r := newRig(t, modes[1])
	host := make([]byte, 64)
	if err := r.list.Resolve(nil, []Request{{Kind: UpdateTo, Host: section(host), Size: 64, Label: "update"}}); err != nil {
		t.Fatal(err)
	}
	before := r.list.All[0]
	for range 2 {
		x := &r.list.All[0]
		x.Block, x.Dst = new(memory.Present), r.device(64)
		copied := r.list.Add(CopyIn)
		copied.Host, copied.Dst, copied.Size = section(host), x.Dst, 64
		for i := range r.list.All {
			if err := r.list.Plan(&r.d, &r.list.All[i], Situation{}); err != nil {
				t.Fatal(err)
			}
		}
		if !r.list.Begins() || !r.list.Recorded(ToDevice) || !r.list.planned.has(AtEntry) {
			t.Error("nothing is planned")
		}
		r.list.FreeStaging(&r.d, &order.SyncSet{})
		r.list.Undo()
		if len(r.list.All) != 1 || r.list.All[0] != before || r.list.Begins() || r.list.Recorded(ToDevice) {
			t.Errorf("%d transfers are left: %+v", len(r.list.All), r.list.All)
		}
	}
	r.list.Reset()
	for _, x := range r.list.All[:cap(r.list.All)] {
		if x != (Transfer{}) {
			t.Errorf("an empty list has %+v", x)
		}
	}
}

// Resolve refuses pointers to what is not there, and copies that overlap.
func TestRequestsThatCannotBe(t *testing.T) {
	r := newRig(t, modes[0])
	var pointers allocation.Pointers
	pointers.Init(0)
	p := pointers.To(r.device(64))
	host := make([]byte, 128)
	shared := r.device(64)
	shared.Own = unsafe.Pointer(&host[32])
	q := pointers.To(shared)
	for _, c := range []struct {
		name string
		Request
		want error
	}{
		{"past the end", Request{Kind: Fill, Dst: p.Add(1), Size: 64}, allocation.ErrInvalidPointer},
		{"nil", Request{Kind: CopyToHost, Size: 1}, allocation.ErrInvalidPointer},
		{"overlap", Request{Kind: CopyWithin, Dst: p.Add(8), Src: p, Size: 16}, ErrOverlap},
		{"side by side", Request{Kind: CopyWithin, Dst: p.Add(16), Src: p, Size: 16}, nil},
		{"nothing at nil", Request{Kind: Fill}, nil},
		{"up in host storage", Request{Kind: CopyToDevice, Dst: q.Add(8), Host: section(host[32:48]), Size: 16}, ErrOverlap},
		{"down in host storage", Request{Kind: CopyToHost, Src: q.Add(8), Host: section(host[32:48]), Size: 16}, ErrOverlap},
		{"to where it is", Request{Kind: CopyToDevice, Dst: q.Add(8), Host: section(host[40:56]), Size: 16}, nil},
		{"from where it is", Request{Kind: CopyToHost, Src: q.Add(8), Host: section(host[40:56]), Size: 16}, nil},
		{"beside it, to it", Request{Kind: CopyToDevice, Dst: q, Host: section(host[16:32]), Size: 16}, nil},
		{"beside it, from it", Request{Kind: CopyToHost, Src: q, Host: section(host[48:64]), Size: 16}, nil},
	} {
		var l List
		if err := l.Resolve(&pointers, []Request{c.Request}); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if copies, ok := c.Now(&pointers); ok != (c.Host.Ptr != nil && c.want == nil) {
			t.Errorf("%s: at once %v: %+v", c.name, ok, copies)
		}
	}
}
