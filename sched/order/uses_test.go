package order

import (
	"testing"

	"github.com/vkomp/vkomp/timeline"
)

// waitOf returns what commands that use all of the bytes have to follow.
func waitOf(o *Queues, u *Uses) *WaitSet {
	s := new(WaitSet)
	o.AddUses(s, u, Span{Size: 16})
	return s
}

// A command follows complete writes of its bytes, which must be made visible to it, and
// transfers in flight. It does not follow writes in flight, which the program has left without
// order if it does not depend on them, nor writes of other bytes.
func TestUsesFollowCompleteWritesAndTransfersInFlight(t *testing.T) {
	o, _ := newStanding(fourQueues)
	q, copies := o.All()[0], o.All()[3]
	var u Uses
	o.Reuse(&u, 32, timeline.Frontier{})
	write := dispatch(t, o, q).At
	o.Wrote(&u, Span{Size: 16}, write)
	o.Wrote(&u, Span{Start: 16, Size: 16}, dispatch(t, o, q, write).At)
	submit(t, o, q)
	if s := waitOf(o, &u); s.Len() > 0 {
		t.Errorf("who follows nothing follows %v, a write in flight", s.At(0))
	}
	complete(o, q, q.last)
	if s := waitOf(o, &u); s.Len() != 1 || s.First() != write {
		t.Errorf("the complete write is not followed: %v", s)
	}
	move := dispatch(t, o, copies, write).At
	o.Moved(&u, Span{Size: 16}, move)
	if s := waitOf(o, &u); s.Len() != 2 || s.At(1) != move {
		t.Errorf("the transfer in flight is not followed: %v", s)
	}
	submit(t, o, copies)
	complete(o, copies, copies.last)
	if s := waitOf(o, &u); s.Len() != 1 || s.First() != write {
		t.Errorf("the complete transfer is followed: %v", s)
	}
}

// A write of other bytes is in flight when the history becomes coarser, and hides no complete one.
func TestCoarserHistoryFollowsWritesBeforeThoseInFlight(t *testing.T) {
	o, _ := newStanding(fourQueues)
	q := o.All()[0]
	var u Uses
	o.Reuse(&u, 32, timeline.Frontier{})
	write := dispatch(t, o, q).At
	o.Wrote(&u, Span{Size: 16}, write)
	submit(t, o, q)
	complete(o, q, q.last)
	o.Wrote(&u, Span{Start: 16, Size: 16}, dispatch(t, o, q).At)
	u.history.coarsen()
	if n := len(u.history.segments); n != 1 {
		t.Fatalf("%d segments", n)
	}
	if s := waitOf(o, &u); s.Len() != 1 || s.First().Before(write) {
		t.Errorf("the complete write is not followed: %v", s)
	}
}

func TestHostWritesNothingThatTheDeviceUses(t *testing.T) {
	o, _ := newStanding(fourQueues)
	q := o.All()[0]
	var u Uses
	o.Reuse(&u, 16, timeline.Frontier{})
	if !o.HostMayWrite(&u) {
		t.Error("the host may not write what nothing uses")
	}
	u.Read(dispatch(t, o, q).At)
	if o.HostMayWrite(&u) {
		t.Error("the host may write what a pending command reads")
	}
	submit(t, o, q)
	if o.HostMayWrite(&u) {
		t.Error("the host may write what a command in flight reads")
	}
	complete(o, q, q.last)
	if !o.HostMayWrite(&u) {
		t.Error("the host may not write what was read")
	}
	o.Wrote(&u, Span{Size: 16}, dispatch(t, o, q).At)
	submit(t, o, q)
	complete(o, q, q.last)
	if o.HostMayWrite(&u) || u.Visible(o.HostReached()) {
		t.Error("the host sees what no barrier made visible to it")
	}
	dispatch(t, o, q)
	q.Pending().ReadByHost()
	submit(t, o, q)
	if !u.Visible(q.HostVisible()) {
		t.Error("the barrier in flight makes nothing visible")
	}
	complete(o, q, q.last)
	if !o.HostMayWrite(&u) {
		t.Error("the host does not see what is behind a barrier to it")
	}
}

// Memory that is used again follows the commands of its last user, as if these were transfers.
func TestReusedMemoryFollowsItsLastUsers(t *testing.T) {
	o, _ := newStanding(fourQueues)
	q := o.All()[1]
	last := dispatch(t, o, q).At
	var u Uses
	o.Reuse(&u, 16, timeline.NewFrontier(timeline.Point{Queue: 1, Value: last.Value}))
	if s := waitOf(o, &u); s.Len() != 1 || s.First() != last {
		t.Errorf("reused memory follows %v, want %v", s, last)
	}
	submit(t, o, q)
	o.Reuse(&u, 16, timeline.NewFrontier(timeline.Point{Queue: 1, Value: last.Value}))
	if s := waitOf(o, &u); s.Len() != 1 || s.First().Before(last) || s.First().Value != last.Value {
		t.Errorf("reused memory follows %v, want all of the batch of %v", s, last)
	}
}

// Tasks are complete in the order of their submissions, also over several queues.
func TestArrivalsComeInTheOrderOfTheSubmissions(t *testing.T) {
	o, _ := newStanding(fourQueues)
	a, b := o.All()[0], o.All()[1]
	want := []*Task{dispatch(t, o, a)}
	submit(t, o, a)
	want = append(want, dispatch(t, o, b, want[0].At))
	submit(t, o, b)
	want = append(want, dispatch(t, o, a, want[1].At))
	submit(t, o, a)
	got := complete(o, a, a.last)
	if len(got) != len(want) {
		t.Fatalf("%d tasks are complete, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("task %d is not complete in its place", i)
		}
	}
	if b.Completed() != b.last || len(b.InFlight()) > 0 {
		t.Error("the batch that was waited for is not complete")
	}
}
