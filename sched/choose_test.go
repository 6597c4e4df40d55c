package sched

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/transfer"
)

// kernelsOn returns how many dispatches each queue has had.
func (r *rig) kernelsOn() (n []uint64) {
	for _, q := range r.s.Stats().Queues {
		n = append(n, q.Dispatches)
	}
	return n
}

func (r *rig) copiesOn() (n []uint64) {
	for _, q := range r.s.Stats().Queues {
		n = append(n, q.Copies)
	}
	return n
}

func TestTinyTasksStayOnOneQueue(t *testing.T) {
	r := newRig(t, onQueues, 1)
	defer r.close()
	x := filled(4*200, 0)
	r.run(launch{label: "enter", enter: []arg{alloc(x)}, included: true})
	r.d.hold()
	for i := range 200 {
		part := x[4*i : 4*i+4]
		r.run(launch{label: "tiny", kernel: "set", args: []arg{alloc(part)}, out: [][]uint32{part}})
	}
	if got, want := r.kernelsOn(), []uint64{200, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("kernels by queue %v, want %v", got, want)
	}
	r.d.release()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
}

// heavy runs a kernel on a range of so many invocations. Those beyond the elements of x do
// nothing, but are what the scheduler estimates its cost by.
func (r *rig) heavy(label string, x []uint32, invocations uint64) {
	r.t.Helper()
	g := r.region(launch{label: label, kernel: "add", args: []arg{alloc(x)}, constant: 1, out: [][]uint32{x}})
	g.Range = [3]uint64{invocations, 1, 1}
	if err := r.s.Run(r.t.(*testing.T).Context(), g); err != nil {
		r.t.Fatal(err)
	}
}

func TestHeavyTasksSpreadOverAllQueuesThatCompute(t *testing.T) {
	r := newRig(t, onQueues, 1)
	defer r.close()
	const tasks = 9
	x := filled(16*tasks, 0)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	r.d.hold()
	for i := range tasks {
		r.heavy("heavy", x[16*i:16*i+16], 200_000)
	}
	if got, want := r.kernelsOn(), []uint64{3, 3, 3, 0}; !slices.Equal(got, want) {
		t.Errorf("kernels by queue %v, want %v", got, want)
	}
	r.d.release()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16*tasks, 1)...)
}

// Tasks of a chain stay on one queue, since a crossing to another one would only delay them. A
// task that does not depend on the chain goes elsewhere if the chain is long enough to wait
// for.
func TestChainStaysOnItsQueue(t *testing.T) {
	for _, invocations := range []uint64{16, 1000, 200_000} {
		t.Run(fmt.Sprint(invocations), func(t *testing.T) {
			r := newRig(t, onQueues, 1)
			defer r.close()
			x, y := filled(16, 0), filled(16, 0)
			r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
			r.d.hold()
			for range 30 {
				r.heavy("link", x, invocations)
			}
			if got := slices.Max(r.kernelsOn()); got != 30 {
				t.Errorf("kernels by queue %v", r.kernelsOn())
			}
			r.heavy("another", y, invocations)
			if apart := slices.Max(r.kernelsOn()) == 30; apart != (invocations >= 1000) {
				t.Errorf("a task that follows nothing is apart from the chain: %v; kernels by queue %v", apart, r.kernelsOn())
			}
			r.d.release()
			r.taskwait()
			r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
			r.expect("x", x, filled(16, 30)...)
		})
	}
}

// A task depends only on work of a busy queue that is complete. It goes to an idle queue, where
// it needs a barrier and no semaphore wait.
func TestTaskLeavesABusyQueueForWhatIsComplete(t *testing.T) {
	r := newRig(t, onQueues, 1)
	defer r.close()
	x, y := filled(16, 0), filled(16, 0)
	r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
	r.heavy("x", x, 16)
	r.taskwait()
	r.d.hold()
	// The work in flight takes longer than an idle queue takes to begin and to drain, and less
	// than a crossing costs.
	r.heavy("y", y, order.CrossCost-order.StallCost-2000)
	if got, want := r.kernelsOn(), []uint64{2, 0, 0, 0}; !slices.Equal(got, want) {
		t.Fatalf("kernels by queue %v, want %v", got, want)
	}
	r.heavy("x again", x, 16)
	if got, want := r.kernelsOn(), []uint64{2, 1, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("kernels by queue %v, want %v", got, want)
	}
	r.d.release()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x), {s: y, kind: memory.MapRelease}}, included: true})
	r.expect("x", x, filled(16, 2)...)
}

func TestLargeCopiesGoToTheQueueThatOnlyTransfers(t *testing.T) {
	for _, c := range []struct {
		bytes  int
		queues []order.QueueInfo
		want   int
	}{
		{order.CopyApart, manyQueues, 3},
		{order.CopyApart - 4, manyQueues, 0},
		{order.CopyApart, manyQueues[:3], 0},
		{16 * order.CopyApart, manyQueues, 3},
	} {
		t.Run(fmt.Sprint(c.bytes, " bytes with ", len(c.queues), " queues"), func(t *testing.T) {
			mode := onQueues
			mode.queues = c.queues
			r := newRig(t, mode, 1)
			defer r.close()
			x := filled(c.bytes/4, 1)
			r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
			want := make([]uint64, len(c.queues))
			want[c.want] = 1
			if got := r.copiesOn(); !slices.Equal(got, want) {
				t.Errorf("copies by queue %v, want %v", got, want)
			}
			r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
			want[c.want]++
			if got := r.copiesOn(); !slices.Equal(got, want) {
				t.Errorf("copies by queue there and back %v, want %v", got, want)
			}
		})
	}
}

func TestCopiesOverlapKernels(t *testing.T) {
	r := newRig(t, onQueues, 1)
	defer r.close()
	x, y := filled(16, 0), filled(order.CopyApart/4, 7)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	r.d.hold()
	r.heavy("kernel", x, 200_000)
	resume := r.stall(slices.IndexFunc(r.kernelsOn(), func(n uint64) bool { return n > 0 }))
	r.run(launch{label: "upload", enter: []arg{to(y)}, out: [][]uint32{y}})
	q := r.s.order.All()[3]
	r.eventually("the upload is complete", func() bool { return q.Last() > 0 && q.Completed() == q.Last() })
	r.s.mu.Lock()
	if r.s.order.All()[0].Last() == r.s.order.All()[0].Completed() {
		t.Error("the kernel is complete too, and proves nothing")
	}
	r.s.mu.Unlock()
	resume()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x), {s: y, kind: memory.MapRelease}}, included: true})
	r.expect("x", x, filled(16, 1)...)
}

func TestRandomPlacementIsReproducibleAndUsesEveryQueue(t *testing.T) {
	mode := onQueues
	mode.placement = PlaceRandom
	// queues runs a program with a seed and returns on which queues its commands were, by their
	// labels.
	queues := func(seed uint64) (on map[string][]int) {
		r := newRig(t, mode, seed)
		defer r.close()
		x, y := filled(16, 0), filled(16, 0)
		r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
		r.d.hold()
		for range 40 {
			r.run(launch{label: "x", kernel: "add", args: []arg{alloc(x)}, constant: 1, out: [][]uint32{x}})
			r.transfer(launch{label: "y", out: [][]uint32{y}}, update(transfer.UpdateTo, y))
		}
		r.d.release()
		r.taskwait()
		r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
		r.expect("x", x, filled(16, 40)...)
		on = make(map[string][]int)
		for _, label := range []string{"add", "copy"} {
			for _, c := range r.commands(label) {
				on[label] = append(on[label], c.queue)
			}
		}
		return on
	}
	first := queues(1)
	for range 3 {
		if again := queues(1); fmt.Sprint(again) != fmt.Sprint(first) {
			t.Fatalf("one seed gave %v and %v", first, again)
		}
	}
	if other := queues(2); fmt.Sprint(other) == fmt.Sprint(first) {
		t.Errorf("two seeds gave %v", first)
	}
	for i, q := range manyQueues {
		if slices.Contains(first["add"], i) != q.Compute {
			t.Errorf("queue %d of %v has kernels: %v", i, manyQueues, first["add"])
		}
		if !slices.Contains(first["copy"], i) {
			t.Errorf("queue %d has no copies: %v", i, first["copy"])
		}
	}
}
